"""`delayq migrate`: everything of one server, or data directory, into another one."""
import json
import subprocess

import harness
from transfer_test import after_import, fill


class Migrate(harness.ServerTest):
    def another(self, name, *options):
        server = harness.Server(self.directory / name, *options)
        self.addCleanup(server.close)
        return server

    def migrate(self, source, target, *options, code=0):
        done = subprocess.run([harness.PROGRAM, "migrate", "--from", source, "--to", target, *options], capture_output=True,
                              timeout=harness.DEADLINE, check=False)
        self.assertEqual(done.returncode, code, done.stderr.decode())
        return json.loads(done.stdout) if done.stdout else done.stderr.decode()

    @staticmethod
    def url(server, token=""):
        return f"delayq://{token}127.0.0.1:{server.port}"

    def lines(self, server):
        done = subprocess.run([harness.PROGRAM, "export", "--server", f"127.0.0.1:{server.port}"], capture_output=True,
                              timeout=harness.DEADLINE, check=True)
        return done.stdout.decode().splitlines()

    def test_from_one_engine_to_another_and_back_again(self):
        one = self.serve()
        fill(self.connect(one))
        before = self.lines(one)
        other = self.another("other", "--engine", "memory")
        told = self.migrate(self.url(one), self.url(other))
        self.assertTrue(told["dry_run"])
        self.assertEqual([row["from"]["waiting"] for row in told["topics"]], [1, 2502, 1])
        self.assertEqual(self.lines(other), [], "a dry run stores nothing")

        told = self.migrate(self.url(one), self.url(other), "--yes")
        self.assertEqual((told["created"], told["failed"]), (len(before), 0))
        self.assertTrue(all(row["from"] == row["to"] for row in told["topics"]), told)
        self.assertEqual(sorted(self.lines(other)), after_import(before))
        self.assertEqual(self.lines(one), before, "the source is as it was")

        again = self.migrate(self.url(one), self.url(other), "--yes")
        self.assertEqual((again["created"], again["kept"]), (0, len(before)))

    def test_from_a_directory(self):
        one = self.serve()
        fill(self.connect(one))
        before = self.lines(one)
        self.assertEqual(one.stop()[0], 0)
        other = self.another("other", "--engine", "memory")
        told = self.migrate(str(self.directory / "data"), self.url(other), "--yes")
        self.assertEqual(told["created"], len(before))
        self.assertEqual(sorted(self.lines(other)), after_import(before))

    def test_what_is_missing_at_the_end_is_told(self):
        one = self.serve()
        self.connect(one).ask("PUSH", "t", "1h", "x" * 2000, "ID", "large")
        small = self.another("other", "--set", "limits.body=1KiB")
        self.migrate(self.url(one), self.url(small), "--yes", code=3)

    def test_places_that_are_none(self):
        server = self.serve()
        for place, words in [("http://127.0.0.1:1", "expected delayq://"), ("delayq://nowhere", "--from"), ("here", "--from")]:
            done = subprocess.run([harness.PROGRAM, "migrate", "--from", place, "--to", self.url(server)], capture_output=True, check=False)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(words, done.stderr.decode())


if __name__ == "__main__":
    harness.main()
