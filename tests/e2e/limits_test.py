"""docs/reference/limits.md against a server: what is at a bound is accepted, and what is above it is refused by name."""
import re

import harness

PAGE = (harness.ROOT / "docs" / "reference" / "limits.md").read_text()
UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "bytes": 1, "d": 86_400_000, "h": 3_600_000, "min": 60_000, "s": 1_000, "ms": 1}


def bound(row, part=r"", last=False):
    """A number of the row, in bytes or milliseconds if it has a unit: the first behind `part`, or the last of a range."""
    (line,) = [line for line in PAGE.splitlines() if line.startswith(f"| {row} |")]
    numbers = re.findall(r"([\d,]+)(?: (KiB|MiB|bytes|d|h|min|s|ms)\b)?", re.split(part, line, maxsplit=1)[1] if part else line.split("|", 2)[2])
    value, unit = numbers[1 if last else 0]
    return int(value.replace(",", "")) * UNITS.get(unit, 1)


class LimitsPage(harness.ServerTest):
    def setUp(self):
        super().setUp()
        self.client = self.connect(self.serve())

    def at(self, field, accepted, refused):
        """The first is accepted; the second is refused, and the answer names the field."""
        self.client.ask(*accepted)
        with self.assertRaisesRegex(harness.Refused, field):
            self.client.ask(*refused)

    def push(self, topic="t", delay="1h", body="b", **options):
        words = [word for name, value in options.items() for word in (name, value)]
        return ("PUSH", topic, delay, body, *words)

    def test_names(self):
        for field, row, made in (("topic", "topic", lambda name: self.push(topic=name)),
                                 ("id", "id of a job", lambda name: self.push(ID=name)),
                                 ("group", "group", lambda name: self.push(GROUP=name))):
            most = bound(row, last=True)
            self.at(field, made("x" * most), made("x" * (most + 1)))
        self.client.ask(*self.push(topic="订单.1_a:b-c"))
        for name in ("a b", "a\tb", ""):
            with self.assertRaisesRegex(harness.Refused, "topic"):
                self.client.ask(*self.push(topic=name))
        self.client.ask(*self.push(ID="an id with spaces 订单"))
        name = "b" * bound("backup", last=True)
        self.at("name", ("BACKUP", name), ("BACKUP", f"{name}b"))

    def test_the_values_of_a_job(self):
        days = bound("delay", last=True) // UNITS["d"]
        self.at("delay", self.push(delay=f"{days}d"), self.push(delay=f"{days}d1s"))
        most = bound("priority", last=True)
        self.at("PRI", self.push(PRI=most), self.push(PRI=most + 1))
        most = bound("attempts", last=True)
        self.at("attempts", self.push(ATTEMPTS=most), self.push(ATTEMPTS=most + 1))
        steps = bound("backoff")
        self.at("backoff", self.push(BACKOFF=",".join(["1s"] * steps)), self.push(BACKOFF=",".join(["1s"] * (steps + 1))))
        self.at("lease", self.push(LEASE=f"{bound('lease')}ms"), self.push(LEASE=f"{bound('lease') - 1}ms"))
        most = bound("lease", last=True)
        self.at("lease", self.push(LEASE=f"{most}ms"), self.push(LEASE=f"{most + 1}ms"))
        default = int(re.search(r"`limits.body` \| `\"(\d+)MiB\"`", PAGE)[1]) * UNITS["MiB"]
        self.at("body", self.push(body=b"x" * default), self.push(body=b"x" * (default + 1)))
        self.client.ask(*self.push(body=""))

    def test_headers_and_callbacks(self):
        count = bound("headers")
        header = [word for each in range(count) for word in ("HEADER", f"n{each}", "v")]
        self.at("header", (*self.push(), *header), (*self.push(), *header, "HEADER", "one-more", "v"))
        most = bound("headers", "a name of")
        self.at("header", (*self.push(), "HEADER", "n" * most, "v"), (*self.push(), "HEADER", "n" * (most + 1), "v"))
        most = bound("headers", "a value of")
        self.at("header", (*self.push(), "HEADER", "n", "v" * most), (*self.push(), "HEADER", "n", "v" * (most + 1)))
        url = "http://127.0.0.1/".ljust(bound("URL"), "x")
        self.at("callback", self.push(CALLBACK=url), self.push(CALLBACK=f"{url}x"))

    def test_requests(self):
        most = bound("jobs in an answer to a pop")
        self.at("(?i)count", ("POP", "t", "COUNT", most), ("POP", "t", "COUNT", most + 1))
        topics = [f"t{each}" for each in range(bound("topics that one pop waits for"))]
        self.at("topics", ("POP", *topics), ("POP", *topics, "one-more"))
        most = bound("wait of a pop", last=True)
        self.at("(?i)wait", self.push(topic="w", delay="0"), ("POP", "w", "WAIT", f"{most + 1}ms"))
        self.assertEqual(len(self.client.ask("POP", "w", "WAIT", f"{most}ms")), 1)

    def test_schedules(self):
        least = bound("`every`")
        words = ("SCHEDULE", "SET", "s", "TOPIC", "t", "BODY", "b", "EVERY")
        self.at("(?i)every", (*words, f"{least}ms"), (*words, f"{least - 1}ms"))


if __name__ == "__main__":
    harness.main()
