"""Everything leaves one server as lines and comes back in another: over sockets, over HTTP, and from a directory that
nobody serves."""
import http.client
import json
import subprocess
from contextlib import closing

import harness
from harness import PROGRAM


def fill(client):
    """Jobs in every state, bodies of every kind, settings."""
    client.ask_all([("PUSH", "later", "1h", json.dumps({"n": i}), "ID", f"job {i}", "GROUP", "g", "PRI", 7) for i in range(2500)])
    client.ask("PUSH", "later", "1h", b"\xff\x00bytes", "ID", "bytes", "ATTEMPTS", 3, "BACKOFF", "1s,2s", "LEASE", "5s")
    client.ask("PUSH", "later", "1h", '{\n  "two": "lines"\n}', "ID", "two lines")
    client.ask("PUSH", "caf\u00e9", "0", "ready", "ID", "ready")
    for name in ("done", "dead", "running"):
        client.ask("PUSH", "work", "0", name, "ID", name)
        lease = client.ask("POP", "work")[0][0]
        if name == "done":
            client.ask("ACK", lease)
        elif name == "dead":
            client.ask("NACK", lease, "REASON", "it broke", "DEAD")
    client.ask("PAUSE", "later")


def after_import(lines):
    """What becomes of exported lines: a running job has lost its lease."""
    return sorted(line.replace('"state":"reserved"', '"state":"ready"') for line in lines)


class Transfer(harness.ServerTest):
    def run_program(self, *arguments, **more):
        return subprocess.run([PROGRAM, *arguments], capture_output=True, timeout=harness.DEADLINE, check=False, cwd=self.directory,
                              **more)

    def serve_another(self, name):
        server = harness.Server(self.directory / name)
        self.addCleanup(server.close)
        return server

    def lines_of(self, server, *options):
        done = self.run_program("export", "--resp", f"127.0.0.1:{server.port}", *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.decode().splitlines()

    def test_from_server_to_server(self):
        one = self.serve()
        fill(self.connect(one))
        lines = self.lines_of(one)
        self.assertEqual(len(lines), 2500 + 2 + 1 + 3 + 1)
        self.assertEqual(len(self.lines_of(one, "--topic", "later", "--state", "delayed")), 2502)
        self.assertIn('"settings"', lines[[json.loads(line)["topic"] for line in lines].index("later")])

        other = self.serve_another("other")
        done = self.run_program("export", "all.ndjson", "--resp", f"127.0.0.1:{one.port}")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((self.directory / "all.ndjson").read_text().splitlines(), lines)
        self.assertFalse((self.directory / "all.ndjson.partial").exists())
        for expected in ({"created": len(lines), "kept": 0}, {"created": 0, "kept": len(lines)}):
            done = self.run_program("import", "all.ndjson", "--resp", f"127.0.0.1:{other.port}")
            self.assertEqual(done.returncode, 0, done.stderr)
            counts = json.loads(done.stdout)
            self.assertEqual({name: counts[name] for name in expected}, expected)
            self.assertEqual(counts["failed"], 0)
            self.assertEqual(sorted(self.lines_of(other)), after_import(lines))
        client = self.connect(other)
        self.assertEqual(client.ask("POP", "work")[0][2:5], [b"running", b"running", 2])

    def test_from_a_directory_to_a_directory(self):
        one = self.serve()
        fill(self.connect(one))
        refused = self.run_program("export", "--data", str(one.data))
        self.assertEqual(refused.returncode, 9, refused.stderr)
        self.assertIn(b"in use", refused.stderr)
        lines = self.lines_of(one)
        one.stop()
        done = self.run_program("export", "--data", str(one.data))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(done.stdout.decode().splitlines()), sorted(lines))
        self.assertEqual(self.run_program("export", "--data", "nowhere").returncode, 5)

        (self.directory / "fresh").mkdir()
        done = self.run_program("import", "--data", "fresh", "-", input=done.stdout)
        self.assertEqual(done.returncode, 0, done.stderr)
        other = self.serve_another("fresh")
        self.assertEqual(sorted(self.lines_of(other)), after_import(lines))

    def test_errors_name_file_and_line(self):
        server = self.serve()
        good = '{"topic":"t","id":"%s","state":"delayed","due_at":"2090-01-01T00:00:00Z","body":1}\n'
        file = self.directory / "some.ndjson"
        file.write_text(good % "a" + "\n" + "{nonsense\n" + good % "b" + '{"topic":"t","id":"c"}\n')
        done = self.run_program("import", "some.ndjson", "--resp", f"127.0.0.1:{server.port}")
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"some.ndjson:3: ", done.stderr)
        self.assertIn(b"some.ndjson:5: state", done.stderr)
        self.assertEqual(json.loads(done.stdout)["created"], 2)
        again = self.run_program("import", "some.ndjson", "--on-conflict", "reject", "--resp", f"127.0.0.1:{server.port}")
        self.assertIn(b"some.ndjson:1: ", again.stderr)
        self.assertEqual(json.loads(again.stdout)["failed"], 4)

    def test_over_http(self):
        one = self.serve()
        fill(self.connect(one))
        cursor, lines, pages = "", [], 0
        with closing(http.client.HTTPConnection("127.0.0.1", one.http_port, timeout=harness.DEADLINE)) as connection:
            while cursor is not None:
                connection.request("GET", f"/v1/export?limit=700&cursor={cursor}")
                response = connection.getresponse()
                self.assertEqual(response.status, 200)
                self.assertEqual(response.getheader("Content-Type"), "application/x-ndjson")
                lines += response.read().decode().splitlines()
                cursor = response.getheader("Delayq-Cursor")
                pages += 1
        self.assertGreater(pages, 3)
        self.assertEqual(lines, self.lines_of(one))
        other = self.serve_another("other")
        with closing(http.client.HTTPConnection("127.0.0.1", other.http_port, timeout=harness.DEADLINE)) as connection:
            connection.request("POST", "/v1/import?on_conflict=keep", "\n".join(lines + ["", "{}"]).encode())
            response = connection.getresponse()
            results = json.loads(response.read())["results"]
        self.assertEqual(response.status, 200)
        self.assertEqual([result["result"] for result in results[:-1]], ["created"] * len(lines))
        self.assertEqual(results[-1]["line"], len(lines) + 2)
        self.assertEqual(results[-1]["error"]["code"], "invalid")
        self.assertEqual(sorted(self.lines_of(other)), after_import(lines))


if __name__ == "__main__":
    harness.main()
