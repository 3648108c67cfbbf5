"""What a container engine does with packaging/container, done without one: the Dockerfile's instructions are carried out in a
bare Debian, in a layer that is thrown away, and its entry point runs there as the first process of its own process
namespace, as the user and with the environment that the file says."""
import ctypes
import dataclasses
import fcntl
import glob
import json
import os
import pathlib
import re
import shlex
import shutil
import socket
import struct
import subprocess
import sys
import tempfile

from harness import DEADLINE, ROOT

FOLDER = ROOT / "packaging" / "container"
CANNOT = 77  # what ctest takes for "skipped"
NEEDED = ("debootstrap", "dpkg-deb", "dpkg-shlibdeps", "unshare", "chroot", "setpriv")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
RELEASES = {"debian:12-slim": "bookworm"}
NEW_NETWORK = 0x40000000  # CLONE_NEWNET
SET_FLAGS, UP_AND_RUNNING = 0x8914, 0x41  # SIOCSIFFLAGS, IFF_UP | IFF_RUNNING


def cannot(why):
    print(f"container: {why}")
    sys.exit(CANNOT)


def in_own_mounts():
    """Runs this script again where mounts are its own."""
    missing = [name for name in NEEDED if shutil.which(name, path=PATH) is None]
    if os.geteuid() != 0 or missing:
        cannot(f"needs root and {' '.join(missing) or 'nothing else'}")
    unshare = ["unshare", "--mount", "--propagation", "private"]
    if subprocess.run([*unshare, "true"], check=False, stderr=subprocess.DEVNULL).returncode != 0:
        cannot("this system lets nobody have namespaces")
    os.environ["DELAYQ_IN_NAMESPACE"] = "1"
    os.execvp(unshare[0], [*unshare, sys.executable, *sys.argv])


def enter_own_network():
    """From here on, this process and its children see only a loopback interface of their own."""
    if ctypes.CDLL(None, use_errno=True).unshare(NEW_NETWORK) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, SET_FLAGS, struct.pack("16sh", b"lo", UP_AND_RUNNING))


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], text=True, capture_output=True, check=False, timeout=15 * DEADLINE,
                          stdin=subprocess.DEVNULL, **options)
    assert done.returncode == 0, f"{command}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout


def bare_debian(release):
    """A folder with nothing but the base system. Made once, by debootstrap, from the archive that this machine uses."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "delayq"
    cache.mkdir(parents=True, exist_ok=True)
    with open(cache / f"{release}.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        base = cache / release
        if not base.exists():
            sources = [pathlib.Path("/etc/apt/sources.list"), *pathlib.Path("/etc/apt/sources.list.d").glob("*")]
            text = "\n".join(path.read_text(errors="replace") for path in sources if path.is_file())
            archive = re.search(r"https?://\S+/debian/?(?=\s|$)", text)
            part = cache / f"{release}.part"
            shutil.rmtree(part, ignore_errors=True)
            run("debootstrap", "--variant=minbase", release, part, *([archive[0]] if archive else []))
            run("chroot", part, "apt-get", "clean")
            part.rename(base)
    return base


@dataclasses.dataclass
class Image:
    """A stage of a Dockerfile: its files, in layers from the top down, and its settings."""
    layers: list
    environment: dict
    user: str = "0:0"
    entrypoint: list = dataclasses.field(default_factory=list)
    command: list = dataclasses.field(default_factory=list)
    health: str = ""
    volumes: list = dataclasses.field(default_factory=list)
    ports: set = dataclasses.field(default_factory=set)
    stop_signal: str = "SIGTERM"


def instructions(path):
    """(name, arguments) of each instruction."""
    text = "\n".join(line for line in path.read_text().splitlines() if not line.lstrip().startswith("#"))
    for line in text.replace("\\\n", " ").splitlines():
        if line.strip():
            name, _, arguments = line.strip().partition(" ")
            yield name, arguments.strip()


class Mounts:
    """What was mounted is gone at the end, in the opposite order."""

    def __init__(self):
        self.mounted = []

    def mount(self, *arguments):
        if subprocess.run(["mount", *map(str, arguments)], check=False).returncode != 0:
            cannot("this system lets nobody mount that")
        if str(arguments[-1]) not in self.mounted:
            self.mounted.append(str(arguments[-1]))

    def overlay(self, layers, upper, work, at):
        for folder in (upper, work, at):
            folder.mkdir(parents=True, exist_ok=True)
        lower = ":".join(map(str, layers))
        self.mount("-t", "overlay", "-o", f"lowerdir={lower},upperdir={upper},workdir={work}", "none", at)

    def unmount(self):
        for place in reversed(self.mounted):
            subprocess.run(["umount", "--lazy", place], check=False)
        self.mounted = []


class Builder:
    """Carries out a Dockerfile. An instruction that it does not know is an error, so that nothing stays untested."""

    def __init__(self, context, scratch):
        self.context, self.scratch = context, scratch
        self.stages = {}
        self.image = None

    def build(self, path):
        for name, arguments in instructions(path):
            step = getattr(self, f"do_{name.lower()}", None)
            assert step is not None, f"{path.name}: this test does not know {name}"
            step(arguments)
        return self.image

    def new_layer(self):
        layer = self.scratch / f"layer-{len(list(self.scratch.glob('layer-*')))}"
        layer.mkdir()
        return layer

    def do_from(self, arguments):
        name, *alias = re.split(r"\s+AS\s+", arguments, flags=re.IGNORECASE)
        below = [] if name == "scratch" else [bare_debian(RELEASES[name])]
        self.image = Image([self.new_layer(), *below], {"PATH": PATH})
        for each in alias:
            self.stages[each] = self.image

    def do_copy(self, arguments):
        *patterns, target = shlex.split(arguments)
        found = [path for pattern in patterns for path in glob.glob(str(self.context / pattern))]
        assert found, f"COPY {arguments}: there is no such file in the context"
        assert len(found) == 1 or target.endswith("/"), f"COPY {arguments}: {found} do not fit into one file"
        for path in found:
            at = self.image.layers[0] / target.lstrip("/")
            at = at / pathlib.Path(path).name if target.endswith("/") else at
            at.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, at)

    def do_run(self, arguments):
        mounts, top = Mounts(), self.image.layers[0]
        flags = re.match(r"((?:--\S+\s+)*)(.*)", arguments, re.DOTALL)
        root = self.scratch / "build-root"
        try:
            mounts.overlay(self.image.layers[1:], top, self.scratch / f"{top.name}.work", root)
            mounts.mount("-t", "proc", "none", root / "proc")
            mounts.mount("--rbind", "/dev", root / "dev")
            resolver = root / "etc/resolv.conf"
            resolver.touch()
            mounts.mount("--bind", os.path.realpath("/etc/resolv.conf"), resolver)
            made = [self.mount_for_build(mounts, root, flag) for flag in flags[1].split()]
            run("chroot", root, "/bin/sh", "-c", flags[2], env={**self.image.environment, "HOME": "/root"})
        finally:
            mounts.unmount()
        for name in made:  # a container engine makes them for the instruction only
            (top / name).rmdir()

    def mount_for_build(self, mounts, root, flag):
        options = dict(each.split("=", 1) for each in flag.removeprefix("--mount=").split(","))
        assert options.pop("type") == "bind", flag
        source = self.stages[options.pop("from")].layers[0] / options.pop("source").lstrip("/")
        target = options.pop("target").lstrip("/")
        assert not options, flag
        (root / target).mkdir()
        mounts.mount("--bind", source, root / target)
        return target

    def do_env(self, arguments):
        self.image.environment.update(each.split("=", 1) for each in shlex.split(arguments))

    def do_volume(self, arguments):
        self.image.volumes += shlex.split(arguments)

    def do_expose(self, arguments):
        self.image.ports |= {int(port) for port in arguments.split()}

    def do_user(self, arguments):
        self.image.user = arguments

    def do_stopsignal(self, arguments):
        self.image.stop_signal = arguments

    def do_healthcheck(self, arguments):
        self.image.health = re.sub(r"^(--\S+\s+)*CMD\s+", "", arguments)

    def do_entrypoint(self, arguments):
        self.image.entrypoint = json.loads(arguments)

    def do_cmd(self, arguments):
        self.image.command = json.loads(arguments)


class Container:
    """A root to run the image in. `files` are mounted over it, read-only: what is there, and which file of this system it is.
    `volume` is the folder that is mounted at the image's volume; a new one begins as the image's own files, as with Docker."""

    def __init__(self, image, volume, files=None, environment=None, user=None):
        self.image, self.user = image, user or image.user
        self.environment = {**image.environment, "HOME": "/", **(environment or {})}
        self.mounts = Mounts()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="container-", dir=image.layers[0].parent))
        self.root = self.folder / "root"
        self.mounts.overlay(image.layers, self.folder / "upper", self.folder / "work", self.root)
        if volume is not None:
            (at,) = image.volumes
            if not volume.exists():
                run("cp", "-a", self.root / at.lstrip("/"), volume)
            self.mounts.mount("--bind", volume, self.root / at.lstrip("/"))
        for place, path in (files or {}).items():
            self.mounts.mount("--bind", "-o", "ro", path, self.root / place.lstrip("/"))
        self.mounts.mount("--rbind", "/dev", self.root / "dev")
        self.mounts.mount("-o", "remount,bind,ro", self.root)

    def command(self, words):
        """As compose.yaml and the Kubernetes files say: no capabilities, and none to be had."""
        user, group = self.user.split(":")
        return ["chroot", str(self.root), "setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups",
                "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all", "--", *words]

    def start(self, *arguments):
        """The entry point, as process 1 of its own namespace."""
        words = [*self.image.entrypoint, *(arguments or self.image.command)]
        said = tempfile.TemporaryFile("w+b")
        process = subprocess.Popen(["unshare", "--pid", "--fork", "--kill-child", f"--mount-proc={self.root}/proc",
                                    *self.command(words)], env=self.environment, stdout=said, stderr=said, stdin=subprocess.DEVNULL)
        process.said = said
        return process

    def first_process(self, process):
        """Its number outside, or None while it is being made."""
        children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        return int(children[0]) if children else None

    def execute(self, *words):
        """Another process in the same container: (exit code, what it said)."""
        done = subprocess.run(self.command(words), env=self.environment, text=True, check=False, timeout=DEADLINE,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.returncode, done.stdout

    def is_healthy(self):
        return self.execute("/bin/sh", "-c", self.image.health)[0] == 0

    def close(self):
        self.mounts.unmount()
