"""What Prometheus and Grafana see, and who watches."""
import json
import re
import socket
import urllib.request

import harness
import redis_topology

SAMPLE = re.compile(r'^([a-z_]+)(\{[a-z]+="[^"\n]*"(?:,[a-z]+="[^"\n]*")*\})? (-?[0-9.e+-]+|NaN|\+Inf)$')


class Metrics(harness.ServerTest):
    def setUp(self):
        super().setUp()
        self.server = self.serve("--set", "limits.metrics_topics=5")

    def get(self, path):
        with socket.create_connection(("127.0.0.1", self.server.http_port), timeout=harness.DEADLINE) as web:
            web.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
            said = b""
            while part := web.recv(65536):
                said += part
        head, _, body = said.partition(b"\r\n\r\n")
        self.assertTrue(head.startswith(b"HTTP/1.1 200 "), head)
        return body.decode()

    def read(self):
        """The samples by their name and labels; each metric must be described, once, before its samples."""
        samples, described = {}, {}
        for line in self.get("/metrics").splitlines():
            if line.startswith("# TYPE "):
                _, _, name, kind = line.split()
                self.assertNotIn(name, described)
                described[name] = kind
                continue
            if line.startswith("#"):
                continue
            found = SAMPLE.match(line)
            self.assertTrue(found, line)
            name = found[1]
            base = name if name in described else re.sub("_(bucket|sum|count)$", "", name)
            self.assertIn(base, described, line)
            self.assertNotIn(name + (found[2] or ""), samples, "twice")
            samples[name + (found[2] or "")] = float(found[3])
        return samples

    def test_what_happens_is_counted(self):
        client = self.connect(self.server)
        before = self.read()
        for i in range(20):
            client.ask("PUSH", f"topic{i:02}", "0", "x")
        lease = client.ask("POP", "topic00")[0][0]
        client.ask("ACK", lease)
        with self.assertRaises(harness.Refused):
            client.ask("PUSH", "no such topic", "0", "x")
        samples = self.read()
        self.assertEqual(samples['delayq_jobs{state="ready"}'], 19)
        self.assertEqual(samples['delayq_events_total{event="pushed"}'], 20)
        self.assertEqual(samples['delayq_topic_events_total{topic="topic00",event="acked"}'], 1)
        self.assertEqual(samples['delayq_topic_jobs{topic="(others)",state="ready"}'], 15, "there are only so many labels")
        self.assertNotIn('delayq_topic_jobs{topic="topic05",state="ready"}', samples)
        self.assertEqual(samples["delayq_lateness_seconds_count"], 1)
        self.assertGreater(samples["delayq_commit_seconds_count"], before["delayq_commit_seconds_count"])
        self.assertGreater(samples["delayq_disk_bytes"], 0)
        self.assertGreater(samples["process_resident_memory_bytes"], 1_000_000)
        self.assertGreaterEqual(samples["delayq_connections"], 2)
        self.assertEqual(set(before) - set(samples), set(), "no metric goes away")

    def test_occurrences_are_counted(self):
        before = self.read()
        rule = json.dumps({"cron": "* * * * * *", "topic": "t", "body": 1, "runs": 1}).encode()
        asked = urllib.request.Request(f"http://127.0.0.1:{self.server.http_port}/v1/schedules/s", rule, method="PUT",
                                       headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(asked, timeout=harness.DEADLINE) as answer:
            self.assertEqual(answer.status, 201)
        made = 'delayq_schedule_occurrences_total{outcome="made"}'
        self.wait_for(lambda: self.read()[made] == 1, "an occurrence")
        samples = self.read()
        self.assertEqual((before["delayq_schedules"], samples["delayq_schedules"]), (0, 1))
        self.assertEqual(samples["delayq_schedule_lateness_seconds_count"], 1)
        for outcome in ("skipped", "missed"):
            self.assertEqual(samples[f'delayq_schedule_occurrences_total{{outcome="{outcome}"}}'], 0)
        self.assertEqual(samples["delayq_schedule_refusals_total"], 0)
        self.assertEqual(samples['delayq_jobs{state="ready"}'], 1)

    def test_the_dashboard_asks_for_what_there_is(self):
        text = (harness.ROOT / "conf" / "grafana-dashboard.json").read_text(encoding="utf-8")
        json.loads(text)
        asked = set(re.findall(r"\b(?:delayq|process)_[a-z_]+", text)) - {"delayq_"}
        self.assertGreater(len(asked), 15)
        there = {re.sub(r"\{.*", "", name) for name in self.read()}
        self.connect(self.server).ask("PUSH", "t", "0", "x")
        there |= {re.sub(r"\{.*", "", name) for name in self.read()}
        # Those of the redis engine and of deliveries are there where these are.
        with redis_topology.One() as topology:
            self.server = self.serve("--engine", "redis", "--redis", topology.url, "--set", f"redis_delivery.url={topology.url}",
                                     "--set", "kafka.brokers=127.0.0.1:1")
            there |= {re.sub(r"\{.*", "", name) for name in self.read()}
        self.assertEqual(asked - there, set())
        # All that is said of schedules is shown. A histogram is shown by its buckets.
        about_schedules = {name for name in there if name.startswith("delayq_schedule") and not name.endswith(("_sum", "_count"))}
        self.assertEqual(len(about_schedules), 4)
        self.assertEqual(about_schedules - asked, set())

    def test_events_come_as_things_change(self):
        web = socket.create_connection(("127.0.0.1", self.server.http_port), timeout=harness.DEADLINE)
        self.addCleanup(web.close)
        web.sendall(b"GET /v1/events?interval=100ms HTTP/1.1\r\nHost: localhost\r\n\r\n")
        lines = web.makefile("r", encoding="utf-8")
        self.addCleanup(lines.close)

        def event(name, condition):
            for line in lines:
                if line == f"event: {name}\n":
                    data = json.loads(next(lines).removeprefix("data: "))
                    if condition(data):
                        return data
            raise AssertionError("the stream ended")
        event("stats", lambda data: data["jobs"] == 0)
        client = self.connect(self.server)
        client.ask("PUSH", "order", "0", "x")
        event("topic", lambda data: data["topic"] == "order" and data["counts"]["ready"] == 1)
        client.ask("ACK", client.ask("POP", "order")[0][0])
        event("topic", lambda data: data["since_start"]["acked"] == 1)


if __name__ == "__main__":
    harness.main()
