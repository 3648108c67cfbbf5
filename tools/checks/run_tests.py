"""Runs the tests of a preset that have not passed yet as they are.

    run_tests.py PRESET [CTEST-OPTION...]        -L and -LE choose among the preset's tests

A test that passed is run again when its program, its command or its environment changed, or any file of the repository
that is not compiled (scripts, documents, corpora, settings). FRESH=1 runs all of them. What passed is remembered in the
build directory, so a new clone knows nothing.
"""
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def surroundings():
    """Changes with every file that a test may read and that is no part of a program."""
    names = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                           capture_output=True, check=True).stdout.split(b"\0")
    digest = hashlib.sha256()
    for name in sorted(filter(None, names)):
        path = ROOT / os.fsdecode(name)
        if not name.endswith((b".cc", b".h")) and path.is_file():
            digest.update(name + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return digest.digest()


def programs_of(command, environment):
    """The files that make a test: those of its command and of its environment that were built."""
    words = [*command, *(value.split("=", 1)[-1] for value in environment)]
    return sorted({word for word in words if word.startswith(str(ROOT / "build")) and os.path.isfile(word)})


def keys_of(described):
    """Test -> what it depends on, as a hash."""
    around, keys, hashed = surroundings(), {}, {}
    for test in described["tests"]:
        command = test.get("command", [])
        environment = next((p["value"] for p in test["properties"] if p["name"] == "ENVIRONMENT"), [])
        digest = hashlib.sha256(around + json.dumps([command, environment]).encode())
        for program in programs_of(command, environment):
            if not program.endswith(".json"):
                if program not in hashed:
                    hashed[program] = hashlib.sha256(pathlib.Path(program).read_bytes()).digest()
                digest.update(hashed[program])
        keys[test["name"]] = digest.hexdigest()
    return keys


def passed_in(report):
    """The tests that a JUnit report of ctest says were run with success."""
    if not report.is_file():
        return []
    return [case.get("name") for case in xml.etree.ElementTree.parse(report).iter("testcase") if case.get("status") == "run"]


def main(preset, options):
    build = ROOT / "build" / preset
    report, memory = build / "test-times" / "ctest.xml", build / "passed-tests.json"
    ctest = ["ctest", "--preset", preset, *options]
    described = json.loads(subprocess.run([*ctest, "--show-only=json-v1"], cwd=ROOT, capture_output=True, check=True).stdout)
    keys = keys_of(described)
    if not keys:
        sys.exit(f"run_tests: {' '.join(options)} chooses no test of {preset}")
    known = json.loads(memory.read_text()) if memory.is_file() and not os.environ.get("FRESH") else {}
    unchanged = [name for name, key in keys.items() if known.get(name) == key]
    if len(unchanged) == len(keys):
        print(f"{len(keys)} tests, all passed before and unchanged")
        return 0
    skip = ["-E", f"^({'|'.join(map(re.escape, unchanged))})$"] if unchanged else []
    report.parent.mkdir(parents=True, exist_ok=True)
    report.unlink(missing_ok=True)
    code = subprocess.run([*ctest, *skip, "--output-junit", str(report)], cwd=ROOT, check=False).returncode
    known.update({name: keys[name] for name in passed_in(report) if name in keys})
    memory.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
    if code == 0:
        before = f", {len(unchanged)} passed before and unchanged" if unchanged else ""
        print(f"{len(keys)} tests{before}")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
