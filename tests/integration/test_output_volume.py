"""A worker that writes as fast as the machine can costs time, never memory."""

import os
import sys
import time

from job import DEADLINE, Job

MIB = 1 << 20
BOUND = 96 * MIB  # of the launcher and of the agent; what they need for themselves is some 30 MiB

# Half a gigabyte of lines, with write(2) calls of a MiB: nothing but a full pipe slows it down.
FLOOD = f"""
import os
lines = (b"x" * 1023 + b"\\n") * 1024
for _ in range(512):
    left = memoryview(lines)
    while left:
        left = left[os.write(1, left):]
"""


def peak_memory(pid):
    with open(f"/proc/{pid}/status") as status:
        for line in status:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0


def bytes_written(pid):
    with open(f"/proc/{pid}/io") as io:
        return int(dict(line.split(": ") for line in io.read().splitlines())["wchar"])


def state(pid):
    with open(f"/proc/{pid}/stat") as stat:
        return stat.read().rsplit(")", 1)[1].split()[0]


def watch(job, fd_of_output):
    """Reads the job's output to its end, and returns how much came and the peak memory of launcher and agent."""
    agent = job.pid_of("farandole-agent")
    total, peak = 0, 0
    while data := os.read(fd_of_output, 4 * MIB):
        total += len(data)
        for pid in (job.process.pid, agent):
            try:
                peak = max(peak, peak_memory(pid))
            except OSError:
                pass  # it has just ended
    return total, peak


def test_a_flood_of_output_keeps_memory_bounded():
    with Job("-np", "1", sys.executable, "-c", "print('ready', flush=True)\n" + FLOOD) as job:
        job.wait_for_output(1)
        before = len(job.stdout)
        total, peak = watch(job, job.process.stdout.fileno())
        assert job.wait() == 0, job.stderr
        assert before + total >= 512 * MIB
        assert 0 < peak < BOUND, f"{peak / MIB:.0f} MiB"


def test_a_reader_that_stops_holds_the_worker_and_no_memory():
    with Job("-np", "1", sys.executable, "-c", "print('ready', flush=True)\n" + FLOOD) as job:
        job.wait_for_output(1)
        agent = job.pid_of("farandole-agent")
        worker = next(pid for pid in job.pids() if pid not in (job.process.pid, agent))
        # Nobody reads now. The worker is held when many looks in a row find it asleep with nothing more written.
        looks, written = 0, None
        deadline = time.monotonic() + DEADLINE
        while looks < 300:
            assert time.monotonic() < deadline, "the worker goes on writing, or never waits"
            now = bytes_written(worker)
            looks = looks + 1 if now == written and state(worker) == "S" else 0
            written = now
            os.sched_yield()
        assert written < 64 * MIB, "it was held early"
        for pid in (job.process.pid, agent):
            assert peak_memory(pid) < BOUND
        total, peak = watch(job, job.process.stdout.fileno())
        assert job.wait() == 0, job.stderr
        assert peak < BOUND, f"{peak / MIB:.0f} MiB"
