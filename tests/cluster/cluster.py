"""Hosts on one machine: `Cluster` is a set of network namespaces joined by a bridge, each with its own sshd.

A host has its own network, processes, name, /tmp, /run, /dev/shm, home folder, accounts and keys; the rest of the file
system is the machine's, as on hosts that share one. Nothing of it has a name on the machine: namespaces live as long as
process 1 of their host (host_init.py), and that one as long as this process holds its standard input. The bridge has a
namespace of its own, so the network of the machine is not touched.

    with Cluster(["a", "b"]) as cluster:
        cluster["a"].run(["ssh", "b", "true"])

`home` is a host without sshd, where the launcher is started; every host can log in to all others by key.
"""

import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SSHD = "/usr/sbin/sshd"
SLOW = 30.0  # seconds; for each command that prepares something
PARENT = "/var/tmp"
PREFIX = "farandole-cluster-"  # and the id of the process that made it
USER = "pilot"  # an account beside root on every host

HOSTS = """\
127.0.0.1 localhost
::1 localhost6
"""

SSHD_CONFIG = """\
Port {port}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/authorized_keys
PidFile {folder}/sshd.pid
UsePAM no
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
PrintMotd no
LogLevel VERBOSE
MaxStartups 100:30:200
"""


def why_not():
    """Why no cluster can be made here, or None."""
    if os.geteuid() != 0:
        return "clusters of namespaces need root"
    if not os.path.exists(SSHD):
        return "there is no %s (openssh-server)" % SSHD
    for program in ("ip", "ss", "ssh", "ssh-keygen", "unshare", "nsenter"):
        if shutil.which(program) is None:
            return "there is no program %s" % program
    if subprocess.run(
        ["unshare", "--net", "--pid", "--mount", "--uts", "--fork", "true"], stderr=subprocess.DEVNULL
    ).returncode:
        return "this machine does not let root make namespaces"
    return None


def checked(command, **options):
    """The standard output of a command that has to succeed."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=SLOW, **options)
    assert done.returncode == 0, "%s: %s" % (" ".join(command), done.stderr.decode(errors="replace"))
    return done.stdout.decode()


def write(path, text, mode=0o644):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, mode)


class Host:
    """One host. Made by Cluster."""

    def __init__(self, cluster, name, number):
        self.name = name
        self.interface = "eth0"
        self.address = "10.77.0.%d" % number
        self.address6 = "fd77::%d" % number
        self.folder = os.path.join(cluster.folder, name)
        self.home = os.path.join(self.folder, "home")
        self.tmp = os.path.join(self.folder, "tmp")
        for folder in (
            self.folder,
            self.home,
            os.path.join(self.home, ".ssh"),
            self.tmp,
            os.path.join(self.folder, "etc"),
        ):
            os.makedirs(folder, exist_ok=True)
            os.chmod(folder, 0o755)
        os.chmod(self.tmp, 0o1777)
        self._keep = [ROOT, cluster.folder]
        self._process = None
        self.pid = None  # of process 1, as the machine sees it

    def begin(self):
        """Starts process 1; ends with end()."""
        command = ["unshare", "--net", "--pid", "--mount", "--uts", "--fork", "--propagation", "unchanged"]
        command += [sys.executable, "-B", "-I", os.path.join(HERE, "host_init.py"), self.name, self.folder, *self._keep]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def wait_until_begun(self):
        line = self._process.stdout.readline()
        assert line, "host %s did not start; its last words are above" % self.name
        self.pid = int(line)

    def end(self):
        if self._process is not None:
            self._process.stdin.close()
            self._process.wait(SLOW)
            self._process.stdout.close()
            self._process = None

    # Commands.

    def inside(self, command):
        """`command` as one that runs on this host, in its home folder, when the machine runs it."""
        return ["nsenter", "-t", str(self.pid), "-m", "-u", "-n", "-p", "-r", "-w", "--", *command]

    def run(self, command, **options):
        """Runs a command on this host to its end: (exit code, standard output, standard error)."""
        done = subprocess.run(
            self.inside(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=SLOW,
            env=self.environment(),
            **options,
        )
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def environment(self, **more):
        """What a person who has logged in here has, with the built programs at hand."""
        environment = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
        environment.update(HOME=self.home, USER="root", LOGNAME="root", SHELL="/bin/sh", LANG="C.UTF-8", TERM="dumb")
        environment.update(more)
        return environment

    # Network.

    def ip(self, *lines):
        """Runs lines of `ip -batch` in this host's network."""
        checked(["nsenter", "-t", str(self.pid), "-n", "ip", "-batch", "-"], input="\n".join(lines).encode())

    def addresses(self, *addresses):
        """Lines for ip() that make these the addresses of its interface (default: both that it began with)."""
        lines = ["address flush dev %s scope global" % self.interface]
        for address in addresses or (self.address, self.address6):
            tail = "64 nodad" if ":" in address else "24"
            head, _, options = tail.partition(" ")
            lines.append("address add %s/%s dev %s %s" % (address, head, self.interface, options))
        return lines

    def rename_interface(self, name):
        old, self.interface = self.interface, name
        self.ip(
            "link set %s down" % old, "link set %s name %s" % (old, name), "link set %s up" % name, *self.addresses()
        )

    def add_decoy(self, address="172.17.0.1/16"):
        """An interface docker0 that is up and has the same address on every host; nobody else is behind it."""
        self.ip(
            "link add docker0 type veth peer name docker1",
            "address add %s dev docker0" % address,
            "link set docker0 up",
            "link set docker1 up",
        )

    def remove_decoy(self):
        self.ip("link delete docker0")

    def listeners(self):
        """[(address, port, program)] of what listens for TCP here, sshd left out."""
        found = []
        for line in checked(["nsenter", "-t", str(self.pid), "-n", "ss", "-tlnpH"]).splitlines():
            address, port = line.split()[3].rsplit(":", 1)
            program = line.split('(("', 1)[1].split('"', 1)[0] if '(("' in line else "?"
            if program != "sshd":
                found.append((address.strip("[]"), int(port), program))
        return found

    # Processes.

    def processes(self):
        """Ids, as the machine sees them, of all processes here but process 1 and the sshd that listens."""
        own = os.stat("/proc/%d/ns/pid" % self.pid).st_ino
        found = []
        for entry in os.listdir("/proc"):
            try:
                if not entry.isdigit() or int(entry) == self.pid or os.stat("/proc/%s/ns/pid" % entry).st_ino != own:
                    continue
                with open("/proc/%s/cmdline" % entry, "rb") as cmdline:
                    if b"[listener]" not in cmdline.read():
                        found.append(int(entry))
            except OSError:
                pass  # gone, or a zombie
        return found

    def temporary_files(self):
        kept = {path.split("/")[2] for path in self._keep if path.startswith("/tmp/")}
        return sorted(set(os.listdir(self.tmp)) - kept)

    def shared_memory(self):
        return os.listdir("/proc/%d/root/dev/shm" % self.pid)

    # sshd.

    def start_sshd(self, port=22):
        config = os.path.join(self.folder, "sshd_config")
        write(config, SSHD_CONFIG.format(port=port, folder=self.folder))
        checked(self.inside([SSHD, "-f", config, "-E", os.path.join(self.folder, "sshd.log")]))

    def stop_sshd(self):
        """New connections are refused from now on; those that are open stay."""
        with open(os.path.join(self.folder, "sshd.pid"), encoding="utf-8") as file:
            checked(
                self.inside(["sh", "-c", "kill %s; while kill -0 %s 2>&-; do :; done" % ((file.read().strip(),) * 2)])
            )

    def connections(self):
        """How many connections its sshd has had."""
        with open(os.path.join(self.folder, "sshd.log"), encoding="utf-8") as log:
            return log.read().count("Connection from ")

    def allow(self, *public_keys):
        """Who may log in here, from now on."""
        write(os.path.join(self.folder, "authorized_keys"), "".join(public_keys))

    def configure_ssh(self, text=""):
        """The user's ~/.ssh/config here."""
        write(os.path.join(self.home, ".ssh", "config"), text, 0o600)

    def know(self, *lines):
        """The user's ~/.ssh/known_hosts here."""
        write(os.path.join(self.home, ".ssh", "known_hosts"), "".join(line + "\n" for line in lines), 0o600)


class Cluster:
    """The hosts `names` and `home`. Use as a context manager."""

    def __init__(self, names=("a", "b", "c", "d")):
        self.remove_leftovers()
        # Not in /tmp, of which every host has its own.
        self.folder = tempfile.mkdtemp(prefix="%s%d-" % (PREFIX, os.getpid()), dir=PARENT)
        os.chmod(self.folder, 0o711)
        self.names = list(names)
        self.hosts = {name: Host(self, name, number) for number, name in enumerate([*names, "home"], 1)}
        self.switch = Host(self, "switch", 254)

    @staticmethod
    def remove_leftovers():
        """Removes the folders of clusters whose process was killed; of such a one, nothing else is left."""
        for name in os.listdir(PARENT):
            if name.startswith(PREFIX) and not os.path.exists("/proc/" + name[len(PREFIX) :].split("-")[0]):
                shutil.rmtree(os.path.join(PARENT, name), ignore_errors=True)

    def __getitem__(self, name):
        return self.hosts[name]

    def __enter__(self):
        try:
            self._make_keys()
            self._write_accounts()
            everything = [*self.hosts.values(), self.switch]
            for host in everything:
                host.begin()
            for host in everything:
                host.wait_until_begun()
            self._connect()
            for name in self.names:
                self.hosts[name].start_sshd()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *error):
        self.close()

    def close(self):
        for host in [*self.hosts.values(), self.switch]:
            host.end()
        shutil.rmtree(self.folder)

    def _make_keys(self):
        for name, host in self.hosts.items():
            for path in (os.path.join(host.folder, "host_key"), os.path.join(host.home, ".ssh", "id_ed25519")):
                checked(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "root at " + name, "-f", path])
        self.restore_ssh()

    def public_key(self, name, kind="user"):
        host = self.hosts[name]
        path = os.path.join(host.home, ".ssh", "id_ed25519.pub") if kind == "user" else host.folder + "/host_key.pub"
        with open(path, encoding="utf-8") as file:
            return file.read()

    def known_host_lines(self):
        """The line of known_hosts for each host with sshd, by name."""
        lines = {}
        for name in self.names:
            host = self.hosts[name]
            names = ",".join([name, name + "6", host.address, host.address6])
            lines[name] = names + " " + " ".join(self.public_key(name, "host").split()[:2])
        return lines

    def restore_ssh(self):
        """Everybody may log in everywhere, and knows all hosts."""
        keys = [self.public_key(name) for name in self.hosts]
        for host in self.hosts.values():
            host.allow(*keys)
            host.know(*self.known_host_lines().values())
            host.configure_ssh()

    def _write_accounts(self):
        names = "".join(
            "%s %s\n%s %s6\n" % (host.address, name, host.address6, name) for name, host in self.hosts.items()
        )
        for host in [*self.hosts.values(), self.switch]:
            etc = os.path.join(host.folder, "etc")
            write(os.path.join(etc, "hosts"), HOSTS + names)
            write(os.path.join(etc, "nsswitch.conf"), "passwd: files\ngroup: files\nshadow: files\nhosts: files\n")
            with open("/etc/passwd", encoding="utf-8") as accounts:
                others = [line for line in accounts if line.split(":")[0] not in ("root", USER)]
            pilot_home = os.path.join(host.folder, USER)
            os.mkdir(pilot_home)
            os.chown(pilot_home, 12345, 12345)
            accounts = [
                "root:x:0:0:root:%s:/bin/sh\n" % host.home,
                "%s:x:12345:12345::%s:/bin/sh\n" % (USER, pilot_home),
            ]
            write(os.path.join(etc, "passwd"), "".join(accounts + others))
            write(os.path.join(etc, "shadow"), "root:*:19000:0:99999:7:::\n%s:*:19000:0:99999:7:::\n" % USER, 0o600)

    def _connect(self):
        self.switch.ip("link add bridge type bridge", "link set bridge up")
        for name, host in self.hosts.items():
            self.switch.ip(
                "link add %s type veth peer name eth0 netns %d" % (self._port(name), host.pid),
                "link set %s master bridge" % self._port(name),
                "link set %s up" % self._port(name),
            )
            host.ip("link set lo up", "link set eth0 up", *host.addresses())

    def _port(self, name):
        return "to-" + name

    def cut(self, name):
        """From now on nothing reaches this host or comes from it, and nobody is told."""
        self.switch.ip("link set %s nomaster" % self._port(name))

    def heal(self, name):
        self.switch.ip("link set %s master bridge" % self._port(name))
