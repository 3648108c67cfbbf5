"""Rules for C++ sources: headers, layers, time, and the length of functions."""
import posixpath
import re

from house_rules.functions import functions
from house_rules.tree import Finding

MAX_FUNCTION_LINES = 70
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]')

# Who may include whom: each layer sees itself and what is listed. "engine" is the contract, src/engine/*.h; a concrete
# engine such as "engine/journal" sees the contract and itself, and only app names it.
SEES = {
    "core": set(),
    "engine": {"core"},
    "engine/*": {"core", "engine"},
    "queue": {"core", "engine", "signing", "calendar", "json"},
    "delivery": {"core", "engine", "queue", "signing", "json", "kafka"},
    "api": {"core", "engine", "queue", "delivery", "resp", "json", "net", "kafka"},
    "resp": {"core"},
    "json": {"core"},
    "calendar": {"core"},
    # librdkafka behind headers of our own.
    "kafka": {"core"},
    # net/redis speaks the Redis protocol.
    "net": {"core", "resp"},
    # Made by delivery, verified by `delayq listen`, which sees nothing of the server.
    "signing": {"core"},
    # Configuration says settings of topics and bounds of the queue, in the queue's own types; logs may be JSON.
    "ops": {"core", "queue", "json", "calendar"},
}
# The kafka engine is the redis engine with another delay stage; both talk to Redis through net/redis/client.h.
EXTRA = {("engine/kafka", "engine/redis"), ("engine/kafka", "kafka"), ("engine/kafka", "net"), ("engine/kafka", "resp"), ("engine/redis", "net"), ("engine/redis", "resp")}

SLEEP = re.compile(r"\bsleep_(for|until)\b|\b(u|nano)?sleep\s*\(")
WALL_CLOCK = re.compile(r"\bsystem_clock::now\b|\bgettimeofday\b|\bclock_gettime\b|\btime\((nullptr|NULL|0)\)")
STEADY_CLOCK = re.compile(r"\bsteady_clock::now\b|\bhigh_resolution_clock::now\b")
TIMELESS = ("src/core/", "src/calendar/", "src/engine/", "src/queue/", "src/delivery/", "src/api/")


def is_test(path):
    return path.endswith("_test.cc") or path.startswith("tests/")


def layer_of(path):
    """src/engine/journal/wheel.h -> engine/journal; src/api/http/x.h -> api; tests/... -> None."""
    parts = path.split("/")
    if parts[0] != "src" or len(parts) < 3:
        return None
    if parts[1] == "engine" and len(parts) > 3:
        return f"engine/{parts[2]}"
    return parts[1]


def may_include(importer, imported):
    if importer == imported or importer == "app" or (importer, imported) in EXTRA:
        return True
    return imported in SEES.get("engine/*" if importer.startswith("engine/") else importer, set())


def includes(tree, path):
    """(line, "<" or quote, name) of each include."""
    for number, line in enumerate(tree.lines(path), 1):
        found = INCLUDE.match(line)
        if found:
            yield number, found[1], found[2]


def resolve(tree, name):
    """The file an include means, or None."""
    return next((path for path in (f"src/{name}", name, f"sdk/cpp/include/{name}") if path in tree.names), None)


def pragma_once(tree):
    for path in tree.paths(".h"):
        if not re.search(r"^#pragma once$", tree.texts[path], re.MULTILINE):
            yield Finding(path, 1, "no #pragma once; add it")


def include_paths(tree):
    for path in tree.paths(".cc", ".h"):
        for number, kind, name in includes(tree, path):
            if kind == '"' and (resolve(tree, name) is None or name.startswith("src/")):
                yield Finding(path, number, f'"{name}" is not a file below src/ (or tests/..., bench/... from the '
                                            'top); include "folder/file.h"')
            if "boost/asio" in name or "boost/beast" in name:
                if layer_of(path) != "net":
                    yield Finding(path, number, "Asio and Beast belong to src/net; use its interface")
            if "librdkafka/" in name and layer_of(path) != "kafka":
                yield Finding(path, number, "librdkafka belongs to src/kafka; use its interface")


def layers(tree):
    for path in tree.paths(".cc", ".h"):
        importer = layer_of(path)
        if importer is None:
            continue
        for number, kind, name in includes(tree, path):
            target = resolve(tree, name) if kind == '"' else None
            if target is None:
                continue
            imported = layer_of(target)
            if imported is None:
                # src/ uses nothing of tests/ or bench/; a unit test may use the shared helpers, and the program has
                # commands that are clients: cli/, and `delayq bench`.
                is_helper = is_test(path) and target.startswith("tests/support/")
                if not is_helper and not (importer == "app" and target.startswith(("cli/", "bench/load/"))):
                    yield Finding(path, number, f"{target} is not part of the product; move what is needed into src/")
            elif not may_include(importer, imported) and not (is_test(path) and imported == "engine/memory"):
                yield Finding(path, number, f"{importer} may not see {imported} (core <- engine <- queue <- delivery "
                                            "<- api <- app); turn the arrow round or pass a value")


def time(tree):
    for path in tree.paths(".cc", ".h"):
        for number, line in enumerate(tree.lines(path), 1):
            code = line.split("//")[0]
            if is_test(path):
                if SLEEP.search(code):
                    yield Finding(path, number, "a test that sleeps; pass the time, or wait for the event")
                if WALL_CLOCK.search(code):
                    yield Finding(path, number, "a test that reads the wall clock; pass a fixed moment")
            elif path.startswith(TIMELESS):
                if SLEEP.search(code) or WALL_CLOCK.search(code) or STEADY_CLOCK.search(code):
                    yield Finding(path, number, "only app reads clocks and sleeps; take the time as an argument")


def function_length(tree):
    for path in tree.paths(".cc", ".h"):
        for name, first, last in functions(tree.texts[path]):
            count = last - first + 1
            if count > MAX_FUNCTION_LINES:
                yield Finding(path, first, f"long-function {name}: {count} lines, at most {MAX_FUNCTION_LINES}; name "
                                           "its parts, or give the reason in tools/tidy-exceptions.txt")


def dead_headers(tree):
    used = set()
    for path in tree.paths(".cc", ".h"):
        for _, kind, name in includes(tree, path):
            is_ours = kind == '"' or name.startswith("delayq/")  # <delayq/...> is the C++ library, as its users include it
            target = resolve(tree, name) if is_ours else None
            if target and target != path:
                used.add(target)
    for path in tree.paths(".h"):
        if path not in used:
            yield Finding(path, 1, "no file includes this header; use it or delete it")


def contract_engines(tree):
    """Every engine is in the contract suite, or the suite proves nothing about it."""
    seen = {resolve(tree, name) for path in tree.paths(".cc", ".h") if path.startswith("tests/contract/")
            for _, kind, name in includes(tree, path) if kind == '"'}
    seen = {layer_of(path) for path in seen if path}
    engines = {}
    for path in tree.paths(".cc", ".h"):
        layer = layer_of(path)
        if layer and layer.startswith("engine/"):
            engines.setdefault(layer, path)
    for layer, path in sorted(engines.items()):
        if layer not in seen:
            folder = posixpath.dirname(path)
            yield Finding(path, 1, f"{folder} is not registered in tests/contract; add it to the engines there")


RULES = [pragma_once, include_paths, layers, time, function_length, dead_headers, contract_engines]
