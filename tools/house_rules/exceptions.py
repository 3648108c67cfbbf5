"""tools/tidy-exceptions.txt: what may be long, and why. A line is `long-file PATH REASON...` or
`long-function PATH:NAME REASON...`; an exception that is not needed any more is a finding itself."""
from house_rules.tree import Finding

FILE = "tools/tidy-exceptions.txt"


def subject(finding):
    """`long-file src/x.cc`, `long-function src/x.cc:name`, or None for what has no exceptions."""
    words = finding.what.split(":")[0].split(" ", 1)
    if words[0] == "long-file":
        return f"long-file {finding.path}"
    if words[0] == "long-function":
        # The name may hold a scope's colons.
        name = finding.what.split(" ", 1)[1].rsplit(": ", 1)[0]
        return f"long-function {finding.path}:{name}"
    return None


def apply(tree, findings):
    """The findings without those that are excepted, and with what is wrong in the list of exceptions."""
    allowed = {}
    for number, line in enumerate(tree.lines(FILE) if FILE in tree.texts else [], 1):
        if not line.strip() or line.startswith("#"):
            continue
        words = line.split(maxsplit=2)
        if len(words) < 3:
            yield Finding(FILE, number, "an exception without a reason; say why")
        else:
            allowed[f"{words[0]} {words[1]}"] = number
    used = set()
    for finding in findings:
        key = subject(finding)
        if key in allowed:
            used.add(key)
        else:
            yield finding
    for key in allowed.keys() - used:
        yield Finding(FILE, allowed[key], f"'{key}' is not needed any more; remove the line")
