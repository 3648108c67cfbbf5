"""A server whose own clock is set: all servers go by Redis's clock, so nothing is early, no lease ends, and nothing stalls."""
import mmap
import os
import pathlib
import struct
import subprocess
import sys

import harness
from harness import now_ms
from redis_harness import RedisTest, ids

SKIPPED = 77
HOUR = 3_600

# Adds the seconds in a file to the clock that people set. Other clocks are as they are.
SHIFTED_CLOCK = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static volatile long long* seconds;
__attribute__((constructor)) static void begin(void) {
  const char* name = getenv("SHIFTED_CLOCK");
  int file = name ? open(name, O_RDONLY) : -1;
  if (file < 0) return;
  void* found = mmap(0, sizeof(long long), PROT_READ, MAP_SHARED, file, 0);
  if (found != MAP_FAILED) seconds = found;
  close(file);
}
int clock_gettime(clockid_t id, struct timespec* time) {
  int result = (int)syscall(SYS_clock_gettime, id, time);
  if (result == 0 && id == CLOCK_REALTIME && seconds) time->tv_sec += *seconds;
  return result;
}
"""


class OwnClock(RedisTest):
    def setUp(self):
        super().setUp()
        source, self.library = self.directory / "clock.c", self.directory / "clock.so"
        source.write_text(SHIFTED_CLOCK)
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", str(self.library), str(source)], check=True)
        file = self.directory / "seconds"
        file.write_bytes(bytes(8))
        with file.open("r+b") as opened:
            self.seconds = mmap.mmap(opened.fileno(), 8)
        self.addCleanup(self.seconds.close)
        self.start()
        own = {"LD_PRELOAD": str(self.library), "SHIFTED_CLOCK": str(file)}
        os.environ.update(own)
        try:
            self.set_server = self.over()
        finally:
            for name in own:
                del os.environ[name]
        self.at_set, self.at_other = self.connect(self.set_server), self.connect(self.over())

    def set_clock(self, seconds):
        self.seconds[:] = struct.pack("q", seconds)

    def turn(self):
        """A job falls due at the server whose clock is set: by then it has looked at all that is due."""
        begin = now_ms()
        self.at_set.ask("PUSH", "turn", "300ms", "x")
        job = self.pops(self.at_set, "turn", "WAIT", "30s")[0]
        self.assertGreaterEqual(now_ms() - begin, 295)
        self.assertLess(now_ms() - begin, 5_000)
        self.assertEqual(self.at_set.ask("ACK", job[0]), 1)

    def test_nothing_is_early_and_no_lease_ends(self):
        self.turn()
        self.at_other.ask("PUSH", "order", "0", "x", "ID", "held")
        held = self.pops(self.at_other, "order", "LEASE", "10m")[0]
        self.at_other.ask("PUSH", "order", "30m", "x", "ID", "later")
        for seconds in (HOUR, -HOUR, 24 * HOUR):
            self.set_clock(seconds)
            self.assertEqual(self.pops(self.at_set, "order"), [], f"set by {seconds} s")
            self.turn()
            self.assertEqual(self.pops(self.at_set, "order", "COUNT", 10), [], f"set by {seconds} s")
        self.set_clock(HOUR)
        self.turn()
        self.assertEqual(self.at_other.ask("ACK", held[0]), 1, "the lease has not ended")
        self.at_set.ask("RESCHEDULE", "order", "later", "0")
        self.assertEqual(ids(self.pops(self.at_other, "order", "WAIT", "10s")), ["later"])


if __name__ == "__main__":
    if os.environ.get("DELAYQ_SANITIZED"):
        print("a sanitizer has to be the first library", file=sys.stderr)
        sys.exit(SKIPPED)
    if not any((pathlib.Path(folder) / "cc").exists() for folder in os.environ.get("PATH", "").split(os.pathsep)):
        print("there is no C compiler", file=sys.stderr)
        sys.exit(SKIPPED)
    harness.main()
