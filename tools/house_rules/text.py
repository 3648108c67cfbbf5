"""Rules for any text: size, whitespace, words that do not belong."""
import re

from house_rules.tree import Finding

MAX_LINES = 600
# Written so that this file does not find itself.
LEFT_BEHIND = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|not imple" r"mented|unimple" r"mented|stu" r"bs?)\b")
MACHINE = re.compile(r"(?<![\w.])/(root|farm|work|home/[a-z]\w*)/[\w.]")
# What gofmt writes has tabs, and so have the pages with programs in Go.
GOFMT = re.compile(r"\.go$|go\.mod$|^sdk/go/.*\.md$|^docs/guide/(cookbook|redis-clients)(\.zh-CN)?\.md$")
PACKAGE_HOST = re.compile(
    r"deb\.debian\.org|registry\.npmjs|proxy\.golang|pypi\.org/simple|static\.crates|repo1?\.maven\.")


def length(tree):
    for path in tree.code():
        count = len(tree.lines(path))
        if count > MAX_LINES:
            yield Finding(path, count, f"long-file: {count} lines, at most {MAX_LINES}; cut it by idea, "
                                       "or give the reason in tools/tidy-exceptions.txt")


def whitespace(tree):
    for path, text in sorted(tree.texts.items()):
        for number, line in enumerate(text.split("\n"), 1):
            if line != line.rstrip():
                yield Finding(path, number, "whitespace at the end of the line; remove it")
            if "\t" in line and not path.endswith("Makefile") and not GOFMT.search(path):
                yield Finding(path, number, "a tab; use spaces")
        if text and not text.endswith("\n"):
            yield Finding(path, text.count("\n") + 1, "no newline at the end of the file; add one")


def words(tree):
    for path in tree.code():
        for number, line in enumerate(tree.lines(path), 1):
            found = LEFT_BEHIND.search(line)
            if found:
                yield Finding(path, number, f"'{found[0]}' is left behind; finish it or write an issue")


def machine_paths(tree):
    for path in sorted(tree.texts):
        for number, line in enumerate(tree.lines(path), 1):
            if MACHINE.search(line):
                yield Finding(path, number, "a path of some machine; make it relative or an argument")
            if PACKAGE_HOST.search(line):
                yield Finding(path, number, "a package host; leave it to the user's package manager")


RULES = [length, whitespace, words, machine_paths]
