"""`delayq listen`: a receiver that checks signatures."""
import base64
import hashlib
import hmac
import http.client
import json
import signal
import socket
import subprocess
import time
import unittest

import harness

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"


def signed(secret, body, at=None, job="msg_1"):
    at = str(int(time.time() if at is None else at))
    key = base64.b64decode(secret.removeprefix("whsec_"))
    digest = hmac.new(key, f"{job}.{at}.".encode() + body, hashlib.sha256).digest()
    return {"webhook-id": job, "webhook-timestamp": at, "webhook-signature": "v1," + base64.b64encode(digest).decode()}


class Listener:
    def __init__(self, test, *words):
        self.process = subprocess.Popen([harness.PROGRAM, "listen", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        test.addCleanup(self.end)
        line = self.process.stderr.readline()
        test.assertRegex(line, r"^listening on http://127\.0\.0\.1:\d+$")
        self.port = int(line.rsplit(":", 1)[1])

    def send(self, body=b"", headers=None, method="POST", path="/hook"):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=harness.DEADLINE)
        try:
            connection.request(method, path, body=body, headers=headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def stop(self):
        """What it printed, and the totals."""
        self.process.send_signal(signal.SIGTERM)
        out, err = self.process.communicate(timeout=harness.DEADLINE)
        return [json.loads(line) for line in out.splitlines()], err, self.process.returncode

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(harness.DEADLINE)
        self.process.stdout.close()
        self.process.stderr.close()


class ListenTest(unittest.TestCase):
    def test_prints_calls_and_answers_ok(self):
        listener = Listener(self)
        self.assertEqual(listener.send(b'{"uid":1}', {"delayq-topic": "order"}), (200, b"ok"))
        self.assertEqual(listener.send(method="GET", path="/x?y"), (200, b"ok"))
        self.assertEqual(listener.send(method="HEAD"), (200, b""))
        calls, totals, code = listener.stop()
        self.assertEqual([(c["method"], c["path"], c["verdict"], c["body"]) for c in calls],
                         [("POST", "/hook", "unsigned", '{"uid":1}'), ("GET", "/x?y", "unsigned", ""), ("HEAD", "/hook", "unsigned", "")])
        self.assertEqual(calls[0]["headers"]["delayq-topic"], "order")
        self.assertEqual((totals, code), ("3 calls: 3 unsigned\n", 0))

    def test_checks_signatures(self):
        listener = Listener(self, "--secret", SECRET, "--secret", OTHER)
        body = b'{"test": 2432232314}'
        self.assertEqual(listener.send(body, signed(SECRET, body))[0], 200)
        self.assertEqual(listener.send(body, signed(OTHER, body))[0], 200)
        self.assertEqual(listener.send(body + b" ", signed(SECRET, body))[0], 401)
        self.assertEqual(listener.send(body, signed(SECRET, body, at=time.time() - 3600))[0], 401)
        self.assertEqual(listener.send(body)[0], 401)
        calls, totals, _ = listener.stop()
        self.assertEqual([c["verdict"] for c in calls], ["verified", "verified", "BAD signature", "out of time", "unsigned"])
        self.assertEqual(totals, "5 calls: 2 verified, 1 unsigned, 1 BAD signature, 1 out of time\n")

    def test_answers_as_told_and_may_be_quiet(self):
        listener = Listener(self, "--answer", "503", "--body", "later", "--quiet")
        self.assertEqual(listener.send(b"x"), (503, b"later"))
        self.assertEqual(listener.stop()[:2], ([], "1 calls: 1 unsigned\n"))
        self.assertEqual(Listener(self, "--answer", "204").send(b"x"), (204, b""))

    def test_many_calls_on_one_connection_however_they_are_cut(self):
        listener = Listener(self, "--quiet")
        request = b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc"
        chunked = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
        with socket.create_connection(("127.0.0.1", listener.port), timeout=harness.DEADLINE) as connection:
            for byte in request + chunked:
                connection.sendall(bytes([byte]))
            connection.sendall((request + chunked) * 500)
            said = b""
            while said.count(b"HTTP/1.1 200 OK\r\n") < 1002:
                part = connection.recv(1 << 16)
                self.assertTrue(part, "it hung up")
                said += part
        self.assertEqual(listener.stop()[1], "1002 calls: 1002 unsigned\n")

    def test_asks_for_the_body_of_who_waits(self):
        listener = Listener(self, "--quiet")
        with socket.create_connection(("127.0.0.1", listener.port), timeout=harness.DEADLINE) as connection:
            connection.sendall(b"PUT / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n")
            self.assertEqual(connection.recv(1000), b"HTTP/1.1 100 Continue\r\n\r\n")
            connection.sendall(b"abc")
            self.assertTrue(connection.recv(1000).startswith(b"HTTP/1.1 200"))

    def test_hangs_up_on_nonsense(self):
        listener = Listener(self, "--quiet")
        for nonsense in (b"\0\1\2\r\n\r\n", b"GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b"x" * 70_000):
            with socket.create_connection(("127.0.0.1", listener.port), timeout=harness.DEADLINE) as connection:
                connection.sendall(nonsense)
                try:
                    self.assertEqual(connection.recv(1000), b"")
                except ConnectionResetError:
                    pass  # it had not read all of it
        self.assertEqual(listener.send(b"x")[0], 200)

    def test_says_what_is_wrong(self):
        taken = Listener(self)
        for words, code, said in ((["--secret", "whsec_?"], 2, "delayq listen: invalid: --secret: a secret is whsec_ and base64"),
                                  (["--port", str(taken.port)], 9, f"cannot listen on 127.0.0.1:{taken.port}"),
                                  (["--port", "70000"], 2, "--port"), (["--answer", "99"], 2, "--answer")):
            done = subprocess.run([harness.PROGRAM, "listen", *words], capture_output=True, text=True, check=False, timeout=harness.DEADLINE)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(said, done.stderr)


if __name__ == "__main__":
    unittest.main()
