"""sdk/check, with libraries that are a line of shell."""
from __future__ import annotations

import os
import pathlib
import shutil
import subprocess

import pytest
from support import DEADLINE, ROOT


class Tree:
    """A repository that has only sdk/check."""

    def __init__(self, top: pathlib.Path) -> None:
        self._top = top
        (top / "sdk").mkdir()
        shutil.copy(ROOT / "sdk" / "check", top / "sdk" / "check")

    def add(self, language: str, script: str | None) -> None:
        folder = self._top / "sdk" / language
        folder.mkdir()
        if script is not None:
            (folder / "check").write_text(f"#!/bin/sh\n{script}\n")
            (folder / "check").chmod(0o755)

    def check(self, *languages: str, server: str = "/usr/bin/true") -> tuple[int, str]:
        done = subprocess.run([self._top / "sdk" / "check", *languages], capture_output=True, text=True, timeout=DEADLINE,
                              env={**os.environ, "DELAYQ": server})
        return done.returncode, done.stdout + done.stderr


@pytest.fixture
def tree(tmp_path: pathlib.Path) -> Tree:
    return Tree(tmp_path)


def test_those_that_are_there_are_checked(tree: Tree) -> None:
    tree.add("go", 'echo 7 tests; echo "with $DELAYQ"')
    tree.add("php", "true")
    code, said = tree.check()
    assert code == 0 and "with /usr/bin/true" in said and "7 tests" not in said and "2 of 2 libraries passed" in said


def test_one_that_fails_is_shown_and_the_others_go_on(tree: Tree) -> None:
    tree.add("go", "echo what is wrong; exit 3")
    tree.add("php", "echo fine")
    code, said = tree.check()
    assert code == 1 and "what is wrong" in said and "exit code 3" in said and "fine" in said and "1 of 2 libraries passed" in said


def test_one_that_is_absent_is_an_error_only_by_name(tree: Tree) -> None:
    tree.add("go", "true")
    assert tree.check()[0] == 0
    code, said = tree.check("node", "go")
    assert code == 1 and "sdk/node/check is missing" in said and "1 of 2 libraries passed" in said
    assert tree.check("rust")[0] == 2


def test_a_folder_without_a_check_is_an_error(tree: Tree) -> None:
    tree.add("cpp", None)
    assert tree.check()[0] == 1


def test_no_library_and_no_server_are_errors(tree: Tree) -> None:
    assert tree.check()[0] == 2
    tree.add("go", "true")
    assert tree.check(server="/nowhere")[0] == 2
