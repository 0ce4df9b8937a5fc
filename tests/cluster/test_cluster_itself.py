"""The cluster by itself, before any program of ours: what the other tests of this folder take for granted."""

import os
import signal
import socket
import subprocess
import sys

import pytest

from cluster import HERE, USER, Cluster, why_not
from cluster_job import left_on
from job import Watched

REACHES = ["python3", "-c", "import socket, sys; socket.create_connection((sys.argv[1], 22), 0.5)"]


def test_every_host_reaches_every_other_one_by_ssh(cluster):
    a, b, c, d = (cluster[name] for name in cluster.names)
    for source, target, name in [("home", "a", a), ("home", "b6", b), ("home", c.address, c), ("a", d.address6, d)]:
        done = cluster[source].run(["ssh", "-o", "BatchMode=yes", target, "hostname"])
        assert done == (0, name.name + "\n", "")
    code, out, _ = cluster["home"].run(["ssh", "-o", "BatchMode=yes", USER + "@b", "id -un; echo $HOME"])
    assert (code, out.split()) == (0, [USER, os.path.join(cluster["b"].folder, USER)])


def test_a_cut_is_silent_and_can_be_healed(cluster):
    home = cluster["home"]
    assert home.run([*REACHES, "b"])[0] == 0
    cluster.cut("b")
    try:
        assert "timed out" in home.run([*REACHES, "b"])[2]
        assert home.run([*REACHES, "c"])[0] == 0
    finally:
        cluster.heal("b")
    assert home.run([*REACHES, "b"])[0] == 0


def test_without_sshd_a_connection_is_refused(cluster):
    cluster["b"].stop_sshd()
    try:
        assert "Connection refused" in cluster["home"].run([*REACHES, "b"])[2]
    finally:
        cluster["b"].start_sshd()
    assert cluster["home"].run([*REACHES, "b"])[0] == 0


def test_without_a_key_nobody_comes_in(cluster):
    cluster["b"].allow()
    assert "Permission denied (publickey)" in cluster["home"].run(["ssh", "-o", "BatchMode=yes", "b", "true"])[2]


def test_hosts_have_files_processes_and_listeners_of_their_own(cluster):
    a, b = cluster["a"], cluster["b"]
    a.run(["touch", "/tmp/mine", "/dev/shm/mine"])
    listen = "import socket; s = socket.create_server(('', 1234)); print('listens', flush=True); s.accept()"
    with subprocess.Popen(a.inside(["python3", "-c", listen]), stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"listens\n"
        assert a.listeners() == [("0.0.0.0", 1234, "python3")]
        assert [line.split()[1] for line in left_on(a)] == ["process", "python3", "/dev/shm/mine", "/tmp/mine"]
        assert left_on(b) == []
        os.kill(a.processes()[0], signal.SIGKILL)
    a.run(["rm", "/tmp/mine", "/dev/shm/mine"])
    assert left_on(a) == []
    assert not os.path.exists("/dev/shm/mine")


def test_interfaces_can_be_renamed_and_a_decoy_added(cluster):
    b = cluster["b"]
    b.rename_interface("ens5")
    b.add_decoy()
    try:
        code, out, _ = b.run(["ip", "-brief", "address"])
        assert code == 0 and "ens5@" in out and "172.17.0.1/16" in out and "eth0@" not in out
        assert cluster["home"].run([*REACHES, "b"])[0] == 0
        assert cluster["home"].run([*REACHES, "b6"])[0] == 0
    finally:
        b.remove_decoy()
        b.rename_interface("eth0")


ONE = """
import sys
sys.path.insert(0, sys.argv[1])
from cluster import Cluster
with Cluster(["a"]) as cluster:
    print(cluster.folder, *[host.pid for host in [*cluster.hosts.values(), cluster.switch]], flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("end", ["normal", "killed"])
def test_nothing_of_a_cluster_outlives_its_test(end):
    if why_not():
        pytest.skip(why_not())
    network = subprocess.run(["ip", "address"], stdout=subprocess.PIPE, check=True).stdout
    with subprocess.Popen(
        [sys.executable, "-B", "-c", ONE, HERE], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as test:
        folder, *pids = test.stdout.readline().decode().split()
        assert len(pids) == 3
        if end == "killed":
            test.kill()
        else:
            test.stdin.close()
        for pid in pids:
            with Watched(int(pid)) as process:
                assert process.ended(10.0)
    assert subprocess.run(["ip", "address"], stdout=subprocess.PIPE, check=True).stdout == network
    if end == "killed":
        Cluster.remove_leftovers()
    assert not os.path.exists(folder)


def test_two_clusters_do_not_meet(cluster):
    with Cluster(["a"]) as other:
        assert other["a"].address == cluster["a"].address
        other["a"].stop_sshd()
        assert cluster["home"].run([*REACHES, "a"])[0] == 0
        assert socket.gethostname() not in ("a", "home")
