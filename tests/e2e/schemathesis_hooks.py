"""What schemathesis loads before it asks: a long poll is a request like any other, but nobody has an hour for it. A wait that the
server would accept becomes a short one; one that it must refuse stays as it is."""
import json
import re

import schemathesis

WAIT_MS = 5
UNITS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1, "ms": 0.001, "": 1}


def is_accepted(wait):
    if isinstance(wait, str):
        if not re.fullmatch(r"(\d+(\.\d+)?([dhms]|ms)?)+", wait):
            return False
        wait = sum(float(number) * UNITS[unit] for number, unit in re.findall(r"(\d+(?:\.\d+)?)(ms|[dhms]|)", wait))
    return isinstance(wait, (int, float)) and not isinstance(wait, bool) and 0 < wait <= 3600


@schemathesis.serializer("application/x-ndjson")
def lines(_context, value):
    items = value if isinstance(value, list) else [value]
    return "".join(json.dumps(item) + "\n" for item in items).encode()


@schemathesis.hook
def before_call(_context, case, _kwargs):
    if isinstance(case.body, dict) and is_accepted(case.body.get("wait")):
        case.body["wait"] = f"{WAIT_MS}ms"
