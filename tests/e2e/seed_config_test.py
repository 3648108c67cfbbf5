"""`delayq -c` with the configuration files of go-delay-queue, delay_queue_callback and DelayQ."""
import http.client
import json
import os
import re
import signal
import socket
import subprocess

import harness
import redis_topology
from harness import DEADLINE, PROGRAM, ROOT

SEEDS = ROOT / "tests" / "data" / "seeds"


class SeedServer(harness.Server):
    """As users of these systems start it: a file, no command, and whatever is relative is relative to here."""

    def __init__(self, directory, *options):
        self.directory = directory
        super().__init__(directory / "data", *options)

    def command(self):
        self.cwd = self.directory
        return [PROGRAM, "--resp", self.resp]


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


class SeedConfig(harness.ServerTest):
    def write(self, name, *changes):
        """The file of that name, with each (text, other text) of it changed."""
        text = (SEEDS / name).read_bytes()
        for before, after in changes:
            self.assertIn(before.encode(), text)
            text = text.replace(before.encode(), after.encode())
        (self.directory / name).write_bytes(text)
        return name

    def start(self, *options):
        server = SeedServer(self.directory, *options)
        self.addCleanup(server.close)
        return server

    def run_program(self, *arguments, **environment):
        return subprocess.run([PROGRAM, *arguments], text=True, capture_output=True, timeout=DEADLINE, check=False,
                              cwd=self.directory, env={**os.environ, **environment})

    def get(self, port, path):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE)
        self.addCleanup(connection.close)
        connection.request("GET", path)
        return json.loads(connection.getresponse().read())

    def test_delayq(self):
        # The document's example needs root for one line; the rest of it is as it is.
        redis = redis_topology.One()
        self.addCleanup(redis.close)
        port = redis.redis.port
        name = self.write("delayq.conf", ("/var/run/delayq.pid", "delayq.pid"), ("port = 6379", f"port = {port}"))
        server = self.start("-c", name, "--http", "127.0.0.1:0")
        self.assertEqual((self.directory / "delayq.pid").read_text().strip(), str(server.process.pid))
        self.connect(server).ask("PUSH", "order", "0", "x", "ID", "a")
        self.assertEqual(self.get(server.http_port, "/v1/topics/order/jobs/a")["state"], "ready")
        code, said = server.stop()
        self.assertEqual(code, 0)
        log = (self.directory / "logs" / "error.log").read_text()
        for text in (said, log):
            self.assertIn("delayq.conf:3: delayq.timer_interval: not needed: a job is handed over at its time", text)
            self.assertIn(f"delayq.conf:8: jobs are kept in this Redis (redis://127.0.0.1:{port}), below the keys delayq:*", text)
            self.assertEqual(len(re.findall(r"delayq.conf:\d+: redis\.\w+: not needed", text)), 4)
        self.assertIn("delayq.conf is read as a file of DelayQ", log)
        self.assertIn(" PUSH order ", (self.directory / "logs" / "access.log").read_text())
        self.assertFalse((self.directory / "delayq.pid").exists())
        self.assertFalse((self.directory / "data").exists(), "no journal was begun")

    def test_delayq_exactly_as_documented_is_right(self):
        done = self.run_program("config", "check", "-c", self.write("delayq.conf", ("/var/run/delayq.pid", "delayq.pid")))  # else root is needed
        self.assertEqual((done.returncode, done.stdout), (0, "delayq.conf is right, as a file of DelayQ; 6 warnings.\n"))
        self.assertEqual(len(done.stderr.splitlines()), 6)
        self.assertTrue(all(line.startswith("warning: delayq.conf:") for line in done.stderr.splitlines()))

    def test_go_delay_queue(self):
        port = free_port()
        name = self.write("go-delay-queue.conf", ("0.0.0.0:9277", f"0.0.0.0:{port}"))
        server = self.start("-c", name, "-t", "journal")
        self.assertEqual(server.http_port, port)
        self.assertEqual(self.get(port, "/v1/topics")["topics"], [])
        said = server.stop()[1]
        self.assertIn(f"{name}:4: 0.0.0.0:{port} can be reached from other machines without authentication: "
                      f"listening on 127.0.0.1:{port} instead", said)
        self.assertIn("kafkaqueue.delay_durations: not used: the kafka engine has its own settings", said)
        self.assertIn("redis://127.0.0.1:6379 is not used: another engine was chosen by command line", said)
        self.assertTrue((self.directory / "logs" / "delay-queue.log").exists())

    def test_consumers_of_go_delay_queue_stay_as_they_are(self):
        redis = redis_topology.One()
        self.addCleanup(redis.close)
        port = free_port()
        name = self.write("go-delay-queue.conf", ("0.0.0.0:9277", f"127.0.0.1:{port}"), ("127.0.0.1:6379", f"127.0.0.1:{redis.redis.port}"))
        server = self.start("-c", name)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE)
        self.addCleanup(connection.close)
        connection.request("POST", "/delay-queue/api/jobs/add", json.dumps({"topic": "order", "id": "7", "delay": 1, "body": "the body"}))
        self.assertEqual(json.loads(connection.getresponse().read())["code"], 0)
        consumer = redis.redis.client(1)
        self.addCleanup(consumer.close)
        self.assertEqual(consumer.blpop(["order"], timeout=int(DEADLINE)), (b"order", b"7"))
        got = self.get(port, "/delay-queue/api/jobs/get?job_id=7")["data"]
        self.assertEqual((got["topic"], got["id"], got["body"], got["delay"]), ("order", "7", "the body", 1))
        said = server.stop()[1]
        self.assertIn("due ids are written to the list of their topic in this Redis, as go-delay-queue does", said)

    def test_the_kafka_engine_is_chosen_on_the_command_line(self):
        name = self.write("go-delay-queue.conf")
        done = self.run_program("config", "check", "-c", name, "-t", "kafka", "--print")
        self.assertIn('engine = "kafka"', done.stdout + done.stderr)
        self.assertIn('brokers = "127.0.0.1:9093"', done.stdout + done.stderr)
        self.assertIn('delivery = "kafka_topic"', done.stdout + done.stderr)

    def test_callback(self):
        port = free_port()
        name = self.write("callback.conf", ("127.0.0.1:9527", f"127.0.0.1:{port}"))
        server = self.start("-c", name, "-t", "journal")
        self.assertEqual(server.http_port, port)
        self.connect(server).ask("PUSH", "inform", "1h", "x")
        settings = self.get(port, "/v1/topics/inform")["settings"]
        self.assertEqual((settings["attempts"], settings["callback_timeout"]), (3, "30s"))
        server.stop()
        self.assertTrue((self.directory / "log" / "delay.log").exists())

    def test_environment_and_command_line_go_before_the_file(self):
        name = self.write("callback.conf")
        done = self.run_program("config", "check", "-c", name, "--print", "--set", "topics.*.callback_timeout=1m",
                                DELAYQ_LOG_FILE="other.log")
        self.assertEqual(done.returncode, 0, done.stderr)
        for line in ('http = "127.0.0.1:9527"  # callback.conf:2', 'file = "other.log"  # DELAYQ_LOG_FILE',
                     'attempts = "3"  # callback.conf:9', 'callback_timeout = "1m"  # command line'):
            self.assertIn(line + "\n", done.stdout)

    def test_all_that_is_wrong_is_told_and_nothing_is_started(self):
        name = self.write("callback.conf", ("127.0.0.1:9527", "nowhere"), ("max_tries = 3", "max_tries = three"),
                          ("redis.db = 1", "redis.db"))
        done = self.run_program("-c", name)
        self.assertEqual(done.returncode, 2)
        for line in ("callback.conf:2: listen: ", "callback.conf:6: expected key = value", "callback.conf:9: max_tries: "):
            self.assertIn("\n" + line, "\n" + done.stderr)
        self.assertEqual(os.listdir(self.directory), [name], "something was started")

    def test_sighup_reads_such_a_file_again(self):
        name = self.write("delayq.conf", ("/var/run/delayq.pid", "delayq.pid"))
        server = self.start("-c", name, "--http", "127.0.0.1:0", "-t", "journal")
        log = self.directory / "logs" / "error.log"
        self.write("delayq.conf", ("port = 6379", "port = many"))
        server.process.send_signal(signal.SIGHUP)
        self.wait_for(lambda: 'redis.port: "many" is not allowed' in log.read_text(), "the error is told")
        self.write("delayq.conf")
        server.process.send_signal(signal.SIGHUP)
        self.wait_for(lambda: log.read_text().count("SIGHUP:") == 2, "it is heard")
        self.assertEqual(self.get(server.http_port, "/v1/topics")["topics"], [])
        self.assertEqual(server.stop()[0], 0)
        self.assertEqual(log.read_text().count("stays as it was"), 1, "the second time all was right")


if __name__ == "__main__":
    harness.main()
