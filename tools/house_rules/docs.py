"""Rules for Markdown: links lead somewhere, the two READMEs agree, every decision is listed."""
import posixpath
import re

from house_rules.tree import Finding

MAX_README_LINES = 120
LINK = re.compile(r"\[[^\]]*\]\(\s*<?([^)\s>]+)>?[^)]*\)|^\[[^\]]+\]:\s*(\S+)", re.MULTILINE)
FENCE = re.compile(r"^```.*?^```[ ]*$", re.DOTALL | re.MULTILINE)
HEADING = re.compile(r"^(#{1,6})\s+(.+?)\s*#*$", re.MULTILINE)


def without_code(text):
    """The text with code blanked out, line breaks kept."""
    text = FENCE.sub(lambda found: "\n" * found[0].count("\n"), text)
    return re.sub(r"`[^`\n]*`", lambda found: "`" * len(found[0]), text)


def anchors(text):
    """The anchors that the headings of a page get."""
    seen = {}
    names = set()
    for found in HEADING.finditer(FENCE.sub("", text)):
        title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", found[2])
        name = re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-")
        count = seen.get(name, 0)
        seen[name] = count + 1
        names.add(f"{name}-{count}" if count else name)
    return names


def links(tree):
    for path in tree.paths(".md"):
        text = without_code(tree.texts[path])
        for found in LINK.finditer(text):
            target = found[1] or found[2]
            if re.match(r"[a-z][a-z0-9+.-]*:", target):
                continue
            line = text.count("\n", 0, found.start()) + 1
            name, _, anchor = target.partition("#")
            file = posixpath.normpath(posixpath.join(posixpath.dirname(path), name)) if name else path
            if not tree.exists(file):
                yield Finding(path, line, f"the link leads to {target}, which is not there; correct it")
            elif anchor and file.endswith(".md") and anchor not in anchors(tree.texts[file]):
                yield Finding(path, line, f"no heading of {file} has the anchor #{anchor}; correct it")


def readme_length(tree):
    for path in ("README.md", "README.zh-CN.md"):
        if path in tree.texts and len(tree.lines(path)) > MAX_README_LINES:
            yield Finding(path, len(tree.lines(path)),
                          f"longer than {MAX_README_LINES} lines; move the detail into docs/")


def commands(text):
    """The code blocks without their comments, which may be in another language."""
    blocks = []
    for found in FENCE.finditer(text):
        stripped = [re.sub(r"(^|\s+)(#|//)\s.*$", "", line).rstrip() for line in found[0].splitlines()]
        blocks.append((text.count("\n", 0, found.start()) + 1, [line for line in stripped if line]))
    return blocks


def translations(tree):
    """README.zh-CN.md says the same as README.md: the same headings, the same code."""
    original, translated = "README.md", "README.zh-CN.md"
    if original not in tree.texts:
        return
    if translated not in tree.texts:
        yield Finding(original, 1, f"{translated} is missing; write it beside this file")
        return
    levels = [[len(found[1]) for found in HEADING.finditer(FENCE.sub("", tree.texts[path]))]
              for path in (original, translated)]
    if levels[0] != levels[1]:
        yield Finding(translated, 1, f"{len(levels[1])} headings of levels {levels[1]}, but {original} has "
                                     f"{len(levels[0])} of levels {levels[0]}; make them equal")
    ours, theirs = commands(tree.texts[original]), commands(tree.texts[translated])
    if len(ours) != len(theirs):
        yield Finding(translated, 1, f"{len(theirs)} code blocks, but {original} has {len(ours)}; make them equal")
    for (_, one), (line, other) in zip(ours, theirs):
        if one != other:
            yield Finding(translated, line, f"this code block differs from {original}; make them equal")


def decisions(tree):
    index = tree.texts.get("docs/adr/README.md", "")
    for path in tree.paths(".md"):
        name = posixpath.basename(path)
        if posixpath.dirname(path) != "docs/adr" or name == "README.md":
            continue
        if not re.fullmatch(r"\d{4}-[a-z0-9-]+\.md", name):
            yield Finding(path, 1, "a decision is named 0001-what-it-says.md; rename it")
        if f"({name})" not in index:
            yield Finding(path, 1, "not listed in docs/adr/README.md; add a line there")


RULES = [links, readme_length, translations, decisions]
