"""Every way a run can end, and that nothing of the job is left afterwards."""

import os
import re
import signal

import pytest

from job import Job

# A worker with a child, a grandchild in a session of its own, and a deaf ear for TERM: the hardest to end.
STUBBORN = "trap '' TERM INT; sleep 1000 & setsid sh -c 'trap \"\" TERM; sleep 1000' & echo ready $$; wait; wait"
# A worker that ends on TERM as programs do.
POLITE = "echo ready $$; exec sleep 1000"
GRACE = 5.0  # the launcher's default between TERM and KILL
SLACK = 5.0


def start(tmp_path, script, np=2, hosts="localhost:2"):
    tmp = tmp_path / "tmp"
    tmp.mkdir()
    return Job("-np", str(np), "-H", hosts, "sh", "-c", script, tmp=tmp)


def worker_pids(text):
    return [int(pid) for pid in re.findall(r"ready (\d+)", text)]


def test_success_leaves_nothing(tmp_path):
    with start(tmp_path, "setsid sleep 1000 & echo ready $$") as job:
        assert job.wait() == 0
        job.assert_nothing_left(SLACK)


def test_a_failure_ends_the_others_and_is_the_exit_code(tmp_path):
    script = f'if [ "$HOROVOD_RANK" = 1 ]; then echo "out of cheese" >&2; exit 3; fi; {STUBBORN}'
    with start(tmp_path, script, np=3, hosts="localhost:3") as job:
        assert job.wait(GRACE + SLACK) == 3
        report = job.stderr
        assert re.search(r"rank 1\b", report) and "localhost" in report and re.search(r"\b3\b", report)
        assert "out of cheese" in report.split("rank 1", 1)[1], "the last lines of the failed rank are in the report"
        job.assert_nothing_left(SLACK)


def test_two_hosts_on_one_machine_end_together(tmp_path):
    script = f'if [ "$HOROVOD_HOSTNAME" = 127.0.0.1 ]; then exit 4; fi; {STUBBORN}'
    with start(tmp_path, script, np=2, hosts="localhost:1,127.0.0.1:1") as job:
        assert job.wait(GRACE + SLACK) == 4
        job.assert_nothing_left(SLACK)


@pytest.mark.parametrize("number, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_one_signal_lets_polite_workers_go_at_once(tmp_path, number, code):
    with start(tmp_path, POLITE) as job:
        job.wait_for_output(2)
        job.process.send_signal(number)
        assert job.wait(GRACE) == code
        job.assert_nothing_left(SLACK)


def test_one_ctrl_c_kills_stubborn_workers_after_the_grace(tmp_path):
    with start(tmp_path, STUBBORN) as job:
        job.wait_for_output(2)
        job.process.send_signal(signal.SIGINT)
        assert job.wait(GRACE + SLACK) == 130
        job.assert_nothing_left(SLACK)


def test_a_second_ctrl_c_ends_at_once(tmp_path):
    with start(tmp_path, STUBBORN) as job:
        job.wait_for_output(2)
        job.process.send_signal(signal.SIGINT)
        job.process.send_signal(signal.SIGTERM)
        assert job.wait(GRACE * 0.8) == 130, "the first signal names the end"
        job.assert_nothing_left(SLACK)


@pytest.mark.parametrize("script", [POLITE, STUBBORN], ids=["polite", "stubborn"])
def test_a_killed_launcher_takes_everything_with_it(tmp_path, script):
    with start(tmp_path, script) as job:
        job.wait_for_output(2)
        job.process.kill()
        job.wait()
        job.assert_nothing_left(GRACE + SLACK)


@pytest.mark.parametrize("script", [POLITE, STUBBORN], ids=["polite", "stubborn"])
def test_a_killed_agent_ends_the_job_with_its_name(tmp_path, script):
    with start(tmp_path, script) as job:
        job.wait_for_output(2)
        os.kill(job.pid_of("farandole-agent"), signal.SIGKILL)
        assert job.wait(GRACE + SLACK) == 1
        assert "agent" in job.stderr and "localhost" in job.stderr
        job.assert_nothing_left(SLACK)


def test_a_killed_worker_ends_the_job_as_a_shell_would_say_it(tmp_path):
    with start(tmp_path, STUBBORN) as job:
        os.kill(worker_pids(job.wait_for_output(2))[0], signal.SIGKILL)
        assert job.wait(GRACE + SLACK) == 128 + signal.SIGKILL
        assert "SIGKILL" in job.stderr
        job.assert_nothing_left(SLACK)


def test_killing_launcher_and_agent_together_leaves_no_worker(tmp_path):
    with start(tmp_path, POLITE) as job:
        job.wait_for_output(2)
        agent = job.pid_of("farandole-agent")
        job.process.kill()
        os.kill(agent, signal.SIGKILL)
        job.wait()
        job.assert_nothing_left(SLACK)


def test_a_job_does_not_touch_another_one(tmp_path):
    (tmp_path / "other").mkdir()
    with start(tmp_path / "other", POLITE) as other, start(tmp_path, POLITE) as job:
        other.wait_for_output(2)
        job.wait_for_output(2)
        job.process.send_signal(signal.SIGINT)
        assert job.wait(GRACE + SLACK) == 130
        assert other.process.poll() is None
        assert len(other.pids()) >= 4  # launcher, agent, two workers
        other.process.send_signal(signal.SIGINT)
        assert other.wait(GRACE + SLACK) == 130
