"""The Debian package on a system of its own: this one's files with a layer above them that is thrown away, its own network
and processes. Real dpkg installs, upgrades, removes and purges there; the program runs as the unit says."""
import fcntl
import os
import pathlib
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile

import harness
from harness import DEADLINE, PROGRAM, ROOT

CANNOT = 77  # what ctest takes for "skipped"
NEEDED = ("dpkg-deb", "dpkg-shlibdeps", "unshare", "chroot", "setpriv", "adduser", "deb-systemd-helper")
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
SET_FLAGS, UP_AND_RUNNING = 0x8914, 0x41  # SIOCSIFFLAGS, IFF_UP | IFF_RUNNING


def cannot(why):
    print(f"package_test: {why}")
    sys.exit(CANNOT)


def in_own_system():
    if harness.SANITIZED:
        cannot("a program with sanitizers is not packaged")
    missing = [name for name in NEEDED if shutil.which(name, path=PATH) is None]
    if os.geteuid() != 0 or missing:
        cannot(f"needs root and {' '.join(missing) or 'nothing else'}")
    unshare = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child"]
    if subprocess.run([*unshare, "true"], check=False, stderr=subprocess.DEVNULL).returncode != 0:
        cannot("this system lets nobody have namespaces")
    os.environ["DELAYQ_IN_NAMESPACE"] = "1"
    os.execvp(unshare[0], [*unshare, sys.executable, *sys.argv])


def build(version, folder):
    done = subprocess.run([ROOT / "tools" / "deb", "--version", version, "--program", PROGRAM, "--output", folder], text=True,
                          capture_output=True, timeout=DEADLINE, check=False)
    assert done.returncode == 0, done.stderr
    return pathlib.Path(done.stdout.strip())


class Package(harness.ServerTest):
    @classmethod
    def setUpClass(cls):
        with socket.socket() as any_socket:
            fcntl.ioctl(any_socket, SET_FLAGS, struct.pack("16sh", b"lo", UP_AND_RUNNING))
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="delayq-package-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.old, cls.new = build("1.0.0", cls.folder), build("1.0.1", cls.folder)

    def setUp(self):
        super().setUp()
        self.mount("-t", "tmpfs", "none", self.directory)
        self.upper, self.root = self.directory / "upper", self.directory / "root"
        for folder in (self.upper, self.root, self.directory / "work"):
            folder.mkdir()
        layers = f"lowerdir=/,upperdir={self.upper},workdir={self.directory / 'work'}"
        self.mount("-t", "overlay", "-o", layers, "none", self.root)
        self.mount("-t", "proc", "none", self.root / "proc")
        self.mount("--rbind", "/dev", self.root / "dev")
        for folder in ("run", "tmp"):
            self.mount("-t", "tmpfs", "none", self.root / folder)

    def mount(self, *arguments):
        if subprocess.run(["mount", *map(str, arguments)], check=False).returncode != 0:
            cannot("this system lets nobody mount that")
        self.addCleanup(subprocess.run, ["umount", "--lazy", str(arguments[-1])], check=False)

    def inside(self, *command, code=0):
        environment = {"PATH": PATH, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
        done = subprocess.run(["chroot", self.root, *command], text=True, capture_output=True, timeout=DEADLINE, check=False,
                              env=environment, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, code, f"{command}: {done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def install(self, package):
        shutil.copy(package, self.root / "tmp" / package.name)
        self.inside("dpkg", "-i", f"/tmp/{package.name}")

    def unit(self):
        lines = (self.root / "lib/systemd/system/delayq.service").read_text().splitlines()
        return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))

    def start(self):
        """Does what systemd would: the command and the user of the unit, and waits for the word."""
        unit = self.unit()
        name = f"delayq-package-{os.getpid()}"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as news:
            news.settimeout(DEADLINE)
            news.bind(f"\0{name}")
            as_user = ["setpriv", f"--reuid={unit['User']}", f"--regid={unit['Group']}", "--clear-groups", "--no-new-privs", "--"]
            command = ["chroot", self.root, *as_user, *shlex.split(unit["ExecStart"])]
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env={"PATH": PATH, "NOTIFY_SOCKET": f"@{name}"})
            self.addCleanup(process.wait, DEADLINE)
            self.addCleanup(process.kill)
            self.assertIn(b"READY=1", news.recv(4096))
        return process

    def stop(self, process):
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(DEADLINE), 0)

    def left_behind(self):
        """Names of ours in the layer that is above this system: what is gone is there as a device."""
        return sorted(str(path.relative_to(self.upper)) for path in self.upper.rglob("*")
                      if "delayq" in path.name and not path.is_char_device())

    def test_install_run_upgrade_remove_purge(self):
        self.install(self.old)
        self.assertEqual(self.inside("dpkg", "--verify", "delayq"), "")
        data, config = self.root / "var/lib/delayq", self.root / "etc/delayq/delayq.toml"
        self.assertEqual(config.stat().st_mode & 0o777, 0o640)
        self.assertEqual(data.stat().st_mode & 0o777, 0o750)
        self.assertEqual(self.inside("stat", "-c", "%U", "/var/lib/delayq").strip(), "delayq")
        self.assertTrue((self.root / "etc/systemd/system/multi-user.target.wants/delayq.service").is_symlink(), "not enabled")
        self.inside("delayq", "config", "check", "-c", "/etc/delayq/delayq.toml")

        server = self.start()
        client = harness.Client(9278)
        self.addCleanup(client.close)
        client.ask("PUSH", "t", "1h", "b", "ID", "kept")
        self.assertIn("kept", self.inside("delayq", "get", "t", "kept"))
        self.stop(server)

        config.write_text(config.read_text() + "# an administrator was here\n")
        self.install(self.new)
        self.assertIn("1.0.1", self.inside("dpkg-query", "-W", "delayq"))
        self.assertIn("an administrator was here", config.read_text())
        server = self.start()
        again = harness.Client(9278)
        self.addCleanup(again.close)
        self.assertEqual(again.stats("t")["delayed"], 1)
        self.stop(server)

        self.inside("dpkg", "-r", "delayq")
        self.assertFalse((self.root / "usr/bin/delayq").exists())
        self.assertTrue(config.exists())
        self.assertTrue(list((data / "data").glob("segment-*")), "a removal takes no jobs")

        self.inside("dpkg", "-P", "delayq")
        self.assertEqual(self.left_behind(), [])
        self.assertNotIn("delayq", (self.root / "etc/passwd").read_text())

    def test_a_disabled_service_stays_disabled(self):
        self.install(self.old)
        wanted = self.root / "etc/systemd/system/multi-user.target.wants/delayq.service"
        wanted.unlink()
        self.install(self.new)
        self.assertFalse(wanted.is_symlink())

    def test_where_systemd_runs_it_is_started_restarted_and_stopped(self):
        (self.root / "run/systemd/system").mkdir(parents=True)
        for name in ("systemctl", "deb-systemd-invoke"):  # tell what they were asked for
            program = self.root / "usr/bin" / name
            program.unlink(missing_ok=True)
            program.write_text(f'#!/bin/sh\necho "{name} $*" >>/tmp/asked\n')
            program.chmod(0o755)
        self.install(self.old)
        self.install(self.new)
        self.inside("dpkg", "-r", "delayq")
        asked = (self.root / "tmp/asked").read_text().splitlines()
        self.assertEqual([line for line in asked if line.startswith("deb-systemd-invoke")],
                         [f"deb-systemd-invoke {what} delayq.service" for what in ("start", "restart", "stop")])
        self.assertIn("systemctl --system daemon-reload", asked)

    def test_removed_and_installed_again_it_finds_its_jobs(self):
        self.install(self.old)
        server = self.start()
        client = harness.Client(9278)
        self.addCleanup(client.close)
        client.ask("PUSH", "t", "1h", "b", "ID", "kept")
        self.stop(server)
        self.inside("dpkg", "-r", "delayq")
        self.install(self.new)
        self.assertTrue((self.root / "etc/systemd/system/multi-user.target.wants/delayq.service").is_symlink(), "not enabled")
        server = self.start()
        again = harness.Client(9278)
        self.addCleanup(again.close)
        self.assertEqual(again.stats("t")["delayed"], 1)
        self.stop(server)


if __name__ == "__main__":
    if "DELAYQ_IN_NAMESPACE" not in os.environ:
        in_own_system()
    harness.main()
