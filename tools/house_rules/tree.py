"""What the rules look at: the files of the repository, read once, and the findings they report."""
import pathlib
import subprocess
from typing import NamedTuple


class Finding(NamedTuple):
    path: str
    line: int
    what: str  # what is wrong, then what to do

    def __str__(self):
        return f"{self.path}:{self.line}: {self.what}"


class Tree:
    """Path -> text of every text file. Paths are relative to the root, with forward slashes."""

    def __init__(self, texts, names=None):
        self.texts = texts
        # Every file, also those that are not text; folders are implied.
        self.names = set(names if names is not None else texts)
        self.folders = {parent.as_posix() for name in self.names for parent in pathlib.PurePosixPath(name).parents}

    def exists(self, path):
        return path in self.names or path in self.folders

    def paths(self, *suffixes):
        return sorted(path for path in self.texts if path.endswith(suffixes))

    def lines(self, path):
        return self.texts[path].splitlines()

    def scripts(self):
        """Files without a suffix that a shell or Python runs."""
        return sorted(path for path, text in self.texts.items() if text.startswith("#!"))

    def code(self):
        named = self.paths(".cc", ".h", ".py", ".cmake", "CMakeLists.txt", "Makefile")
        return sorted({*named, *self.scripts()})


def is_data(path):
    """Inputs of tests: their bytes are what they are."""
    return "/corpus/" in path or "/golden/" in path


def from_git(root):
    """The files git tracks or would track, as they are on disk now."""
    listing = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                             cwd=root, capture_output=True, check=True).stdout
    names = {name.decode() for name in listing.split(b"\0") if name}
    names = {name for name in names if (root / name).is_file()}
    texts = {}
    for name in names:
        raw = (root / name).read_bytes()
        if b"\0" in raw or is_data(name):
            continue
        try:
            texts[name] = raw.decode()
        except UnicodeDecodeError:
            continue
    return Tree(texts, names)
