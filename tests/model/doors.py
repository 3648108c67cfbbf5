"""The two protocols, made equal: each verb takes the same words and answers the same values, so that one model judges both.
Times are Unix milliseconds, durations milliseconds, bodies bytes. What the server refuses is a Failure."""
import base64
import datetime
import http.client
import json
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from harness import DEADLINE, Client, Refused

RESP_CODES = {"INVALID": "invalid", "TOOLARGE": "too_large", "CONFLICT": "conflict", "NOTFOUND": "not_found",
              "STALELEASE": "stale_lease", "OVERLOADED": "overloaded", "UNAVAILABLE": "unavailable"}


@dataclass(frozen=True)
class Failure:
    code: str


def milliseconds(moment):
    parsed = datetime.datetime.strptime(moment, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=datetime.timezone.utc)
    return round(parsed.timestamp() * 1000)


def rfc3339(moment):
    when = datetime.datetime.fromtimestamp(moment / 1000, datetime.timezone.utc)
    return f"{when:%Y-%m-%dT%H:%M:%S}.{moment % 1000:03d}Z"


def duration(length):
    return f"{length}ms"


def texts_of(flat):
    """A map as RESP2 has it."""
    return {flat[i].decode(): flat[i + 1].decode() for i in range(0, len(flat), 2)}


def spell_backoff(steps):
    return ",".join(duration(step) for step in steps)


def as_json(body):
    """The value that HTTP shows for these bytes, and under which name."""
    try:
        return "body", json.loads(body)
    except ValueError:
        pass
    try:
        return "body", body.decode()
    except UnicodeDecodeError:
        return "body_base64", base64.b64encode(body).decode()


class Wire(Client):
    """With the types of RESP3: a map is a flat list, as in RESP2."""

    def read(self):
        sign = self.stream.peek(1)[:1]
        if sign not in (b"%", b"_", b"#"):
            return super().read()
        text = self.stream.readline()[1:-2]
        if sign == b"%":
            return [self.read() for _ in range(2 * int(text))]
        return None if sign == b"_" else text == b"t"


class RespDoor:
    name = "RESP"

    def __init__(self, server, version=2):
        self.server = server
        self.client = Wire(server.port)
        self.version = version
        if version == 3:
            self.client.ask("HELLO", "3")

    def close(self):
        self.client.close()

    # ---- one command, or several that are on their way before the first answer is read

    def ask(self, words, understand=lambda reply: reply):
        return self.ask_all([(words, understand)])[0]

    def ask_all(self, commands):
        self.client.send(*[words for words, _ in commands])
        answers = []
        for _, understand in commands:
            reply = self.client.read()
            if isinstance(reply, Refused):
                answers.append(Failure(RESP_CODES.get(reply.code, reply.code)))
            else:
                answers.append(understand(reply))
        return answers

    # ---- verbs: what to send, and what to make of the reply

    @staticmethod
    def push(job):
        words = ["PUSH", job["topic"], "0" if "at" in job else duration(job.get("delay", 0)), job["body"]]
        for name, word, spell in (("id", "ID", str), ("at", "AT", rfc3339), ("priority", "PRI", str),
                                  ("attempts", "ATTEMPTS", str), ("backoff", "BACKOFF", spell_backoff),
                                  ("lease", "LEASE", duration), ("group", "GROUP", str)):
            if name in job:
                words += [word, spell(job[name])]
        for name, value in job.get("headers", {}).items():
            words += ["HEADER", name, value]
        words += [job["on_conflict"].upper()] if job.get("on_conflict", "reject") != "reject" else []
        words += ["UNIQUE"] if job.get("unique") else []
        return words, lambda reply: {"id": reply.decode()}

    @staticmethod
    def pop(topics, count, wait=0, lease=None, auto=False):
        words = ["POP", *topics, "COUNT", count]
        words += ["WAIT", duration(wait)] if wait else []
        words += ["LEASE", duration(lease)] if lease else []
        words += ["AUTOACK"] if auto else []
        words += ["HEADERS"] if len(topics) == 1 else []

        def understand(reply):
            return [{"lease": (job[0] or b"").decode(), "topic": job[1].decode(), "id": job[2].decode(), "body": job[3],
                     "attempt": job[4], "due": job[5], **({"headers": texts_of(job[6])} if len(job) > 6 else {})} for job in reply or []]
        return words, understand

    @staticmethod
    def ack(leases):
        return ["ACK", *leases], lambda reply: reply

    @staticmethod
    def nack(lease, delay, reason, dead):
        words = ["NACK", lease]
        words += ["DELAY", duration(delay)] if delay is not None else []
        words += ["REASON", reason] if reason else []
        words += ["DEAD"] if dead else []
        return words, lambda reply: {}

    @staticmethod
    def extend(lease, length):
        return ["EXTEND", lease, *([duration(length)] if length else [])], lambda reply: reply

    @staticmethod
    def read_job(flat):
        if flat is None:
            return None
        job = {flat[i].decode(): flat[i + 1] for i in range(0, len(flat), 2)}
        found = {"topic": job["topic"].decode(), "id": job["id"].decode(), "state": job["state"].decode(), "due": job["due_ms"],
                 "pushed": job["pushed_ms"], "attempts": job["attempts"], "priority": job["priority"],
                 "group": job.get("group", b"").decode(), "until": job.get("until_ms"),
                 "outcome": job.get("outcome", b"").decode(), "cancel_requested": bool(job.get("cancel_requested"))}
        if "body" in job:
            found |= {"body": job["body"], "headers": texts_of(job.get("headers", []))}
        return found

    def get(self, topic, name):
        return (["GET", topic, name] if topic else ["GET", name]), self.read_job

    @staticmethod
    def cancel(topic, name):
        return (["CANCEL", topic, name] if topic else ["CANCEL", name]), lambda reply: reply

    @staticmethod
    def cancel_group(group):
        return ["CANCELGROUP", group], lambda reply: {"all": reply}

    @staticmethod
    def reschedule(topic, name, delay):
        return ["RESCHEDULE", topic, name, duration(delay)], lambda reply: reply

    @staticmethod
    def redrive(topic, names=None, error=None):
        return ["REDRIVE", topic, *(["ERROR", error] if error else names or [])], lambda reply: reply

    @staticmethod
    def purge(topic, state=None):
        return ["PURGE", topic, *([state] if state else [])], lambda reply: reply

    @staticmethod
    def pause(topic, paused):
        return ["PAUSE" if paused else "RESUME", topic], lambda reply: reply

    @staticmethod
    def counts(topic):
        def understand(flat):
            stats = {flat[i].decode(): flat[i + 1] for i in range(0, len(flat), 2)}
            return {state: stats[state] for state in ("delayed", "ready", "reserved", "done", "dead")}
        return ["STATS", topic], understand

    def list(self, topic, state, limit, cursor="", prefix="", error=""):
        words = ["LIST", topic, state, "COUNT", limit]
        words += ["PREFIX", prefix] if prefix else []
        words += ["ERROR", error] if error else []
        words += ["CURSOR", cursor] if cursor else []
        return words, lambda reply: (reply[0].decode(), [self.read_job(job) for job in reply[1]])

    @staticmethod
    def topics(limit, cursor=""):
        def understand(reply):
            rows = [{"topic": row[0].decode(), "counts": dict(zip(("delayed", "ready", "reserved", "done", "dead"), row[1:6])),
                     "paused": bool(row[6])} for row in reply[1]]
            return reply[0].decode(), rows
        return ["TOPICS", cursor, limit], understand

    @staticmethod
    def export(limit, cursor=""):
        words = ["EXPORT", "COUNT", limit, *(["CURSOR", cursor] if cursor else [])]
        return words, lambda reply: (reply[0].decode(), [json.loads(line) for line in reply[1]])


def path_of(topic, *more):
    return "/".join(["/v1/topics", quote(topic, safe=""), *[quote(part, safe="") for part in more]])


class HttpDoor:
    name = "HTTP"

    def __init__(self, server):
        self.server = server
        self.connection = http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=DEADLINE)
        self.headers = {}

    def close(self):
        self.connection.close()

    def ask(self, request, understand=lambda answer: answer):
        return self.ask_all([(request, understand)])[0]

    def ask_all(self, requests):
        answers = []
        for (method, path, body, *headers), understand in requests:
            self.connection.request(method, path, body, headers[0] if headers else {"Content-Type": "application/json"})
            response = self.connection.getresponse()
            text = response.read()
            self.headers = response.headers
            if response.status >= 400:
                answers.append(Failure(json.loads(text)["code"]))
            else:
                answers.append(understand(json.loads(text) if "ndjson" not in response.headers["Content-Type"] else text))
        return answers

    @staticmethod
    def fields_of(job):
        fields = {key: value for key, value in job.items() if key not in ("topic", "body", "is_put", "key")}
        for name, spell in (("delay", duration), ("at", rfc3339), ("backoff", spell_backoff), ("lease", duration)):
            if name in fields:
                fields[name] = spell(fields[name])
        return fields

    @staticmethod
    def read_receipt(answer):
        if "code" in answer:
            return Failure(answer["code"])
        return {"id": answer["id"], "state": answer["state"], "due": milliseconds(answer["due_at"])}

    def push_many(self, jobs):
        """REQUIRES: bodies that are JSON, as json.dumps() writes it."""
        lines = [self.fields_of(job) | {"topic": job["topic"], "body": json.loads(job["body"])} for job in jobs]
        return ("POST", "/v1/jobs", json.dumps(lines)), lambda answer: [self.read_receipt(result) for result in answer["results"]]

    def push(self, job):
        understand = self.read_receipt
        fields = self.fields_of(job)
        headers = {"Idempotency-Key": job["key"]} if "key" in job else {}
        way = ("PUT", path_of(job["topic"], "jobs", fields.pop("id"))) if job.get("is_put") else ("POST", path_of(job["topic"], "jobs"))
        try:
            text = json.dumps({**fields, "body": "@"}).replace('"@"', json.dumps(json.loads(job["body"])))
            if json.dumps(json.loads(job["body"])).encode() == job["body"]:
                return (*way, text, headers | {"Content-Type": "application/json"}), understand
        except ValueError:
            pass
        if "unique" in fields:
            fields["unique"] = "true" if fields["unique"] else "false"
        fields |= {f"headers[{name}]": value for name, value in fields.pop("headers", {}).items()}
        query = "?" + urlencode(fields) if fields else ""
        return (way[0], way[1] + query, job["body"], headers | {"Content-Type": "application/octet-stream"}), understand

    @staticmethod
    def pop(topics, count, wait=0, lease=None, auto=False):
        body = {"count": count}
        body |= {"wait": duration(wait)} if wait else {}
        body |= {"lease": duration(lease)} if lease else {}
        body |= {"ack": "auto"} if auto else {}

        def understand(answer):
            jobs = []
            for job in answer["jobs"]:
                found = {"lease": job.get("lease", ""), "topic": job["topic"], "id": job["id"], "attempt": job["attempt"],
                         "due": milliseconds(job["due_at"]), "headers": job.get("headers", {}),
                         **({"headers": job.get("headers", {})} if "body" in job or "body_base64" in job else {}),
                "shown": {key: job[key] for key in ("body", "body_base64") if key in job}}
                if "lease_until" in job:
                    found["until"] = milliseconds(job["lease_until"])
                jobs.append(found)
            return jobs
        if len(topics) == 1:
            return ("POST", path_of(topics[0], "pop"), json.dumps(body)), understand
        return ("POST", "/v1/pop", json.dumps(body | {"topics": list(topics)})), understand

    @staticmethod
    def ack(leases):
        return ("POST", "/v1/ack", json.dumps({"leases": list(leases)})), lambda answer: sum(
            result.get("result") == "acked" for result in answer["results"])

    @staticmethod
    def nack(lease, delay, reason, dead):
        body = {"leases": [lease]}
        body |= {"delay": duration(delay)} if delay is not None else {}
        body |= {"reason": reason} if reason else {}
        body |= {"dead": True} if dead else {}

        def understand(answer):
            result = answer["results"][0]
            if "code" in result:
                return Failure(result["code"])
            return {"result": result["result"]} | ({"due": milliseconds(result["retry_at"])} if "retry_at" in result else {})
        return ("POST", "/v1/nack", json.dumps(body)), understand

    @staticmethod
    def extend(lease, length):
        body = {"leases": [lease]} | ({"lease": duration(length)} if length else {})

        def understand(answer):
            result = answer["results"][0]
            return Failure(result["code"]) if "code" in result else milliseconds(result["lease_until"])
        return ("POST", "/v1/extend", json.dumps(body)), understand

    @staticmethod
    def read_job(job):
        until = job.get("lease_until") or job.get("kept_until")
        return {"topic": job["topic"], "id": job["id"], "state": job["state"], "due": milliseconds(job["due_at"]),
                "pushed": milliseconds(job["pushed_at"]), "attempts": job["attempts"], "priority": job["priority"],
                "group": job.get("group", ""), "until": milliseconds(until) if until else None,
                "outcome": job.get("outcome", ""), "cancel_requested": job.get("cancel_requested", False),
                "shown": {key: job[key] for key in ("body", "body_base64") if key in job}}

    def get(self, topic, name):
        return ("GET", path_of(topic, "jobs", name), None), self.read_job

    @staticmethod
    def cancel(topic, name):
        return ("DELETE", path_of(topic, "jobs", name), None), lambda answer: answer["result"]

    @staticmethod
    def cancel_group(group):
        return ("DELETE", "/v1/groups/" + quote(group, safe=""), None), lambda answer: answer

    @staticmethod
    def reschedule(topic, name, delay):
        return ("PATCH", path_of(topic, "jobs", name), json.dumps({"delay": duration(delay)})), lambda answer: "OK"

    @staticmethod
    def redrive(topic, names=None, error=None):
        body = {"error": error} if error else {"ids": names} if names else {}
        return ("POST", path_of(topic, "redrive"), json.dumps(body)), lambda answer: answer["jobs"]

    @staticmethod
    def purge(topic, _state=None):
        return ("DELETE", path_of(topic), None), lambda answer: answer["jobs"]

    @staticmethod
    def pause(topic, paused):
        return ("POST", path_of(topic, "pause" if paused else "resume"), None), lambda answer: "OK"

    @staticmethod
    def change(topic, settings):
        return ("PATCH", path_of(topic), json.dumps(settings)), lambda answer: answer["result"]

    @staticmethod
    def settings(topic):
        return ("GET", path_of(topic), None), lambda answer: answer["settings"]

    @staticmethod
    def counts(topic):
        return ("GET", path_of(topic), None), lambda answer: answer["counts"]

    @staticmethod
    def totals():
        return ("GET", "/v1/stats", None), lambda answer: answer

    @staticmethod
    def forecast(topic, start, end):
        query = {"from": rfc3339(start), "to": rfc3339(end), "bins": 1} | ({"topic": topic} if topic else {})
        return ("GET", "/v1/forecast?" + urlencode(query), None), lambda answer: sum(answer["bins"])

    def list(self, topic, state, limit, cursor="", prefix="", error=""):
        query = {"state": state, "limit": limit, "bodies": "true"}
        query |= {key: value for key, value in (("cursor", cursor), ("prefix", prefix), ("error", error)) if value}
        return ("GET", path_of(topic, "jobs") + "?" + urlencode(query), None), lambda answer: (
            answer["cursor"], [self.read_job(job) for job in answer["jobs"]])

    @staticmethod
    def topics(limit, cursor=""):
        return ("GET", "/v1/topics?" + urlencode({"limit": limit} | ({"cursor": cursor} if cursor else {})), None), lambda answer: (
            answer["cursor"], [{key: row[key] for key in ("topic", "counts", "paused")} for row in answer["topics"]])

    def export(self, limit, cursor=""):
        return ("GET", "/v1/export?" + urlencode({"limit": limit} | ({"cursor": cursor} if cursor else {})), None), lambda text: (
            self.headers["Delayq-Cursor"] or "", [json.loads(line) for line in text.splitlines()])
