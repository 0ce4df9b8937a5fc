"""Runs jobs on a cluster for tests: `ClusterJob` is one launcher on one host, with everything it starts anywhere.

Workers are found by a mark in their environment, as in tests/integration/job.py; agents, which get no environment from
the launcher, are found because a host of a cluster has no processes but its own.
"""

import os
import pty
import re
import select
import signal
import subprocess
import time
import uuid

from job import DEADLINE, Watched, command_line

WORKERS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "workers")
MARK = "FARANDOLE_TEST_MARK"


def worker(name):
    """The command of a worker in workers/."""
    path = os.path.join(WORKERS, name)
    return ["/usr/bin/python3", "-B", path] if name.endswith(".py") else ["sh", path]


class ClusterJob:
    """One launched command line. Use as a context manager: launcher and workers that are left at the end are killed.

    `terminal`: its input and output are a terminal of its own, and both streams are in stdout.
    """

    def __init__(self, host, *arguments, program="horovodrun", env=None, terminal=False):
        self.host = host
        self._mark = "%s=%s" % (MARK, uuid.uuid4().hex)
        environment = host.environment(**(env or {}))
        environment[MARK] = self._mark.split("=")[1]
        command = host.inside([program, *arguments])
        self.began = time.monotonic()
        if terminal:
            self._start_in_terminal(command, environment)
        else:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment,
                start_new_session=True,
            )
            self._files = {self.process.stdout.fileno(): "stdout", self.process.stderr.fileno(): "stderr"}
        self._data = {"stdout": bytearray(), "stderr": bytearray()}
        self._arrivals = {"stdout": [], "stderr": []}  # (seconds since the start, bytes until then)

    def _start_in_terminal(self, command, environment):
        self.terminal, inner = pty.openpty()
        # A session of its own whose terminal this is, as sshd or a window would make it.
        self.process = subprocess.Popen(
            ["setsid", "--ctty", "--wait", *command], stdin=inner, stdout=inner, stderr=inner, env=environment
        )
        os.close(inner)
        self._files = {self.terminal: "stdout"}

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for pid in self.pids():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.kill()
        self.process.wait()
        for file in (self.process.stdout, self.process.stderr):
            if file:
                file.close()
        self.close_terminal()

    def close_terminal(self):
        """The window is closed: the session gets HUP, and the terminal is gone."""
        if getattr(self, "terminal", None) is not None:
            os.close(self.terminal)
            self._files.pop(self.terminal, None)
            self.terminal = None

    # Output.

    @property
    def stdout(self):
        return self._data["stdout"].decode(errors="replace")

    @property
    def stderr(self):
        return self._data["stderr"].decode(errors="replace")

    def age(self):
        """Seconds since the launcher was started."""
        return time.monotonic() - self.began

    def seen(self, text):
        """How many seconds after the start `text` was complete on standard output."""
        begin = self._data["stdout"].find(text.encode())
        assert begin >= 0, "%r never came\n%s\n%s" % (text, self.stdout, self.stderr)
        return next(at for at, size in self._arrivals["stdout"] if size >= begin + len(text.encode()))

    def _pump(self, seconds):
        ready, _, _ = select.select(list(self._files), [], [], max(0.0, seconds))
        for fd in ready:
            try:
                data = os.read(fd, 1 << 16)
            except OSError:
                data = b""  # a terminal that nobody has open any more
            if data:
                stream = self._files[fd]
                self._data[stream] += data
                self._arrivals[stream].append((self.age(), len(self._data[stream])))
            else:
                del self._files[fd]

    def wait_for(self, pattern, count=1, stream="stdout", seconds=DEADLINE):
        """The matches of `pattern`, each within a line, in what came on `stream`, once there are `count`."""
        deadline = time.monotonic() + seconds
        expression = re.compile(pattern, re.MULTILINE)
        data = self._data[stream]
        found, read = [], 0
        while True:
            whole = data.rfind(b"\n") + 1  # whole lines are searched once
            found += expression.findall(data[read:whole].decode(errors="replace"))
            read = max(read, whole)
            in_last = expression.findall(data[read:].decode(errors="replace"))
            if len(found) + len(in_last) >= count:
                return found + in_last
            left = deadline - time.monotonic()
            assert left > 0 and self._files, "waited for %d x %r\n%s\n%s" % (count, pattern, self.stdout, self.stderr)
            self._pump(left)

    def wait(self, seconds=DEADLINE):
        """Waits for the launcher's end and returns its exit code, as a shell would have it."""
        deadline = time.monotonic() + seconds
        with Watched(self.process.pid) as launcher:
            while not launcher.ended(0):
                left = deadline - time.monotonic()
                assert left > 0, "the launcher still runs after %g s\n%s\n%s" % (seconds, self.stdout, self.stderr)
                if self._files:
                    self._pump(min(left, 0.05))
                else:
                    launcher.ended(left)
        code = self.process.wait()
        while self._files:
            before = sum(map(len, self._data.values())), len(self._files)
            self._pump(0.2)
            if before == (sum(map(len, self._data.values())), len(self._files)):
                break  # orphans hold the pipes for a moment
        return code if code >= 0 else 128 - code

    # Processes.

    def pids(self):
        """Every process on the machine that carries this job's mark: launcher, local agent and all workers."""
        return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if self._is_marked(pid)]

    def _is_marked(self, pid):
        try:
            with open("/proc/%d/environ" % pid, "rb") as environ:
                return pid != self.process.pid and self._mark.encode() in environ.read().split(b"\0")
        except OSError:
            return False  # gone, or a zombie

    @property
    def launcher(self):
        """Its process id, as the machine sees it."""
        found = [pid for pid in self.pids() if program_of(pid) == "farandole"]
        assert len(found) == 1, "\n".join(map(command_line, self.pids()))
        return found[0]

    def signal(self, number):
        os.kill(self.launcher, number)

    def workers_on(self, host):
        """Ids of this job's processes on `host`, without the launcher and a local agent."""
        return [pid for pid in self.pids() if pid in host.processes() and not program_of(pid).startswith("farandole")]

    def agent_on(self, host):
        """The id of the agent whose workers these are."""
        workers = set(self.workers_on(host))
        parents = {parent_of(pid) for pid in workers} - workers - {host.pid}
        assert len(parents) == 1, "agents on %s: %s" % (host.name, ", ".join(map(command_line, parents)))
        return parents.pop()


def program_of(pid):
    try:
        return os.path.basename(os.readlink("/proc/%d/exe" % pid))
    except OSError:
        return ""


def parent_of(pid):
    with open("/proc/%d/status" % pid, encoding="utf-8") as status:
        return int(next(line.split()[1] for line in status if line.startswith("PPid:")))


def left_on(host):
    """What there is on a host that does not belong to it, in words."""
    left = ["%s: process %s" % (host.name, command_line(pid)) for pid in host.processes()]
    if left:  # else there is nobody who could listen
        left += ["%s: %s listens on %s port %d" % (host.name, program, *at) for *at, program in host.listeners()]
    left += ["%s: /dev/shm/%s" % (host.name, name) for name in host.shared_memory()]
    left += ["%s: /tmp/%s" % (host.name, name) for name in host.temporary_files()]
    return left


def assert_nothing_left(hosts, seconds):
    """No process, listener, shared memory or temporary file is left on `hosts`, `seconds` from now at the latest."""
    deadline = time.monotonic() + seconds
    for host in hosts:
        for pid in host.processes():
            with Watched(pid) as process:
                assert process.ended(deadline - time.monotonic()), "still there: %s" % "\n".join(left_on(host))
    while True:
        left = [line for host in hosts for line in left_on(host)]
        if not left:
            return
        assert time.monotonic() < deadline, "still there:\n" + "\n".join(left)
        select.select([], [], [], 0.05)


def everything_ends(hosts):
    """Kills what a failed test has left."""
    for host in hosts:
        for pid in host.processes():
            with Watched(pid) as process:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
                process.ended(DEADLINE)
        for name in host.temporary_files():
            subprocess.run(["rm", "-rf", os.path.join(host.tmp, name)], check=True)
