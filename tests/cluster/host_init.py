"""Process 1 of a host of cluster.py: makes the host's own view of the file system, then reaps and waits.

    unshare --net --pid --mount --uts --fork --propagation unchanged python3 host_init.py NAME FOLDER KEEP...

It writes its process id, as the outside sees it, to standard output. When standard input ends, because the test has
finished or was killed, it exits; the kernel then ends every process of the host and takes its network away, so that
nothing of a cluster can outlive the test.

Own to the host: /tmp, /run and /dev/shm (empty), /proc, and the files of FOLDER/etc over those in /etc. KEEP are
folders that stay visible even if they lie in /tmp.
"""

import ctypes
import os
import signal
import socket
import sys

MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18

libc = ctypes.CDLL(None, use_errno=True)


def mount(source, target, kind=None, flags=0, data=None):
    encoded = [None if text is None else os.fsencode(text) for text in (source, target, kind)]
    if libc.mount(*encoded, ctypes.c_ulong(flags), None if data is None else data.encode()) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error), target)


def make_private():
    """What is mounted here stays here. In a chroot the root is no mount point, so each one is told by itself."""
    with open("/proc/self/mountinfo", encoding="utf-8") as table:
        points = [line.split(" ")[4].encode().decode("unicode_escape") for line in table]
    for point in points:
        try:
            mount(None, point, flags=MS_PRIVATE)
        except OSError:
            pass  # hidden by another mount: out of reach for what follows, too


def cover(folder, keep):
    """Mounts an empty folder of the host on /tmp, in which those of `keep` are still to be seen."""
    kept = [(path, os.open(path, os.O_PATH)) for path in keep if path.startswith("/tmp/")]
    mount(folder, "/tmp", flags=MS_BIND)
    for path, fd in kept:
        os.makedirs(path, exist_ok=True)
        mount("/proc/self/fd/%d" % fd, path, flags=MS_BIND | MS_REC)
        os.close(fd)


def main():
    name, folder, *keep = sys.argv[1:]
    outer_pid = os.readlink("/proc/self")  # /proc is still that of the outside
    make_private()
    etc = os.path.join(folder, "etc")
    for file in os.listdir(etc):
        mount(os.path.join(etc, file), os.path.join("/etc", file), flags=MS_BIND)
    cover(os.path.join(folder, "tmp"), keep)
    mount("tmpfs", "/run", "tmpfs", data="mode=755")
    os.mkdir("/run/sshd", 0o755)
    mount("tmpfs", "/dev/shm", "tmpfs", data="mode=1777")
    mount("proc", "/proc", "proc")
    socket.sethostname(name)
    os.chdir(os.path.join(folder, "home"))
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps for us
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal is for pytest
    print(outer_pid, flush=True)
    sys.stdin.buffer.read()


main()
