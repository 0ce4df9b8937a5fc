"""Runs real jobs for tests: `Job` is one launcher with everything it starts, found again by a mark in its environment.

A mark is inherited by every process of the job, whatever process group or session it moves to, so "nothing is left" means:
no process on the machine carries the mark, no entry was added to /dev/shm, and the job's temporary folder is empty.
"""

import os
import select
import signal
import subprocess
import time
import uuid

DEADLINE = 30.0  # seconds; for everything that is waited for here, far above what it takes


class Job:
    """One launched command line. Use as a context manager: whatever is left at the end is killed and is a failure."""

    def __init__(self, *arguments, program="horovodrun", env=None, cwd=None, tmp=None):
        self.mark = "FARANDOLE_TEST_MARK=" + uuid.uuid4().hex
        self._tmp = tmp
        self._shm_before = set(os.listdir("/dev/shm"))
        environment = dict(os.environ, **(env or {}))
        name, value = self.mark.split("=")
        environment[name] = value
        if tmp is not None:
            environment["TMPDIR"] = str(tmp)
        self.process = subprocess.Popen([program, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, env=environment, cwd=cwd, start_new_session=True)
        self._buffers = {self.process.stdout.fileno(): bytearray(), self.process.stderr.fileno(): bytearray()}
        self._open = set(self._buffers)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for pid in self.pids():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()

    @property
    def stdout(self):
        return bytes(self._buffers[self.process.stdout.fileno()]).decode()

    @property
    def stderr(self):
        return bytes(self._buffers[self.process.stderr.fileno()]).decode()

    def _pump(self, timeout):
        ready, _, _ = select.select(list(self._open), [], [], max(0.0, timeout))
        for fd in ready:
            data = os.read(fd, 65536)
            if data:
                self._buffers[fd] += data
            else:
                self._open.discard(fd)

    def wait_for_output(self, count, text="ready"):
        """Returns the standard output once `text` has appeared in it `count` times."""
        deadline = time.monotonic() + DEADLINE
        while self.stdout.count(text) < count:
            left = deadline - time.monotonic()
            assert left > 0 and self._open, f"waited for {count} x {text!r}\n{self.stdout}\n{self.stderr}"
            self._pump(left)
        return self.stdout

    def wait(self, seconds=DEADLINE):
        """Waits for the launcher's end and returns its exit code, as a shell would have it."""
        deadline = time.monotonic() + seconds
        with Watched(self.process.pid) as launcher:
            while self._open and not launcher.ended(0):
                left = deadline - time.monotonic()
                assert left > 0, f"the launcher still runs after {seconds} s\n{self.stdout}\n{self.stderr}"
                self._pump(min(left, 0.05))
            assert launcher.ended(deadline - time.monotonic()), f"the launcher still runs after {seconds} s"
        code = self.process.wait()
        while self._open:
            before = len(self._open)
            self._pump(0.0 if code < 0 else 1.0)
            if code < 0 and len(self._open) == before:
                break  # killed: its orphans may hold the pipes for a moment
        return code if code >= 0 else 128 - code

    def pids(self):
        """Every process on the machine that carries this job's mark."""
        found = []
        for entry in os.listdir("/proc"):
            if not entry.isdigit():
                continue
            try:
                with open(f"/proc/{entry}/environ", "rb") as environ:
                    if self.mark.encode() in environ.read().split(b"\0"):
                        found.append(int(entry))
            except OSError:
                pass  # gone, or a zombie
        return found

    def pid_of(self, program):
        """The one process of the job whose program file has this name."""
        found = []
        for pid in self.pids():
            try:
                if os.path.basename(os.readlink(f"/proc/{pid}/exe")) == program:
                    found.append(pid)
            except OSError:
                pass
        assert len(found) == 1, f"{program}: {found}"
        return found[0]

    def assert_nothing_left(self, seconds):
        """No process, shared memory or temporary file of the job is left, `seconds` from now at the latest."""
        deadline = time.monotonic() + seconds
        while True:
            left = self.pids()
            if not left:
                break
            with Watched(left[0]) as process:
                assert process.ended(deadline - time.monotonic()), "still there: " + ", ".join(map(command_line, left))
        # Another program of the machine may use /dev/shm for a moment.
        while not set(os.listdir("/dev/shm")) <= self._shm_before:
            assert time.monotonic() < deadline, f"left in /dev/shm: {set(os.listdir('/dev/shm')) - self._shm_before}"
            select.select([], [], [], 0.05)
        if self._tmp is not None:
            assert os.listdir(self._tmp) == []


class Watched:
    """A process that is waited for without being its parent."""

    def __init__(self, pid):
        try:
            self._fd = os.pidfd_open(pid)
        except ProcessLookupError:
            self._fd = None

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self._fd is not None:
            os.close(self._fd)

    def ended(self, seconds):
        return self._fd is None or bool(select.select([self._fd], [], [], max(0.0, seconds))[0])


def command_line(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as cmdline:
            return f"{pid} {cmdline.read().replace(bytes(1), b' ').decode(errors='replace')}"
    except OSError:
        return f"{pid} (gone)"


def run(*arguments, **options):
    """Runs a job to its end: (exit code, standard output, standard error)."""
    with Job(*arguments, **options) as job:
        code = job.wait()
        return code, job.stdout, job.stderr
