"""An installed copy of the library: builds the examples with find_package, and every program of the README with pkg-config,
and runs them. A program is over when it has printed what the README says; those that go on are stopped as a user would."""
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
import harness  # noqa: E402

BUILD = pathlib.Path(os.environ["DELAYQ_BUILD"])
COMPILER = os.environ.get("CXX", "g++")
README = ROOT / "sdk" / "cpp" / "README.md"
PROGRAM = re.compile(r"```cpp\n(.*?)```\n(?:```sh\n.*?```\n)?```text\n(.*?)```", re.DOTALL)


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], text=True, capture_output=True, timeout=harness.DEADLINE, check=False, **options)
    if done.returncode != 0:
        raise AssertionError(f"{command}: {done.stdout}{done.stderr}")
    return done.stdout


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="delayq-installed-")
        cls.addClassCleanup(cls.folder.cleanup)
        cls.work = pathlib.Path(cls.folder.name)
        cls.prefix = cls.work / "prefix"
        run("cmake", "--install", BUILD, "--component", "libdelayq", "--prefix", cls.prefix)
        library = next(cls.prefix.rglob("libdelayq.so")).parent
        cls.environment = {**os.environ, "LD_LIBRARY_PATH": str(library), "PKG_CONFIG_PATH": str(library / "pkgconfig")}
        cls.server = harness.Server(cls.work / "server")
        cls.addClassCleanup(cls.server.close)
        cls.address = f"127.0.0.1:{cls.server.port}"

    def expect(self, program, *arguments, output):
        """Runs a program until it has printed these lines."""
        process = subprocess.Popen([program, *arguments], stdout=subprocess.PIPE, text=True, env=self.environment, cwd=self.work)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.kill)
        for line in output.splitlines():
            self.assertEqual(process.stdout.readline().rstrip("\n"), line)
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        code = process.wait(harness.DEADLINE)
        self.assertIn(code, (0, -signal.SIGTERM))
        if "run_until_signal" in self.source:
            self.assertEqual(code, 0, "it was not stopped gracefully")

    def test_programs_of_the_readme(self):
        flags = run("pkg-config", "--cflags", "--libs", "delayq", env=self.environment).split()
        found = PROGRAM.findall(README.read_text())
        self.assertEqual(len(found), README.read_text().count("```cpp"), "a program without its output")
        compilers = []
        for number, (source, output) in enumerate(found):
            name = self.work / f"program{number}"
            name.with_suffix(".cc").write_text(source.replace("127.0.0.1:9278", self.address))
            compilers.append((subprocess.Popen([COMPILER, "-std=c++20", "-Wall", "-Wextra", f"{name}.cc", *flags, "-o", name]),
                              name, source, output))
        for compiler, name, self.source, output in compilers:
            self.assertEqual(compiler.wait(harness.DEADLINE), 0)
            self.expect(name, output=output)
        lines = [line for line in found[0][0].splitlines() if line.strip()]
        self.assertLessEqual(len(lines), 15, "the first program is too long")

    def test_examples_with_find_package(self):
        build = self.work / "examples"
        run("cmake", "-S", ROOT / "sdk" / "cpp" / "examples", "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}", f"-DCMAKE_CXX_COMPILER={COMPILER}")
        run("cmake", "--build", build)
        self.source = ""
        self.expect(build / "order", self.work / "orders", output="close order:1")
        self.assertIn("attempt 2: greylisted", run(build / "middleware", self.work / "mails", env=self.environment))

    def test_only_public_names_are_exported(self):
        library = next(self.prefix.rglob("libdelayq.so"))
        names = [line.split(" ", 2)[2] for line in run("nm", "-DC", "--defined-only", library).splitlines()]
        self.assertTrue(any("delayq::v1::Client::enqueue" in name for name in names))
        self.assertEqual([name for name in names if "delayq::v1::" not in name and name != "DELAYQ_1"], [])


if __name__ == "__main__":
    unittest.main()
