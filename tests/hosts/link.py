# SPDX-License-Identifier: Apache-2.0
"""Two hosts on one machine: network namespaces, and a link between them with a rate and a delay.

    with Hosts(build, rate_gbit=1, delay_ms=1) as hosts:
        subprocess.run(hosts.mpirun("lacuna", "train", ...), env=hosts.environment())

The link is a veth pair with netem at both ends or, where the kernel has no netem, tests/tools/wire_main on TUN devices.
`why_not` says what is missing. Whatever happens, the namespaces go: `Hosts.__exit__` removes them, and the next run those
of a run that was killed.
"""
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PREFIX = "lacuna-host"
NETWORK = "10.77.0.0/24"
ADDRESSES = ("10.77.0.1", "10.77.0.2")
MTU = 9000
NEEDED = {"ip": "iproute2", "tc": "iproute2", "unshare": "util-linux", "mpirun": "openmpi-bin"}


def run(*command, check=True):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if check and done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done


def why_not(build):
    """Why two hosts cannot be made here, or None."""
    if os.geteuid() != 0:
        return "network namespaces want root"
    for program, package in NEEDED.items():
        if not shutil.which(program):
            return f"{program} is missing ({package})"
    try:
        Hosts(build).close()
    except (RuntimeError, OSError) as error:
        return str(error)
    return None


def processes_in(name):
    return [int(pid) for pid in run("ip", "netns", "pids", name, check=False).stdout.split()]


def end_all_in(name):
    for pid in processes_in(name):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def remove(name):
    end_all_in(name)
    run("ip", "netns", "delete", name, check=False)


def remove_stale():
    """Namespaces of runs that were killed: their names carry the process that made them."""
    for line in run("ip", "netns", "list", check=False).stdout.splitlines():
        name = (line.split() or [""])[0]
        if name.startswith(PREFIX) and not pathlib.Path("/proc", name.split("-")[2]).exists():
            remove(name)


class Hosts:
    def __init__(self, build, rate_gbit=1.0, delay_ms=1.0):
        self.build, self.rate, self.delay = pathlib.Path(build), rate_gbit, delay_ms
        self.names = tuple(f"{PREFIX}-{os.getpid()}-{at}" for at in "ab")
        self.wire, self.kind = None, None
        self.folder = tempfile.TemporaryDirectory(prefix="hosts")  # of Open MPI: one that is killed leaves its files
        remove_stale()
        try:
            for name in self.names:
                run("ip", "netns", "add", name)
            self.connect()
        except BaseException:
            self.close()
            raise

    def connect(self):
        self.kind = "netem" if self.connect_by_netem() else "wire"
        if self.kind == "wire":
            self.connect_by_wire()
        for name, address in zip(self.names, ADDRESSES):
            run("ip", "-n", name, "address", "add", f"{address}/{NETWORK.split('/')[1]}", "dev", "wire")
            run("ip", "-n", name, "link", "set", "wire", "mtu", str(MTU), "up")
            run("ip", "-n", name, "link", "set", "lo", "up")

    def connect_by_netem(self):
        first, second = self.names
        run("ip", "link", "add", "wire", "netns", first, "type", "veth", "peer", "name", "wire", "netns", second)
        for name in self.names:
            done = run("ip", "netns", "exec", name, "tc", "qdisc", "add", "dev", "wire", "root", "netem", "rate",
                       f"{self.rate * 1000:g}mbit", "delay", f"{self.delay:g}ms", "limit", "1024", check=False)
            if done.returncode:  # a kernel without it
                run("ip", "-n", first, "link", "delete", "wire")
                return False
        return True

    def connect_by_wire(self):
        command = [str(self.build / "tests/tools/wire_main"), f"{self.rate * 1e9:.0f}", f"{self.delay * 1e3:.0f}"]
        self.wire = subprocess.Popen([*command, *self.names], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if self.wire.stdout.readline() != "ready\n":
            raise RuntimeError(f"no netem, and {self.wire.communicate()[1].strip()}")

    def close(self):
        if self.wire:
            self.wire.kill()
            self.wire.communicate()
        for name in self.names:
            remove(name)
        self.folder.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def environment(self):
        return {**os.environ, "TMPDIR": self.folder.name, "LAC_HOSTS": " ".join(f"{a}={n}" for a, n in zip(ADDRESSES, self.names))}

    def on(self, at, *command):
        """A command line on one host."""
        return [str(HERE / "agent"), ADDRESSES[at], "exec " + shlex.join(map(str, command))]

    def mpirun(self, *command, options=()):
        """A command line for two processes, one on each host; it is started on the first. Not bound to cores, since both
        hosts take the machine's cores for their own."""
        words = ["mpirun", "--allow-run-as-root", "--bind-to", "none", "--mca", "plm_rsh_agent", str(HERE / "agent"),
                 "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", NETWORK, "--mca", "oob_tcp_if_include",
                 NETWORK, "--host", ",".join(f"{address}:1" for address in ADDRESSES), "-np", "2", *options, *command]
        return self.on(0, *words)

    def running(self, program):
        """How many processes of a program there are on both hosts."""
        names = [pathlib.Path("/proc", str(pid), "comm") for host in self.names for pid in processes_in(host)]
        return sum(path.exists() and path.read_text().strip() == program for path in names)

    def end_all(self):
        for name in self.names:
            end_all_in(name)

    def cut(self):
        """From now on nothing arrives, as when a cable is pulled."""
        run("ip", "-n", self.names[1], "link", "set", "wire", "down")
