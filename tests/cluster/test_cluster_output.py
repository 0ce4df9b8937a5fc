"""Output of many workers (cases O01 to O03): whole lines, nothing held back or overwritten, the first cause last."""

import json
import os
import re
import sys

from cluster_job import WORKERS, worker

sys.path.insert(0, WORKERS)
import chatter  # noqa: E402 (the worker, which knows its own lines)

FAILS = [*worker("ring.py"), "fail", "3", "7", "the disk of rank 3 is full"]


def lines_by_rank(text, stream):
    """The lines of each rank, in order, without their prefixes. Every line has exactly one."""
    lines = {}
    for line in text.split("\n"):
        if line:
            match = re.fullmatch(r"\[(\d)\]<%s>:([^<]*)" % stream, line)
            assert match, line[:200]
            lines.setdefault(int(match.group(1)), []).append(match.group(2))
    return lines


def test_o01_lines_stay_whole_and_are_shown_at_once(start, shared):
    with start("-np", "4", "-H", "a:2,b:2", *worker("chatter.py"), str(shared / "go-on")) as job:
        # Rank 3 has written a line and waits: it is shown although there is nothing more.
        job.wait_for(r"^\[3\]<stdout>:I wait$")
        for rank in range(3):
            job.wait_for(r"^\[%d\]<stderr>:%06d" % (rank, chatter.LINES - 1), stream="stderr")
        (shared / "go-on").touch()
        assert job.wait(60.0) == 0, job.stderr[-2000:]
        out, err = job.stdout, job.stderr
    # A last line without its end may be followed by another rank's prefix.
    tail = "[2]<stdout>:" + chatter.line(2, "stdout", chatter.LINES - 1)
    assert tail in out
    out = out.replace(tail, tail + "\n").replace("\r", "\n")
    for stream, text in (("stdout", out), ("stderr", err)):
        lines = lines_by_rank(text, stream)
        for rank in range(4):
            expected = [chatter.line(rank, stream, number) for number in range(chatter.LINES)]
            assert lines[rank] == (["I wait"] if (rank, stream) == (3, "stdout") else []) + expected


def test_o01_nothing_is_older_than_a_second_when_it_is_shown(start):
    # An unfinished line, of a worker that then thinks; the worker's own clock is the machine's.
    script = "import time; print('asked', time.monotonic(), end=' ', flush=True); time.sleep(1000)"
    with start("-np", "2", "-H", "a:1,b:1", "python3", "-c", script) as job:
        for at in job.wait_for(r"<stdout>:asked (\S+) ", 2):
            assert job.began + job.seen("asked " + at) - float(at) < 1.0
        job.signal(15)
        assert job.wait() == 143


def test_o01_a_progress_bar_survives(run):
    script = "for i in 1 2 3; do printf '%s0 %%\\r' $i; done; echo done"
    code, out, err = run("-np", "1", "-H", "b:1", "sh", "-c", script)
    assert code == 0, err
    assert out == "".join("[0]<stdout>:%s" % piece for piece in ("10 %\r", "20 %\r", "30 %\r", "done\n"))


def test_o01_prefixes_and_time_stamps_are_as_asked(run):
    hosts = ["-np", "2", "-H", "a:1,b:1"]
    code, out, err = run(*hosts, "--output-prefix", "{host}/{local_rank} {stream}| ", "echo", "hello")
    assert (code, sorted(out.splitlines())) == (0, ["a/0 stdout| hello", "b/0 stdout| hello"]), err
    code, out, err = run(*hosts, "--prefix-output-with-timestamp", "echo", "hello")
    assert code == 0, err
    assert all(
        re.fullmatch(r"\w{3} \w{3} [ \d]\d [\d:]{8} \d{4}\[\d\]<stdout>:hello", line) for line in out.splitlines()
    )


def files_of(folder):
    """{path: content} of all files in a folder, links left out."""
    found = {}
    for place, _, names in os.walk(folder):
        for path in (os.path.join(place, name) for name in names):
            if not os.path.islink(path):
                with open(path, "rb") as file:
                    found[path] = file.read()
    return found


def test_o02_a_second_job_leaves_the_first_ones_files_alone(run, shared):
    """Of case O02 what a static job shows; a worker that comes back into a running job waits for elastic jobs."""
    arguments = ["-np", "4", "-H", "a:2,b:2", "--output-dir", str(shared / "o")]
    script = "echo $WHICH from $HOROVOD_RANK on $(hostname); echo $WHICH trouble >&2"
    code, _, err = run(*arguments, "sh", "-c", script, env={"WHICH": "first"})
    assert code == 0, err
    first = files_of(shared / "o")
    code, _, err = run(*arguments, "sh", "-c", script, env={"WHICH": "second"})
    assert code == 0, err
    both = files_of(shared / "o")
    assert {path: both[path] for path in first} == first
    for jobs_files, word in ((first, b"first"), ({p: d for p, d in both.items() if p not in first}, b"second")):
        texts = sorted(data for path, data in jobs_files.items() if not path.endswith("index.jsonl"))
        places = [b"%s from %d on %s\n" % (word, rank, host) for rank, host in enumerate([b"a", b"a", b"b", b"b"])]
        assert texts == sorted(places + [word + b" trouble\n"] * 4)


def test_o02_the_index_leads_from_a_rank_to_its_file(run, shared):
    arguments = ["-np", "2", "-H", "a:1,b:1", "--output-dir", str(shared / "o")]
    code, _, err = run(*arguments, "sh", "-c", "echo I am $HOROVOD_RANK")
    assert code == 0, err
    folder = shared / "o" / "latest"
    entries = [json.loads(line) for line in (folder / "index.jsonl").read_text().splitlines()]
    assert {entry["rank"] for entry in entries} == {0, 1} and all("generation" in entry for entry in entries)
    for entry in entries:
        assert (folder / entry["stdout"]).read_text() == "I am %d\n" % entry["rank"]


def test_o03_the_last_block_names_the_first_cause(run):
    code, out, err = run("-np", "4", "-H", "a:2,b:2", *FAILS)
    assert (code, out.count("sum 10")) == (7, 4), err
    report = err[err.rindex("rank 3 (") :]
    first, rest = report.split("\n", 1)
    assert "host b" in first and "exit code 7" in first
    assert "the disk of rank 3 is full" in rest
    followers = re.findall(r"^.*after it rank (\d) \(host (\w), .*exit code 1.*$", rest, re.MULTILINE)
    assert sorted(followers) == [("0", "a"), ("1", "a"), ("2", "b")]
    assert rest.count("peer lost") == 0, "the words of follow-on failures are not in the last block"
    assert report.rstrip().splitlines()[-1].endswith("exit code 7")


def test_o03_a_worker_killed_by_a_signal_is_told_by_its_name(start):
    with start(
        "-np",
        "2",
        "-H",
        "a:1,b:1",
        "sh",
        "-c",
        "echo ready $HOROVOD_RANK; [ $HOROVOD_RANK = 0 ] || kill -SEGV $$; sleep 1000",
    ) as job:
        assert job.wait() == 128 + 11
        assert re.search(r"rank 1 \(host b, .*SIGSEGV", job.stderr)
