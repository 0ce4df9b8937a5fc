"""Jobs of several ranks: what the files in np/ test together, and how such jobs end."""

import re
import signal

import pytest
from launched import finish, run, run_script, run_tests, start


@pytest.mark.parametrize(
    "module, size",
    [("job_ops.py", 2), ("job_ops.py", 3), ("job_more_ops.py", 3), ("job_optimizer.py", 2), ("job_optimizer.py", 3)],
)
def test_together(module, size):
    run_tests(size, module)


@pytest.mark.parametrize("module", ["job_mismatch.py", "job_state.py", "job_lifecycle.py"])
def test_two_together(module):
    run_tests(2, module)


@pytest.mark.parametrize("module", ["job_ops.py", "job_more_ops.py"])
def test_operations_over_tcp(module):
    run_tests(3, module, env={"FARANDOLE_TRANSPORT": "tcp"})


@pytest.mark.parametrize("kind", ["loader", "subprocess", "fork", "spawn", "os_fork"])
def test_scripts_that_fork_train_and_end(kind):
    code, stdout, stderr = run_script(2, "forking.py", kind)
    assert code == 0, stdout + stderr
    assert sorted(re.findall(r"trained \d", stdout)) == ["trained 0", "trained 1"]


def test_ctrl_c_ends_ranks_that_wait_for_each_other():
    with start(
        2,
        "-c",
        """
import horovod.torch as hvd, torch
hvd.init()
print("ready", flush=True)
hvd.allreduce(torch.ones(1), name="only on rank %d" % hvd.rank())
""",
    ) as job:
        job.wait_for_output(2)
        job.process.send_signal(signal.SIGINT)
        code, stdout, stderr = finish(job)
    assert code == 130, stdout + stderr


def test_the_end_of_the_interpreter_is_a_shutdown():
    code, stdout, stderr = run(
        2,
        "-c",
        """
import horovod.torch as hvd, torch
hvd.init()
for i in range(10):
    hvd.allreduce_async(torch.ones(100000), name=str(i))
hvd.barrier()  # all ranks have asked; a rank that ended before would fail what the others ask for after it
print("end", flush=True)
""",
    )
    assert (code, stdout.count("end")) == (0, 2), stdout + stderr
    assert "Traceback" not in stderr


def test_an_exception_ends_the_job_with_its_words():
    code, stdout, stderr = run(
        2,
        "-c",
        """
import horovod.torch as hvd, torch
hvd.init()
if hvd.rank() == 1:
    raise SystemExit("rank 1 has had enough")
hvd.allreduce(torch.ones(1), name="x")
""",
    )
    assert code == 1, stdout + stderr
    assert "rank 1 has had enough" in stderr
