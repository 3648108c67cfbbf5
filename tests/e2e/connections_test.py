"""Clients that do not read, do not speak, or never finish: what one of them costs is bounded, and others do not notice."""
import http.client
import socket
import ssl
import subprocess
import threading

import harness
from harness import encode

MIB = 1 << 20
# What docs/guide/operations.md says: four times limits.unread and one answer.
CONNECTION = 4 * (32 + 9) * MIB


class Peak:
    """The most memory that a server had while something was done."""

    def __init__(self, server):
        self.server = server
        self.before = server.resident_bytes()
        self.most = self.before
        self.is_over = threading.Event()
        self.watch = threading.Thread(target=self.look)

    def look(self):
        while not self.is_over.wait(0.005):
            self.most = max(self.most, self.server.resident_bytes())

    def __enter__(self):
        self.watch.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self.watch.join()

    def grown(self):
        return self.most - self.before


class Connections(harness.ServerTest):
    def raw(self, port):
        plain = socket.create_connection(("127.0.0.1", port), timeout=harness.DEADLINE)
        self.addCleanup(plain.close)
        return plain

    def is_healthy(self, server):
        plain = http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=harness.DEADLINE)
        try:
            plain.request("GET", "/healthz")
            return plain.getresponse().status == 200
        finally:
            plain.close()

    def is_closed(self, plain):
        plain.setblocking(False)
        try:
            return plain.recv(1) == b""
        except BlockingIOError:
            return False
        except ConnectionError:
            return True

    def assert_below(self, grown, limit, what):
        if not harness.SANITIZED:
            self.assertLess(grown, limit, f"{what}: {grown >> 20} MiB")

    def push_large_jobs(self, server, count):
        friend = self.connect(server)
        for number in range(count):
            friend.ask("PUSH", "t", "1h", "b" * 1_000_000, "ID", f"i{number}")
        return friend


class Unread(Connections):
    def test_sending_on_while_answers_are_not_read(self):
        server = self.serve()
        self.push_large_jobs(server, 1)
        plain = self.raw(server.port)
        begun = b"*4\r\n$4\r\nPUSH\r\n$1\r\nt\r\n$2\r\n1h\r\n$1000000\r\n"
        plain.sendall(encode(("GET", "t", "i0")) * 20 + begun + b"y" * 200_000)
        plain.setblocking(False)
        for _ in range(100):
            self.assertTrue(self.is_healthy(server), "and has looked at what was sent before")
            try:
                plain.send(b"z" * 500_000)
            except BlockingIOError:
                pass

    def test_one_connection_holds_no_more_than_its_budget(self):
        server = self.serve()
        self.push_large_jobs(server, 60)
        get = b"".join(encode(("GET", "t", f"i{number % 60}")) for number in range(1000))
        web = b"".join(b"GET /v1/topics/t/jobs/i%d HTTP/1.1\r\nHost: localhost\r\n\r\n" % (number % 60) for number in range(500))
        page = b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n"
        for what, port, sent in (("GET", server.port, get),
                                 ("EXPORT", server.port, encode(("EXPORT", "COUNT", "1000")) * 50),
                                 ("GET by HTTP", server.http_port, web),
                                 ("export by HTTP", server.http_port, page % b"/v1/export?limit=1000" * 50),
                                 ("list by HTTP", server.http_port,
                                  page % b"/v1/topics/t/jobs?state=delayed&bodies=true&limit=1000" * 50)):
            with self.subTest(what), Peak(server) as peak:
                plain = self.raw(port)
                plain.sendall(sent)
                for _ in range(20):
                    self.assertTrue(self.is_healthy(server))
                plain.close()
            self.assert_below(peak.grown(), CONNECTION, what)

    def test_who_reads_late_gets_everything_in_order(self):
        server = self.serve()
        friend = self.push_large_jobs(server, 20)
        names = [f"i{number % 20}" for number in range(150)]
        with Peak(server) as peak:
            friend.send(*(("GET", "t", name) for name in names))
            self.assertTrue(self.is_healthy(server))
            for name in names:
                reply = friend.read()
                self.assertEqual(reply[reply.index(b"id") + 1], name.encode())
        self.assert_below(peak.grown(), CONNECTION, "for one who reads late")

    def test_pops_that_are_not_read(self):
        server = self.serve()
        friend = self.connect(server)
        for number in range(100):
            friend.ask("PUSH", "due", "0", "b" * 1_000_000, "ID", f"i{number:03}")
        with Peak(server) as peak:
            friend.send(*(("POP", "due", "AUTOACK") for _ in range(120)))
            self.assertTrue(self.is_healthy(server))
            popped = [friend.read() for _ in range(120)]
        self.assertEqual([jobs[0][2].decode() for jobs in popped if jobs], [f"i{number:03}" for number in range(100)])
        self.assert_below(peak.grown(), CONNECTION, "for pops")

    def test_all_connections_together_hold_no_more_than_theirs(self):
        server = self.serve("--set", "limits.unread_total=64MiB")
        friend = self.push_large_jobs(server, 10)
        with Peak(server) as peak:
            greedy = [self.raw(server.port) for _ in range(30)]
            for plain in greedy:
                plain.sendall(encode(("GET", "t", "i0")) * 100)
            for _ in range(20):
                self.assertEqual(friend.ask("PING"), "PONG")
        self.assert_below(peak.grown(), 2 * (64 + 32 + 9) * MIB, "for thirty that do not read")

    def test_who_does_not_read_is_closed(self):
        server = self.serve("--set", "server.write_timeout=1s")
        friend = self.push_large_jobs(server, 10)
        self.raw(server.port).sendall(encode(("GET", "t", "i0")) * 100)
        self.wait_for(lambda: b"connected_clients:1\r\n" in friend.ask("INFO"), "it is closed")

    def test_the_answers_to_all_that_was_sent_before_the_end(self):
        server = self.serve()
        self.push_large_jobs(server, 1)
        plain = self.raw(server.port)
        plain.sendall(encode(("GET", "t", "i0")) * 100)
        plain.shutdown(socket.SHUT_WR)
        size = 0
        while part := plain.recv(MIB):
            size += len(part)
        self.assertGreater(size, 100 * 1_000_000)


class Silent(Connections):
    def test_idle_connections_make_room(self):
        server = self.serve("--set", "server.max_connections=40")
        idle = [self.raw(server.port if number % 2 else server.http_port) for number in range(39)]
        friend = self.connect(server)
        self.assertEqual(friend.ask("PING"), "PONG")
        for _ in range(60):
            self.assertTrue(self.is_healthy(server))
        later = [self.raw(server.port) for _ in range(60)]
        # Those that are accepted after the next connection would make room by closing it, too.
        self.wait_for(lambda: self.is_closed(later[19]), "nearly all are accepted")
        self.assertTrue(self.is_healthy(server))
        self.assertEqual(friend.ask("PING"), "PONG", "who spoke stays")

    def test_who_never_speaks_is_closed_and_who_spoke_may_be_idle(self):
        server = self.serve("--set", "server.first_request_timeout=1s")
        friend = self.connect(server)
        self.assertEqual(friend.ask("PING"), "PONG")
        silent = [self.raw(server.port), self.raw(server.http_port)]
        for plain in silent:
            self.wait_for(lambda plain=plain: self.is_closed(plain), "it is closed")
        again = self.raw(server.port)
        self.wait_for(lambda: self.is_closed(again), "a second one is closed, too")
        self.assertEqual(friend.ask("PING"), "PONG")

    def serve_tls(self, *options):
        key, certificate = self.directory / "server.key", self.directory / "server.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate,
                        "-days", "2", "-subj", "/CN=server"], check=True, capture_output=True, timeout=harness.DEADLINE)
        return self.serve("--set", f"tls.certificate={certificate}", "--set", f"tls.key={key}", *options)

    def shake_hands(self, port, ciphers=None):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        if ciphers is not None:
            context.maximum_version = ssl.TLSVersion.TLSv1_2
            context.set_ciphers(ciphers)
        with context.wrap_socket(self.raw(port)) as wrapped:
            wrapped.sendall(b"PING\r\n")
            return wrapped.recv(100)

    def test_tls_clients_that_never_greet(self):
        server = self.serve_tls("--set", "server.request_timeout=1s")
        stay = [self.raw(server.port), self.raw(server.http_port)]
        gone = [self.raw(server.port), self.raw(server.http_port)]
        for plain in gone:
            plain.close()
        for plain in stay:
            self.wait_for(lambda plain=plain: self.is_closed(plain), "it is closed")
        self.assertEqual(self.shake_hands(server.port), b"+PONG\r\n")
        server.process.terminate()
        self.assertEqual(server.process.wait(harness.DEADLINE), 0)

    def test_old_ciphers_are_refused(self):
        server = self.serve_tls()
        self.assertEqual(self.shake_hands(server.port, "ECDHE-RSA-AES128-GCM-SHA256"), b"+PONG\r\n")
        for old in ("AES128-SHA:@SECLEVEL=0", "ECDHE-RSA-AES128-SHA:@SECLEVEL=0", "AES128-GCM-SHA256:@SECLEVEL=0"):
            with self.subTest(old), self.assertRaises(ssl.SSLError):
                self.shake_hands(server.port, old)


if __name__ == "__main__":
    harness.main()
