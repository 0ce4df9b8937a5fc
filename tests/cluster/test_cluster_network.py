"""Which addresses and ports a job uses: the ones that reach, on IPv4 and IPv6, in a range if asked, and no others."""

import contextlib
import os
import re
import subprocess

import pytest

from cluster import ROOT
from cluster_job import worker

LOOPBACK = {"127.0.0.1", "::1"}
ANYWHERE = {"0.0.0.0", "*", "::"}
EXAMPLE = os.path.join(ROOT, "worker", "examples", "torch", "city_management_model.py")
ONCE = [*worker("ring.py"), "once"]


@contextlib.contextmanager
def decoys(cluster):
    """Interface names that differ, and a bridge that is the same on every host."""
    hosts = [cluster[name] for name in ("home", "a", "b")]
    cluster["b"].rename_interface("ens5")
    for host in hosts:
        host.add_decoy()
    try:
        yield
    finally:
        for host in hosts:
            host.remove_decoy()
        cluster["b"].rename_interface("eth0")


@contextlib.contextmanager
def ipv6_only(cluster):
    hosts = [cluster[name] for name in ("home", "a", "b")]
    for host in hosts:
        host.ip(*host.addresses(host.address6))
    try:
        yield
    finally:
        for host in hosts:
            host.ip(*host.addresses())


def listeners(cluster, *names):
    return {(name, address, port) for name in names for address, port, _ in cluster[name].listeners()}


@contextlib.contextmanager
def running(start, shared, *arguments, sum_of=2):
    """A job whose workers sum in a ring until the block ends, and then have to end well."""
    with start(*arguments, *worker("ring.py"), "until", str(shared / "enough")) as job:
        job.wait_for("sum %d" % sum(range(1, sum_of + 1)), sum_of)
        yield job
        (shared / "enough").touch()
        assert job.wait() == 0, job.stderr
        assert job.stdout.count("done") == sum_of


def test_a_decoy_bridge_and_differing_names_do_no_harm(cluster, run):
    with decoys(cluster):
        code, out, err = run("-np", "4", "-H", "a:2,b:2", *ONCE)
    assert (code, out.count("sum 10")) == (0, 4), err


def test_interfaces_by_host_are_the_only_ones_used(cluster, start, shared):
    with decoys(cluster):
        choice = ["--network-interface", "a=eth0,b=ens5"]
        with running(start, shared, "-np", "2", "-H", "a:1,b:1", *choice):
            addresses = {(name, address) for name, address, _ in listeners(cluster, "a", "b")}
        expected = {(name, address) for name in "ab" for address in (cluster[name].address, cluster[name].address6)}
        assert addresses == expected


@pytest.mark.parametrize("family", ["10.77.0.0/24", "fd77::/64"])
def test_an_address_range_chooses_on_every_host(cluster, start, shared, family):
    with decoys(cluster):
        with running(start, shared, "-np", "2", "-H", "a:1,b:1", "--network-interface", family):
            addresses = {(name, address) for name, address, _ in listeners(cluster, "a", "b")}
        wanted = "address6" if ":" in family else "address"
        assert addresses == {(name, getattr(cluster[name], wanted)) for name in "ab"}


def test_an_interface_that_one_host_lacks_is_an_error_that_names_what_it_has(cluster, run):
    with decoys(cluster):
        code, out, err = run("-np", "2", "-H", "a:1,b:1", "--network-interface", "eth0", *ONCE)
    assert (code, out) == (1, "")
    assert re.search(r"\bb\b.*eth0.*ens5", err), err


def test_nothing_listens_on_all_addresses_and_verbose_lists_what_does(cluster, start, shared):
    with running(start, shared, "-np", "2", "-H", "a:1,b:1", "--verbose") as job:
        found = listeners(cluster, "home", "a", "b")
        assert {name for name, _, _ in found} == {"home", "a", "b"}
        assert {address for _, address, _ in found} & (ANYWHERE | LOOPBACK) == set()
        for _, address, port in found:
            assert re.search(r"listen.*%s\]?:%d\b" % (re.escape(address), port), job.stderr), job.stderr


def test_a_job_on_this_machine_listens_on_the_loopback_only(cluster, start, shared):
    with running(start, shared, "-np", "2", "-H", "localhost:2"):
        assert {address for _, address, _ in listeners(cluster, "home")} <= LOOPBACK


def test_two_jobs_at_once_stay_inside_a_range_of_ports(cluster, start, shared):
    arguments = ["-np", "4", "-H", "a:2,b:2", "--port-range", "23000-23019"]
    (shared / "2").mkdir()
    with running(start, shared, *arguments, sum_of=4), running(start, shared / "2", *arguments, sum_of=4):
        ports = [port for _, _, port in listeners(cluster, "home", "a", "b")]
        assert len(ports) >= 2 + 8
        assert all(23000 <= port <= 23019 for port in ports), ports


HOLD = """
import socket, sys
held = [socket.create_server((sys.argv[1], 23000)), socket.create_server((sys.argv[2], 23000), family=socket.AF_INET6)]
print("held", flush=True)
sys.stdin.read()
"""


def test_a_range_that_is_used_up_is_an_error_that_names_it(cluster, run):
    a = cluster["a"]
    command = a.inside(["python3", "-c", HOLD, a.address, a.address6])
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"held\n"
        code, _, err = run("-np", "2", "-H", "a:1,b:1", "--port-range", "23000-23000", *ONCE)
        holder.stdin.close()
    assert code == 1 and "23000-23000" in err and a.address in err, err


def test_ipv6_alone(cluster, start, shared):
    with ipv6_only(cluster):
        with running(start, shared, "-np", "2", "-H", "a6:1,b6:1"):
            found = listeners(cluster, "home", "a", "b")
            assert {name for name, _, _ in found} == {"home", "a", "b"}
            assert all(":" in address for _, address, _ in found), found


def test_ipv6_addresses_as_hosts(cluster, run):
    code, out, err = run("-np", "2", "-H", "[%s]:1,[%s]:1" % (cluster["a"].address6, cluster["b"].address6), *ONCE)
    assert (code, out.count("sum 3")) == (0, 2), err


def strangers_at(cluster, targets):
    """Host c connects to all (address, port) as nobody should; processes that hold connections until they are ended."""
    for address, port in targets:
        command = cluster["c"].inside([*worker("stranger.py"), address, str(port)])
        yield subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


@pytest.mark.parametrize("port", ["control", "data"])
def test_strangers_change_nothing(cluster, start, shared, port):
    with running(start, shared, "-np", "2", "-H", "a:1,b:1", "--verbose") as job:
        name = "home" if port == "control" else "a"
        targets = [(address, number) for _, address, number in listeners(cluster, name)]
        assert targets
        strangers = list(strangers_at(cluster, targets))
        try:
            for stranger in strangers:
                assert stranger.stdout.readline().startswith(b"done")
        finally:
            for stranger in strangers:
                stranger.communicate(timeout=30)
    if port == "control":
        # They were counted: hundreds of them.
        assert re.search(
            r"(stranger|refused|prove).*\b\d{3,}\b|\b\d{3,}\b.*(stranger|refused|prove)", job.stderr
        ), job.stderr


@pytest.mark.parametrize("hosts", ["a:2,b:2", "a6:2,b6:2"], ids=["ipv4", "ipv6"])
def test_the_example_learns_on_two_hosts(cluster, start, shared, hosts):
    plot = shared / "forecast.png"
    with ipv6_only(cluster) if "6" in hosts else contextlib.nullcontext():
        with start("-np", "4", "-H", hosts, "python", "-B", EXAMPLE, "--epochs", "2", "--plot", str(plot)) as job:
            assert job.wait(120.0) == 0, job.stdout + job.stderr
            assert len(re.findall(r"identical on all 4 workers", job.stdout)) == 1
            assert len(re.findall(r"epoch +\d/2", job.stdout)) == 2
    assert plot.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
