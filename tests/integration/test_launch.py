"""What reaches the workers, and what comes back from them."""

import json
import os
import subprocess
import sys

import pytest

from job import Job, run

DUMP = "import json,os,sys; print(json.dumps([sys.argv[1:], dict(os.environ), os.getcwd()]))"


def ranks_of(out):
    """Standard output of a job by rank, without the prefixes."""
    lines = {}
    for line in out.splitlines():
        rank, text = line.split("]<stdout>:", 1)
        lines.setdefault(int(rank[1:]), []).append(text)
    return lines


def test_arguments_environment_and_folder_arrive_byte_for_byte(tmp_path):
    arguments = ["a b", "$HOME", "'\"`\\", "", "*", "ä\n2"]
    big = "x" * 120_000
    code, out, _ = run("-np", "2", "-H", "localhost:2", sys.executable, "-c", DUMP, *arguments,
                       env={"BIG": big, "ODD": "a=b 'c' \"d\" $e"}, cwd=tmp_path)
    assert code == 0
    for lines in ranks_of(out).values():
        argv, environ, folder = json.loads("".join(lines))
        assert argv == arguments
        assert environ["BIG"] == big and environ["ODD"] == "a=b 'c' \"d\" $e"
        assert folder == str(tmp_path)


def test_places_on_two_hosts():
    code, out, _ = run("-np", "3", "-H", "localhost:2,127.0.0.1:2", sys.executable, "-c", DUMP)
    assert code == 0
    places = {}
    for rank, lines in ranks_of(out).items():
        environ = json.loads("".join(lines))[1]
        assert environ["HOROVOD_RANK"] == str(rank)
        names = ["HOSTNAME", "SIZE", "LOCAL_RANK", "LOCAL_SIZE", "CROSS_RANK", "CROSS_SIZE"]
        places[rank] = tuple(environ["HOROVOD_" + name] for name in names)
    assert places == {
        0: ("localhost", "3", "0", "2", "0", "2"),
        1: ("localhost", "3", "1", "2", "0", "1"),
        2: ("127.0.0.1", "3", "0", "1", "1", "2"),
    }


def test_np_below_the_slots_starts_np_workers():
    code, out, _ = run("-np", "2", "-H", "localhost:4", "sh", "-c", "echo $HOROVOD_SIZE")
    assert code == 0
    assert ranks_of(out) == {0: ["2"], 1: ["2"]}


def test_streams_stay_apart_and_lines_whole():
    script = "for i in $(seq 200); do printf '%0500d\\n' $i; echo err$i >&2; done; printf tail"
    code, out, err = run("-np", "4", "-H", "localhost:4", "sh", "-c", script)
    assert code == 0
    expected = [f"{i:0500d}" for i in range(1, 201)] + ["tail"]
    text = out
    for rank in range(4):  # a last line without its end may be followed by another rank's prefix
        text = text.replace(f"[{rank}]<stdout>:tail", f"[{rank}]<stdout>:tail\n")
    assert ranks_of("\n".join(line for line in text.splitlines() if line)) == {rank: expected for rank in range(4)}
    for rank in range(4):
        lines = [line for line in err.splitlines() if line.startswith(f"[{rank}]<stderr>:")]
        assert lines == [f"[{rank}]<stderr>:err{i}" for i in range(1, 201)]


def test_output_files_beside_the_console(tmp_path):
    code, out, _ = run("-np", "2", "-H", "localhost:2", "--output-filename", str(tmp_path / "logs"), "sh", "-c",
                       "echo hello $HOROVOD_RANK; echo oops >&2")
    assert code == 0
    assert sorted(out.splitlines()) == ["[0]<stdout>:hello 0", "[1]<stdout>:hello 1"]
    for rank in (0, 1):
        folder = tmp_path / "logs" / f"rank.{rank}"
        assert (folder / "stdout").read_text() == f"[{rank}]<stdout>:hello {rank}\n"
        assert (folder / "stderr").read_text() == f"[{rank}]<stderr>:oops\n"


def test_a_chatty_worker_waits_and_loses_nothing():
    size = 30_000_000
    script = f"import sys\nfor i in range({size} // 100): sys.stdout.write('%099d\\n' % i)"
    with Job("-np", "1", sys.executable, "-c", script) as job:
        # Nobody reads for a while: pipes fill up, the worker waits, and memory stays bounded.
        job._pump(5.0)
        agent = job.pid_of("farandole-agent")
        for pid in (agent, job.process.pid):
            with open(f"/proc/{pid}/status") as status:
                kib = int(next(line.split()[1] for line in status if line.startswith("VmRSS")))
            assert kib < 100_000
        assert job.wait() == 0
        numbers = [int(line.split(":", 1)[1]) for line in job.stdout.splitlines()]
        assert numbers == list(range(size // 100))


def test_silent_when_piped():
    code, out, err = run("-np", "2", "true")
    assert (code, out, err) == (0, "", "")


def test_a_worker_reads_end_of_file_from_standard_input():
    code, out, _ = run("-np", "1", "cat")
    assert (code, out) == (0, "")


@pytest.mark.parametrize("program", ["horovodrun", "farandole"])
def test_both_names_run(program):
    arguments = ["-np", "1", "sh", "-c", "echo $HOROVOD_RANK"]
    code, out, _ = run(*(["run"] if program == "farandole" else []), *arguments, program=program)
    assert (code, out) == (0, "[0]<stdout>:0\n")


def test_no_secret_in_arguments_or_environment(tmp_path):
    with Job("-np", "1", "sh", "-c", "echo ready; exec sleep 1000") as job:
        job.wait_for_output(1)
        for pid in job.pids():
            with open(f"/proc/{pid}/cmdline", "rb") as cmdline, open(f"/proc/{pid}/environ", "rb") as environ:
                assert b"key" not in cmdline.read().lower()
                names = [entry.split(b"=")[0].lower() for entry in environ.read().split(b"\0")]
                assert not any(b"farandole" in name and b"key" in name for name in names)
        os.kill(job.process.pid, 15)
        assert job.wait() == 143


def test_workers_have_the_limits_of_the_shell(tmp_path):
    """The launcher raises its own limit of open files; what it starts finds the one that it would without it."""
    expected = subprocess.run(["sh", "-c", "ulimit -n"], capture_output=True, text=True, check=True).stdout.strip()
    code, out, _ = run("-np", "1", "sh", "-c", "ulimit -n")
    assert code == 0
    assert ranks_of(out) == {0: [expected]}
