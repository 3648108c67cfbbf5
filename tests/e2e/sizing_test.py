"""The formulas of docs/guide/sizing.md, with the numbers that are written there, held against a server."""
import pathlib
import re
import unittest
import urllib.request

import harness

PAGE = (harness.ROOT / "docs" / "guide" / "sizing.md").read_text()
MIB = 1 << 20
JOBS, AT_ONCE = 200_000, 1_000
TOPIC, BODY = "order", b"x" * 128


def job_id(number):
    return f"order:{number:08d}"


def number(pattern):
    """The one that the page has in a formula."""
    found = re.findall(pattern, PAGE)
    assert len(found) == 1, f"{pattern} is {len(found)} times in sizing.md"
    return float(found[0])


@unittest.skipIf(harness.SANITIZED, "the memory of a program with sanitizers says nothing")
class Sizing(harness.ServerTest):
    def setUp(self):
        super().setUp()
        self.server = self.serve()

    # ---- what the page says

    def ram(self, jobs, moved=0):
        return (number(r"RAM = (\d+) MiB") * MIB + jobs * number(r"jobs x (\d+) B\b +while it works")
                + moved * number(r"some jobs x (\d+) B"))

    def needed(self, jobs, body=BODY):
        return jobs * (number(r"jobs x \((\d+) B \+") + len(TOPIC) + len(job_id(0)) + len(body))

    def files(self, needed):
        """Without the reserve, which is space that no file has."""
        reserve = number(r"`journal.disk_reserve` \((\d+) MiB\)")
        return number(r"disk   = ([\d.]+) x needed") * needed + (number(r"x needed \+ (\d+) MiB") - reserve) * MIB

    # ---- what is there

    def metric(self, name):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.server.http_port}/metrics", timeout=harness.DEADLINE) as answer:
            return float(re.search(rf"^{name} (\S+)$", answer.read().decode(), re.MULTILINE)[1])

    def bytes_of_files(self):
        """A file may be removed by compaction at any moment."""
        total = 0
        for path in pathlib.Path(self.server.data).iterdir():
            try:
                total += path.stat().st_blocks * 512
            except FileNotFoundError:
                pass
        return total

    def highest_resident_bytes(self):
        status = pathlib.Path(f"/proc/{self.server.process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) * 1024

    def ask_all(self, client, commands):
        replies = client.ask_all(commands)
        self.assertFalse([reply for reply in replies if isinstance(reply, harness.Refused)])
        return replies

    def push(self, client):
        for first in range(0, JOBS, AT_ONCE):
            self.ask_all(client, [("PUSH", TOPIC, "1h", BODY, "ID", job_id(each)) for each in range(first, first + AT_ONCE)])

    def check(self, what, jobs, needed, moved=0):
        self.assertLess(self.server.resident_bytes(), self.ram(jobs, moved), f"RAM, {what}")
        self.assertLess(self.bytes_of_files(), self.files(needed), f"disk, {what}")

    def test_pending_jobs_a_restart_and_churn(self):
        client = self.connect(self.server)
        empty = self.server.resident_bytes()
        self.push(client)
        needed = self.needed(JOBS)
        self.check("pending", JOBS, needed)
        self.assertAlmostEqual(self.metric("delayq_disk_live_bytes") / needed, 1, delta=0.01)
        # The page must not promise far too little for nothing, either.
        self.assertGreater(2.5 * (self.server.resident_bytes() - empty), self.ram(JOBS) - self.ram(0))

        self.assertEqual(self.server.stop()[0], 0)
        self.server.start()
        self.check("after a restart", JOBS, needed)
        self.assertLess(self.highest_resident_bytes(), self.ram(JOBS) + number(r"\+ (\d+) MiB +for some seconds") * MIB)

        client = self.connect(self.server)
        body = b"y" * 1024
        needed += self.needed(AT_ONCE, body) + self.needed(1_000, body)  # those on their way, and those kept when they are done
        for turn in range(150):
            self.ask_all(client, [("PUSH", "work", "0", body, "ID", f"{turn}:{each}") for each in range(AT_ONCE)])
            leases = []
            while len(leases) < AT_ONCE:
                leases += [job[0] for job in client.ask("POP", "work", "COUNT", AT_ONCE, "WAIT", "30s")]
            self.assertEqual(client.ask("ACK", *leases), AT_ONCE)
            self.check(f"turn {turn}", JOBS + AT_ONCE + 1_000, needed)
        self.assertEqual(client.stats(TOPIC)["delayed"], JOBS)

        for first in range(0, JOBS, AT_ONCE):
            self.ask_all(client, [("RESCHEDULE", TOPIC, job_id(each), "2h") for each in range(first, first + AT_ONCE)])
        self.check("moved", JOBS + 1_000, needed, JOBS)


if __name__ == "__main__":
    harness.main()
