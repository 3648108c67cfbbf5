"""Which tests ran and what they took: GoogleTest's own times of each case, and ctest's of whatever else it ran."""
import json
import pathlib
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SHOWN = 10


def times_folder(preset):
    """Where the test binaries of a preset (cmake/Targets.cmake) and ctest write what they took."""
    return ROOT / "build" / preset / "test-times"


def forget(presets):
    for preset in presets:
        for old in times_folder(preset).glob("*.*"):
            old.unlink()


def cases_of_googletest(path):
    for suite in json.loads(path.read_text())["testsuites"]:
        for case in suite["testsuite"]:
            if case["result"] == "COMPLETED":
                yield float(case["time"].rstrip("s")), f"{path.stem}: {suite['name']}.{case['name']}"


def cases_of_ctest(path):
    for case in xml.etree.ElementTree.parse(path).iter("testcase"):
        if case.get("status") == "run":
            yield float(case.get("time")), case.get("name")


def cases(presets):
    """All that ran since forget(), as (seconds, preset, name); the cases of a binary instead of the binary."""
    found = []
    for preset in presets:
        folder = times_folder(preset)
        binaries = {path.stem for path in folder.glob("*.json")}
        for path in folder.glob("*.json"):
            found += [(seconds, preset, name) for seconds, name in cases_of_googletest(path)]
        for path in folder.glob("*.xml"):
            found += [(seconds, preset, name) for seconds, name in cases_of_ctest(path) if name not in binaries]
    return found


def tell(presets):
    """Prints the slowest tests of the last run and how many there were."""
    found = sorted(cases(presets), reverse=True)
    if not found:
        return
    print("slowest tests:")
    for seconds, preset, name in found[:SHOWN]:
        print(f"  {seconds:6.1f} s  {preset:<8} {name}")
    print(f"{len(found)} passed, 0 failed")
