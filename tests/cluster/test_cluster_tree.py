"""Hosts that are reached through others: the launcher connects to few, and the agents that are up lend their network.

FARANDOLE_DIRECT_HOSTS makes a tree of few hosts: with 1, a is connected to from home, and b, c, d through a.
"""

import contextlib
import os
import re
import signal
import subprocess

from cluster_job import worker

TREE = {"FARANDOLE_DIRECT_HOSTS": "1"}
FOUR = ["-np", "4", "-H", "a:1,b:1,c:1,d:1", "--verbose", "--grace", "2"]
SECONDS = 40.0


def ssh_clients(cluster, name):
    """The names of the hosts whose connections sshd on this one holds."""
    host = cluster[name]
    lines = subprocess.run(
        ["nsenter", "-t", str(host.pid), "-n", "ss", "-tnH", "state", "established", "sport", "=", ":22"],
        stdout=subprocess.PIPE,
        check=True,
    ).stdout.decode()
    peers = {line.split()[3].rsplit(":", 1)[0].strip("[]") for line in lines.splitlines()}
    return {name for name, other in cluster.hosts.items() if peers & {other.address, other.address6}}


@contextlib.contextmanager
def no_way(host, other):
    """Nothing leaves `host` for `other`."""
    routes = ["%s/32" % other.address, "%s/128" % other.address6]
    host.ip(*("route add blackhole %s" % route for route in routes))
    try:
        yield
    finally:
        host.ip(*("route del blackhole %s" % route for route in routes))


def test_hosts_are_reached_through_one_that_is_up(cluster, start, shared):
    with start(*FOUR, *worker("ring.py"), "until", str(shared / "enough"), env=TREE) as job:
        job.wait_for("sum 10", 4)
        clients = {name: ssh_clients(cluster, name) for name in "abcd"}
        (shared / "enough").touch()
        assert job.wait() == 0, job.stderr
    assert clients == {"a": {"home"}, "b": {"a"}, "c": {"a"}, "d": {"a"}}, job.stderr
    assert job.stdout.count("done") == 4
    for name in "bcd":
        assert "host %s: agent started as process" % name in job.stderr
        assert "by way of host a" in job.stderr
    assert "gone" not in job.stderr, "what helps is there until the last has ended\n" + job.stderr


def test_a_helper_that_cannot_reach_a_host_is_done_without(cluster, start):
    with no_way(cluster["a"], cluster["d"]):
        with start(*FOUR, "sh", "-c", "echo here; exec sleep 1000", env=TREE) as job:
            job.wait_for("here", 4, seconds=SECONDS)
            assert ssh_clients(cluster, "d") == {"home"}, job.stderr
            assert ssh_clients(cluster, "c") == {"a"}, job.stderr
            job.signal(signal.SIGINT)
            assert job.wait() == 130, job.stderr
        assert "by way of host a" in job.stderr


def test_a_helper_that_is_killed_is_the_failure_that_is_named(cluster, start):
    with start(*FOUR, *worker("family.sh"), env=TREE) as job:
        job.wait_for("ready", 4, seconds=SECONDS)
        os.kill(job.agent_on(cluster["a"]), signal.SIGKILL)
        assert job.wait() == 1, job.stderr
    last = job.stderr[job.stderr.index("end job") :]
    assert "host a: its agent was lost" in last, job.stderr
    assert not re.search(r"host [bcd]\b", last), "they live on without it, and end when they are told to\n" + job.stderr


def test_what_goes_by_another_host_is_checked_here(cluster, start):
    """The key of the host at the end is compared with what the launcher's user knows; the helper vouches for nothing."""
    cluster["home"].know(*(line for name, line in cluster.known_host_lines().items() if name != "c"))
    with start(*FOUR, "true", env=TREE) as job:
        assert job.wait() == 1, job.stderr
        assert "host key" in job.stderr and "c" in job.stderr, job.stderr


def test_a_number_that_is_none_is_told(cluster, run):
    code, _, err = run(*FOUR, "true", env={"FARANDOLE_DIRECT_HOSTS": "0"})
    assert code == 2
    assert "FARANDOLE_DIRECT_HOSTS=0 is no number" in err
