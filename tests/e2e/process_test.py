"""The server as a process: how it starts, what it says when it cannot, and how it stops."""
import http.client
import json
import re
import shlex
import signal
import subprocess
import threading

import harness
from harness import PROGRAM, Refused


class Process(harness.ServerTest):
    def run_program(self, *arguments, **more):
        return subprocess.run([PROGRAM, *arguments], text=True, capture_output=True, timeout=harness.DEADLINE, check=False,
                              cwd=self.directory, **more)

    def test_it_stops_when_what_is_handed_out_is_acked(self):
        server = self.serve()
        client = self.connect(server)
        client.ask("PUSH", "t", "0", "b", "ID", "a")
        client.ask("PUSH", "t", "1h", "b", "ID", "b")
        job = client.ask("POP", "t")[0]
        waiting = self.connect(server)
        waiting.send(("POP", "u", "WAIT", "1h"))
        self.wait_for(lambda: client.stats()["waiters"] == 1, "it waits")
        server.process.send_signal(signal.SIGTERM)
        sent_home = waiting.read()
        self.assertTrue(sent_home == [] or sent_home.code == "STOPPING", sent_home)
        refused = client.ask_all([("PUSH", "t", "0", "late")])[0]
        self.assertIsInstance(refused, Refused)
        self.assertEqual(refused.code, "STOPPING")
        self.assertEqual(client.ask("ACK", job[0]), 1)
        self.assertEqual(server.process.wait(harness.DEADLINE), 0)
        server.start()
        after = self.connect(server)
        self.assertIn(b"done", after.ask("GET", "t", "a"))
        self.assertIn(b"delayed", after.ask("GET", "t", "b"))

    def test_a_second_signal_does_not_wait(self):
        server = self.serve("--set", "server.grace=1h")
        client = self.connect(server)
        client.ask("PUSH", "t", "0", "b", "ID", "a")
        client.ask("POP", "t")
        server.process.send_signal(signal.SIGINT)
        self.wait_for(lambda: isinstance(client.ask_all([("PUSH", "t", "0", "b")])[0], Refused), "it is stopping")
        server.process.send_signal(signal.SIGINT)
        self.assertEqual(server.process.wait(harness.DEADLINE), 0)

    def test_while_it_stops_it_is_alive_takes_acks_and_is_not_ready(self):
        server = self.serve("--set", "server.grace=1h")

        def ask(method, path, body=None):
            connection = http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=harness.DEADLINE)
            self.addCleanup(connection.close)
            connection.request(method, path, body)
            response = connection.getresponse()
            return response.status, json.loads(response.read())

        client = self.connect(server)
        client.ask("PUSH", "t", "0", "b", "ID", "a")
        lease = client.ask("POP", "t")[0][0].decode()
        self.assertEqual(ask("GET", "/readyz")[0], 200)
        server.process.send_signal(signal.SIGTERM)
        self.wait_for(lambda: ask("GET", "/readyz")[0] == 503, "it is stopping")
        self.assertEqual(ask("GET", "/readyz")[1]["code"], "stopping")
        self.assertEqual(ask("GET", "/healthz")[0], 200)
        self.assertEqual(ask("POST", "/v1/topics/t/jobs", '{"body": 1}')[1]["code"], "stopping")
        server.process.send_signal(signal.SIGHUP)
        self.assertEqual(ask("GET", "/healthz")[0], 200)
        self.assertEqual(ask("POST", "/v1/ack", json.dumps({"leases": [lease]}))[1], {"results": [{"result": "acked"}]})
        self.assertEqual(server.process.wait(harness.DEADLINE), 0)

    def test_a_second_server_on_the_same_directory_is_refused(self):
        server = self.serve()
        done = self.run_program("serve", "--resp", "127.0.0.1:0", "--http", "127.0.0.1:0", "--data", str(server.data))
        self.assertEqual(done.returncode, 9, done.stderr)
        self.assertIn(str(server.data), done.stderr)
        self.assertEqual(self.connect(server).ask("PING"), "PONG")
        checked = self.run_program("check", str(server.data))
        self.assertEqual(checked.returncode, 9, checked.stderr)

    def test_a_port_that_is_taken_is_named(self):
        server = self.serve()
        done = self.run_program("serve", "--resp", f"127.0.0.1:{server.port}", "--http", "127.0.0.1:0", "--data", "other")
        self.assertEqual(done.returncode, 9, done.stderr)
        self.assertIn(str(server.port), done.stderr)

    def test_an_address_that_others_reach_is_refused_unless_allowed(self):
        refused = self.run_program("serve", "--resp", "0.0.0.0:0", "--http", "127.0.0.1:0", "--data", "other")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("allow_anonymous", refused.stderr)
        self.assertFalse((self.directory / "other").exists(), "something was started")

    def test_everything_wrong_with_a_config_is_told_at_once(self):
        config = self.directory / "delayq.toml"
        config.write_text('[server]\nrespp = "127.0.0.1:1"\ngrace = "soon"\n\n[journal]\ndurability = "never"\n')
        done = self.run_program("serve", "-c", str(config))
        self.assertEqual(done.returncode, 2)
        for line, word in ((2, "respp"), (3, "grace"), (6, "durability")):
            self.assertRegex(done.stderr, rf"delayq\.toml:{line}: .*{word}")
        self.assertFalse((self.directory / "data").exists(), "something was started")

    def test_topics_of_the_config_are_in_force_and_a_bare_command_serves(self):
        config = self.directory / "delayq.toml"
        config.write_text('[server]\nresp = "127.0.0.1:0"\nhttp = "127.0.0.1:0"\n\n[topics.once]\nattempts = 1\n')
        process = subprocess.Popen([PROGRAM, "-c", str(config)], stdout=subprocess.PIPE, text=True, cwd=self.directory)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.kill)
        lines = iter(process.stdout.readline, "")
        port = next(int(line.split()[4]) for line in lines if line.startswith("Try it: redis-cli -p "))
        client = harness.Client(port)
        self.addCleanup(client.close)
        client.ask("PUSH", "once", "0", "b", "ID", "a")
        client.ask("NACK", client.ask("POP", "once")[0][0])
        self.assertIn(b"dead", client.ask("GET", "once", "a"))
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(harness.DEADLINE), 0)

    def test_check_tells_of_damage_and_repairs_it(self):
        server = self.serve()
        client = self.connect(server)
        client.ask_all([("PUSH", "t", "1h", "b" * 100, "ID", f"job {i}") for i in range(100)])
        server.stop()
        self.assertEqual(self.run_program("check", str(server.data)).returncode, 0)
        segment = sorted(server.data.glob("segment-*"))[0]
        data = bytearray(segment.read_bytes())
        place = data.index(b"job 50")
        data[place] ^= 1
        segment.write_bytes(data)
        damaged = self.run_program("check", str(server.data))
        self.assertEqual(damaged.returncode, 13, damaged.stdout)
        self.assertIn(segment.name, damaged.stdout)
        refused = self.run_program("serve", "--resp", "127.0.0.1:0", "--http", "127.0.0.1:0", "--data", str(server.data))
        self.assertEqual(refused.returncode, 13)
        self.assertIn(segment.name, refused.stderr)
        shows, repairs = [shlex.split(command) for command in re.findall(r"`delayq ([^`]*)`", refused.stderr)]
        self.assertEqual(self.run_program(*shows).stdout, damaged.stdout, "the commands of the message work as they stand there")
        self.assertEqual(self.run_program(*repairs, "--yes").returncode, 0)
        server.start()
        self.assertEqual(self.connect(server).stats("t")["delayed"], 99)

    def test_many_clients_at_once(self):
        server = self.serve()
        total = 20 * 50 * 20

        def work(number):
            client = server.client()
            for batch in range(50):
                ids = [f"{number}-{batch}-{i}" for i in range(20)]
                replies = client.ask_all([("PUSH", "t", "0", name, "ID", name) for name in ids])
                assert replies == [name.encode() for name in ids]
            client.close()

        threads = [threading.Thread(target=work, args=(number,)) for number in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(harness.DEADLINE)
        self.assertEqual(self.connect(server).stats("t")["ready"], total)


if __name__ == "__main__":
    harness.main()
