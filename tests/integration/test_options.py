"""Options that change what workers get and what a person sees, in jobs on this machine."""

import json
import signal
import time

import pytest

from job import Job, run

SHOW = "import json, os, sys; print(json.dumps(dict(os.environ)))"


def environments(out):
    """The environment of each rank, by rank, from SHOW's output."""
    return {int(line[1]): json.loads(line.split(">:", 1)[1]) for line in out.splitlines()}


def environment(*options, **more):
    """The environment of the one worker of a job with these options."""
    code, out, err = run("-np", "1", *options, "python3", "-c", SHOW, **more)
    assert code == 0, err
    return environments(out)[0]


@pytest.mark.parametrize(
    "options, expected",
    [
        (["--fusion-threshold-mb", "32"], {"HOROVOD_FUSION_THRESHOLD": str(32 << 20)}),
        (["--cycle-time-ms", "20"], {"HOROVOD_CYCLE_TIME": "20.0"}),
        (["--cache-capacity", "0"], {"HOROVOD_CACHE_CAPACITY": "0"}),
        (
            ["--autotune", "--autotune-warmup-samples", "3"],
            {"HOROVOD_AUTOTUNE": "1", "HOROVOD_AUTOTUNE_WARMUP_SAMPLES": "3"},
        ),
        (
            ["--timeline-filename", "t", "--timeline-mark-cycles"],
            {"HOROVOD_TIMELINE": "t", "HOROVOD_TIMELINE_MARK_CYCLES": "1"},
        ),
        (["--no-stall-check"], {"HOROVOD_STALL_CHECK_DISABLE": "1"}),
        (
            ["--log-level", "DEBUG", "--log-without-timestamp"],
            {"HOROVOD_LOG_LEVEL": "DEBUG", "HOROVOD_LOG_HIDE_TIME": "1"},
        ),
        (["--tcp"], {"NCCL_IB_DISABLE": "1"}),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else None,
)
def test_tunables_become_variables_of_workers(options, expected):
    before = {name: "other" for name in expected}
    found = environment(*options, env=before)
    assert {name: found[name] for name in expected} == expected


def test_what_is_not_asked_for_is_left_alone():
    found = environment(env={"HOROVOD_CYCLE_TIME": "3"})
    assert found["HOROVOD_CYCLE_TIME"] == "3" and "HOROVOD_FUSION_THRESHOLD" not in found


def test_a_configuration_file_stands_between_options_and_the_callers_environment(tmp_path):
    (tmp_path / "config.yaml").write_text("params:\n  cycle_time_ms: 7\n  cache_capacity: 64\nunknown: 1\n")
    found = environment(
        "--cache-capacity",
        "2",
        "--config-file",
        str(tmp_path / "config.yaml"),
        env={"HOROVOD_CYCLE_TIME": "3", "HOROVOD_CACHE_CAPACITY": "1"},
    )
    assert (found["HOROVOD_CYCLE_TIME"], found["HOROVOD_CACHE_CAPACITY"]) == ("7.0", "2")


def test_an_option_for_what_is_not_here_says_what_happens_instead():
    code, out, err = run("-np", "1", "--mpi-args=--map-by core", "echo", "ran")
    assert (code, out) == (0, "[0]<stdout>:ran\n")
    assert len(err.splitlines()) == 1 and "--mpi-args" in err


def test_variables_are_added_and_kept_home():
    found = environment(
        "--env", "ADDED=a=b c", "--env", "ASKED", "--env-deny", "API_*", env={"ASKED": "1", "API_KEY": "2"}
    )
    assert (found["ADDED"], found["ASKED"]) == ("a=b c", "1") and "API_KEY" not in found


def test_a_dry_run_shows_the_plan_without_values_and_starts_nothing(tmp_path):
    started = tmp_path / "started"
    arguments = ["-np", "3", "-H", "localhost:2,127.0.0.1:2", "--dry-run", "--cycle-time-ms", "20"]
    code, out, err = run(*arguments, "--format=json", "touch", str(started), env={"API_TOKEN": "correct-horse"})
    assert code == 0, err
    plan = json.loads(out)
    assert [rank["host"] for rank in plan["ranks"]] == ["localhost", "localhost", "127.0.0.1"]
    assert plan["command"] == ["touch", str(started)]
    assert "HOROVOD_CYCLE_TIME" in out and "API_TOKEN" in out and "correct-horse" not in out + err
    code, out, err = run(*arguments, "touch", str(started), env={"API_TOKEN": "correct-horse"})
    assert code == 0 and "127.0.0.1" in out and "correct-horse" not in out + err
    assert not started.exists()


def test_the_grace_is_as_long_as_asked(tmp_path):
    with Job("-np", "2", "--grace", "1", "sh", "-c", "trap '' TERM; echo ready; sleep 1000") as job:
        job.wait_for_output(2)
        before = time.monotonic()
        job.process.send_signal(signal.SIGTERM)
        assert job.wait() == 143
        assert 1.0 <= time.monotonic() - before < 4.0
        job.assert_nothing_left(1.0)


def test_a_prefix_of_ones_own():
    template = "{host} {rank}/{local_rank} {stream}> "
    code, out, err = run("-np", "1", "--output-prefix", template, "sh", "-c", "echo a; echo b >&2")
    assert (code, out, err) == (0, "localhost 0/0 stdout> a\n", "localhost 0/0 stderr> b\n")


def test_files_of_each_start_are_never_written_over(tmp_path):
    def files():
        found = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and not path.is_symlink()}
        return {path: data for path, data in found.items() if "latest" not in path.parts}

    arguments = ["-np", "2", "--output-dir", str(tmp_path / "o"), "sh", "-c"]
    assert run(*arguments, "echo first $HOROVOD_RANK")[0] == 0
    first = files()
    assert run(*arguments, "echo second $HOROVOD_RANK")[0] == 0
    assert {path: data for path, data in files().items() if path in first} == first
    for word, folder in ((b"first", first), (b"second", {p: d for p, d in files().items() if p not in first})):
        texts = sorted(data for path, data in folder.items() if path.suffix == ".stdout")
        assert texts == [word + b" 0\n", word + b" 1\n"]
    index = [json.loads(line) for line in (tmp_path / "o" / "latest" / "index.jsonl").read_text().splitlines()]
    for entry in index:
        assert (tmp_path / "o" / "latest" / entry["stdout"]).read_text() == "second %d\n" % entry["rank"]
    assert {entry["rank"] for entry in index} == {0, 1}
