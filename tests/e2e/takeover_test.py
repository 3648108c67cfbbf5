"""`delayq import --from SYSTEM redis://...`: each system's layout as that system writes it, taken over into a real server."""
import base64
import json
import struct
import subprocess
import time

import confluent_kafka

import harness
import redis_topology
from kafka_harness import Kafka

DAY = 86_400
INVALID, CORRUPT = 2, 13  # exit codes


def packed(value):
    """MessagePack of what go-delay-queue stores: maps, texts, numbers, bytes."""
    if isinstance(value, dict):
        assert len(value) < 16
        return bytes([0x80 | len(value)]) + b"".join(packed(key) + packed(each) for key, each in value.items())
    if isinstance(value, int):
        return bytes([value]) if 0 <= value < 128 else b"\xd3" + struct.pack(">q", value)
    if isinstance(value, bytes):
        return b"\xc5" + struct.pack(">H", len(value)) + value
    text = value.encode()
    return (bytes([0xa0 | len(text)]) if len(text) < 32 else b"\xda" + struct.pack(">H", len(text))) + text


class TakeoverTest(harness.ServerTest):
    def setUp(self):
        super().setUp()
        topology = redis_topology.One("--appendfsync", "always")  # what is answered survives a kill
        self.addCleanup(topology.close)
        self.redis = topology.redis
        self.source = self.redis.client(3)
        self.addCleanup(self.source.close)
        self.server = self.serve()
        self.client = self.connect(self.server)
        self.now = int(time.time())

    def take_over(self, system, *options, code=0):
        done = subprocess.run(
            [harness.PROGRAM, "import", "--from", system, self.redis.url(3), "--server", f"127.0.0.1:{self.server.port}",
             "--json", *options], capture_output=True, timeout=harness.DEADLINE, check=False)
        self.assertEqual(done.returncode, code, done.stderr.decode())
        return json.loads(done.stdout) if done.stdout else done.stderr.decode()

    def job(self, topic, name):
        flat = self.client.ask("GET", topic, name)
        self.assertIsNotNone(flat, f"{topic} {name} is not there")
        return {flat[i].decode(): flat[i + 1] for i in range(0, len(flat), 2)}

    def exported(self, topic):
        done = subprocess.run([harness.PROGRAM, "export", "--topic", topic, "--server", f"127.0.0.1:{self.server.port}"],
                              capture_output=True, timeout=harness.DEADLINE, check=True)
        return {line["id"]: line for line in map(json.loads, done.stdout.splitlines()) if "id" in line}

    def everything(self):
        """All that is in the source, to see that it stays as it was."""
        return {key: self.source.dump(key) for key in self.source.scan_iter()}


class Takeover(TakeoverTest):
    def fill_go_delay_queue(self, count=2500):
        with self.source.pipeline(transaction=False) as pipe:
            for i in range(count):
                name, due = f"job{i}", self.now + 1000 + i
                body = {"1": "order", "2": name, "3": 1000 + i, "4": due, "5": f'{{"uid": {i}}}'}
                pipe.setex(f"delay_job:{name}", 1000 + DAY, packed(body))
                pipe.zadd(f"dq_bucket_{i % 3 + 1}", {name: due})
            pipe.execute()
        late = {"1": "mail", "2": "late", "3": 10, "4": self.now - 50, "5": b"\xff\x00bytes"}
        self.source.setex("delay_job:late", DAY, packed(late))
        self.source.zadd("dq_bucket_1", {"late": self.now - 50})
        ready = {"1": "mail", "2": "ready", "3": 10, "4": self.now - 90, "5": "in the list"}
        self.source.setex("delay_job:ready", DAY, packed(ready))
        self.source.rpush("mail", "ready")
        handed_over = {"1": "mail", "2": "gone", "3": 10, "4": self.now - 500, "5": "a consumer has it"}
        self.source.setex("delay_job:gone", DAY, packed(handed_over))

    def test_go_delay_queue(self):
        self.fill_go_delay_queue()
        before = self.everything()
        told = self.take_over("go-delay-queue")
        self.assertTrue(told["dry_run"])
        self.assertEqual((told["jobs"], told["due"], told["unreadable"]), (2502, 2, 0))
        self.assertEqual(told["topics"], [{"topic": "mail", "delayed": 0, "due": 2}, {"topic": "order", "delayed": 2500, "due": 0}])
        self.assertEqual(self.client.ask("TOPICS")[1], [], "a dry run stores nothing")

        told = self.take_over("go-delay-queue", "--yes")
        self.assertEqual((told["created"], told["kept"], told["failed"]), (2502, 0, 0))
        self.assertEqual(self.everything(), before, "nothing there is changed")
        jobs = self.exported("order")
        self.assertEqual(len(jobs), 2500)
        for i in (0, 1, 777, 2499):
            line = jobs[f"job{i}"]
            self.assertEqual((line["state"], line["body"]), ("delayed", {"uid": i}))
            self.assertEqual(self.job("order", f"job{i}")["due_ms"], (self.now + 1000 + i) * 1000)
        mail = self.exported("mail")
        self.assertEqual(set(mail), {"late", "ready"})
        self.assertEqual((mail["late"]["state"], mail["late"]["body_base64"]), ("ready", base64.b64encode(b"\xff\x00bytes").decode()))
        self.assertEqual(self.pop("mail", 2), [b"ready", b"late"], "the longer overdue goes first")

        again = self.take_over("go-delay-queue", "--yes")
        self.assertEqual((again["created"], again["kept"]), (0, 2502))

    def pop(self, topic, count):
        return [job[2] for job in self.client.ask("POP", topic, "COUNT", str(count))]

    def test_removal_leaves_what_is_not_here(self):
        self.fill_go_delay_queue(300)
        self.client.ask("PUSH", "order", "1h", "another job", "ID", "job7")
        self.take_over("go-delay-queue", "--yes")
        told = self.take_over("go-delay-queue", "--yes", "--remove")
        self.assertEqual((told["kept"], told["removed"], told["left"]), (302, 301, 1))
        left = {key.decode() for key in self.source.scan_iter()}
        self.assertEqual(left, {"delay_job:job7", "dq_bucket_2", "delay_job:gone"})
        self.assertEqual(self.source.zrange("dq_bucket_2", 0, -1), [b"job7"])

    def test_hostile_contents(self):
        good = packed({"1": "order", "2": "good", "3": 1, "4": self.now + 99, "5": "fine"})
        jobs = {"good": good, "garbage": b"\x00\xff\x01", "empty": b"", "cut": good[:-2], "array": b"\x93\x01\x02\x03",
                "deep": b"\x91" * 5000, "notopic": packed({"2": "notopic", "4": self.now, "5": "x"}),
                "other": packed({"1": "order", "2": "someone", "4": self.now, "5": "x"}),
                "badtopic": packed({"1": "a b", "2": "badtopic", "3": 1, "4": self.now, "5": "x"}),
                "line\nend": packed({"1": "order", "2": "line\nend", "3": 1, "4": self.now, "5": "x"})}
        for name, body in jobs.items():
            self.source.set(f"delay_job:{name}", body)
            self.source.zadd("dq_bucket_1", {name: self.now + 99})
        self.source.zadd("dq_bucket_1", {"expired": self.now, "never": float("inf")})
        self.source.set("delay_job:never", good)
        self.source.set("dq_bucket_2", "not a zset")
        self.source.hset("delay_job:hash", "a", "b")
        self.source.zadd("dq_bucket_1", {"hash": self.now})
        told = self.take_over("go-delay-queue")
        self.assertEqual((told["jobs"], told["unreadable"], told["gone"]), (1, 10, 2))
        told = self.take_over("go-delay-queue", "--yes", code=CORRUPT)
        self.assertEqual((told["created"], told["failed"]), (1, 0))
        problems = {each["problem"]: each["jobs"] for each in told["problems"]}
        self.assertEqual(problems["its score is not a time"], 1)
        self.assertEqual(problems["the job has another id"], 1)

    def test_callback(self):
        def add(topic, name, due, bucket, body):
            sign = f"{topic}-{name}"
            self.source.set(sign, json.dumps({"topic": topic, "id": name, "delay": due, "callback": "http://127.0.0.1:9/hook",
                                              "body": body, "job_sign": sign}))
            self.source.zadd(f"dqc_bucket_{bucket}", {sign: due})

        add("inform", "08019413123", self.now + 500, 1, {"example": True})
        add("inform", "2", self.now + 600, 2, "text")
        add("close-order", "3", self.now + 3, 10, None)
        self.source.zadd("dqc_bucket_1", {"inform-removed": self.now})
        self.source.zadd("dqc_bucket_other", {"x": 1})
        told = self.take_over("callback")
        self.assertEqual((told["jobs"], told["unreadable"], told["gone"]), (3, 0, 1))
        told = self.take_over("callback", "--yes")
        self.assertEqual(told["created"], 3)
        line = self.exported("inform")["08019413123"]
        self.assertEqual((line["callback"], line["callback_method"], line["callback_format"], line["max_attempts"], line["body"]),
                         ("http://127.0.0.1:9/hook", "PUT", "callback-api", 3, {"example": True}))
        self.assertEqual(self.exported("inform")["2"]["body"], "text")
        self.assertEqual(self.job("inform", "2")["due_ms"], (self.now + 600) * 1000)
        self.assertEqual(self.take_over("callback", "--yes")["kept"], 3)

    def test_delayq_server(self):
        def add(name, state, due, tryes=0):
            self.source.hset(f"dqjobs:{name}", mapping={
                "jobid": name, "name": "a label", "topic": "top1", "data": f"data of {name}", "addtime": self.now - 60,
                "exectime": due, "tryes": tryes, "ttr": 20, "state": state})

        add("waits", 0, self.now + 900)
        self.source.zadd("dqbucket", {"waits": self.now + 900})
        add("again", 0, self.now - 900, tryes=2)  # it failed twice, and the bucket knows when it is due
        self.source.zadd("dqbucket", {"again": self.now + 300})
        add("ready", 1, self.now - 5)
        self.source.lpush("dqready:top1", "ready")
        add("running", 2, self.now - 7, tryes=1)
        self.source.lpush("dqreserved", "running")
        add("finished", 3, self.now - 100)
        add("failed", 4, self.now - 100)
        self.source.sadd("dqfail", "failed")
        self.source.hset("dqjobs:odd", mapping={"jobid": "odd", "topic": "top1", "state": "x"})
        told = self.take_over("DelayQ")
        self.assertEqual((told["jobs"], told["due"], told["unreadable"], told["over"]), (4, 2, 1, 2))
        told = self.take_over("DelayQ", "--yes", "--remove", code=CORRUPT)
        self.assertEqual((told["created"], told["removed"]), (4, 4))
        lines = self.exported("top1")
        self.assertEqual({name: (line["state"], line["attempts"]) for name, line in lines.items()},
                         {"waits": ("delayed", 0), "again": ("delayed", 2), "ready": ("ready", 0), "running": ("ready", 1)})
        self.assertEqual((lines["waits"]["lease"], lines["waits"]["name"], lines["waits"]["body_text"]), ("20s", "a label", "data of waits"))
        self.assertEqual(self.job("top1", "again")["due_ms"], (self.now + 300) * 1000)
        self.assertEqual({key.decode() for key in self.source.scan_iter()}, {"dqjobs:finished", "dqjobs:failed", "dqjobs:odd", "dqfail"})

    def test_delayq_library(self):
        def add(topic, name, due, body, **more):
            self.source.hset(f"delayq:jp:{topic}", name, json.dumps(
                {"Topic": topic, "ID": name, "Delay": due, "TTR": 30_000, "Boday": base64.b64encode(body).decode(), **more}))

        for i in range(600):
            add("deleted_space", f"space{i}", self.now + 100 + i, json.dumps({"SpaceID": i}).encode(), Retry=4)
            self.source.zadd("delayq:dq:deleted_space", {f"space{i}": self.now + 100 + i})
        add("sms", "now", 0, b"\x00\x01", TTR=0, Timeout=90_000_000_000)
        self.source.rpush("delayq:rq:sms", "now")
        add("sms", "running", 0, b"text")
        self.source.sadd("delayq:process:sms", "running")
        self.source.hset("delayq:jp:sms", "broken", "{no json")
        told = self.take_over("delayq")
        self.assertEqual((told["jobs"], told["due"], told["unreadable"]), (602, 2, 1))
        told = self.take_over("delayq", "--yes", "--remove", code=CORRUPT)
        self.assertEqual((told["created"], told["removed"]), (602, 602))
        line = self.exported("deleted_space")["space7"]
        self.assertEqual((line["body"], line["max_attempts"], line["backoff"], line["lease"]),
                         ({"SpaceID": 7}, 5, "exponential:2s:2:1h8m16s:0", "30s"))
        self.assertEqual(self.job("deleted_space", "space599")["due_ms"], (self.now + 699) * 1000)
        sms = self.exported("sms")
        self.assertEqual((sms["now"]["body_base64"], sms["now"]["lease"], sms["now"]["max_attempts"]), ("AAE=", "1m30s", 0))
        self.assertEqual({key.decode() for key in self.source.scan_iter()}, {"delayq:jp:sms"})

    def test_keys_that_look_like_jobs_are_never_nothing(self):
        empty = self.take_over("go-delay-queue")
        self.assertEqual(empty["jobs"], 0)
        self.source.hset("delayQ_job_pool_space", "a", json.dumps({"Topic": "space", "ID": "a", "Delay": self.now + 500, "TTR": 30_000, "MaxRetry": 2}))
        self.source.zadd("delayQ_delay_queue_space", {"a": self.now + 500})
        for options in ((), ("--yes",)):
            done = subprocess.run([harness.PROGRAM, "import", "--from", "DelayQ", self.redis.url(3), "--server", f"127.0.0.1:{self.server.port}",
                                   *options], capture_output=True, text=True, timeout=harness.DEADLINE, check=False)
            self.assertEqual(done.returncode, 5, done.stderr)
            self.assertIn("keys that look like jobs", done.stderr)
            self.assertIn("--from delayq", done.stderr)
        self.assertEqual(self.take_over("delayq", "--yes", "--remove")["created"], 1)
        line = self.exported("space")["a"]
        self.assertEqual((line["lease"], line["max_attempts"]), ("30s", 3))
        self.assertEqual(list(self.source.scan_iter()), [])

    def check_hostile(self, system, good, unreadable, gone=0):
        """A dry run and a run find the same; the good one comes, and its removal leaves the others where they are."""
        told = self.take_over(system)
        self.assertEqual((told["jobs"], told["unreadable"], told["gone"]), (1, unreadable, gone), told)
        before = len(self.everything())
        told = self.take_over(system, "--yes", "--remove", code=CORRUPT)
        self.assertEqual((told["created"], told["failed"], told["removed"]), (1, 0, 1))
        self.assertEqual(list(self.exported("t")), [good])
        self.assertGreater(len(self.everything()), before - 3)

    def test_hostile_contents_of_callback(self):
        good = {"topic": "t", "id": "good", "callback": "http://127.0.0.1:9/", "body": "\u0000"}
        jobs = {"t-good": json.dumps(good), "cut": json.dumps(good)[:20], "bytes": b'{"topic":"\xff"}', "deep": "[" * 5000,
                "types": json.dumps({**good, "topic": ["t"]}), "spaces": json.dumps({**good, "topic": "a b"}),
                "long": json.dumps({**good, "id": "x" * 5000})}
        for sign, text in jobs.items():
            self.source.set(sign, text)
            self.source.zadd("dqc_bucket_1", {sign: self.now + 99})
        self.source.set("never", json.dumps(good))
        self.source.zadd("dqc_bucket_1", {"never": float("inf"), "nothing": 5, "hash": 5})
        self.source.hset("hash", "a", "b")
        self.source.set("dqc_bucket_2", "not a zset")
        self.check_hostile("callback", "good", 7, gone=2)

    def test_hostile_contents_of_delayq_server(self):
        def add(job, **fields):
            self.source.hset(f"dqjobs:{job}", mapping={"jobid": job, "topic": "t", "state": 1, "exectime": 5, **fields})

        add("good", name=b"\xff\xfe", tryes=10**30, ttr=-4, addtime="x", data=b"\xff")
        for job, fields in {"state": {"state": "x"}, "topic": {"topic": ""}, "early": {"exectime": -5}, "far": {"exectime": "1e300"},
                             "id": {"jobid": "another"}, "spaces": {"topic": "a b"}, "line\nend": {}}.items():
            add(job, **fields)
        add("never")
        self.source.zadd("dqbucket", {"never": float("inf"), "nothing": 5})
        self.source.set("dqjobs:text", "not a hash")
        self.check_hostile("DelayQ", "good", 8)
        self.source.delete("dqbucket")
        self.source.set("dqbucket", "not a zset")
        self.assertIn('ZSCORE "dqbucket": WRONGTYPE', self.told_wrong("DelayQ"))

    def told_wrong(self, system):
        done = subprocess.run([harness.PROGRAM, "import", "--from", system, self.redis.url(3)], capture_output=True, check=False)
        self.assertNotEqual(done.returncode, 0)
        return done.stderr.decode()

    def test_hostile_contents_of_the_library(self):
        huge = 2**63 - 1
        jobs = {"good": json.dumps({"Timeout": huge, "Retry": huge, "Boday": "not base64!"}), "cut": '{"Topic":', "array": "[]",
                "bytes": b"\xff\xfe", "early": '{"Delay":-7}', "far": f'{{"Delay":{huge}}}', "line\nend": "{}"}
        for name, text in jobs.items():
            self.source.hset("delayq:jp:t", name, text)
        self.source.hset("delayq:jp:a b", "x", "{}")
        self.source.hset("delayq:jp:broken", "x", "{}")
        self.source.set("delayq:dq:broken", "not a zset")
        self.source.set("delayq:jp:text", "not a hash")
        self.source.zadd("delayq:dq:t", {"not in the pool": 5})
        self.check_hostile("delayq", "good", 8)

    def test_what_is_asked_for_wrongly(self):
        for options, words in [(["--remove"], "--yes"), (["--yes", "--dry-run"], "one of them")]:
            self.assertIn(words, self.take_over("callback", *options, code=INVALID))
        done = subprocess.run([harness.PROGRAM, "import", "--from", "callback", "http://x"], capture_output=True, check=False)
        self.assertIn(b"scheme", done.stderr)

    def test_a_member_of_a_cluster_is_not_all_of_it(self):
        port = redis_topology.free_ports(1, also=10_000)[0]
        member = redis_topology.Redis(self.directory / "member", port, "--cluster-enabled", "yes")
        self.addCleanup(member.close)
        done = subprocess.run([harness.PROGRAM, "import", "--from", "DelayQ", member.url()], capture_output=True, text=True, check=False)
        self.assertIn("is a member of a Cluster: only the jobs that it has itself are seen", done.stderr)

    def test_a_redis_that_cannot_be_read_is_told_with_what_is_right(self):
        self.redis.ask("CONFIG", "SET", "requirepass", "hush-hush")
        host = f"127.0.0.1:{self.redis.port}"
        free = redis_topology.free_ports(1)[0]
        for url, words in [(f"redis://{host}", "NOAUTH"), (f"redis://:wr0ng@{host}", "WRONGPASS"),
                           (f"redis://:hush-hush@{host}/99", "DB index is out of range"),
                           (f"rediss://:hush-hush@{host}", "does not answer in TLS"),
                           (f"redis://127.0.0.1:{free}", "connection refused"),
                           ("redis-cluster://127.0.0.1:1", "name the one server")]:
            done = subprocess.run([harness.PROGRAM, "import", "--from", "DelayQ", url], capture_output=True, text=True, check=False)
            self.assertNotEqual(done.returncode, 0, url)
            self.assertIn(words, done.stderr)
            self.assertEqual((done.stdout, done.stderr.count("\n")), ("", 1), "one line")
            for wrong in ("hush", "wr0ng", "--token", "delayq serve", "--tls"):
                self.assertNotIn(wrong, done.stderr)
            if words in ("NOAUTH", "WRONGPASS"):
                self.assertIn("redis://:PASSWORD@HOST", done.stderr)

    def test_kafka_is_for_go_delay_queue(self):
        for options, words in [(["--kafka", "127.0.0.1:1"], "goes only with --from go-delay-queue"),
                               (["--kafka-group", "g"], "needs --kafka or --kafka-file")]:
            self.assertIn(words, self.take_over("callback", *options, code=INVALID))
        self.assertIn("cannot be read", self.take_over("go-delay-queue", "--kafka-file", "/nowhere/delay-queue.conf", code=INVALID))


class TakeoverFromKafka(TakeoverTest):
    """go-delay-queue with -t kafka: jobs in Redis, and their ids in topics, one for each delay."""
    DELAYS = ("5s", "10s", "1m", "5m", "1h")

    @classmethod
    def setUpClass(cls):
        cls.kafka = Kafka()
        cls.addClassCleanup(cls.kafka.close)

    def setUp(self):
        super().setUp()
        self.name, self.group = f"topic{harness.now_ms()}", ""  # of this test alone

    def use(self, name, group="delay-queue-consumer"):
        """Makes the topics, and the configuration file that names them."""
        self.name, self.group = name, group
        for delay in self.DELAYS:
            self.kafka.create(f"{name}_{delay}", partitions=2)
        file = self.directory / "delay-queue.conf"
        file.write_text(f'kafka.group_id = "{group}"\nkafka.bootstrap_servers = "{self.kafka.addresses()}"\nkafka.security_protocol = "PLAINTEXT"\n'
                        f'kafkaqueue.delay_durations = "{",".join(self.DELAYS)}"\nkafkaqueue.delay_topic = "{name}_%s"\n', encoding="utf-8")
        return ("--kafka-file", str(file))

    def add(self, name, topic, due, partition=0, has_job=True, delay="1h"):
        """A job as go-delay-queue adds it."""
        if has_job:
            self.source.setex(f"delay_job:{name}", 3600 + DAY, packed({"1": topic, "2": name, "3": 3600, "4": due, "5": f"body of {name}"}))
        self.kafka.write(f"{self.name}_{delay}", [name.encode()], partition=partition, timestamp=due * 1000)

    def commit(self, group, delay, offset):
        consumer = confluent_kafka.Consumer(self.kafka.settings(group_id=group))
        try:
            consumer.commit(offsets=[confluent_kafka.TopicPartition(f"{self.name}_{delay}", 0, offset)], asynchronous=False)
        finally:
            consumer.close()

    def fill(self):
        """40 jobs wait: one of them is due, in another topic; one has two records. old0 and old1 were handed over, one was removed."""
        for i in range(2):
            self.add(f"old{i}", "order", self.now - 100)
        self.commit(self.group, "1h", 2)
        for i in range(38):
            self.add(f"job{i}", "order", self.now + 1000 + i, partition=i % 2)
        self.add("due", "mail", self.now - 3, delay="5s")
        self.add("twice", "order", self.now + 500, delay="5m")
        self.add("twice", "order", self.now + 500)
        self.add("removed", "order", self.now + 500, has_job=False)

    def complaint(self, *options, code):
        done = subprocess.run(
            [harness.PROGRAM, "import", "--from", "go-delay-queue", self.redis.url(3), "--server", f"127.0.0.1:{self.server.port}", *options],
            capture_output=True, text=True, timeout=harness.DEADLINE, check=False)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr

    def test_what_waits_in_topics_is_taken_over_once(self):
        self.use("delay_topic")
        self.fill()
        where = ("--kafka", self.kafka.addresses())
        told = self.take_over("go-delay-queue", *where)
        self.assertTrue(told["dry_run"])
        self.assertEqual((told["jobs"], told["due"], told["unreadable"], told["gone"], told["over"], told["records"]), (40, 1, 0, 1, 2, 42), told)
        self.assertEqual(self.client.ask("TOPICS")[1], [], "a dry run stores nothing")
        told = self.take_over("go-delay-queue", *where, "--yes")
        self.assertEqual((told["created"], told["kept"], told["failed"], told["gone"]), (40, 0, 0, 1), told)
        for i in (0, 1, 37):
            job = self.job("order", f"job{i}")
            self.assertEqual((job["due_ms"], job["body"]), ((self.now + 1000 + i) * 1000, b"body of job%d" % i))
        self.assertEqual(self.job("mail", "due")["state"], b"ready")
        self.assertIsNone(self.client.ask("GET", "order", "old0"), "what was handed over is not handed over again")
        again = self.take_over("go-delay-queue", *where, "--yes")
        self.assertEqual((again["created"], again["kept"]), (0, 40), "no duplicates")
        last = self.take_over("go-delay-queue", *where, "--yes", "--remove")
        self.assertEqual((last["kept"], last["removed"], last["left"]), (40, 40, 0))
        self.assertEqual({key.decode() for key in self.source.scan_iter()}, {"delay_job:old0", "delay_job:old1"})
        self.assertEqual(self.kafka.committed(self.group, "delay_topic_1h"), {0: 2}, "its offsets stay as they were")
        self.source.delete("delay_job:old0", "delay_job:old1")
        self.assertEqual(self.take_over("go-delay-queue", *where)["gone"], 41)

    def test_a_running_one_is_refused(self):
        where = self.use(self.name)
        self.fill()
        self.source.set("delay_partition_[0,1]", "1", ex=60)
        said = self.complaint(*where, "--yes", code=4)
        self.assertIn("a go-delay-queue with -t kafka runs on this Redis (delay_partition_[0,1] for ", said)
        self.assertEqual(self.take_over("go-delay-queue", *where)["jobs"], 40, "a dry run only warns")
        self.assertEqual(self.client.ask("TOPICS")[1], [])
        self.source.delete("delay_partition_[0,1]")
        self.assertEqual(self.take_over("go-delay-queue", *where, "--yes")["created"], 40)

    def test_what_is_wrong_is_told(self):
        where = self.use(self.name)
        self.fill()
        self.assertIn("there is no topic delay_topic2_5s, ", self.complaint(
            "--kafka", self.kafka.addresses(), "--kafka-file", self.file("kafka.group_id = g\nkafkaqueue.delay_topic = delay_topic2_%s"), code=5))
        names = f"kafkaqueue.delay_topic = {self.name}_%s"
        self.commit("another", "5s", 0)
        said = self.complaint("--kafka", self.kafka.addresses(), "--kafka-file", self.file(names), code=INVALID)
        self.assertIn(f"--kafka-group: several groups have read {self.name}_5s", said)
        self.assertIn(self.group, said)
        self.assertEqual(self.take_over("go-delay-queue", *where, "--kafka-group", self.group)["jobs"], 40)
        self.assertIn("--kafka: brokers: ", self.complaint("--kafka", "http://x", code=INVALID))
        self.assertIn("kafka.security_protocol: \"HTTP\" is not known", self.complaint(
            "--kafka", "127.0.0.1:1", "--kafka-file", self.file("kafka.security_protocol = HTTP"), code=INVALID))
        self.kafka.write(f"{self.name}_10s", [b"", b"no job", b"\xff\xfe"])
        told = self.take_over("go-delay-queue", *where)
        self.assertEqual((told["jobs"], told["gone"]), (40, 4), "records that name no job")

    def file(self, text):
        path = self.directory / "its.conf"
        path.write_text(text + "\n", encoding="utf-8")
        return str(path)


if __name__ == "__main__":
    harness.main()
