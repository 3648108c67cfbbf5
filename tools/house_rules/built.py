"""Rules that need to know what CMake builds."""
import json

from house_rules.tree import Finding


def compiled(database, root):
    """The sources in a compilation database, relative to the root."""
    paths = set()
    for entry in json.loads(database.read_text()):
        name = entry["file"]
        if name.startswith(f"{root}/"):
            paths.add(name[len(str(root)) + 1:])
    return paths


def dead_sources(tree, sources):
    for path in tree.paths(".cc"):
        if path not in sources:
            yield Finding(path, 1, "in no CMake target, so it is never compiled; name it by the folder's rules "
                                   "(cmake/Targets.cmake) or delete it")
