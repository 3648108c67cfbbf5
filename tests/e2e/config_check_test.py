"""`config check` refuses exactly what `serve` refuses, in the same words: each bad file is given to both."""
import hashlib
import os
import socket
import subprocess
import unittest

import harness

INVALID = 2  # the exit code
HASH = hashlib.sha256(b"secret").hexdigest()

# What is wrong, the file, and what the message has to have: where it is, and which setting.
BAD_FILES = {
    "a value": ('[server]\ngrace = "soon"\n', "bad.toml:2: server.grace: "),
    "a key": ("[server]\nhtpp = 1\n", "bad.toml:2: server.htpp: unknown key"),
    "not TOML": ("[server\n", "bad.toml:1: this is not TOML"),
    "a callback that is missing": ('[topics.order]\ndelivery = "webhook"\n', 'bad.toml:2: topics."order": callback is missing'),
    "a Redis that is missing": ('[topics.order]\ndelivery = "redis_list"\n', 'bad.toml:2: topics."order": delivery = redis_list needs a Redis'),
    "half of TLS": ('[tls]\ncertificate = "c.pem"\n', "bad.toml:2: tls: certificate and key are needed together"),
    "a certificate that is not there": ('[tls]\ncertificate = "c.pem"\nkey = "k.pem"\n', "bad.toml:2: tls.certificate: c.pem: "),
    "a CA that is none": ('[webhook]\nca_file = "bad.toml"\n', "bad.toml:2: webhook.ca_file: bad.toml: "),
    "a CA of Redis": ('[server]\nengine = "redis"\n[redis]\nurl = "rediss://127.0.0.1:1"\nca_file = "bad.toml"\n', "bad.toml:5: redis.ca_file: bad.toml: "),
    "a password file": ('[server]\nengine = "redis"\n[redis]\npassword_file = "none"\n', "bad.toml:4: redis.password_file: none cannot be read"),
    "a log that cannot be written": ('[log]\nfile = "bad.toml/x.log"\n', "bad.toml:2: log.file: bad.toml/x.log cannot be made: bad.toml is not a directory"),
    "an access log": ('[log]\naccess = "."\n', "bad.toml:2: log.access: . is a directory"),
    "a pid file": ('[server]\npid_file = "bad.toml/pid"\n', "bad.toml:2: server.pid_file: bad.toml/pid cannot be made"),
    "a data directory": ('[server]\ndata = "bad.toml/data"\n', "bad.toml:2: server.data: bad.toml is not a directory"),
    "half a backup": ('[server]\ndata = "nightly.partial"\n', "bad.toml:2: server.data: nightly.partial is an unfinished backup"),
    "an address of another machine": ('[server]\nhttp = "192.0.2.1:9"\nallow_anonymous = true\n', "bad.toml:2: server.http: 192.0.2.1:9: "),
    "one port for both": ('[server]\nhttp = "127.0.0.1:7"\nresp = "127.0.0.1:7"\n', "bad.toml:2: server.http: 127.0.0.1:7 is server.resp, too"),
    "nobody is asked": ('[server]\nresp = "0.0.0.0:0"\n', "bad.toml:2: server.resp: 0.0.0.0:0 can be reached from other machines"),
    "a token without a hash": ('[[tokens]]\nname = "a"\nscopes = ["push"]\n', "bad.toml:2: tokens.0: sha256 is missing"),
    "a token without anything": ("\n[[tokens]]\n", "bad.toml:2: tokens.0: name is missing"),
    "two tokens of one name": (f'[[tokens]]\nname = "a"\nsha256 = "{HASH}"\nscopes = ["push"]\n' * 2, "bad.toml:6: tokens.1: another token has the name a"),
    "networks": ('[webhook]\ndeny = ["10.0.0.0/40"]\n', 'bad.toml:2: webhook.deny: "10.0.0.0/40"'),
    "a URL": ('[redis]\nurl = "http://x"\n', "bad.toml:2: redis.url: "),
    "a rule that never matches": ('[schedules.a]\ntopic = "t"\ncron = "0 0 30 2 *"\n', "bad.toml:3: schedules.a.cron: "),
    "a zone": ('[schedules.a]\ntopic = "t"\ncron = "@daily"\nzone = "Mars/Base"\n', "bad.toml:4: schedules.a.zone: "),
    "an end before the start": ('[schedules.a]\ntopic = "t"\nevery = "1m"\nend = "2030-01-01T00:00:00Z"\nstart = "2031-01-01T00:00:00Z"\n',
                                'bad.toml:4: schedules."a".end: end 2030-01-01T00:00:00.000Z is before start'),
    "a schedule without a topic": ('[schedules.a]\nevery = "1m"\n', 'bad.toml:2: schedules."a": topic is missing'),
    "a schedule twice": ('[schedules.a]\n[schedules.a]\n', "bad.toml:2: this is not TOML"),
    "the name of a schedule": ('[schedules."a b"]\nevery = "1m"\n', "bad.toml:2: schedules.a b.every: the name of a schedule"),
    "Redis twice": ('[redis]\nurl = "redis://:a@127.0.0.1"\npassword = "b"\n', "bad.toml:3: redis.password: also set in redis.url"),
}
BAD_VARIABLES = {
    "DELAYQ_SERVER_HTPP": ("127.0.0.1:0", "did you mean DELAYQ_SERVER_HTTP?"),
    "DELAYQ_SEVER_DATA": ("x", "did you mean DELAYQ_SERVER_DATA?"),
    "DELAYQ_TOPICS_ORDER_LEASE": ("1s", "topics cannot be configured there"),
    "DELAYQ_LOG_FILE": ("bad.toml/x.log", "DELAYQ_LOG_FILE in the environment: log.file: bad.toml/x.log cannot be made"),
}


class ConfigCheck(harness.ServerTest):
    def run_program(self, *words, **environment):
        return subprocess.run([harness.PROGRAM, *words], text=True, capture_output=True, timeout=harness.DEADLINE, check=False,
                              cwd=self.directory, env={**os.environ, **environment})

    def check_refused(self, wanted, options, **environment):
        served = self.run_program("serve", *options, **environment)
        checked = self.run_program("config", "check", *options, **environment)
        self.assertEqual((served.returncode, checked.returncode), (INVALID, INVALID), served.stderr + checked.stderr)
        self.assertEqual(served.stderr, checked.stderr)
        self.assertIn(wanted, checked.stderr)

    def test_both_refuse_the_same_files_in_the_same_words(self):
        for what, (text, wanted) in BAD_FILES.items():
            with self.subTest(what):
                (self.directory / "bad.toml").write_text(text, encoding="utf-8")
                before = set(self.directory.iterdir())
                self.check_refused(wanted, ["-c", "bad.toml"])
                self.assertEqual(set(self.directory.iterdir()), before, "nothing was made")

    def test_both_refuse_the_same_variables(self):
        (self.directory / "bad.toml").write_text("", encoding="utf-8")
        for name, (value, wanted) in BAD_VARIABLES.items():
            with self.subTest(name):
                self.check_refused(wanted, [], **{name: value})

    def test_what_is_right_is_right_for_both(self):
        (self.directory / "good.toml").write_text(
            f'[log]\nfile = "logs/a/delayq.log"\n[server]\npid_file = "run.pid"\n[topics.order]\ndelivery = "webhook"\n'
            f'callback = "http://127.0.0.1:9/"\n[[tokens]]\nname = "a"\nsha256 = "{HASH}"\nscopes = ["push"]\n', encoding="utf-8")
        checked = self.run_program("config", "check", "-c", "good.toml")
        self.assertEqual((checked.returncode, checked.stdout), (0, "good.toml is right.\n"), checked.stderr)
        self.assertEqual([each.name for each in self.directory.iterdir()], ["good.toml"], "nothing was made")
        self.serve("-c", str(self.directory / "good.toml"), "--pid-file", str(self.directory / "run.pid"),
                   "--set", f"log.file={self.directory / 'delayq.log'}")

    def test_a_port_that_is_taken_is_told_by_its_setting(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            for option, setting in (("--http", "server.http"), ("--resp", "server.resp")):
                options = ["--http", "127.0.0.1:0", "--resp", "127.0.0.1:0", "--engine", "memory"]
                options[options.index(option) + 1] = f"127.0.0.1:{port}"
                served = self.run_program("serve", *options)
                self.assertNotEqual(served.returncode, 0)
                self.assertIn(f"{setting}: 127.0.0.1:{port}: Address already in use; another program listens there", served.stderr)
                self.assertEqual(self.run_program("config", "check", *options).returncode, 0, "a server may be running with this very file")

    def test_a_file_that_is_searched_for(self):
        (self.directory / "conf").mkdir()
        (self.directory / "conf" / "delayq.conf").write_text("[delayq]\nerror_log = logs/error.log\n", encoding="utf-8")
        checked = self.run_program("config", "check")
        self.assertEqual(checked.returncode, 0, checked.stderr)
        self.assertIn("reading conf/delayq.conf", checked.stderr)
        self.assertIn("conf/delayq.conf is right, as a file of DelayQ", checked.stdout)

    def test_the_example_is_the_committed_one(self):
        said = subprocess.run([harness.PROGRAM, "config", "example"], capture_output=True, check=True, timeout=harness.DEADLINE)
        self.assertEqual(said.stdout.decode(), (harness.ROOT / "conf" / "delayq.example.toml").read_text())

    def test_help_names_what_the_older_systems_have(self):
        told = self.run_program("-h")
        self.assertEqual(told.returncode, 0)
        for option in ("-c FILE", "-d ", "conf/delayq.conf"):
            self.assertIn(option, told.stdout)
        refused = self.run_program("help", "nosuch")
        self.assertEqual(refused.returncode, INVALID)
        self.assertIn('there is no command "nosuch"', refused.stderr)


if __name__ == "__main__":
    unittest.main()
