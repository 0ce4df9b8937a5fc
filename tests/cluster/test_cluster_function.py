"""horovod.run() over ssh: the function and its results travel over the job's own connections."""

import json

SCRIPT = """
import json, os, socket
import horovod

secret = os.urandom(300_000)

def place(base, payload=b""):
    assert payload == secret
    return base + int(os.environ["HOROVOD_RANK"]), socket.gethostname(), len(payload)

results = horovod.run(place, args=(100,), kwargs={"payload": secret}, num_proc=3, hosts="a:2,b:1")
print(json.dumps(results))
"""

FAILS = """
import os
import horovod

def fail():
    if os.environ["HOROVOD_HOSTNAME"] == "b":
        raise ValueError("no cheese on b")

try:
    horovod.run(fail, num_proc=2, hosts="a:1,b:1")
except RuntimeError as error:
    print(error)
"""


def run_python(cluster, script):
    _, out, err = cluster["home"].run(["/usr/bin/python3", "-B", "-c", script])
    return out, err


def test_a_function_runs_on_two_hosts_and_its_results_come_back(cluster):
    out, err = run_python(cluster, SCRIPT)
    assert out.strip(), err
    assert json.loads(out.splitlines()[-1]) == [[100, "a", 300_000], [101, "a", 300_000], [102, "b", 300_000]]
    assert not [name for host in cluster.hosts.values() for name in host.temporary_files()]


def test_the_exception_of_another_host_is_told(cluster):
    out, err = run_python(cluster, FAILS)
    assert "Process name: 1\nExit code: 1\n" in out, out + err
    assert "User function raise error: no cheese on b" in err
