"""Web pages, and clients without a token, or with one that was taken away: what they send over real sockets, and what it does not do."""
import hashlib
import http.client
import json
import signal
import socket

import harness

PLENTY = 64 << 20  # bytes that are offered; far more than a stranger may have kept


def token(name, secret, scopes, topics=("*",)):
    digest = hashlib.sha256(secret.encode()).hexdigest()
    return f'[[tokens]]\nname = "{name}"\nsha256 = "{digest}"\nscopes = {json.dumps(scopes)}\ntopics = {json.dumps(topics)}\n'


class Strangers(harness.ServerTest):
    def open(self, port):
        plain = socket.create_connection(("127.0.0.1", port), timeout=harness.DEADLINE)
        self.addCleanup(plain.close)
        return plain

    def send_without_end(self, port, begin, unit):
        """Sends until all is sent or the server hangs up, which it does a little after it has said why. Answers what it said."""
        plain = self.open(port)
        said = b""
        piece = unit * (65536 // len(unit))
        sent = 0
        try:
            plain.sendall(begin)
            while sent < PLENTY:
                plain.sendall(piece)
                sent += len(piece)
        except (BrokenPipeError, ConnectionResetError):
            pass
        plain.settimeout(1)
        try:
            while part := plain.recv(65536):
                said += part
        except (ConnectionResetError, TimeoutError):
            pass
        return said

    def configured(self, text):
        config = self.directory / "delayq.toml"
        config.write_text(text, encoding="utf-8")
        return config

    def test_nothing_without_end_is_kept(self):
        server = self.serve("-c", str(self.configured(token("root", "s", ["admin"]))))
        before = server.resident_bytes()
        chunked = b"Host: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        cases = [(server.http_port, b"GET /healthz HTTP/1.1\r\n" + chunked + b"5;a=", b"b"),
                 (server.http_port, b"GET /healthz HTTP/1.1\r\n" + chunked + b"2\r\n{}\r\n0\r\n", b"X: b\r\n"),
                 (server.http_port, b"GET /healthz HTTP/1.1\r\n" + chunked, b"1\r\nx\r\n"),
                 (server.http_port, b"GET /healthz HTTP/1.1\r\n", b"X: b\r\n"),
                 (server.http_port, b"POST /v1/jobs HTTP/1.1\r\n" + chunked + b"5;a=", b"b"),
                 (server.port, b"*4\r\n$4\r\nPUSH\r\n$1\r\nt\r\n$1\r\n0\r\n$1000000\r\n", b"x"),
                 (server.port, b"", b"x")]
        for port, begin, unit in cases:
            said = self.send_without_end(port, begin, unit)
            # Nothing at all: the connection was reset before it could be read.
            self.assertRegex(said, rb"^(HTTP/1.1 4\d\d |-ERR |-NOAUTH |$)", begin)
        if not harness.SANITIZED:
            self.assertLess(server.resident_bytes() - before, 16 << 20)

    def test_a_header_line_by_line_has_an_end_too(self):
        server = self.serve()
        plain = self.open(server.http_port)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        plain.sendall(b"GET /healthz HTTP/1.1\r\n")
        said = b""
        try:
            for _ in range(3000):
                plain.sendall(b"X-Header: value\r\n")
        except (BrokenPipeError, ConnectionResetError):
            pass
        else:
            said = plain.recv(4096)
            self.assertTrue(said.startswith(b"HTTP/1.1 431 "), said)

    def test_a_page_cannot_command_the_resp_port(self):
        server = self.serve()
        client = self.connect(server)
        client.ask("PUSH", "order", "1h", "b", "ID", "precious")
        body = b"PURGE order\r\nPUSH order 0 evil ID evil\r\n"
        for head in (b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n" % len(body), b"GET /x HTTP/1.1\r\n\r\n"):
            plain = self.open(server.port)
            plain.sendall(head + body)
            said = b""
            try:
                while part := plain.recv(4096):
                    said += part
            except ConnectionResetError:
                pass
            self.assertLessEqual(said.count(b"\r\n"), 1, said)
        self.assertIn(b"delayed", client.ask("GET", "order", "precious"))
        self.assertIsNone(client.ask("GET", "order", "evil"))
        _, said = server.stop()
        self.assertIn("turned away", said)

    def status(self, server, host, path="/v1/topics", **headers):
        web = http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=harness.DEADLINE)
        self.addCleanup(web.close)
        web.request("GET", path, headers={"Host": host, **headers})
        answer = web.getresponse()
        return answer.status, answer.read().decode()

    def test_a_page_whose_name_points_here_is_not_served(self):
        config = self.configured('[server]\nhosts = ["delayq.example.com"]\n')
        server = self.serve("-c", str(config))
        for host in ("localhost", f"127.0.0.1:{server.http_port}", "[::1]:9277", "delayq.example.com:80"):
            self.assertEqual(self.status(server, host)[0], 200, host)
        refused, said = self.status(server, "evil.example", Origin="http://evil.example")
        self.assertEqual(refused, 403)
        self.assertIn("server.hosts", said)
        self.assertEqual(self.status(server, "evil.example")[0], 403, "a GET has no Origin")
        self.assertEqual(self.status(server, "probe.internal", "/healthz")[0], 200)
        self.assertEqual(self.status(server, "other.example.com")[0], 403)
        config.write_text('[server]\nhosts = ["*.example.com"]\n', encoding="utf-8")
        server.process.send_signal(signal.SIGHUP)
        self.wait_for(lambda: self.status(server, "other.example.com")[0] == 200, "server.hosts is read again")

    def test_what_lingers_ends_with_its_token(self):
        root = token("root", "s-root", ["admin"])
        config = self.configured(root + token("watch", "s-watch", ["read"]) + token("slow", "s-slow", ["consume"], ["a"]))
        server = self.serve("-c", str(config))
        stream = self.open(server.http_port)
        stream.sendall(b"GET /v1/events?interval=1m HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer s-watch\r\n\r\n")
        self.assertIn(b"200 OK", stream.recv(4096))
        client = self.connect(server)
        self.assertEqual(client.ask("AUTH", "slow", "s-slow"), "OK")
        client.send(("POP", "a", "WAIT", "10m"))
        admin = self.connect(server)
        admin.ask("AUTH", "s-root")
        self.wait_for(lambda: admin.stats("a")["waiters"] == 1, "it waits")
        config.write_text(root, encoding="utf-8")
        server.process.send_signal(signal.SIGHUP)
        self.assertEqual(client.read().code, "NOAUTH")
        while stream.recv(4096):
            pass  # until it is closed
        admin.ask("PUSH", "a", "0", "x", "ID", "a9")
        self.assertEqual(admin.ask("POP", "a")[0][2], b"a9")


if __name__ == "__main__":
    harness.main()
