"""What the Dockerfile makes, and compose.yaml and the Kubernetes files run: container_harness.py is the container engine."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import urllib.error
import urllib.request

import yaml

import container_harness as engine
import harness
from harness import DEADLINE, PROGRAM, ROOT

TOKEN = re.compile(r"^(dq_\S+)$", re.MULTILINE)
TOML = re.compile(r"\[\[tokens\]\].*", re.DOTALL)
KUBERNETES = ROOT / "packaging" / "kubernetes"


def seconds(text):
    assert re.fullmatch(r"\d+s", text), text
    return int(text[:-1])


class ContainerTest(harness.ServerTest):
    @classmethod
    def setUpClass(cls):
        scratch = pathlib.Path(tempfile.mkdtemp(prefix="delayq-container-"))
        cls.addClassCleanup(shutil.rmtree, scratch, ignore_errors=True)
        mounts = engine.Mounts()
        cls.addClassCleanup(mounts.unmount)
        mounts.mount("-t", "tmpfs", "none", scratch)
        context = scratch / "context"
        engine.run(ROOT / "tools" / "deb", "--version", "1.0.0", "--program", PROGRAM, "--output", context / "build")
        cls.image = engine.Builder(context, scratch).build(engine.FOLDER / "Dockerfile")
        cls.scratch = scratch
        cls.compose = yaml.safe_load((engine.FOLDER / "compose.yaml").read_text())["services"]["delayq"]
        engine.enter_own_network()

    def setUp(self):
        super().setUp()
        self.volume = pathlib.Path(tempfile.mkdtemp(prefix="volume-", dir=self.scratch)) / "volume"

    def container(self, files=None, has_volume=True, **options):
        made = engine.Container(self.image, self.volume if has_volume else None, files, **options)
        self.addCleanup(made.close)
        return made

    def with_tokens(self, example, others=None, **options):
        """A container whose configuration is the example's, with a token in place of the one that fits nothing. It has the whole
        folder mounted if there are other files in it."""
        code, said = self.container().execute("delayq", "token", "new", "--name", "app", "--scopes", "push,consume,read")
        self.assertEqual(code, 0, said)
        config = self.directory / "delayq.toml"
        config.write_text(TOML.sub("", example) + TOML.search(said)[0])
        self.secret = TOKEN.search(said)[1]
        for name, text in (others or {}).items():
            (self.directory / name).write_text(text)
        self.directory.chmod(0o755)
        mounted = {"/etc/delayq": self.directory} if others else {"/etc/delayq/delayq.toml": config}
        return self.container(mounted, **options)

    def begin(self, container, *arguments):
        process = container.start(*arguments)
        self.addCleanup(process.said.close)
        self.addCleanup(process.wait, DEADLINE)
        self.addCleanup(process.kill)
        return process

    def start(self, container, *arguments):
        process = self.begin(container, *arguments)
        self.wait_for(lambda: process.poll() is not None or container.is_healthy(), "healthy")
        self.assertIsNone(process.poll(), self.said(process))
        return process

    @staticmethod
    def said(process):
        return os.pread(process.said.fileno(), 1 << 20, 0).decode()

    def stop(self, container, process):
        """As `docker stop` and the kubelet do. Returns the exit code."""
        os.kill(container.first_process(process), getattr(signal, self.image.stop_signal))
        return process.wait(seconds(self.compose["stop_grace_period"]))

    def client(self):
        client = harness.Client(9278)
        self.addCleanup(client.close)
        self.assertEqual(client.ask("AUTH", self.secret), "OK")
        return client

    def status(self, path):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:9277{path}", timeout=DEADLINE) as answer:
                return answer.status
        except urllib.error.HTTPError as problem:
            return problem.code

    def compose_config(self):
        return (engine.FOLDER / "delayq.toml").read_text()

    # ---- the image

    def test_the_image_is_small_in_what_it_may_do(self):
        self.assertEqual(self.image.ports, {9277, 9278})
        self.assertNotIn("0", self.image.user.split(":"))
        container = self.container()
        code, said = container.execute("sh", "-c", "id -u; id -g; grep -E 'Cap(Prm|Eff|Bnd)|NoNewPrivs' /proc/self/status || true")
        self.assertEqual(code, 0, said)
        self.assertEqual(said.split()[:2], self.image.user.split(":"))
        self.assertNotEqual(container.execute("sh", "-c", "echo x >/etc/delayq/delayq.toml")[0], 0)
        self.assertNotEqual(container.execute("sh", "-c", "echo x >/tmp/x")[0], 0, "the root is read-only")
        left = [path for path in ("package", "var/lib/apt/lists/lock") if (container.root / path).exists()]
        self.assertEqual(left, [])
        self.assertTrue((container.root / "etc/ssl/certs/ca-certificates.crt").exists(), "calls to https:// need it")

    def test_without_tokens_it_refuses_to_listen(self):
        process = self.begin(self.container())
        self.assertEqual(process.wait(DEADLINE), 2)
        said = self.said(process)
        self.assertIn("[[tokens]]", said)
        self.assertIn("server.allow_anonymous", said)

    def test_without_tokens_it_serves_everybody_when_it_is_told_to(self):
        container = self.container(environment={"DELAYQ_SERVER_ALLOW_ANONYMOUS": "true"})
        process = self.start(container)
        client = harness.Client(9278)
        self.addCleanup(client.close)
        client.ask("PUSH", "t", "0", "body", "ID", "1")
        self.assertEqual(self.stop(container, process), 0)

    def test_a_volume_of_somebody_else_is_named(self):
        self.volume.mkdir(mode=0o755)
        process = self.begin(self.container(environment={"DELAYQ_SERVER_ALLOW_ANONYMOUS": "true"}))
        self.assertNotEqual(process.wait(DEADLINE), 0)
        self.assertIn("/var/lib/delayq: Permission denied: let user 927 write there", self.said(process))

    def test_a_volume_has_one_server(self):
        options = {"environment": {"DELAYQ_SERVER_ALLOW_ANONYMOUS": "true"}}
        first = self.container(**options)
        process = self.start(first)
        ports = {"DELAYQ_SERVER_HTTP": ":9377", "DELAYQ_SERVER_RESP": ":9378"}
        second = self.begin(self.container(environment={**options["environment"], **ports}))
        self.assertNotEqual(second.wait(DEADLINE), 0)
        self.assertIn("/var/lib/delayq/data", self.said(second))
        self.assertTrue(first.is_healthy())
        self.assertEqual(self.stop(first, process), 0)

    # ---- compose.yaml

    def test_a_life_push_pop_stop_and_start_again(self):
        container = self.with_tokens(self.compose_config())
        self.assertFalse(container.is_healthy(), "nothing runs yet")
        process = self.start(container)
        status = pathlib.Path(f"/proc/{container.first_process(process)}/status").read_text()
        self.assertIn(f"Uid:\t{self.image.user.split(':')[0]}\t", status)
        self.assertRegex(status, r"NSpid:\t\d+\t1\n")
        self.assertRegex(status, r"CapEff:\t0+\n")
        self.assertRegex(status, r"CapBnd:\t0+\n")
        stranger = harness.Client(9278)
        self.addCleanup(stranger.close)
        with self.assertRaisesRegex(harness.Refused, "NOAUTH"):
            stranger.ask("PUSH", "t", "0", "body")
        client = self.client()
        client.ask("PUSH", "t", "0", "now", "ID", "due")
        client.ask("PUSH", "t", "1h", "later", "ID", "kept")
        lease = client.ask("POP", "t", "WAIT", "10s")[0][0]
        self.assertEqual(client.ask("ACK", lease), 1)
        self.assertEqual(self.stop(container, process), 0, self.said(process))

        again = self.container({"/etc/delayq/delayq.toml": self.directory / "delayq.toml"})
        process = self.start(again)
        client = self.client()
        self.assertIn(b"kept", client.ask("GET", "t", "kept"))
        self.assertEqual(client.stats("t")["delayed"], 1)
        self.assertEqual(self.stop(again, process), 0)

    def test_a_stop_waits_for_the_consumer_that_holds_a_job(self):
        container = self.with_tokens(self.compose_config())
        process = self.start(container)
        client = self.client()
        client.ask("PUSH", "t", "0", "body", "ID", "held")
        lease = client.ask("POP", "t", "WAIT", "10s")[0][0]
        os.kill(container.first_process(process), signal.SIGTERM)
        self.wait_for(lambda: self.status("/readyz") == 503, "not ready while it stops")
        self.assertTrue(container.is_healthy(), "the engine must not kill it while it stops")
        self.assertEqual(client.ask("ACK", lease), 1)
        self.assertEqual(process.wait(seconds(self.compose["stop_grace_period"])), 0)

    def test_what_was_answered_survives_a_kill(self):
        container = self.with_tokens(self.compose_config())
        process = self.start(container)
        self.client().ask("PUSH", "t", "1h", "body", "ID", "kept")
        os.kill(container.first_process(process), signal.SIGKILL)
        process.wait(DEADLINE)
        process = self.start(container)
        self.assertIn(b"kept", self.client().ask("GET", "t", "kept"))
        self.assertEqual(self.stop(container, process), 0)

    def test_a_server_that_hangs_is_unhealthy(self):
        container = self.with_tokens(self.compose_config())
        process = self.start(container)
        os.kill(container.first_process(process), signal.SIGSTOP)
        self.assertFalse(container.is_healthy())
        os.kill(container.first_process(process), signal.SIGCONT)
        self.wait_for(container.is_healthy, "healthy again")
        self.assertEqual(self.stop(container, process), 0)

    def test_tokens_change_without_a_restart(self):
        container = self.with_tokens(self.compose_config())
        process = self.start(container)
        client = self.client()
        config = self.directory / "delayq.toml"
        config.write_text(config.read_text().replace('name = "app"', 'name = "other"').replace(
            re.search(r'sha256 = "(\w+)"', config.read_text())[1], "1" * 64))
        os.kill(container.first_process(process), signal.SIGHUP)

        def refused():
            try:
                client.ask("PUSH", "t", "0", "body")
            except harness.Refused:
                return True
            return False
        self.wait_for(refused, "the old token is refused")
        self.assertEqual(self.stop(container, process), 0)

    # ---- Kubernetes

    def pod_of(self, name, kind):
        """The files of its Secret, its pod, and what every container there has: its user, and variables for each Service."""
        objects = list(yaml.safe_load_all((KUBERNETES / name).read_text()))
        (files,) = [each["stringData"] for each in objects if each["kind"] == "Secret"]
        (pod,) = [each["spec"]["template"]["spec"] for each in objects if each["kind"] == kind]
        user = f"{pod['securityContext']['runAsUser']}:{pod['securityContext']['runAsGroup']}"
        services = {"DELAYQ_SERVICE_HOST": "10.0.0.1", "DELAYQ_PORT": "tcp://10.0.0.1:9277", "DELAYQ_SERVICE_PORT_HTTP": "9277",
                    "DELAYQ_CONSUMERS_SERVICE_HOST": "10.0.0.2"}
        variables = {each["name"]: each["value"] for each in pod["containers"][0]["env"]}
        return dict(files), pod, {"user": user, "environment": {**variables, **services}}

    def check_probes(self, spec):
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            self.assertEqual(self.status(spec[probe]["httpGet"]["path"]), 200, probe)

    def test_the_stateful_set_runs_in_the_image(self):
        files, pod, options = self.pod_of("journal.yaml", "StatefulSet")
        (spec,) = pod["containers"]
        # A claim belongs to root; the kubelet gives it to the group, with what the driver leaves there.
        self.volume.mkdir()
        (self.volume / "lost+found").mkdir(mode=0o700)
        os.chown(self.volume, 0, pod["securityContext"]["fsGroup"])
        self.volume.chmod(0o2775)
        container = self.with_tokens(files["delayq.toml"], **options)
        process = self.start(container, *spec["args"])
        self.check_probes(spec)
        self.client().ask("PUSH", "t", "1h", "body", "ID", "kept")
        self.assertEqual(self.stop(container, process), 0)
        said = [json.loads(line) for line in self.said(process).splitlines() if line.startswith("{")]
        self.assertTrue(said, "its log is JSON, as the file says")

    def test_the_deployment_runs_in_the_image(self):
        files, pod, options = self.pod_of("redis.yaml", "Deployment")
        (spec,) = pod["containers"]
        password = files["redis-password"]
        redis = subprocess.Popen(["redis-server", "--port", "6379", "--requirepass", password, "--appendonly", "no", "--save", ""],
                                 stdout=subprocess.DEVNULL, cwd=self.directory)
        self.addCleanup(redis.wait, DEADLINE)
        self.addCleanup(redis.kill)
        config = re.sub(r'^url = .*$', 'url = "redis://127.0.0.1:6379"', files.pop("delayq.toml"), flags=re.MULTILINE)
        container = self.with_tokens(config, files, has_volume=False, **options)
        process = self.start(container, *spec["args"])  # which waits for Redis
        self.wait_for(lambda: self.status("/readyz") == 200, "ready")
        self.check_probes(spec)
        self.client().ask("PUSH", "t", "1h", "body", "ID", "kept")
        os.kill(container.first_process(process), signal.SIGKILL)
        process.wait(DEADLINE)
        process = self.start(container, *spec["args"])
        self.assertIn(b"kept", self.client().ask("GET", "t", "kept"))
        self.assertEqual(self.stop(container, process), 0, self.said(process))


if __name__ == "__main__":
    if harness.SANITIZED:
        engine.cannot("a program with sanitizers is not packaged")
    if "DELAYQ_IN_NAMESPACE" not in os.environ:
        engine.in_own_mounts()
    harness.main()
