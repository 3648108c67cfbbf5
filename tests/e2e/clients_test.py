"""Redis's own tools and libraries against the server, unchanged."""
import json
import os
import pathlib
import shutil
import socket
import subprocess

import harness

try:
    import redis
except ImportError:
    redis = None

HERE = pathlib.Path(__file__).resolve().parent


def need(tool):
    found = shutil.which(tool)
    assert found, f"{tool} is missing; tools/setup installs it"
    return found


class RedisTools(harness.ServerTest):
    def setUp(self):
        super().setUp()
        self.server = self.serve()

    def cli(self, *words, stdin=None):
        done = subprocess.run([need("redis-cli"), "-p", str(self.server.port), *words], input=stdin, text=True,
                              capture_output=True, timeout=harness.DEADLINE, check=True)
        return done.stdout.strip()

    def test_redis_cli(self):
        self.assertEqual(self.cli("PING"), "PONG")
        self.assertEqual(self.cli("PUSH", "order", "0", '{"uid":1}', "ID", "order:1"), "order:1")
        lease, topic, name, body, attempt, _ = self.cli("POP", "order", "WAIT", "10s").split("\n")
        self.assertEqual((topic, name, body, attempt), ("order", "order:1", '{"uid":1}', "1"))
        self.assertEqual(self.cli("ACK", lease), "1")
        self.assertIn("state\ndone", self.cli("GET", "order", "order:1"))
        self.assertIn("state done", self.cli("-3", "GET", "order", "order:1").replace('"', ""))
        self.assertTrue(self.cli("PUSH", "order", "soon", "x").startswith("INVALID delay"))
        self.assertEqual(self.cli("CANCEL", "order", "nobody"), "unknown")

    def test_redis_cli_reads_commands_from_a_pipe(self):
        def lines(topic):
            return "".join(f'PUSH {topic} 1h "body {i}" ID {i}\n' for i in range(1000))

        self.assertEqual(self.cli(stdin=lines("t")).split(), [str(i) for i in range(1000)])
        self.assertIn("errors: 0, replies: 1000", self.cli("--pipe", stdin=lines("u")))

    def test_inline_commands(self):
        client = self.connect(self.server)
        client.socket.sendall(b'PING\r\nPUSH t 0 "two words" ID "a b"\nGET t "a b"\r\n\r\nPING\r\n')
        self.assertEqual(client.read(), "PONG")
        self.assertEqual(client.read(), b"a b")
        self.assertIn(b"two words", client.read())
        self.assertEqual(client.read(), "PONG")

    def test_a_client_that_only_stops_sending_gets_its_replies(self):
        client = self.connect(self.server)
        client.send(*[("PUSH", "t", "1h", "b", "ID", i) for i in range(500)])
        client.socket.shutdown(socket.SHUT_WR)
        self.assertEqual([client.read() for _ in range(500)], [str(i).encode() for i in range(500)])
        self.assertEqual(client.stream.read(), b"", "and is closed then")

    def test_redis_benchmark(self):
        done = subprocess.run([need("redis-benchmark"), "-p", str(self.server.port), "-q", "-n", "20000", "-c", "10", "-P", "16",
                               "PUSH", "t", "1h", "body"],
                              text=True, capture_output=True, timeout=harness.DEADLINE, check=True)
        self.assertIn("requests per second", done.stdout)
        self.assertNotIn("error", done.stdout.lower())
        self.assertEqual(self.connect(self.server).stats("t")["delayed"], 20000)


class Libraries(harness.ServerTest):
    def setUp(self):
        super().setUp()
        self.server = self.serve()

    def test_redis_py(self):
        self.assertIsNotNone(redis, "python3-redis is missing; tools/setup installs it")
        client = redis.Redis(port=self.server.port, client_name="e2e", socket_timeout=harness.DEADLINE)
        self.addCleanup(client.close)
        self.assertTrue(client.ping())
        self.assertEqual(client.client_getname(), "e2e")
        self.assertIn("delayq_version", client.info())
        with client.pipeline(transaction=False) as pipe:
            for i in range(500):
                pipe.execute_command("PUSH", "t", "0", f"body {i}", "ID", i)
            self.assertEqual(pipe.execute(), [str(i).encode() for i in range(500)])
        jobs = client.execute_command("POP", "t", "COUNT", 1000)
        self.assertEqual([job[3] for job in jobs], [f"body {i}".encode() for i in range(500)])
        self.assertEqual(client.execute_command("ACK", *[job[0] for job in jobs]), 500)
        self.assertEqual(client.execute_command("POP", "t", "WAIT", "10ms"), [])
        with self.assertRaisesRegex(redis.ResponseError, "delay"):
            client.execute_command("PUSH", "t", "soon", "x")

    def test_redis_pys_usual_pipeline(self):
        self.assertIsNotNone(redis, "python3-redis is missing; tools/setup installs it")
        client = redis.Redis(port=self.server.port, socket_timeout=harness.DEADLINE)
        self.addCleanup(client.close)
        with client.pipeline() as pipe:  # MULTI ... EXEC
            for i in range(5000):
                pipe.execute_command("PUSH", "t", "0", f"body {i}", "ID", i)
            pipe.execute_command("POP", "t", "COUNT", 2)
            said = pipe.execute()
        self.assertEqual(said[:-1], [str(i).encode() for i in range(5000)])
        self.assertEqual([job[2] for job in said[-1]], [b"0", b"1"])
        with client.pipeline() as pipe:
            pipe.execute_command("PUSH", "u", "0", "x", "ID", "a")
            pipe.execute_command("NOSUCH")
            with self.assertRaisesRegex(redis.ResponseError, "NOSUCH"):
                pipe.execute()
        self.assertIsNone(client.execute_command("GET", "u", "a"), "nothing of it was done")
        with client.pipeline() as pipe:
            pipe.execute_command("PUSH", "u", "0", "x", "ID", "a")
            pipe.execute_command("PUSH", "u", "soon", "x", "ID", "b")
            pipe.execute_command("PUSH", "u", "0", "x", "ID", "c")
            said = pipe.execute(raise_on_error=False)
        self.assertEqual((said[0], said[2]), (b"a", b"c"))
        self.assertIsInstance(said[1], redis.ResponseError)
        with client.pipeline() as pipe:
            pipe.execute_command("PUSH", "v", "0", "x", "ID", "a")
            pipe.reset()
        self.assertIsNone(client.execute_command("GET", "v", "a"))
        self.assertTrue(client.ping())

    def test_node_redis(self):
        environment = dict(os.environ, NODE_PATH="/usr/share/nodejs:/usr/lib/nodejs")
        done = subprocess.run([need("node"), str(HERE / "node_client.js"), str(self.server.port)], env=environment, text=True,
                              capture_output=True, timeout=harness.DEADLINE, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        said = json.loads(done.stdout)
        self.assertEqual(said, {"pong": "PONG", "ids": 200, "bodies": 200, "acked": 200, "waited": "late", "refused": "INVALID"})


if __name__ == "__main__":
    harness.main()
