"""Finds the functions of a C++ file without a compiler: enough to measure their length in formatted code."""
import re

# A string, a comment or a character literal; the digit separator of 1'000 is none of them.
TOKEN = re.compile(
    r'R"(?P<tag>[^()\s\\]{0,16})\(.*?\)(?P=tag)"'
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'"
    r"|//[^\n]*"
    r"|/\*.*?\*/"
    r"|^[ \t]*\#(?:\\\n|[^\n])*",
    re.DOTALL | re.MULTILINE)
SCOPE = re.compile(r"^(?:inline\s+)?(?:namespace|class|struct|union|enum)\b")
AFTER_PARAMETERS = re.compile(
    r"\)\s*(?:(?:const|override|final|mutable|try|&&?|noexcept(?:\s*\(\))?|requires\b.*)\s*)*(?:->.*)?$", re.DOTALL)


def blank(text):
    """The text with comments, literals and preprocessor lines emptied, line breaks kept."""
    return TOKEN.sub(lambda found: "\n" * found[0].count("\n"), text)


def collapse(head):
    """A head without what stands in parentheses, and without template<...> in front."""
    shorter = None
    while shorter != head:
        shorter, head = head, re.sub(r"\([^()]+\)", "()", head)
    head = head.strip()
    while head.startswith("template"):
        depth, end = 0, len(head)
        for at, character in enumerate(head):
            depth += (character == "<") - (character == ">")
            if character == ">" and depth == 0:
                end = at + 1
                break
        head = head[end:].strip()
    return re.sub(r"\[\[.*?\]\]\s*", "", head)


def opens_function(head):
    head = collapse(head)
    if "()" not in head or SCOPE.match(head):
        return False
    before = head.split("()")[0]
    if "=" in before and "operator" not in before:
        return False
    # A constructor's initialisers: a name before the brace is one more initialiser, anything else opens the body.
    initialisers = re.search(r"\)\s*(?:noexcept\s*)?:(?!:)", head)
    if initialisers:
        return head.endswith((")", "}"))
    return bool(AFTER_PARAMETERS.search(head))


def name_of(head):
    found = re.search(r"([\w:~]+|operator\S+)\s*\(([^()]*)", head)
    if not found:
        return "?"
    arguments = re.sub(r"\s", "", found[2])
    return f"{found[1]}({arguments})" if found[1].startswith("TEST") else found[1]


def functions(text):
    """(name, first line, last line) of each function; a lambda counts as part of the function it is in."""
    code = blank(text)
    stack = []  # what each open brace is: "scope", "value", or (name, line) of a function
    head, line, head_line = "", 1, None
    inside = 0  # how many open braces belong to a function body
    for character in code:
        if character == "{":
            if inside:
                inside += 1
                stack.append("body")
            elif opens_function(head):
                inside = 1
                stack.append((name_of(collapse_template(head)), head_line or line))
            else:
                is_scope = SCOPE.match(collapse(head)) or head.strip() == "" or head.strip().startswith("extern")
                stack.append("scope" if is_scope else ("value", head, head_line))
            head, head_line = "", None
        elif character == "}":
            opened = stack.pop() if stack else "scope"
            head, head_line = "", None
            if inside:
                inside -= 1
                if inside == 0:
                    yield opened[0], opened[1], line
            elif opened[0] == "value":
                head, head_line = opened[1] + "{}", opened[2]
        elif character == ";":
            head, head_line = "", None
        elif not inside:
            if head_line is None and not character.isspace():
                head_line = line
            head += character
            if character == ":" and head.strip() in ("public:", "private:", "protected:"):
                head, head_line = "", None
        line += character == "\n"


def collapse_template(head):
    """The head as written, without template<...>: for the name."""
    return re.sub(r"^\s*template\s*<[^(]*?>\s*(?=[\w\[:~])", "", head)
