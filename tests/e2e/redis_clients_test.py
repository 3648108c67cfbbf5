"""The programs of docs/guide/redis-clients.md: they get their jobs later than the client's own timeout, go on after a restart of the
server, and use TLS and a token. Without the setting that the page names, each meets the pitfall. DELAYQ_PAGES names the clients."""
import json
import os
import pathlib
import re
import subprocess

import redis

import harness
import page_harness

SECTIONS = {section.title: section for section in page_harness.sections("redis-clients.md")}
CLIENTS = [each for each in ("redis-py", "go-redis", "ioredis", "node-redis", "Jedis") if each in os.environ.get("DELAYQ_PAGES", "redis-py").split(",")]
PROGRAM = re.compile(r"^(?=[^\n]*?`(\w+\.(?:py|go|mjs|java))`)[^\n]*:\n```\w+\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# What the page says to set, and what somebody has who does not read it, by what comes of it.
GIVES_UP = {  # and closes the connection
    "redis-py": ("socket_timeout=35", "socket_timeout=1"),
    "go-redis": ("ReadTimeout: 35 * time.Second, ", ""),
    "ioredis": ("socketTimeout: 35_000", "socketTimeout: 1_000"),
    "node-redis": ("socketTimeout: 35_000", "socketTimeout: 1_000"),
    "Jedis": ("waiting.sendBlockingCommand", "waiting.sendCommand"),
}
KEEPS_ON = {"ioredis": ("socketTimeout: 35_000", "commandTimeout: 1_000")}
CARELESS = {  # without this setting the name of the host is not compared with the certificate
    "redis-py": (", ssl_check_hostname=True", ""),
    "Jedis": (".sslOptions(tls)", ""),
}
STAYS_CLOSED = {"node-redis": ("socketTimeout: 35_000, reconnectStrategy: 1_000", "socketTimeout: 1_000")}


class RedisClients(page_harness.PageTest):
    def programs(self, client):
        """The worker and the one with TLS: each its file and its text."""
        found = PROGRAM.findall(SECTIONS[client].text)
        self.assertEqual([pathlib.Path(file).stem.lower() for file, _ in found], ["worker", "secure"])
        return found

    def start_program(self, client, file, code):
        self.save(file, code)
        return self.start(getattr(self, "command_" + pathlib.Path(file).suffix[1:])(client, file))

    def command_py(self, _, file):
        return f"exec python3 {file}"

    def command_go(self, client, file):
        self.prepare_go()
        version = re.search(r"^Version ([\d.]+)", SECTIONS[client].text, re.MULTILINE)[1]
        self.run_all(f"[ -e go.mod ] || go mod init worker; go get github.com/redis/go-redis/v9@v{version}; go build -o program {file}")
        return "exec ./program"

    def command_mjs(self, _, file):
        self.need("node")
        self.link_modules()
        return f"exec node {file}"

    def command_java(self, _, file):
        self.need("java")
        jars = subprocess.run([harness.ROOT / "tools" / "maven", "tests/clients", "--jars"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
        classes = ":".join(map(str, pathlib.Path(jars).glob("*.jar")))
        self.run_all(f"java -jar {jars}/ecj-*.jar -17 -nowarn -proc:none -cp {classes} {file}")
        return f"exec java -cp {classes}:. {pathlib.Path(file).stem}"

    def state(self, client, name):
        flat = client.ask("GET", "order", name) or []
        return {flat[i].decode(): flat[i + 1] for i in range(0, len(flat), 2)}

    def are_done(self, client):
        found = [self.state(client, f"order:{i}") for i in (1, 2, 3)]
        return all(job.get("state") == b"done" for job in found)

    # ---- what is tested of each client

    def check_worker(self, client):
        """Its jobs come after 4 s, and with the settings of the page there is no error before."""
        server = self.serve()
        file, code = self.programs(client)[0]
        program = self.start_program(client, file, code)
        program.expect(["stored", *(f"got order:{i} close {i}" for i in (1, 2, 3))])
        self.assertNotIn("lost", "\n".join(program.lines()))
        said = self.connect(server)
        program.wait_until(lambda: self.are_done(said), "the jobs are done")
        server.resp = f"127.0.0.1:{server.port}"
        server.stop()
        server.start()
        self.connect(server).ask("PUSH", "order", "0", "again", "ID", "order:9")
        program.expect(["got order:9 again"])

    def start_wrongly(self, client, right, wrong):
        """Without the setting. Returns when the client has given up."""
        said = self.connect(self.serve())
        file, code = self.programs(client)[0]
        self.assertEqual(code.count(right), 1)
        program = self.start_program(client, file, code.replace(right, wrong))
        program.expect(["lost: "])
        return said, program

    def check_gives_up(self, client):
        """It closes the connection, so nothing is lost."""
        said, program = self.start_wrongly(client, *GIVES_UP[client])
        program.wait_until(lambda: self.are_done(said), "the jobs are done")
        self.assertEqual([self.state(said, f"order:{i}")["attempts"] for i in (1, 2, 3)], [1, 1, 1])

    def check_keeps_on(self, client):
        """It keeps the connection, so the jobs are handed to nobody."""
        said, program = self.start_wrongly(client, *KEEPS_ON[client])
        program.wait_until(lambda: self.state(said, "order:1").get("state") == b"reserved", "the jobs are handed over")
        program.wait_until(lambda: "\n".join(program.lines()).count("lost: Command timed out") >= 6, "it goes on like that")
        self.assertNotIn("got", "\n".join(program.lines()))

    def check_stays_closed(self, client):
        _, program = self.start_wrongly(client, *STAYS_CLOSED[client])
        program.expect(["lost: The client is closed"])

    def serve_securely(self):
        key, certificate, config = self.folder / "server.key", self.folder / "ca.pem", self.folder / "delayq.toml"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-out", certificate,
                        "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"], check=True, capture_output=True, timeout=harness.DEADLINE)
        made = subprocess.run([harness.PROGRAM, "token", "new", "--name", "shop"], check=True, capture_output=True, text=True, timeout=harness.DEADLINE).stdout
        self.environment["DELAYQ_TOKEN"] = re.search(r"^dq_\S+$", made, re.MULTILINE)[0]
        config.write_text(f'[tls]\ncertificate = "{certificate}"\nkey = "{key}"\n\n{made[made.index("[[tokens]]"):]}')
        self.names = {"queue.example.com": "localhost"}
        return self.serve("-c", str(config))

    def check_secure(self, client):
        self.serve_securely()
        file, code = self.programs(client)[1]
        if client == "Jedis":
            self.run_all(re.search(r"`(keytool .*?)`", SECTIONS[client].text)[1])
        program = self.start_program(client, file, code)
        program.expect(["order:7 is delayed"])
        self.assertEqual(program.expect_end(), 0)
        self.names = {"queue.example.com": "127.0.0.1"}  # for which there is no certificate
        self.refuse(client, file, code)
        if client in CARELESS:
            right, wrong = CARELESS[client]
            self.assertEqual(code.count(right), 1)
            self.environment["JAVA_TOOL_OPTIONS"] = "-Djavax.net.ssl.trustStore=ca.p12 -Djavax.net.ssl.trustStorePassword=changeit"
            self.start_program(client, file, code.replace(right, wrong)).expect(["order:7 is delayed"])
        self.names, self.environment["DELAYQ_TOKEN"] = {"queue.example.com": "localhost"}, "dq_wrong"
        self.refuse(client, file, code)

    def refuse(self, client, file, code):
        program = self.start_program(client, file, code)
        program.wait_until(lambda: re.search(r"(?i)certificate|altname|a valid token is needed", "\n".join(program.lines())), "it is refused")
        self.assertNotIn("is delayed", "\n".join(program.lines()))


class Page(harness.ServerTest):
    def test_versions_are_those_that_are_tested(self):
        folder = harness.ROOT / "tests" / "clients"
        node = json.loads((folder / "package.json").read_text())["dependencies"]
        tested = {"redis-py": redis.__version__, "ioredis": node["ioredis"], "node-redis": node["redis"],
                  "go-redis": re.search(r"go-redis/v9 v(\S+)", (folder / "go.mod").read_text())[1],
                  "Jedis": re.search(r"jedis</artifactId>\s*<version>([^<]+)", (folder / "pom.xml").read_text())[1]}
        for client, version in tested.items():
            said = re.search(r"^Version ([\d.]*\d)", SECTIONS[client].text, re.MULTILINE)[1]
            self.assertTrue(f"{version}.".startswith(f"{said}."), f"{client} {version}, and the page says {said}")
            self.assertIn(f"| {client} {'.'.join(version.split('.')[:2])} |", SECTIONS["What every client needs"].text)

    def test_what_not_to_use_is_refused(self):
        client = self.connect(self.serve())
        for words in (("SELECT", "1"), ("WATCH", "x"), ("SUBSCRIBE", "x"), ("CLUSTER", "SLOTS"), ("READONLY",), ("EVAL", "return 1", "0"), ("BLPOP", "x", "1"),
                      ("XADD", "x", "*", "a", "b"), ("CLIENT", "TRACKING", "ON")):
            with self.assertRaises(harness.Refused, msg=words):
                client.ask(*words)
        self.assertEqual(client.ask("SELECT", "0"), "OK")

    def test_a_push_that_is_sent_twice(self):
        client = self.connect(self.serve())
        client.ask_all([("PUSH", "order", "1h", "x")] * 2 + [("PUSH", "order", "1h", "x", "ID", "1", "REPLACE")] * 2)
        self.assertEqual(client.stats("order")["delayed"], 3)


def add_tests():
    """Those of each client."""
    for client in CLIENTS:
        checks = ["worker", "secure", "gives_up"] + ["keeps_on"] * (client in KEEPS_ON) + ["stays_closed"] * (client in STAYS_CLOSED)
        for check in checks:
            setattr(RedisClients, f"test_{client.lower().replace('-', '_')}_{check}",
                    lambda self, client=client, check=check: getattr(self, f"check_{check}")(client))


add_tests()

if __name__ == "__main__":
    harness.main()
