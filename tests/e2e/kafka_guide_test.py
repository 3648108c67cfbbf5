"""docs/guide/kafka.md as its readers use it: its configuration files, its commands and its consumer are taken from the page and run
with a real broker, and what it prints below a command is what the command prints. Only addresses, and times that are long, are others."""
import re
import signal
import subprocess
import sys

import harness
import kafka_harness

PAGE = harness.ROOT / "docs" / "guide" / "kafka.md"
MOMENT = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
BROKER, RESP = "127.0.0.1:9092", "-p 9278"


def setUpModule():
    global KAFKA  # pylint: disable=global-statement
    KAFKA = kafka_harness.Kafka()


def tearDownModule():
    KAFKA.close()


class Section:
    """What is below a heading of the page, up to the next one."""

    def __init__(self, heading):
        lines, is_here, is_code = [], False, False
        for line in PAGE.read_text(encoding="utf-8").splitlines(keepends=True):
            is_code ^= line.startswith("```")
            if line.startswith("#") and not is_code:
                is_here = line.lstrip("#").strip() == heading
            elif is_here:
                lines.append(line)
        assert lines, f"{PAGE} has no section {heading!r}"
        self.text = "".join(lines)

    def block(self, language):
        """The only block of code in that language."""
        blocks = re.findall(rf"^```{language}\n(.*?)^```", self.text, re.MULTILINE | re.DOTALL)
        assert len(blocks) == 1, f"{len(blocks)} blocks of {language}"
        return blocks[0].replace(BROKER, KAFKA.addresses())

    def steps(self):
        """The commands, each with the line that is printed below it, or None."""
        steps = []
        for line in self.block("sh").splitlines():
            if line.startswith("# "):
                steps[-1][1] = line[2:]
            else:
                steps.append([line, None])
        return steps


class Guide(harness.ServerTest):
    def setUp(self):
        super().setUp()
        self.made = []
        self.addCleanup(lambda: [KAFKA.delete(topic) for topic in self.made])

    def create(self, *topics):
        for topic in topics:
            KAFKA.create(topic)
            self.made.append(topic)

    def serve_the_file_of(self, section, *options):
        file = self.directory / "delayq.toml"
        file.write_text(section.block("toml"), encoding="utf-8")
        return self.serve("-c", str(file), *options)

    def run_command(self, server, command):
        """What it prints."""
        done = subprocess.run(["bash", "-c", command.replace(RESP, f"-p {server.port}")], check=False, timeout=harness.DEADLINE,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 0, f"{command}\n{done.stderr.decode()}")
        return done.stdout.decode()

    def prints(self, server, command, line):
        """Runs it until its last line is as the page says: some read a topic to its end, and the record comes later."""
        wanted = re.compile(MOMENT.join(re.escape(part) for part in re.split(MOMENT, line)))
        seen = ""

        def is_there():
            nonlocal seen
            seen = self.run_command(server, command)
            return wanted.fullmatch(seen.strip().rpartition("\n")[2])
        try:
            self.wait_for(is_there, f"{command} prints {line}")
        except AssertionError as never:
            raise AssertionError(f"{never}\nit printed: {seen}") from None

    def run_steps(self, server, steps):
        for command, line in steps:
            if line is None:
                self.run_command(server, command)
            else:
                self.prints(server, command, line)

    def test_jobs_leave_to_a_topic(self):
        section = Section("Jobs leave to a Kafka topic")
        self.create("orders")
        server = self.serve_the_file_of(section)
        *steps, (look, _) = section.steps()
        self.run_steps(server, steps)
        said = re.search(r'outcome "(.*?)"', look)[1]
        self.wait_for(lambda: said in self.run_command(server, look), f"GET says {said}")
        self.assertIn("done", self.run_command(server, look))

    def test_delay_a_message(self):
        section = Section("Delay a message")
        self.create("orders.delay", "orders")
        server = self.serve_the_file_of(section)
        serve, push, look, move, read = section.steps()
        self.assertEqual(serve[0], "delayq serve -c delayq.toml")
        self.run_command(server, push[0])
        self.wait_for(lambda: "delayed" in self.run_command(server, look[0]), "it waits")
        self.assertEqual(self.run_command(server, move[0]).strip(), "OK")
        self.prints(server, *read)
        # The other command of that line.
        self.run_command(server, push[0])
        self.wait_for(lambda: "delayed" in self.run_command(server, look[0]), "another one waits")
        cancel = re.search(r"or: (.*)", move[0])[1]
        self.assertEqual(self.run_command(server, f"redis-cli {RESP} {cancel}").strip(), "cancelled")

    def test_retry_with_backoff_and_dead_letters(self):
        section = Section("Retry with backoff and dead letters")
        self.create("orders", "orders.retry", "orders.dead")
        # The page waits for 10 s, a minute and ten minutes.
        server = self.serve_the_file_of(section, "--set", "kafka.intake.retry.backoff=300ms,600ms,900ms")
        (self.directory / "consumer.py").write_text(section.block("python"), encoding="utf-8")
        serve, consume, push, read = section.steps()
        self.assertEqual([serve[0], consume[0]], ["delayq serve -c delayq.toml", "python3 consumer.py &"])
        with open(self.directory / "consumer.log", "wb") as log, subprocess.Popen(
                [sys.executable, self.directory / "consumer.py"], stdin=subprocess.DEVNULL, stdout=log, stderr=log) as consumer:
            try:
                self.run_command(server, push[0])
                self.prints(server, *read)
            finally:
                consumer.send_signal(signal.SIGKILL)
        failed = (self.directory / "consumer.log").read_text(encoding="utf-8").splitlines()
        self.assertEqual(len(failed), 4, failed)
        times = [record.timestamp for record in KAFKA.read("orders", 4)]
        for earlier, later, least in zip(times, times[1:], (300, 600, 900)):
            self.assertGreaterEqual(later - earlier, least)


if __name__ == "__main__":
    harness.main()
