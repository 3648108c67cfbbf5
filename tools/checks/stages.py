"""The stages of `make test` and `make test-deep`: what each runs, and what it is for."""
import dataclasses
import os

JOBS = os.environ.get("JOBS") or str(os.cpu_count())
PYTHON = "/usr/bin/python3 -B"


@dataclasses.dataclass(frozen=True)
class Step:
    name: str
    command: str
    environment: dict = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Stage:
    name: str
    what: str
    steps: tuple


def build(preset, *targets):
    chosen = f"--target {' '.join(targets)}" if targets else ""
    return Step("build", f"cmake --preset {preset} && cmake --build --preset {preset} {chosen} -j {JOBS} -- --quiet")


def tests(preset, selection, before="", **environment):
    """`selection`: ctest's -L and -LE. More tests at once than there are cores: many wait for a server or a disk."""
    return Step("tests", f"{before} {PYTHON} tools/checks/run_tests.py {preset} -j {int(JOBS) + 2} {selection}", environment)


# gcc 12's ThreadSanitizer cannot place its shadow under some kernels' address space randomisation.
STEADY = "$(setarch -R true 2>/dev/null && echo setarch -R)"
FORMAT = ("git ls-files --cached --others --exclude-standard -- '*.cc' '*.h' | while read -r file; do "
          "[ ! -f \"$file\" ] || printf '%s\\n' \"$file\"; done | xargs -r clang-format-14 --dry-run -Werror")
TIDY = f"cmake --preset dev && {PYTHON} tools/tidy_test.py && {PYTHON} tools/reference --check && tools/tidy"

# What the end-to-end tests and the simulators run.
PROGRAMS = ("delayq", "simulate", "occurrences", "sdk_cpp_tests")

TEST_PRESETS = ("release", "asan", "tsan")

QUICK = (
    Stage("tidy", "house rules; the reference pages are what their sources say", (Step("", TIDY),)),
    Stage("format", "clang-format", (Step("", FORMAT),)),
    Stage("clang-tidy", "clang-tidy over what changed since the merge base, and what includes it",
          (Step("", "cmake --preset dev && tools/analyse --changed"),)),
    Stage("release", "the program that users run, end to end; the simulator and its canaries",
          (build("release", *PROGRAMS), tests("release", "-L 'e2e|simulation' -LE 'unit|deep'"))),
    Stage("asan", "unit tests, the contract on every engine, the simulator of connections and the fuzzers' corpora, "
                  "under address and undefined sanitizers",
          (build("asan", "delayq_unit_tests", "simulate"), tests("asan", "-L 'unit|connections'"))),
    Stage("tsan", "tests that start threads, under the thread sanitizer",
          (build("tsan"), tests("tsan", "-L unit", STEADY))),
)


def end_to_end(preset, before=""):
    return (build(preset, *PROGRAMS), tests(preset, "-L 'e2e|simulation' -LE 'unit|deep'", before))


def script(path, **environment):
    return Step("run", f"{PYTHON} {path}", environment)


DEEP = (
    Stage("unit", "unit tests, the contract and a second of every benchmark, optimised as users run it",
          (build("release"), tests("release", "-L 'unit|bench'"))),
    Stage("broker", "the contract suite with the kafka engine over a real broker",
          (build("release", "contract_test"), tests("release", "-L broker"))),
    Stage("kills", "the server killed 50 times under load",
          (build("release", "delayq"), script("tests/e2e/crash_loop.py", DELAYQ_KILLS="50"))),
    Stage("package", "the Debian package installed, upgraded and removed in a system of its own; the Dockerfile carried out in a bare Debian",
          (build("release", "delayq"), Step("deb", f"{PYTHON} tests/e2e/package_test.py"),
           Step("container", f"{PYTHON} tests/e2e/container_test.py"), Step("manifests", f"{PYTHON} tests/e2e/manifests_test.py"))),
    Stage("simulation", "20,000 seeds of the simulator, and 5,000 of connections",
          (build("release", "simulate"), Step("disks", "build/release/simulate --seeds 1-20000"),
           Step("connections", "build/release/simulate --connections --seeds 1-5000"))),
    Stage("chaos", "servers, Redises and Kafka brokers killed and slots moved under load; every planted violation is found",
          (build("release", "delayq"), script("tests/e2e/chaos_test.py", DELAYQ_DEEP="1"),
           Step("slots", f"{PYTHON} tests/e2e/redis_slots_test.py"))),
    Stage("model", "random verbs over both protocols and every engine, with kill -9; each answer is compared with the documents",
          (build("release", "delayq"), script("tests/model/run.py --engine all --seeds 1-40 --calls 1500 --seconds 600"))),
    Stage("schemathesis", "what the OpenAPI description allows and more, 300 examples of each call",
          (build("release", "delayq"), script("tests/e2e/schemathesis_test.py", DELAYQ_SCHEMATHESIS_EXAMPLES="300"))),
    Stage("calendar", "20,000 random cron rules around clock changes in 12 zones, compared with croniter and with Python's zoneinfo",
          (build("release", "occurrences"),
           Step("run", "tools/pypi croniter python tests/calendar/croniter_test.py build/release/occurrences", {"DELAYQ_CALENDAR_RULES": "20000"}))),
    Stage("fuzz", "every fuzzer for 20 seconds",
          (Step("build", f"cmake --preset fuzz -DDELAYQ_FUZZ_SECONDS=20 && cmake --build --preset fuzz -j {JOBS} -- --quiet"),
           Step("tests", f"ctest --preset fuzz -j {JOBS}"))),
    Stage("asan-e2e", "the end-to-end tests under address and undefined sanitizers", end_to_end("asan")),
    Stage("tsan-e2e", "the end-to-end tests under the thread sanitizer", end_to_end("tsan", STEADY)),
    Stage("sdk", "the client libraries in five languages: lint, scenarios and robustness against a real server, packages; the cookbook, and Redis clients",
          (Step("setup", "tools/setup sdk"), build("release", "delayq"), Step("run", "sdk/check", {"DELAYQ_SDK_DEEP": "1"}),
           Step("cookbook", f"tools/maven tests/kafka --install && {PYTHON} tests/e2e/cookbook_test.py", {"DELAYQ_PAGES": "Go,Node.js,PHP"}),
           Step("redis-clients", f"{PYTHON} tests/e2e/redis_clients_test.py", {"DELAYQ_PAGES": "go-redis,ioredis,node-redis,Jedis"}))),
    Stage("clang-tidy", "clang-tidy over everything", (Step("", "cmake --preset dev && tools/analyse"),)),
)

# Deep stages that guard a folder: who changes it is told that they are due.
GUARDS = {
    "src/net/": ("asan-e2e", "fuzz"),
    "sdk/": ("sdk",),
    "docs/guide/cookbook": ("sdk",),
    "docs/guide/redis-clients": ("sdk",),
    "tests/clients/": ("sdk",),
    "src/api/resp/": ("sdk",),
    "src/api/": ("asan-e2e", "fuzz", "schemathesis", "model"),
    "src/calendar/": ("calendar", "fuzz"),
    "src/queue/": ("model", "simulation"),
    "src/engine/journal/": ("kills", "simulation", "fuzz", "model"),
    "src/engine/redis/": ("chaos", "model"),
    "src/engine/kafka/": ("broker", "chaos"),
    "src/kafka/": ("broker", "chaos"),
    "src/api/kafka/": ("chaos",),
    "src/delivery/": ("tsan-e2e",),
    "packaging/": ("package",),
}
