"""horovod.run(): a function as a job, and what it returned."""

import os
import signal
import subprocess
import sys
import threading

import horovod
import pytest


def place(base, factor=1):
    import horovod.torch as hvd
    import torch

    hvd.init()
    total = hvd.allreduce(torch.tensor([float(hvd.rank() + 1)]), op=hvd.Sum).item()
    return base + factor * hvd.rank(), hvd.size(), total


@pytest.fixture(autouse=True)
def temporary_folder(tmp_path, monkeypatch):
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    yield
    assert os.listdir(folder) == [], "nothing is left behind"


def test_results_come_in_the_order_of_ranks():
    assert horovod.run(place, args=(100,), kwargs={"factor": 10}, num_proc=3, hosts="localhost:3") == [
        (100, 3, 6.0),
        (110, 3, 6.0),
        (120, 3, 6.0),
    ]


def test_large_functions_and_results_travel_whole():
    payload = os.urandom(20_000_000)
    results = horovod.run(lambda: (len(payload), payload[::-1]), num_proc=2)
    assert results == [(len(payload), payload[::-1])] * 2


def test_one_process_is_the_default_and_standard_input_is_free_afterwards():
    assert horovod.run(lambda: sys.stdin.read()) == [""]


def test_none_is_a_result():
    assert horovod.run(lambda: None, num_proc=2) == [None, None]


def test_an_exception_names_the_rank(capfd):
    def fail():
        if os.environ["HOROVOD_RANK"] == "1":
            raise ValueError("no cheese")
        return 1

    with pytest.raises(RuntimeError, match=r"(?s)non-zero status.*Process name: 1\nExit code: 1\n"):
        horovod.run(fail, num_proc=2)
    assert "User function raise error: no cheese" in capfd.readouterr().err


def test_a_function_that_ends_its_process_has_no_result():
    with pytest.raises(RuntimeError, match="rank 0 ended with 0 and without a result"):
        horovod.run(lambda: os._exit(0))


def test_bad_arguments_start_nothing():
    with pytest.raises(ValueError, match="hosts and hostfile"):
        horovod.run(place, hosts="a:1", hostfile="b")
    with pytest.raises(ValueError, match="use_gloo and use_mpi"):
        horovod.run(place, use_gloo=True, use_mpi=True)
    with pytest.raises(RuntimeError, match="exit code 2 before anything was started"):
        horovod.run(place, num_proc=3, hosts="localhost:2")
    with pytest.warns(DeprecationWarning, match="np is deprecated, use num_proc"):
        assert horovod.run(lambda: 5, np=1) == [5]


def test_ctrl_c_reaches_the_job_and_then_the_caller(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        """
import horovod, time
def forever():
    print("ready", flush=True)
    time.sleep(1000)
try:
    horovod.run(forever, num_proc=2)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
    )
    process = subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, start_new_session=True, text=True
    )
    too_late = threading.Timer(60, os.killpg, (process.pid, signal.SIGKILL))
    too_late.start()
    for _ in range(2):
        assert process.stdout.readline().endswith("ready\n")
    too_late.cancel()
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    out, _ = process.communicate(timeout=60)
    assert out == "interrupted\n"
    assert process.returncode == 0
