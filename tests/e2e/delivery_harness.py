"""What tests of delivery have in common: topics with settings, jobs, and what the server says of them."""
import json
import urllib.error
import urllib.request

import harness


class DeliveryTest(harness.ServerTest):
    def set(self, server, topic, expected=200, **settings):
        request = urllib.request.Request(f"http://127.0.0.1:{server.http_port}/v1/topics/{topic}", method="PATCH",
                                         data=json.dumps(settings).encode())
        try:
            with urllib.request.urlopen(request, timeout=harness.DEADLINE) as answer:
                self.assertEqual(answer.status, expected)
                return json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                self.assertEqual(error.code, expected)
                return json.load(error)

    def push(self, client, topic, ids, delay="0"):
        replies = client.ask_all([("PUSH", topic, delay, f'{{"n":"{each}"}}', "ID", each) for each in ids])
        self.assertFalse([reply for reply in replies if isinstance(reply, harness.Refused)])

    def get(self, server, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{server.http_port}{path}", timeout=harness.DEADLINE) as answer:
            return answer.read().decode()

    def info(self, server, topic):
        return json.loads(self.get(server, f"/v1/topics/{topic}"))

    def job(self, client, topic, name):
        flat = client.ask("GET", topic, name)
        return {flat[i].decode(): flat[i + 1] for i in range(0, len(flat), 2)}

    def metric(self, server, name):
        """Of the sample with this name and labels."""
        return next(float(line.rpartition(" ")[2]) for line in self.get(server, "/metrics").splitlines() if line.startswith(name + " "))
