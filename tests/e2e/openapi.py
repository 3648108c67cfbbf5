"""The API's own description, to hold real answers against: no answer may be outside of it, and nothing may be in it that no
answer has."""
import json
import re

import jsonschema
import yaml

import harness

FILE = harness.ROOT / "src" / "api" / "http" / "openapi.yaml"
METHODS = ("get", "put", "post", "delete", "patch")
JSON = "application/json"
PROBLEM = "application/problem+json"
LINES = "application/x-ndjson"


def value_of(kind, body):
    """What an answer says."""
    if kind == LINES:
        return [json.loads(line) for line in body.splitlines()]
    if kind.startswith("text/"):
        return body.decode()
    return json.loads(body) if kind.endswith("json") else yaml.safe_load(body)


class Description:
    def __init__(self):
        self.api = yaml.safe_load(FILE.read_bytes())
        self.resolver = jsonschema.RefResolver("", self.api)
        self.seen = set()

    # ---- what is in it

    def resolve(self, node):
        return self.resolve(self.resolver.resolve(node["$ref"])[1]) if "$ref" in node else node

    def operations(self):
        """(method, path, operation) of each call."""
        for path, item in self.api["paths"].items():
            for method in METHODS:
                if method in item:
                    yield method.upper(), path, item[method]

    def parameters(self, path, operation, place):
        every = self.api["paths"][path].get("parameters", []) + operation.get("parameters", [])
        return [one for one in map(self.resolve, every) if one["in"] == place]

    def example_target(self, path, operation):
        """The path with the examples of its parameters."""
        for one in self.parameters(path, operation, "path"):
            path = path.replace(f"{{{one['name']}}}", str(one["example"]))
        return path

    def find(self, method, target):
        """The call that a request is, or None."""
        parts = target.split("?")[0].rstrip("/")
        for known, path, operation in self.operations():
            pattern = re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(path))
            if known == method and re.fullmatch(pattern, parts):
                return operation
        return None

    # ---- answers

    def check(self, method, target, response, body):
        """Fails when the answer is not one that the description has. `response` is http.client's."""
        said = f"{method} {target} -> {response.status} {body[:300]}"
        operation = self.find("GET" if method == "HEAD" else method, target)
        if operation is None:
            assert response.status in (404, 405), f"not in the description: {said}"
            return self.check_value("problem", {"$ref": "#/components/schemas/Problem"}, json.loads(body), said)
        answer = operation["responses"].get(str(response.status))
        assert answer is not None, f"this status is not in the description: {said}"
        name = answer["$ref"] if "$ref" in answer else f"{operation['operationId']} {response.status}"
        answer = self.resolve(answer)
        kind = response.headers["Content-Type"].split(";")[0]
        assert kind in answer["content"], f"{kind} is not in the description: {said}"
        for header in ("Retry-After", "Idempotency-Replayed", "WWW-Authenticate"):
            if header in response.headers:
                schema = self.resolve(answer["headers"][header])["schema"]
                value = response.headers[header]
                self.check_value(header, schema, int(value) if schema["type"] == "integer" else value, said)
        if method != "HEAD":
            self.check_value(name, answer["content"][kind]["schema"], value_of(kind, body), said)

    def is_valid(self, schema, value):
        return jsonschema.Draft202012Validator(schema, resolver=self.resolver).is_valid(value)

    def check_value(self, name, schema, value, said):
        try:
            jsonschema.Draft202012Validator(schema, resolver=self.resolver).validate(value)
        except jsonschema.ValidationError as error:
            raise AssertionError(f"{error.message} at {error.json_path}: {said}") from None
        self.mark(name, schema, value)

    def mark(self, name, schema, value):
        """Remembers which members of the description the value has."""
        if "$ref" in schema:
            name, schema = schema["$ref"].rsplit("/", 1)[1], self.resolve(schema)
        for place, one in enumerate(schema.get("oneOf", [])):
            if self.is_valid(one, value):
                self.mark(f"{name}/{place}", one, value)
        if isinstance(value, list) and "items" in schema:
            for item in value:
                self.mark(f"{name}[]", schema["items"], item)
        if isinstance(value, dict):
            for key, member in schema.get("properties", {}).items():
                if key in value:
                    self.seen.add(f"{name}.{key}")
                    self.mark(f"{name}.{key}", member, value[key])

    def members(self):
        """Every member that an answer may have, by the names that mark() uses."""
        found = set()

        def walk(name, schema):
            if "$ref" in schema:
                name, schema = schema["$ref"].rsplit("/", 1)[1], self.resolve(schema)
            for place, one in enumerate(schema.get("oneOf", [])):
                walk(f"{name}/{place}", one)
            if "items" in schema:
                walk(f"{name}[]", schema["items"])
            for key, member in schema.get("properties", {}).items():
                found.add(f"{name}.{key}")
                walk(f"{name}.{key}", member)

        for _, _, operation in self.operations():
            for status, answer in operation["responses"].items():
                name = answer["$ref"] if "$ref" in answer else f"{operation['operationId']} {status}"
                for content in self.resolve(answer)["content"].values():
                    walk(name, content["schema"])
        return found
