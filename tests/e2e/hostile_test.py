"""Clients that misbehave, or are unlucky. In every case others must not notice."""
import resource
import socket
import struct

import harness
from harness import Refused, encode


class Hostile(harness.ServerTest):
    def setUp(self):
        super().setUp()
        self.server = self.serve()
        self.friend = self.connect(self.server)

    def raw(self):
        plain = socket.create_connection(("127.0.0.1", self.server.port), timeout=harness.DEADLINE)
        self.addCleanup(plain.close)
        return plain

    def friend_is_fine(self):
        self.assertEqual(self.friend.ask("PING"), "PONG")
        name = self.friend.ask("PUSH", "fine", "0", "body")
        job = self.friend.ask("POP", "fine", "WAIT", "10s")[0]
        self.assertEqual(job[2], name)
        self.assertEqual(self.friend.ask("ACK", job[0]), 1)

    def assert_grown_by_less(self, before, limit, what):
        if not harness.SANITIZED:
            self.assertLess(self.server.resident_bytes() - before, limit, what)

    def test_lengths_without_end(self):
        for sent in (b"*1\r\n$99999999999999\r\n", b"*99999999\r\n", b"*1\r\n$67108865\r\n", b"*3\r\n:1\r\n",
                     b"*1\r\n$" + b"9" * 40, b"*2\r\n$4\r\nPING\r\nx", b"x" * 70000):
            plain = self.raw()
            plain.sendall(sent)
            said = b""
            while part := plain.recv(4096):
                said += part
            self.assertTrue(said.startswith(b"-ERR Protocol error"), said)
            self.friend_is_fine()

    def test_a_body_above_the_limit_is_refused_by_name(self):
        refused = self.friend.ask_all([("PUSH", "t", "0", "x" * ((1 << 20) + 1)), ("PING",)])
        self.assertEqual(refused[0].code, "TOOLARGE")
        self.assertIn("body", str(refused[0]))
        self.assertEqual(refused[1], "PONG")
        self.assertEqual(len(self.friend.ask("PUSH", "t", "0", "x" * (1 << 20))), 36)

    def test_a_body_that_never_comes(self):
        before = self.server.resident_bytes()
        clients = [self.raw() for _ in range(200)]
        for plain in clients:  # each says that a megabyte follows, and sends a little
            plain.sendall(b"*4\r\n$4\r\nPUSH\r\n$1\r\nt\r\n$1\r\n0\r\n$1048576\r\n" + b"x" * 1000)
        self.friend_is_fine()
        for plain in clients:
            plain.sendall(b"x" * 1000)
        self.friend_is_fine()
        self.assert_grown_by_less(before, 64 << 20, "memory for what has not come")
        for plain in clients:
            plain.close()
        self.wait_for(lambda: b"connected_clients:1\r\n" in self.friend.ask("INFO"), "they are gone")
        self.assertEqual(self.friend.stats("t")["ready"], 0)

    def test_byte_by_byte(self):
        plain = self.raw()
        for byte in encode(("PUSH", "slow", "0", "body", "ID", "a")):
            plain.sendall(bytes([byte]))
        self.assertEqual(plain.recv(100), b"$1\r\na\r\n")

    def test_one_that_never_reads(self):
        self.friend.ask_all([("PUSH", "big", "0", "x" * 500_000) for _ in range(40)])
        before = self.server.resident_bytes()
        plain = self.raw()
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        plain.setblocking(False)
        request = encode(("ECHO", "y" * 100_000))
        sent = 0
        try:
            for _ in range(2000):
                sent += plain.send(request)
        except BlockingIOError:
            pass
        self.assertLess(sent, 100 << 20, "it is never held back")
        self.friend_is_fine()
        self.assert_grown_by_less(before, 32 << 20, "its replies are all kept")

    def test_disconnects_in_the_middle_of_a_batch(self):
        reset = struct.pack("ii", 1, 0)
        for i in range(50):
            plain = self.raw()
            whole = b"".join(encode(("PUSH", "torn", "1h", "b", "ID", f"{i}-{n}")) for n in range(100))
            plain.sendall(whole[: len(whole) // 2 + i])
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
            plain.close()
            self.friend_is_fine()
        self.assertLessEqual(self.friend.stats("torn")["delayed"], 50 * 51)

    def test_disconnects_while_waiting(self):
        waiting = [self.raw() for _ in range(100)]
        for plain in waiting:
            plain.sendall(encode(("POP", "wait", "WAIT", "1h")))
        self.wait_for(lambda: self.friend.stats("wait")["waiters"] == 100, "all of them wait")
        for plain in waiting[:-1]:
            plain.close()
        self.wait_for(lambda: self.friend.stats("wait")["waiters"] == 1, "only one still waits")
        self.friend.ask("PUSH", "wait", "0", "for the last one")
        self.assertIn(b"for the last one", waiting[-1].recv(4096))
        self.assertEqual(self.friend.stats("wait")["reserved"], 1)

    def test_ten_thousand_idle_connections(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        count = min(10_000, hard - 200) if hard != resource.RLIM_INFINITY else 10_000
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, count + 200), hard))
        self.assertGreater(count, 1000, "this system allows too few descriptors to try")
        before = self.server.resident_bytes()
        idle = []
        for _ in range(count):
            plain = socket.create_connection(("127.0.0.1", self.server.port))
            idle.append(plain)
        self.addCleanup(lambda: [plain.close() for plain in idle])
        self.friend_is_fine()
        self.wait_for(lambda: f"connected_clients:{count + 1}\r\n".encode() in self.friend.ask("INFO"), "all are there")
        self.assert_grown_by_less(before, count * 4096, "memory for idle connections")
        self.friend_is_fine()

    def test_more_connections_than_allowed(self):
        server = harness.Server(self.directory / "other", "--set", "server.max_connections=3")
        self.addCleanup(server.close)
        allowed = [self.connect(server) for _ in range(3)]
        for client in allowed:
            self.assertEqual(client.ask("PING"), "PONG")
        one_more = self.connect(server)
        refusal = one_more.read()
        self.assertIsInstance(refusal, Refused)
        self.assertEqual(refusal.code, "OVERLOADED")
        allowed.pop().close()
        self.wait_for(lambda: self.is_let_in(server), "there is room again")

    def is_let_in(self, server):
        client = self.connect(server)
        try:
            return client.ask("PING") == "PONG"
        except (Refused, OSError):
            return False


if __name__ == "__main__":
    harness.main()
