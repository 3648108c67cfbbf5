"""A client that is generated from /openapi.yaml asks the real server all that the description allows, and much that it does not:
no 5xx, no status, header, content type or body outside the description, nothing accepted that it forbids.
  DELAYQ_SCHEMATHESIS_EXAMPLES=1000    asks so much more of each call (make schemathesis)
  DELAYQ_SEED=n                        asks something else, or the same again
Without a seed it asks the same each time, so that `make test` judges a change by what it changed; `make schemathesis` asks anew."""
import os
import re
import subprocess
import sys

import harness
import openapi

HERE = harness.ROOT / "tests" / "e2e"
IS_LONG = "DELAYQ_SCHEMATHESIS_EXAMPLES" in os.environ
EXAMPLES = int(os.environ.get("DELAYQ_SCHEMATHESIS_EXAMPLES", 10 if harness.SANITIZED else 40))
# Of each call; and of sequences of calls, which are where jobs are pushed, popped, acked and taken back.
BUDGET = f"""
[generation]
max-examples = {EXAMPLES}
[phases.stateful]
generation.max-examples = {4 * EXAMPLES}
"""
PROGRAM = [harness.ROOT / "tools" / "pypi", "schemathesis", "schemathesis"]
NOT_INSTALLED = 77


class Schemathesis(harness.ServerTest):
    def run_against(self, server):
        seed = harness.new_random(usual_seed=None if IS_LONG else 1).randrange(1 << 32)
        config = self.directory / "schemathesis.toml"
        config.write_text((HERE / "schemathesis.toml").read_text() + BUDGET)
        command = [
            *PROGRAM, "--config-file", config,
            "run", f"http://127.0.0.1:{server.http_port}/openapi.yaml", "--url", f"http://127.0.0.1:{server.http_port}",
            "--no-color", "--seed", str(seed), "--continue-on-failure",
            "--request-timeout", "20", "--generation-database", "none", "--output-truncate", "false",
        ]
        environment = {**os.environ, "PYTHONPATH": str(HERE), "PYTHONDONTWRITEBYTECODE": "1", "SCHEMATHESIS_HOOKS": "schemathesis_hooks"}
        return subprocess.run(command, env=environment, cwd=self.directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=240 + 4 * EXAMPLES)

    def test_no_answer_is_outside_the_description(self):
        log = self.directory / "access.log"
        server = self.serve("--set", f"log.access={log}", "--set", "webhook.in_flight=0")  # callbacks are made up, and nobody is to be called
        result = self.run_against(server)
        self.assertEqual(result.returncode, 0, result.stdout)
        summary = result.stdout[result.stdout.index("SUMMARY"):]
        print(summary, file=sys.stderr)
        # It leaves out the call that it read the description from, and the one that has no end.
        self.assertEqual(int(re.search(r"Tested: (\d+)", summary)[1]), len(list(openapi.Description().operations())) - 2)
        self.assertGreater(int(re.search(r"(\d+) generated", summary)[1]), 20 * EXAMPLES, "it hardly asked anything")
        happened = self.connect(server).stats()
        for what in ("pushed", "popped", "cancelled"):
            self.assertGreater(happened[what], 0, f"its requests never came that far: {happened}")
        for accepted in (r"PUT /v1/schedules/\S+ 20[01]", r"GET /v1/schedules/preview 200", r"DELETE /v1/schedules/\S+ 200"):
            self.assertRegex(log.read_text(), accepted, "no such request was accepted")


if __name__ == "__main__":
    if subprocess.run([*PROGRAM, "--version"], stdout=subprocess.DEVNULL).returncode == NOT_INSTALLED:
        sys.exit(NOT_INSTALLED)
    harness.main()
