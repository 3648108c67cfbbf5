"""TLS, tokens, and clients that are too slow, over real sockets."""
import hashlib
import http.client
import json
import signal
import socket
import ssl
import subprocess

import harness


def secret_hash(secret):
    return hashlib.sha256(secret.encode()).hexdigest()


class Security(harness.ServerTest):
    def setUp(self):
        super().setUp()
        self.config = self.directory / "delayq.toml"

    def run_openssl(self, *words):
        subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True, timeout=harness.DEADLINE)

    def make_certificate(self, name, issuer=None):
        """NAME.pem and NAME.key; signed by `issuer`, or by itself."""
        key, certificate = self.directory / f"{name}.key", self.directory / f"{name}.pem"
        signed = [] if issuer is None else ["-CA", self.directory / f"{issuer}.pem", "-CAkey", self.directory / f"{issuer}.key"]
        made = self.directory / f"{name}.new"
        self.run_openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key,
                         "-out", made, "-days", "2", "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1", *signed)
        made.rename(certificate)  # whoever reads it finds all of it
        return certificate, key

    def write_config(self, text):
        self.config.write_text(text, encoding="utf-8")

    def trusting(self, certificate):
        return ssl.create_default_context(cafile=str(certificate))

    def tls(self, port, context):
        plain = socket.create_connection(("127.0.0.1", port), timeout=harness.DEADLINE)
        wrapped = context.wrap_socket(plain, server_hostname="127.0.0.1")
        self.addCleanup(wrapped.close)
        return wrapped

    def say(self, connection, text):
        connection.sendall(text.encode())
        return connection.recv(65536).decode()

    def serve_tls(self, more=""):
        certificate, key = self.make_certificate("server")
        self.write_config(f'[tls]\ncertificate = "{certificate}"\nkey = "{key}"\n{more}')
        return self.serve("-c", str(self.config)), certificate

    def test_both_ports_speak_tls_and_nothing_else(self):
        server, certificate = self.serve_tls()
        context = self.trusting(certificate)
        self.assertEqual(self.say(self.tls(server.port, context), "PING\r\n"), "+PONG\r\n")
        web = self.tls(server.http_port, context)
        self.assertIn("200 OK", self.say(web, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"))
        self.assertIn(web.version(), ("TLSv1.2", "TLSv1.3"))
        body = "x" * 300_000  # many records both ways
        client = self.tls(server.port, context)
        client.sendall(harness.encode(["ECHO", body]))
        came = b""
        while len(came) < len(body) + 11:
            came += client.recv(65536)
        self.assertTrue(came.endswith(body.encode() + b"\r\n"))
        for port in (server.port, server.http_port):
            with socket.create_connection(("127.0.0.1", port), timeout=harness.DEADLINE) as plain:
                plain.sendall(b"PING\r\nGET / HTTP/1.1\r\n\r\n")
                try:
                    self.assertNotIn(b"PONG", plain.recv(4096))
                except ConnectionResetError:
                    pass  # that says it, too
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old.load_verify_locations(certificate)
        old.set_ciphers("ALL:@SECLEVEL=0")
        old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
        with self.assertRaises((ssl.SSLError, ConnectionError)):
            self.tls(server.port, old)
        self.assertEqual(self.say(self.tls(server.port, context), "PING\r\n"), "+PONG\r\n")

    def test_other_certificates_are_read_without_dropping_anybody(self):
        server, first = self.serve_tls()
        before = self.tls(server.port, self.trusting(first))
        self.assertEqual(self.say(before, "PING\r\n"), "+PONG\r\n")
        second, _ = self.make_certificate("server")
        server.process.send_signal(signal.SIGHUP)
        new = self.trusting(second)

        def is_new():
            try:
                return self.say(self.tls(server.port, new), "PING\r\n") == "+PONG\r\n"
            except ssl.SSLError:
                return False
        self.wait_for(is_new, "the new certificate is shown")
        self.assertEqual(self.say(before, "PING\r\n"), "+PONG\r\n", "the old connection goes on")
        second.write_text("no certificate", encoding="utf-8")
        server.process.send_signal(signal.SIGHUP)
        self.assertEqual(self.say(before, "PING\r\n"), "+PONG\r\n")
        _, said = server.stop()
        self.assertIn("the certificates stay as they were", said)

    def test_clients_may_need_a_certificate(self):
        authority, _ = self.make_certificate("authority")
        server, certificate = self.serve_tls(f'client_ca = "{authority}"\n')
        shown, key = self.make_certificate("client", issuer="authority")
        known = self.trusting(certificate)
        known.load_cert_chain(shown, key)
        self.assertEqual(self.say(self.tls(server.port, known), "PING\r\n"), "+PONG\r\n")
        with self.assertRaises((ssl.SSLError, ConnectionError)):
            self.assertEqual(self.say(self.tls(server.port, self.trusting(certificate)), "PING\r\n"), "nothing")

    def test_a_wrong_file_is_named(self):
        certificate, _ = self.make_certificate("server")
        self.write_config(f'[tls]\ncertificate = "{certificate}"\nkey = "{certificate}"\n')
        failed = subprocess.run([harness.PROGRAM, "serve", "-c", self.config, "--data", self.directory / "data", "--http",
                                 "127.0.0.1:0", "--resp", "127.0.0.1:0"], capture_output=True, timeout=harness.DEADLINE, check=False)
        self.assertEqual(failed.returncode, 2)
        self.assertIn(f"tls.key: {certificate}:", failed.stderr.decode())

    def test_tokens_are_asked_for_and_read_again(self):
        def token(name, secret, scopes):
            return f'[[tokens]]\nname = "{name}"\nsha256 = "{secret_hash(secret)}"\nscopes = {json.dumps(scopes)}\n'
        self.write_config(token("shop", "first", ["push"]))
        server = self.serve("-c", str(self.config))

        def status(secret, path="/v1/topics/order/jobs", body='{"body": 1}'):
            web = http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=harness.DEADLINE)
            self.addCleanup(web.close)
            headers = {} if secret is None else {"Authorization": f"Bearer {secret}"}
            web.request("POST", path, body, headers)
            return web.getresponse().status
        self.assertEqual(status(None), 401)
        self.assertEqual(status("second"), 401)
        self.assertEqual(status("first"), 201)
        self.assertEqual(status("first", "/v1/topics/order/pop", "{}"), 403)
        client = self.connect(server)
        with self.assertRaises(harness.Refused) as refused:
            client.ask("PUSH", "order", "0", "x")
        self.assertEqual(refused.exception.code, "NOAUTH")
        self.assertEqual(client.ask("AUTH", "first"), "OK")
        client.ask("PUSH", "order", "0", "x")
        self.write_config(token("shop", "second", ["push"]))
        server.process.send_signal(signal.SIGHUP)
        self.wait_for(lambda: status("second") == 201, "the new token")
        self.assertEqual(status("first"), 401)
        with self.assertRaises(harness.Refused):
            client.ask("PUSH", "order", "0", "x")
        self.write_config("[[tokens]]\n")
        server.process.send_signal(signal.SIGHUP)
        self.assertEqual(status("second"), 201, "a wrong file changes nothing")
        self.write_config("")
        server.process.send_signal(signal.SIGHUP)
        self.wait_for(lambda: "no [[tokens]] any more" in server.said_so_far(), "an empty file is refused")
        self.assertEqual(status(None), 401)
        _, said = server.stop()
        self.assertIn("turned away", said)
        self.assertNotIn("second", said.replace("a second", ""), "no secret is logged")

    def test_other_machines_need_tokens(self):
        failed = subprocess.run([harness.PROGRAM, "serve", "--http", "0.0.0.0:0", "--resp", "127.0.0.1:0", "--data",
                                 self.directory / "data"], capture_output=True, timeout=harness.DEADLINE, check=False)
        self.assertEqual(failed.returncode, 2)
        self.assertIn("can be reached from other machines without authentication", failed.stderr.decode())

    def test_who_sends_too_slowly_is_sent_away_and_nothing_is_stored(self):
        server = self.serve("--set", "server.request_timeout=1s")
        friend = self.connect(server)
        begun = [(server.http_port, b"GET /healthz HTTP/1.1\r\nX: "),
                 (server.http_port, b"POST /v1/topics/t/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{\"body\""),
                 (server.http_port, b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n[{\"topic\":\"t\",\"body\":1},"),
                 (server.port, b"*4\r\n$4\r\nPUSH\r\n$1\r\nt\r\n$1\r\n0\r\n$10\r\nab")]
        slow = []
        for port, text in begun * 10:
            connection = socket.create_connection(("127.0.0.1", port), timeout=harness.DEADLINE)
            self.addCleanup(connection.close)
            connection.sendall(text)
            slow.append(connection)
        said = []
        for connection in slow:
            text = b""
            while part := connection.recv(4096):
                text += part
            said.append(text)
        self.assertTrue(said[0].startswith(b"HTTP/1.1 408 "), said[0])
        self.assertTrue(said[1].startswith(b"HTTP/1.1 408 "), said[1])
        self.assertTrue(said[3].startswith(b"-ERR Protocol error: the command did not come whole"), said[3])
        self.assertEqual(friend.ask("PING"), "PONG")
        self.assertEqual(friend.ask("TOPICS"), [b"", []], "nothing was stored")


if __name__ == "__main__":
    harness.main()
