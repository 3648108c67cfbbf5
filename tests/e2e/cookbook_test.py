"""Each snippet of docs/guide/cookbook.md, run as a reader runs it, and what the server has then. Time is not waited for: the page itself
says how to make its jobs due at once. DELAYQ_PAGES names the languages; without it those that `make test` has the tools for."""
import datetime
import os
import re
import unittest

import harness
import page_harness

LANGUAGES = os.environ.get("DELAYQ_PAGES", "Command line,curl,Python" + ("" if harness.SANITIZED else ",C++")).split(",")
BEFORE, *RECIPES, KAFKA = page_harness.sections("cookbook.md")
DAY = 24 * 3600 * 1000
MEETING = int(datetime.datetime(2030, 1, 31, 9, 45, tzinfo=datetime.timezone.utc).timestamp() * 1000)


class Cookbook(page_harness.PageTest):
    def setUp(self):
        super().setUp()
        self.server = self.serve()
        self.client = self.connect(self.server)

    def job(self, topic, name):
        flat = self.client.ask("GET", topic, name) or []
        return {flat[i].decode(): flat[i + 1] for i in range(0, len(flat), 2)}

    def is_waiting(self, topic, name, milliseconds):
        """Whether the job is there, and due at this time from now. A program may have begun some time ago."""
        job = self.job(topic, name)
        return job.get("state") == b"delayed" and -harness.DEADLINE * 1000 <= job["due_ms"] - harness.now_ms() - milliseconds <= 0

    def are_done(self, *jobs):
        return all(self.job(topic, name).get("state") == b"done" for topic, name in jobs)

    # ---- what a recipe has stored, and when it is over

    def stored_close(self):
        return self.is_waiting("order.close", "order:18", 30 * 60 * 1000) and not self.job("order.close", "order:17")

    def over_close(self):
        return self.are_done(("order.close", "order:18"))

    def stored_remind(self):
        return self.job("meeting.remind", "meeting:9").get("due_ms") == MEETING

    def over_remind(self):
        return self.are_done(("meeting.remind", "meeting:9"))

    def stored_space(self):
        warned = all(self.is_waiting("space.warn", f"space:6:{day}", day * DAY) and not self.job("space.warn", f"space:5:{day}") for day in (23, 28, 29))
        return warned and self.is_waiting("space.delete", "space:6", 30 * DAY) and not self.job("space.delete", "space:5") \
            and self.job("space.delete", "space:6")["group"] == b"space:6"

    def over_space(self):
        return self.are_done(("space.delete", "space:6"), *(("space.warn", f"space:6:{day}") for day in (23, 28, 29)))

    def stored_debounce(self):
        job = self.job("page.index", "page:7")
        return job.get("body", b"").strip(b'"') == b"version 3" and self.client.stats("page.index")["delayed"] == 1 \
            and 0 < job["due_ms"] - job["pushed_ms"] <= 30_000

    def over_debounce(self):
        return self.are_done(("page.index", "page:7")) and self.client.stats("page.index")["done"] == 1

    def stored_report(self):
        flat = self.client.ask("SCHEDULE", "GET", "nightly-report") or []
        said = {flat[i].decode(): flat[i + 1] for i in range(0, len(flat), 2)}
        return said and (said["cron"], said["zone"], said["overlap"]) == (b"0 2 * * *", b"Asia/Shanghai", b"skip") \
            and said["next_local"].endswith(b"T02:00:00+08:00")

    def over_report(self):
        return self.client.stats("report")["done"] == 1

    # ---- a snippet

    def check(self, recipe, language):
        name = next(file for file in recipe.files.values() if file).split(".")[0]
        stored, over = getattr(self, f"stored_{name}"), getattr(self, f"over_{name}")
        if language == "curl":
            self.check_curl(recipe, stored, over)
            return
        command = recipe.code(language)
        if recipe.files[language]:
            self.save(recipe.files[language], recipe.code(language))
            command = page_harness.Languages(self, BEFORE).command(language, recipe.files[language])
        program = self.start(command)
        program.wait_until(stored, "the jobs are stored")
        self.run_all(recipe.beside("sh"))
        program.expect((recipe.beside("text", language) or recipe.beside("text")).splitlines())
        program.wait_until(over, "the jobs are done")
        self.assertEqual(program.interrupt(), 0, "\n".join(program.lines()))

    def check_curl(self, recipe, stored, over):
        self.need("curl")
        receiver = self.start(BEFORE.code("curl").replace("build/release/delayq", "delayq").replace("8080", "0"))
        receiver.expect(["listening on"])
        self.ports["8080"] = re.search(r"listening on http://127.0.0.1:(\d+)", "\n".join(receiver.lines()))[1]
        self.run_all(recipe.code("curl"))
        self.assertTrue(stored())
        self.run_all(recipe.beside("sh"))
        receiver.wait_until(over, "the calls were made")
        receiver.expect(recipe.beside("text", "curl").splitlines())

    def test_every_recipe_has_all_parts(self):
        self.assertEqual(len(RECIPES), 5)
        for recipe in (*RECIPES, KAFKA):
            self.assertEqual(list(recipe.parts), ["Command line", "curl", "C++", "Go", "Node.js", "PHP", "Python"], recipe.title)
            self.assertTrue(recipe.beside("sh") and recipe.beside("text"), recipe.title)


class WhenSomethingFails(harness.ServerTest):
    """What the page says of failures, as far as it is the server's part."""

    def setUp(self):
        super().setUp()
        self.client = self.connect(self.serve())

    def refusal(self, *words):
        with self.assertRaises(harness.Refused) as refused:
            self.client.ask(*words)
        return refused.exception.code

    def take(self, topic):
        return self.client.ask("POP", topic)[0][0]

    def test_an_order_that_is_paid_while_it_is_closed(self):
        self.client.ask("PUSH", "order.close", "0", "", "ID", "order:18")
        lease = self.take("order.close")
        self.assertEqual(self.client.ask("CANCEL", "order.close", "order:18"), "reserved")
        self.client.ask("NACK", lease, "REASON", "x")
        self.assertNotIn(dict(zip(*[iter(self.client.ask("GET", "order.close", "order:18") or [])] * 2)).get(b"state"), (b"delayed", b"ready"))

    def test_the_times_between_attempts(self):
        self.client.ask("PUSH", "order.close", "0", "", "ID", "order:18")
        for seconds in (10, 20):
            self.client.ask("NACK", self.take("order.close"))
            flat = self.client.ask("GET", "order.close", "order:18")
            job = {flat[i]: flat[i + 1] for i in range(0, len(flat), 2)}
            self.assertAlmostEqual((job[b"due_ms"] - harness.now_ms()) / 1000, seconds, delta=0.4 * seconds)
            self.client.ask("RESCHEDULE", "order.close", "order:18", "0")

    def test_a_meeting_that_is_moved_after_the_reminder(self):
        self.client.ask("PUSH", "meeting.remind", "0", "", "ID", "meeting:9")
        self.client.ask("ACK", self.take("meeting.remind"))
        self.assertEqual(self.refusal("RESCHEDULE", "meeting.remind", "meeting:9", "1h"), "CONFLICT")
        self.assertEqual(self.refusal("RESCHEDULE", "meeting.remind", "meeting:10", "1h"), "NOTFOUND")
        self.assertEqual(self.client.ask("PUSH", "meeting.remind", "1h", "", "ID", "meeting:9", "REPLACE"), b"meeting:9")
        self.assertEqual(self.client.ask("PUSH", "meeting.remind", "0", "", "AT", "2020-01-31T08:45:00Z", "ID", "meeting:11"), b"meeting:11")
        self.take("meeting.remind")

    def test_a_group_of_which_one_is_done_and_one_runs(self):
        for day, delay in (("23", "0"), ("28", "0"), ("29", "1d"), ("30", "2d")):
            self.client.ask("PUSH", "space.warn", delay, "", "ID", day, "GROUP", "space:5")
        self.client.ask("ACK", self.take("space.warn"))
        lease = self.take("space.warn")
        self.assertEqual(self.client.ask("CANCELGROUP", "space:5"), 3, "one that runs, and two that wait")
        self.assertEqual(self.client.ask("ACK", lease), 1, "it runs to its end")
        self.assertEqual(self.client.stats("space.warn")["delayed"], 0)

    def test_an_edit_while_the_page_is_indexed(self):
        self.client.ask("PUSH", "page.index", "0", "version 1", "ID", "page:7")
        lease = self.take("page.index")
        self.client.ask("PUSH", "page.index", "30s", "version 2", "ID", "page:7", "REPLACE")
        self.assertEqual(self.refusal("EXTEND", lease), "STALELEASE")
        self.assertEqual(self.client.ask("ACK", lease), 0)
        self.assertEqual(self.client.stats("page.index")["delayed"], 1)
        self.client.ask("PUSH", "page.index", "1h", "version 3", "ID", "page:7", "KEEP")
        self.assertIn(b"version 2", self.client.ask("GET", "page.index", "page:7"))


class KafkaRecipe(page_harness.PageTest):
    """The last recipe, with a real broker. Each language has topics and a group of its own."""

    @classmethod
    def setUpClass(cls):
        import kafka_harness  # pylint: disable=import-outside-toplevel
        cls.kafka = kafka_harness.Kafka()
        cls.addClassCleanup(cls.kafka.close)

    def begin(self, language):
        self.orders = "orders_" + re.sub("[^a-z]", "_", language.lower())
        for suffix in ("", ".retry", ".dead"):
            self.kafka.create(self.orders + suffix)
        self.ports["9092"] = str(self.kafka.port)
        self.names = {"orders": self.orders, "shop": "shop_" + self.orders}
        self.save("delayq.toml", KAFKA.beside("toml") + (KAFKA.beside("toml", language) or ""))
        server = self.serve("-c", str(self.folder / "delayq.toml"))
        self.addCleanup(server.stop)  # a server that is killed would keep the next one waiting for its partitions
        return server

    def check(self, language):
        client = self.connect(self.begin(language))
        if language == "curl":
            self.need("curl", "kcat")
            said = self.run_all(KAFKA.code(language))
            self.assertEqual(said.count('"id":"order:17"'), 2, said)
            self.assertTrue(said.endswith('{"result":"moved"}{"result":"cancelled"}'), said)
            self.assertIsNone(client.ask("GET", "retry", "order:17"))
        elif language == "Command line":
            said = self.start(KAFKA.code(language))
            said.expect(KAFKA.beside("text", language).splitlines())
            self.assertEqual(said.expect_end(), 0)
        else:
            self.check_consumer(language, client)

    def test_a_retry_that_is_written_twice_with_an_id_waits_once(self):
        client = self.connect(self.begin("twice"))
        self.kafka.write(self.orders + ".retry", [b"order:17"] * 2 + [b"order:18"], headers=[{"delayq-id": b"orders-0-17"}] * 2 + [{}])
        self.wait_for(lambda: client.ask("GET", "retry", self.orders + ".retry-0-2"), "all three are read")
        self.assertEqual(client.stats("retry")["delayed"], 2)

    def check_consumer(self, language, client):
        self.save(KAFKA.files[language], KAFKA.code(language))
        module = re.search(r"`(go get [^`]+)`", KAFKA.texts["Go"])[1]
        consumer = self.start(page_harness.Languages(self, BEFORE, "-lrdkafka++", module).command(language, KAFKA.files[language]))
        write, retry = KAFKA.beside("sh").splitlines()
        self.run_all(write)
        failed, charged = KAFKA.beside("text").splitlines()
        consumer.expect([failed])
        if language == "PHP":
            retry = retry.replace("retry orders.retry-0-0", "charge orders-0-0")
        self.run_all(retry)
        consumer.expect([failed, charged])
        if language == "PHP":
            consumer.wait_until(lambda: client.stats("charge")["done"] == 1, "the job is done")
        else:
            first, second = self.kafka.read(self.orders, 2)
            self.assertEqual([first.key, first.value, second.key, second.value], [b"customer-1", b"order:17"] * 2)
            self.assertEqual(second.headers["delayq-retries"], b"1")
            consumer.wait_until(lambda: self.kafka.committed("shop_" + self.orders, self.orders) == {0: 2}, "both records are committed")
        self.assertEqual(consumer.interrupt(), 0, "\n".join(consumer.lines()))


def add_tests():
    """One for each recipe and language."""
    for recipe in RECIPES:
        name = re.sub(r"\W+", "_", recipe.title.lower())
        for language in LANGUAGES:
            suffix = re.sub("[^a-z]", "_", language.lower())
            setattr(Cookbook, f"test_{name}_with_{suffix}", lambda self, recipe=recipe, language=language: self.check(recipe, language))
    for language in LANGUAGES:
        suffix = re.sub("[^a-z]", "_", language.lower())
        setattr(KafkaRecipe, f"test_{suffix}", lambda self, language=language: self.check(language))


add_tests()


class Translation(unittest.TestCase):
    def test_the_chinese_page_has_the_same_snippets(self):
        for ours, theirs in zip(page_harness.sections("cookbook.md"), page_harness.sections("cookbook.zh-CN.md"), strict=True):
            self.assertEqual([*ours.parts.values(), ours.blocks], [*theirs.parts.values(), theirs.blocks], theirs.title)
            self.assertEqual(list(ours.files.values()), list(theirs.files.values()))


if __name__ == "__main__":
    harness.main()
