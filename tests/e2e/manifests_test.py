"""compose.yaml and the Kubernetes files say only what there is: every path, port, variable, setting, probe and name. What they
make is run by container_test.py."""
import json
import os
import re
import subprocess

import yaml

import harness
import openapi
from harness import DEADLINE, PROGRAM, ROOT

CONTAINER = ROOT / "packaging" / "container"
KUBERNETES = ROOT / "packaging" / "kubernetes"
UNITS = {"s": 1, "m": 60}
STOP_BESIDES_GRACE = 2 + 10 + 10  # "A stop always ends", docs/guide/operations.md


def seconds(text):
    return sum(int(number) * UNITS[unit] for number, unit in re.findall(r"(\d+)([sm])", text))


def dockerfile(name):
    """The arguments of each such instruction."""
    text = (CONTAINER / "Dockerfile").read_text().replace("\\\n", " ")
    return re.findall(rf"^{name} (.+)$", text, re.MULTILINE)


class Manifests(harness.ServerTest):
    def setUp(self):
        super().setUp()
        self.environment = dict(each.split("=", 1) for each in dockerfile("ENV"))
        self.ports = {name: int(self.environment[f"DELAYQ_SERVER_{name.upper()}"].removeprefix(":")) for name in ("http", "resp")}
        self.probes = {path for method, path, _ in openapi.Description().operations() if method == "GET"}
        (self.data,) = json.loads(dockerfile("VOLUME")[0]) if dockerfile("VOLUME")[0].startswith("[") else dockerfile("VOLUME")
        self.user, self.group = dockerfile("USER")[0].split(":")

    def effective(self, config, variables, files=None):
        """The values that the server would use, and where each comes from, as `config check --print` tells."""
        folder = self.directory / "etc"
        folder.mkdir(exist_ok=True)
        for name, text in (files or {}).items():
            (folder / name).write_text(text)
            config = config.replace(f'"/etc/delayq/{name}"', f'"{folder}/{name}"')
        (folder / "delayq.toml").write_text(config)
        # The directory of the image is not here, and the ports may be in use.
        variables = {**self.environment, **variables, "DELAYQ_SERVER_DATA": str(self.directory / "data")}
        done = subprocess.run([PROGRAM, "config", "check", "-c", folder / "delayq.toml", "--print"], text=True, capture_output=True,
                              check=False, timeout=DEADLINE, env={"PATH": os.environ["PATH"], **variables})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertNotIn("warning", done.stderr)
        values = {}
        section = ""
        for line in done.stdout.splitlines():
            if found := re.match(r"\[+(\w+)\]+", line):
                section = found[1]
            elif found := re.match(r"(\w+) = (.*?)\s+# (.*)$", line):
                values[f"{section}.{found[1]}"] = (found[2].strip('"'), found[3])
        for name in variables:
            if name.startswith("DELAYQ_"):
                self.assertIn(name, [origin for _, origin in values.values()], f"{name} sets nothing")
        return {key: value for key, (value, _) in values.items()}

    # ---- the image

    def test_the_image_says_of_itself_what_is_true(self):
        self.assertEqual({int(port) for port in dockerfile("EXPOSE")[0].split()}, set(self.ports.values()))
        self.assertTrue(self.environment["DELAYQ_SERVER_DATA"].startswith(f"{self.data}/"))
        self.assertEqual(self.environment["HEALTH_URL"], f"http://127.0.0.1:{self.ports['http']}/healthz")
        self.assertIn(f"--uid {self.user} ", dockerfile("RUN")[0])
        self.assertIn(f"--gid {self.group} ", dockerfile("RUN")[0])
        # adduser of the package takes it only as a system's user, and Kubernetes only as a number.
        self.assertIn(int(self.user), range(100, 1000))
        self.assertEqual(json.loads(dockerfile("ENTRYPOINT")[0]), ["delayq"])

    # ---- compose.yaml

    def test_compose(self):
        file = yaml.safe_load((CONTAINER / "compose.yaml").read_text())
        (service,) = file["services"].values()
        self.assertTrue((CONTAINER / service["build"]["context"] / service["build"]["dockerfile"]).samefile(CONTAINER / "Dockerfile"))
        published = [each.split(":") for each in service["ports"]]
        self.assertEqual({int(inside) for *_, inside in published}, set(self.ports.values()))
        self.assertEqual({address for address, *_ in published}, {"127.0.0.1"}, "other machines only when somebody decides it")
        volume, config = [each.split(":") for each in service["volumes"]]
        self.assertIn(volume[0], file["volumes"])
        self.assertEqual(volume[1], self.data)
        self.assertEqual(config[1], json.loads(dockerfile("CMD")[0])[-1])
        self.assertEqual(config[2], "ro")
        values = self.effective((CONTAINER / config[0]).read_text(), service.get("environment", {}))
        self.assertGreater(seconds(service["stop_grace_period"]), seconds(values["server.grace"]) + STOP_BESIDES_GRACE)
        self.assertLess(int(values["server.max_connections"]), service["ulimits"]["nofile"])

    # ---- Kubernetes

    def check_pod(self, objects, workload):
        """What both files have in common. Returns the pod's one container, and the settings that are in force."""
        of_kind = {}
        for each in objects:
            of_kind.setdefault(each["kind"], []).append(each)
        (owner,) = of_kind[workload]
        labels = owner["spec"]["template"]["metadata"]["labels"]
        pod = owner["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        selectors = [owner["spec"]["selector"]["matchLabels"]]
        selectors += [each["spec"]["selector"] for each in of_kind["Service"]]
        selectors += [each["spec"]["selector"]["matchLabels"] for each in of_kind.get("PodDisruptionBudget", [])]
        for selector in selectors:
            self.assertLessEqual(selector.items(), labels.items())

        self.assertEqual({each["name"]: each["containerPort"] for each in container["ports"]}, self.ports)
        for service in of_kind["Service"]:
            self.assertEqual({(each["targetPort"], each["port"]) for each in service["spec"]["ports"]}, set(self.ports.items()))
        for probe, path in (("startupProbe", "/healthz"), ("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")):
            self.assertEqual(container[probe]["httpGet"], {"path": path, "port": "http"})
            self.assertIn(path, self.probes)

        (secret,) = of_kind["Secret"]
        volumes = {each["name"]: each for each in pod["volumes"]}
        volumes |= {each["metadata"]["name"]: each for each in owner["spec"].get("volumeClaimTemplates", [])}
        mounts = {each["mountPath"]: volumes[each["name"]] for each in container["volumeMounts"]}
        self.assertEqual(mounts["/etc/delayq"]["secret"]["secretName"], secret["metadata"]["name"])
        self.assertEqual(container["args"], json.loads(dockerfile("CMD")[0]))
        for path in re.findall(r'"/etc/delayq/([^"]+)"', secret["stringData"]["delayq.toml"]):
            self.assertIn(path, secret["stringData"])

        context = {**pod["securityContext"], **container["securityContext"]}
        self.assertEqual((context["runAsUser"], context["runAsGroup"], context["fsGroup"]), (int(self.user), int(self.group), int(self.group)))
        self.assertTrue(context["runAsNonRoot"] and context["readOnlyRootFilesystem"] and not context["allowPrivilegeEscalation"])
        self.assertEqual(context["capabilities"], {"drop": ["ALL"]})

        variables = {each["name"]: each["value"] for each in container["env"]}
        files = {name: text for name, text in secret["stringData"].items() if name != "delayq.toml"}
        values = self.effective(secret["stringData"]["delayq.toml"], variables, files)
        self.assertGreater(pod["terminationGracePeriodSeconds"], seconds(values["server.grace"]) + STOP_BESIDES_GRACE)
        return owner, mounts, values

    @staticmethod
    def mebibytes(text):
        number, unit = re.fullmatch(r"(\d+)(Mi|Gi)B?", text).groups()
        return int(number) * {"Mi": 1, "Gi": 1024}[unit]

    def test_the_journal_on_kubernetes(self):
        objects = list(yaml.safe_load_all((KUBERNETES / "journal.yaml").read_text()))
        owner, mounts, values = self.check_pod(objects, "StatefulSet")
        self.assertEqual(values["server.engine"], "journal")
        self.assertEqual(owner["spec"]["replicas"], 1, "two servers cannot use one data directory")
        self.assertIn(owner["spec"]["serviceName"], [each["metadata"]["name"] for each in objects if each["kind"] == "Service"])
        (container,) = owner["spec"]["template"]["spec"]["containers"]
        self.assertGreaterEqual(self.mebibytes(container["resources"]["limits"]["memory"]), self.mebibytes(values["limits.memory"]) + 200)
        self.assertIn("storage", mounts[self.data]["spec"]["resources"]["requests"])
        self.assertNotIn("PodDisruptionBudget", [each["kind"] for each in objects], "it would prevent every drain of the node")

    def test_redis_on_kubernetes(self):
        objects = list(yaml.safe_load_all((KUBERNETES / "redis.yaml").read_text()))
        owner, mounts, values = self.check_pod(objects, "Deployment")
        self.assertEqual(values["server.engine"], "redis")
        self.assertGreaterEqual(owner["spec"]["replicas"], 2)
        self.assertNotIn(self.data, mounts, "jobs are in Redis")
        (budget,) = [each["spec"] for each in objects if each["kind"] == "PodDisruptionBudget"]
        self.assertIn(budget["minAvailable"], range(1, owner["spec"]["replicas"]))
        startup = owner["spec"]["template"]["spec"]["containers"][0]["startupProbe"]
        self.assertGreater(startup["periodSeconds"] * startup["failureThreshold"], seconds(values["redis.start_wait"]))


if __name__ == "__main__":
    harness.main()
