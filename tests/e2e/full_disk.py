"""A small filesystem that fills up: pushes are refused, the rest goes on, and pushes work again when there is room.
Runs itself again in a mount namespace of its own, where it may mount one."""
import http.client
import json
import os
import pathlib
import subprocess
import sys
import time
from contextlib import suppress

import harness
from harness import Refused

SIZE_MIB = 48
CANNOT = 77  # what ctest takes for "skipped"


def in_own_namespace():
    for unshare in (["unshare", "--mount"], ["unshare", "--map-root-user", "--mount"]):
        if subprocess.run([*unshare, "true"], check=False, stderr=subprocess.DEVNULL).returncode == 0:
            os.environ["DELAYQ_IN_NAMESPACE"] = "1"
            os.execvp(unshare[0], [*unshare, sys.executable, *sys.argv])
    print("full_disk: this system lets nobody mount anything")
    sys.exit(CANNOT)


class FullDisk(harness.ServerTest):
    def setUp(self):
        super().setUp()
        mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE_MIB}m", "none", str(self.directory)]
        if subprocess.run(mount, check=False).returncode != 0:
            sys.exit(CANNOT)
        self.addCleanup(subprocess.run, ["umount", "--lazy", str(self.directory)], check=False)
        self.server = self.serve("--set", "journal.segment=1MiB", "--set", "journal.disk_reserve=12MiB", "--set",
                                 "server.grace=1s")
        self.client = self.connect(self.server)
        self.pushed = 0

    def fill(self):
        """As another program would: all there is."""
        filler = pathlib.Path(self.directory) / "filler"
        with open(filler, "wb", buffering=0) as file, suppress(OSError):
            while file.write(b"x" * 4096):
                pass
        return filler

    def push_until_refused(self):
        body = "x" * 4000
        while True:
            ids = [f"job-{self.pushed + i}" for i in range(100)]
            replies = self.client.ask_all([("PUSH", "t", "1h", body, "ID", name) for name in ids])
            refusals = [reply for reply in replies if isinstance(reply, Refused)]
            self.pushed += len(ids) - len(refusals)
            if refusals:
                return refusals
            self.assertLess(self.pushed * len(body), SIZE_MIB << 20, "more than there is room for")

    def readiness(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.http_port, timeout=harness.DEADLINE)
        self.addCleanup(connection.close)
        connection.request("GET", "/readyz")
        response = connection.getresponse()
        return response.status, json.loads(response.read()).get("code")

    def test_pushes_are_refused_and_work_again(self):
        refusals = self.push_until_refused()
        for refusal in refusals:
            self.assertEqual(refusal.code, "DISKFULL")
        self.assertGreater(self.pushed, 1000)

        self.assertEqual(self.readiness(), (507, "disk_full"))

        # The rest goes on.
        self.assertEqual(self.client.ask("RESCHEDULE", "t", "job-0", "0"), "OK")
        job = self.client.ask("POP", "t", "WAIT", "10s")[0]
        self.assertEqual(self.client.ask("ACK", job[0]), 1)
        self.assertEqual(self.client.stats()["delayed"], self.pushed - 1)

        # Cancelling makes room, by itself.
        for first in range(1, self.pushed - 100, 100):
            replies = self.client.ask_all([("CANCEL", "t", f"job-{i}") for i in range(first, first + 100)])
            self.assertEqual(set(replies), {"cancelled"})
        self.wait_for(lambda: not isinstance(self.client.ask_all([("PUSH", "t", "1h", "again", "ID", "again")])[0],
                                               Refused), "pushes work again")
        self.assertEqual(self.readiness(), (200, None))

        # And nothing of this was forgotten.
        self.server.kill()
        self.server.start()
        client = self.connect(self.server)
        self.assertIsNotNone(client.ask("GET", "t", "again"))
        self.assertIsNone(client.ask("GET", "t", "job-1"))
        self.assertIsNotNone(client.ask("GET", "t", f"job-{self.pushed - 1}"))

    def test_room_that_another_program_took_and_gave_back(self):
        self.client.ask("PUSH", "t", "1h", "b", "ID", "first")
        filler = self.fill()
        self.wait_for(lambda: isinstance(self.client.ask_all([("PUSH", "t", "1h", "b")])[0], Refused), "it is noticed")
        # The journal's own segment has room for a while; then an ack can only wait.
        waiting = self.connect(self.server)
        waiting.send(*[("RESCHEDULE", "t", "first", "2h")] * 40_000)
        filler.unlink()
        self.assertEqual({waiting.read() for _ in range(40_000)}, {"OK"})
        self.wait_for(lambda: not isinstance(self.client.ask_all([("PUSH", "t", "1h", "b")])[0], Refused),
                        "pushes work again")

    def test_a_stop_does_not_wait_for_room_and_says_what_it_gave_up(self):
        self.client.ask("PUSH", "t", "1h", "b", "ID", "first")
        self.client.ask("PUSH", "t", "0", "b", "ID", "second")
        self.fill()
        waiting = self.connect(self.server)
        waiting.send(*[("RESCHEDULE", "t", "first", "2h")] * 40_000)  # more than the segment has room for
        began = time.monotonic()
        code, said = self.server.stop()
        self.assertLess(time.monotonic() - began, 30, "a second of grace, 12 for the disk")
        self.assertNotEqual(code, 0, said)
        self.assertIn("stopped without a flush, which was given up: no answer within 10 s", said)
        self.assertIn("have to be pushed again", said)

        # What was answered is there.
        (pathlib.Path(self.directory) / "filler").unlink()
        self.server.start()
        client = self.connect(self.server)
        self.assertIsNotNone(client.ask("GET", "t", "first"))
        self.assertEqual(client.ask("POP", "t")[0][2], b"second")

    def test_a_start_without_room_says_what_to_do_and_works_with_room(self):
        self.client.ask("PUSH", "t", "0", "b", "ID", "first")
        self.server.kill()
        filler = self.fill()
        files = len(os.listdir(pathlib.Path(self.directory) / "data"))
        with self.assertRaises(AssertionError) as caught:
            self.server.start()
        said = str(caught.exception)
        self.assertIn(f"{self.directory}/data has no room for a segment of 1 MiB", said)
        self.assertIn("make room, or set journal.segment to less", said)
        self.assertEqual(self.server.process.returncode, 8, "the exit code of a full disk")
        self.assertLessEqual(len(os.listdir(pathlib.Path(self.directory) / "data")), files + 1)
        filler.unlink()
        self.server.start()
        self.assertEqual(self.connect(self.server).ask("POP", "t")[0][2], b"first")


if __name__ == "__main__":
    if "DELAYQ_IN_NAMESPACE" not in os.environ:
        in_own_namespace()
    harness.main()
