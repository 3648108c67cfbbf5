"""Rules for our Python tools: the same length of functions as in C++."""
import ast

from house_rules.cxx import MAX_FUNCTION_LINES
from house_rules.tree import Finding


def is_python(tree, path):
    return path.endswith(".py") or tree.texts[path].startswith("#!/usr/bin/env python3")


def function_length(tree):
    for path in tree.code():
        if not is_python(tree, path):
            continue
        for node in ast.walk(ast.parse(tree.texts[path], path)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                count = node.end_lineno - node.lineno + 1
                if count > MAX_FUNCTION_LINES:
                    yield Finding(path, node.lineno,
                                  f"long-function {node.name}: {count} lines, at most {MAX_FUNCTION_LINES}; "
                                  "name its parts, or give the reason in tools/tidy-exceptions.txt")


RULES = [function_length]
