"""How a job over several hosts ends (cases S01, S03, F01, and whatever may be killed): nothing of it stays anywhere,
and nothing of another job is touched."""

import os
import re
import signal

import pytest

from cluster_job import assert_nothing_left, parent_of, program_of, worker
from job import Watched, command_line

GRACE = 2
SLACK = 5.0  # seconds, for what takes a few milliseconds
SOON = 2.0  # seconds after the launcher's end; sshd ends its sessions when it sees that they are closed
LOST_AFTER = 3.0  # seconds; the driver's and the agents' default
HOSTS = ["-np", "4", "-H", "a:2,b:2", "--grace", str(GRACE)]
POLITE = worker("family.sh")
DEAF = [*POLITE, "deaf"]


def assert_all_gone(cluster, seconds):
    assert_nothing_left([cluster[name] for name in ("a", "b", "home")], seconds)


def test_success_takes_what_workers_have_left_behind(cluster, run):
    code, out, err = run(*HOSTS, "sh", "-c", "sleep 1000 & setsid sleep 1000 & echo done")
    assert (code, out.count("done")) == (0, 4), err
    assert_all_gone(cluster, SOON)


@pytest.mark.parametrize("backend", ["libssh", "openssh"])
def test_s01_ctrl_c_while_a_host_is_being_reached(cluster, start, backend):
    cluster.cut("b")
    try:
        with start(*HOSTS, "--ssh-backend", backend, "--verbose", *POLITE) as job:
            job.wait_for(r"host b: connect", stream="stderr")
            job.signal(signal.SIGINT)
            assert job.wait(SLACK) == 130, job.stderr
            assert_all_gone(cluster, SOON)
    finally:
        cluster.heal("b")


@pytest.mark.parametrize("command, seconds", [(POLITE, 0), (DEAF, GRACE)], ids=["polite", "deaf"])
def test_s01_ctrl_c_ends_everything_within_the_grace(cluster, start, command, seconds):
    with start(*HOSTS, *command) as job:
        job.wait_for("ready", 4)
        before = job.age()
        job.signal(signal.SIGINT)
        assert job.wait(seconds + SLACK) == 130
        assert seconds <= job.age() - before
        assert_all_gone(cluster, SOON)


def test_s01_a_second_ctrl_c_ends_everything_at_once(cluster, start):
    with start("-np", "4", "-H", "a:2,b:2", "--grace", "60", *POLITE, "told") as job:
        job.wait_for("ready", 4)
        job.signal(signal.SIGINT)
        job.wait_for("told", 4)
        job.signal(signal.SIGINT)
        assert job.wait(SLACK) == 130
        assert_all_gone(cluster, SOON)


def test_s01_another_job_on_the_same_hosts_is_not_touched(start, cluster):
    with start(*HOSTS, *POLITE) as other, start(*HOSTS, *DEAF) as job:
        other.wait_for("ready", 4)
        job.wait_for("ready", 4)
        before = {host: set(other.workers_on(cluster[host])) for host in "ab"}
        agents = {host: other.agent_on(cluster[host]) for host in "ab"}
        job.signal(signal.SIGINT)
        assert job.wait(GRACE + SLACK) == 130
        assert job.pids() == []
        for host in "ab":  # a family may have grown meanwhile
            assert before[host] <= set(other.workers_on(cluster[host]))
        assert {host: other.agent_on(cluster[host]) for host in "ab"} == agents
        assert other.process.poll() is None
        other.signal(signal.SIGTERM)
        assert other.wait(GRACE + SLACK) == 143
        assert_all_gone(cluster, SOON)


@pytest.mark.parametrize("cause", ["TERM", "failure"])
def test_s03_who_saves_on_term_gets_the_whole_grace(start, shared, cause):
    """Of case S03 what a static job shows; planned removal waits for elastic jobs."""
    save, grace = 3, 20
    arguments = ["-np", "4", "-H", "a:2,b:2", "--grace", str(grace)]
    with start(*arguments, *worker("saver.sh"), str(save), str(shared), "5") as job:
        job.wait_for("ready", 4)
        before = job.age()
        if cause == "TERM":
            job.signal(signal.SIGTERM)
        else:
            (shared / "fail").touch()
        assert job.wait(grace) == (143 if cause == "TERM" else 5), job.stderr
        assert save <= job.age() - before < grace
        saved = {0, 1, 2, 3} if cause == "TERM" else {0, 2, 3}
        assert {path.name for path in shared.glob("saved.*")} == {"saved.%d" % rank for rank in saved}
        assert "SIGKILL" not in job.stderr


def test_s03_who_overruns_the_grace_is_killed_and_named(start, shared):
    script = "[ $HOROVOD_RANK != 2 ] || trap '' TERM; echo ready; exec sleep 1000"
    with start(*HOSTS, "sh", "-c", script) as job:
        job.wait_for("ready", 4)
        before = job.age()
        job.signal(signal.SIGTERM)
        assert job.wait(GRACE + SLACK) == 143
        assert job.age() - before >= GRACE
        named = [line for line in job.stderr.splitlines() if "grace" in line and "rank" in line]
        assert len(named) == 1 and "rank 2" in named[0] and "host b" in named[0] and "killed" in named[0], job.stderr


@pytest.mark.parametrize("command, seconds", [(POLITE, 0), (DEAF, GRACE)], ids=["polite", "deaf"])
def test_f01_one_failure_ends_the_job_with_its_code(cluster, start, command, seconds):
    script = '[ "$HOROVOD_RANK" = 2 ] && sleep 1 && exit 1; exec "$@"'
    with start(*HOSTS, "sh", "-c", script, "sh", *command) as job:
        job.wait_for("ready", 3)
        assert job.wait(1 + seconds + SLACK) == 1
        assert re.search(r"rank 2 \(host b, .*exit code 1\b", job.stderr)
        assert_all_gone(cluster, SOON)


@pytest.mark.parametrize("command, seconds", [(POLITE, 0), (DEAF, GRACE)], ids=["polite", "deaf"])
def test_a_killed_launcher_takes_everything_with_it(cluster, start, command, seconds):
    with start(*HOSTS, *command) as job:
        job.wait_for("ready", 4)
        os.kill(job.launcher, signal.SIGKILL)
        assert_all_gone(cluster, seconds + SLACK)


def test_a_closed_terminal_ends_the_job(cluster, start):
    with start(*HOSTS, *DEAF, terminal=True) as job:
        job.wait_for("ready", 4)
        job.close_terminal()
        assert_all_gone(cluster, GRACE + SLACK)


def test_ctrl_c_typed_into_the_terminal_ends_the_job(cluster, start):
    with start(*HOSTS, *POLITE, terminal=True) as job:
        job.wait_for("ready", 4)
        os.write(job.terminal, b"\x03")
        assert_all_gone(cluster, SLACK)


@pytest.mark.parametrize("which", ["agent", "its parent"])
def test_a_killed_agent_leaves_nothing_on_its_host(cluster, start, which):
    with start(*HOSTS, *DEAF) as job:
        job.wait_for("ready", 4)
        agent = job.agent_on(cluster["b"])
        os.kill(agent if which == "agent" else parent_of(agent), signal.SIGKILL)
        assert job.wait(GRACE + SLACK) == 1
        assert "agent" in job.stderr and re.search(r"\bb\b", job.stderr)
        assert_all_gone(cluster, GRACE + SLACK)


def test_a_frozen_agent_is_named_and_its_host_is_cleared(cluster, start):
    with start(*HOSTS, *DEAF) as job:
        job.wait_for("ready", 4)
        os.kill(job.agent_on(cluster["b"]), signal.SIGSTOP)
        assert job.wait(LOST_AFTER + GRACE + SLACK) == 1
        assert re.search(r"\bb\b", job.stderr), job.stderr
        assert_all_gone(cluster, SLACK)


def test_a_stopped_launcher_stops_nobody_else(cluster, start, shared):
    """Ctrl-Z, or a machine that is suspended: the workers go on, and so does the job when it is resumed."""
    with start("-np", "2", "-H", "a:1,b:1", *worker("ring.py"), "until", str(shared / "enough")) as job:
        job.wait_for("sum 3", 2)
        launcher = job.launcher
        os.kill(launcher, signal.SIGSTOP)
        with Watched(job.workers_on(cluster["b"])[0]) as process:
            assert not process.ended(2 * LOST_AFTER)
        os.kill(launcher, signal.SIGCONT)
        os.kill(job.process.pid, signal.SIGCONT)  # nsenter has stopped itself with it
        (shared / "enough").touch()
        assert job.wait() == 0, job.stderr


def test_a_host_that_is_cut_off_is_named_and_ends_its_workers_itself(cluster, start):
    with start(*HOSTS, *DEAF) as job:
        job.wait_for("ready", 4)
        cluster.cut("b")
        try:
            assert job.wait(LOST_AFTER + GRACE + SLACK) == 1
            assert re.search(r"\bb\b.*(sign of life)", job.stderr), job.stderr
            assert_nothing_left([cluster["a"], cluster["home"]], SLACK)
            # Nobody can tell b, which has to find out and to act alone.
            deadline = job.age() + LOST_AFTER + GRACE + SLACK
            for pid in cluster["b"].processes():
                with Watched(pid) as process:
                    # Its sshd cannot know yet that nobody is at the other end.
                    assert program_of(pid) == "sshd" or process.ended(deadline - job.age()), command_line(pid)
            for pid in cluster["b"].processes():
                os.kill(pid, signal.SIGKILL)
        finally:
            cluster.heal("b")


def test_ssh_itself_is_not_needed_once_the_job_runs(cluster, start):
    """The sshd of a host may go away; its connections, and the job, stay."""
    with start("-np", "2", "-H", "a:1,b:1", *worker("ring.py")) as job:
        job.wait_for("sum 3", 2)
        cluster["b"].stop_sshd()
        cluster["b"].start_sshd()
        assert job.process.poll() is None
        job.signal(signal.SIGINT)
        assert job.wait() == 130
