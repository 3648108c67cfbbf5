"""Random calls by both protocols, each answer compared with what the rules say. The same seed makes the same choices."""
import time
import uuid

from comparing import Comparing
from doors import Failure, HttpDoor, RespDoor
from harness import now_ms, wait_for
from rules import LIVE, STATES, Difference, Rules, Span

TOPICS = ("a", "b", "mail.x", "ä:1")
NAMES = [f"job-{number}" for number in range(14)]
GROUPS, HEADERS = ("g1", "g2"), ({"tenant": "acme"}, {"traceparent": "00-1", "Note": "grün, 100 %", "empty": ""})
BODIES = (b'{"uid": 1}', b"12", b'"text"', b"[1, 2]", b"null", b"plain text", b"\xff\x00\xfe", "grün".encode(), b"")
PAST = 1_577_836_800_000  # 2020
HOUR = 3_600_000
PATIENCE = 20.0


class Player(Comparing):
    # ---- producers

    def new_job(self):
        topic = self.random.choice(TOPICS)
        job = {"topic": topic, "body": self.random.choice(BODIES), "id": self.random.choice(NAMES)}
        kind = self.random.random()
        if kind < 0.45:
            job["at"] = PAST + self.random.randrange(20)
        elif kind < 0.6:
            job["delay"] = 0
        elif kind < 0.95:
            job["delay"] = HOUR * self.random.randrange(1, 900_000 // 24)
        else:
            job["delay"] = self.random.randrange(20, 200)
        for name, chance, choose in (("priority", 0.2, lambda: self.random.choice((0, 1, 1024, 4294967295))),
                                     ("attempts", 0.3, lambda: self.random.choice((0, 1, 2))),
                                     ("backoff", 0.2, lambda: self.random.choice(([HOUR], [100, HOUR]))),
                                     ("lease", 0.2, lambda: self.random.choice((HOUR, 600_000))),
                                     ("group", 0.3, lambda: self.random.choice(GROUPS)),
                                     ("on_conflict", 0.5, lambda: self.random.choice(("reject", "keep", "replace"))),
                                     ("unique", 0.1, lambda: True), ("headers", 0.2, lambda: self.random.choice(HEADERS))):
            if self.random.random() < chance:
                job[name] = choose()
        if self.random.random() < 0.05:
            del job["id"]
        return job

    def push(self):
        door, job = self.door(), self.new_job()
        if isinstance(door, HttpDoor) and "id" in job and self.random.random() < 0.3:
            job["is_put"] = True
        repeats = isinstance(door, HttpDoor) and not job.get("is_put") and self.random.random() < 0.1
        if repeats:
            job["key"] = str(uuid.UUID(int=self.random.getrandbits(128)))
        answer = self.ask(door, door.push(job))[0]
        self.pushed(job, answer)
        if repeats and not isinstance(answer, Failure):
            self.expect(self.ask(door, door.push(job))[0], answer)
            self.expect(door.headers["Idempotency-Replayed"], "true")

    def pushed(self, job, answer):
        policy = job.get("on_conflict", "replace" if job.get("is_put") else "reject")
        met, is_elsewhere = self.rules.conflict(job["topic"], job.get("id"), job.get("unique"))
        if met and (is_elsewhere or policy == "reject"):
            return self.expect(answer, Failure("conflict"))
        if isinstance(answer, Failure):
            raise Difference(f"answered {answer}, and should be stored")
        if "id" in job:
            self.expect(answer["id"], job["id"])
        if met and policy == "keep":
            stored = met
        else:
            due = Span(job["at"], job["at"]) if "at" in job else self.span + job.get("delay", 0)
            more = {key: job[key] for key in ("priority", "group", "backoff", "headers") if key in job}
            stored = self.rules.push(job["topic"], answer["id"], job["body"], due, self.span, max_attempts=job.get("attempts"),
                                     own_lease=job.get("lease"), **more)
            if job.get("delay") == 0:
                stored.state = "ready"
        if "state" in answer:
            self.expect(answer["state"], stored.state)
            self.within("due", answer["due"], stored.due)
            stored.due = Span(answer["due"], answer["due"])
        return None

    def push_several(self):
        """Pipelined, each with a name of its own."""
        door = self.door(RespDoor)
        jobs = [self.new_job() for _ in range(self.random.randrange(2, 12))]
        answers = self.ask(door, *[door.push(job) for job in jobs])
        for job, answer in zip(jobs, answers):
            self.pushed(job, answer)

    def push_batch(self):
        """One request of HTTP, a result for each."""
        door = self.door(HttpDoor)
        jobs = [self.new_job() | {"body": self.random.choice(BODIES[:5])} for _ in range(self.random.randrange(1, 12))]
        answer = self.ask(door, door.push_many(jobs))[0]
        self.expect(len(answer), len(jobs))
        for job, result in zip(jobs, answer):
            self.pushed(job, result)

    def cancel(self):
        topic, name, door = self.random.choice(TOPICS), self.random.choice(NAMES), self.door()
        self.settle_doubts()
        holders = [job for job in self.rules.jobs() if job.id == name]
        if isinstance(door, RespDoor) and len(holders) == 1 and holders[0].state in LIVE and self.random.random() < 0.3:
            topic = holders[0].topic
            answer = self.ask(door, door.cancel(None, name))[0]
        else:
            answer = self.ask(door, door.cancel(topic, name))[0]
        self.cancelled(topic, name, answer)

    def cancelled(self, topic, name, answer):
        job = self.rules.find(topic, name)
        if job is None:
            return self.expect(answer, "unknown")
        if job.state in ("delayed", "ready"):
            self.rules.remove(job)
            return self.expect(answer, "cancelled")
        if job.state == "reserved":
            job.is_cancelled = job.is_durable = True
        return self.expect(answer, job.state)

    def cancel_group(self):
        group, door = self.random.choice(GROUPS), self.door()
        answer = self.ask(door, door.cancel_group(group))[0]
        waiting = [job for job in self.rules.jobs(None, "delayed", "ready") if job.group == group]
        running = [job for job in self.rules.jobs(None, "reserved") if job.group == group and not job.is_cancelled]
        for job in waiting:
            self.rules.remove(job)
        for job in running:
            job.is_cancelled = job.is_durable = True
        if isinstance(door, HttpDoor):
            return self.expect(answer, {"cancelled": len(waiting), "reserved": len(running)})
        return self.expect(answer, {"all": len(waiting) + len(running)})

    def reschedule(self):
        topic, name, door = self.random.choice(TOPICS), self.random.choice(NAMES), self.door()
        self.settle_doubts()
        delay = self.random.choice((0, 0, HOUR, 30 * 24 * HOUR, 100))
        answer = self.ask(door, door.reschedule(topic, name, delay))[0]
        job = self.rules.find(topic, name)
        if job is None:
            return self.expect(answer, Failure("not_found"))
        if job.state in ("reserved", "done"):
            return self.expect(answer, Failure("conflict"))
        self.rules.revive(job, self.span + delay, self.span)
        return self.expect(answer, "OK")

    # ---- consumers

    def pop(self, topics=None, count=None, wait=0):
        door = self.door()
        topics = topics or self.random.sample(TOPICS, self.random.choice((1, 1, 1, 2)))
        count = count or self.random.choice((1, 1, 2, 5, 20))
        lease = self.random.choice((None, None, None, HOUR, 24 * HOUR, 24 * HOUR, 150))
        auto = self.random.random() < 0.15
        answer = self.ask(door, door.pop(topics, count, wait, lease, auto))[0]
        self.popped(answer, topics, count, lease, auto)
        return answer

    def popped(self, answer, topics, count, lease, auto):
        if isinstance(answer, Failure):
            raise Difference(f"answered {answer}, and should be jobs")
        left = list(answer)
        for topic in topics:
            ready = self.rules.jobs(topic, "ready")
            wanted = min(self.rules.room(topic, count), len(ready))
            count -= wanted
            for seen in left[:wanted]:
                self.take(seen, topic, ready, lease, auto)
            if len(left) < wanted:
                raise Difference(f"{len(left)} jobs came from {topic}, and should be {wanted} of {sorted(job.id for job in ready)}")
            left = left[wanted:]
        if left:
            raise Difference(f"{[(job['topic'], job['id']) for job in left]} should not be handed out")

    def take(self, seen, topic, ready, lease, auto):
        job = next((job for job in ready if (job.topic, job.id) == (seen["topic"], seen["id"])), None)
        if job is None:
            raise Difference(f"{seen['topic']}/{seen['id']} came, and should be one of {topic}: {sorted(job.id for job in ready)}")
        before = [other for other in ready if self.rules.goes_before(other, job)]
        if before:
            raise Difference(f"{job.id} came before {[other.id for other in before]}")
        ready.remove(job)
        self.within("due", seen["due"], job.due)
        job.due = Span(seen["due"], seen["due"])
        self.compare_body(job, seen)
        self.rules.take(job, self.span, lease, auto)
        self.expect(seen["attempt"], job.attempts)
        if auto:
            return self.expect(seen["lease"], "")
        if not seen["lease"] or seen["lease"] in self.old_leases:
            raise Difference(f"the lease {seen['lease']!r} is none, or was given before")
        self.old_leases[seen["lease"]] = job.id
        job.lease = seen["lease"]
        if "until" in seen:
            self.within("lease_until", seen["until"], job.until)
            job.until = Span(seen["until"], seen["until"])
        return None

    def pop_and_wait(self):
        """A pop that may wait does not when something is ready, and waits its time when nothing is."""
        topic = self.random.choice(TOPICS)
        if self.rules.room(topic, 1) and self.rules.jobs(topic, "ready"):
            self.pop([topic], 1, 8_000)
            if self.span.high - self.span.low > 4_000:
                raise Difference("a pop waited although a job was ready")
            return
        if (change := self.rules.next_change()) and change.low - now_ms() < 2_000:
            return
        self.pop([topic], 1, 150)
        if self.span.high - self.span.low < 150 - self.place.slack:
            raise Difference("a pop gave up before its time")

    def push_to_waiting(self):
        """Who waits gets the job that comes, by whatever server it comes."""
        topic = self.random.choice(TOPICS)
        if self.rules.jobs(topic, "ready") or not self.rules.room(topic, 1):
            return
        if (change := self.rules.next_change()) and change.low - now_ms() < 10_000:
            return
        waiting, pushing = self.door(RespDoor), self.door(HttpDoor)
        words, understand = waiting.pop([topic], 1, 8_000)
        self.say(f"RESP {words} (waits)")
        waiting.client.send(words)
        before = now_ms()
        job = self.new_job() | {"topic": topic, "at": PAST, "id": "waited-for", "on_conflict": "replace"}
        job.pop("delay", None), job.pop("unique", None)
        self.pushed(job, self.ask(pushing, pushing.push(job))[0])
        answer = understand(waiting.client.read())
        self.say(f"  -> {answer}")
        self.span = Span(before, now_ms())
        self.calls += 1
        self.popped(answer, [topic], 1, None, False)
        if self.span.high - self.span.low > 4_000:
            raise Difference("who waited was not told of the job")

    def a_lease(self):
        """Mostly one that is current; and the job that it is of, or None."""
        held = sorted((job for job in self.rules.jobs(None, "reserved") if job.lease), key=lambda job: job.lease)
        if held and self.random.random() < 0.85:
            job = self.random.choice(held)
            return job.lease, job
        others = sorted(set(self.old_leases) - {job.lease for job in held})
        return (self.random.choice(others), None) if others else (None, None)

    def ack(self):
        chosen = dict(self.a_lease() for _ in range(self.random.choice((1, 1, 2, 4))))
        chosen.pop(None, None)
        if not chosen:
            return
        door = self.door()
        answer = self.ask(door, door.ack(chosen))[0]
        for job in filter(None, chosen.values()):
            self.rules.end(job, "done", self.span)
        self.expect(answer, sum(job is not None for job in chosen.values()))

    def nack(self):
        lease, job = self.a_lease()
        if lease is None:
            return
        door = self.door()
        delay = self.random.choice((None, None, 0, HOUR))
        reason = self.random.choice(("", "the bank says no", "timeout: 5 s", "grün"))
        dead = self.random.random() < 0.3
        answer = self.ask(door, door.nack(lease, delay, reason, dead))[0]
        if job is None:
            self.expect(answer, Failure("stale_lease"))
            return
        if isinstance(answer, Failure):
            raise Difference(f"answered {answer}, and the lease is current")
        self.rules.tallies["nacked"] += 1
        became = self.rules.fail(job, self.span, delay, reason, dead)
        if "result" in answer:
            self.expect(answer["result"], became)
        if "due" in answer:
            self.within("retry_at", answer["due"], job.due)

    def extend(self):
        lease, job = self.a_lease()
        if lease is None:
            return
        door, length = self.door(), self.random.choice((HOUR, 2 * HOUR, 24 * HOUR))
        answer = self.ask(door, door.extend(lease, length))[0]
        if job is None:
            self.expect(answer, Failure("stale_lease"))
            return
        if isinstance(answer, Failure):
            raise Difference(f"answered {answer}, and the lease is current")
        self.within("the deadline", answer, self.span + length)
        job.until, job.is_durable = Span(answer, answer), True

    # ---- whole topics

    def redrive(self):
        topic, door = self.random.choice(TOPICS), self.door()
        self.settle_doubts()
        dead = self.rules.jobs(topic, "dead")
        kind = self.random.random()
        if kind < 0.4:
            answer = self.ask(door, door.redrive(topic))[0]
        elif kind < 0.7:
            names = self.random.sample(NAMES, 3)
            answer = self.ask(door, door.redrive(topic, names))[0]
            dead = [job for job in dead if job.id in names]
        else:
            if any(job.outcome is None for job in dead):
                return
            answer = self.ask(door, door.redrive(topic, error="bank"))[0]
            dead = [job for job in dead if "bank" in job.outcome]
        for job in dead:
            self.rules.revive(job, self.span, self.span)
        self.expect(answer, len(dead))

    def purge(self):
        topic, door = self.random.choice(TOPICS), self.door()
        self.settle_doubts()
        state = self.random.choice(STATES) if isinstance(door, RespDoor) and self.random.random() < 0.8 else None
        if state is None and self.random.random() < 0.5:
            return
        answer = self.ask(door, door.purge(topic, state))[0]
        jobs = self.rules.jobs(topic, *((state,) if state else ()))
        for job in jobs:
            self.rules.remove(job)
        self.expect(answer, len(jobs))

    def pause(self):
        topic, door, paused = self.random.choice(TOPICS), self.door(), self.random.random() < 0.3
        self.expect(self.ask(door, door.pause(topic, paused))[0], "OK")
        settings = self.rules.topic(topic).settings
        settings.pop("paused", None)
        if paused:
            settings["paused"] = True
        self.everybody_knows(topic, {"paused": paused})

    def change(self):
        topic, door = self.random.choice((*TOPICS, *TOPICS, "*")), self.door(HttpDoor)
        said, known = {}, {}
        for name, chance, values in (("attempts", 0.4, (0, 1, 2, 16)), ("concurrency", 0.3, (0, 0, 2, 5)), ("priority", 0.2, (5, 1024))):
            if self.random.random() < chance:
                said[name] = known[name] = self.random.choice(values)
        if self.random.random() < 0.3:
            known["backoff"] = self.random.choice(([HOUR], [100, HOUR], [2 * HOUR]))
            said["backoff"] = [f"{step}ms" for step in known["backoff"]]
        if self.random.random() < 0.3:
            known["lease"] = self.random.choice((60_000, HOUR))
            said["lease"] = f"{known['lease']}ms"
        if topic != "*":
            for name in ("keep_done", "keep_dead"):
                if self.random.random() < 0.15:
                    known[f"{name}.count"] = self.random.choice((1, 2, 3, 1000))
                    said[name] = {"count": known[f"{name}.count"], "time": "1h"}
                    known[f"{name}.time"] = HOUR
        if not said:
            return
        self.settle_doubts()
        if any(self.rules.jobs(topic, name[5:9]) for name in ("keep_done", "keep_dead") if f"{name}.time" in known):
            return  # those that are kept already get another end in the background: at which moment, nobody is told
        self.expect(self.ask(door, door.change(topic, said))[0], "ok")
        self.rules.change_settings(topic, known)
        self.everybody_knows(topic, {name: known[name] for name in ("attempts", "concurrency", "priority") if name in known})

    def limit_rate(self):
        """A rate lets so many go, the last of them to somebody who waits, and no more. Each server counts for itself."""
        topic, server = f"rate-{self.calls}", self.random.choice(self.place.servers)
        web = next(door for door in self.doors if isinstance(door, HttpDoor) and door.server is server)
        door = next(door for door in self.doors if isinstance(door, RespDoor) and door.server is server)
        self.expect(self.ask(web, web.change(topic, {"rate": {"count": 3, "per": "1d"}, "concurrency": 2}))[0], "ok")
        self.rules.change_settings(topic, {"rate": 3, "concurrency": 2})
        for number in range(4):
            job = {"topic": topic, "id": f"limited-{number}", "at": PAST, "body": b"12"}
            self.pushed(job, self.ask(web, web.push(job))[0])
        taken = self.ask(door, door.pop([topic], 5))[0]
        self.popped(taken, [topic], 5, None, False)
        self.expect(self.ask(door, door.ack([job["lease"] for job in taken]))[0], 2)
        for job in self.rules.jobs(topic, "reserved"):
            self.rules.end(job, "done", self.span)
        self.popped(self.ask(door, door.pop([topic], 1, 8_000))[0], [topic], 1, None, False)
        if self.span.high - self.span.low > 4_000:
            raise Difference("a pop waited although a job was ready and the rate allowed it")
        self.expect(self.ask(door, door.pop([topic], 1))[0], [])

    def everybody_knows(self, topic, settings):
        """The servers that share a Redis follow at once; in the next moment, that is."""
        name = TOPICS[0] if topic == "*" else topic
        own = {key: self.rules.setting(name, key) for key in settings}
        for door in self.doors:
            if isinstance(door, HttpDoor):
                wait_for(lambda door=door: own.items() <= door.ask(*door.settings(name)).items(), f"{own} is known everywhere", PATIENCE)

    # ---- looking around

    def get(self):
        topic, name = self.random.choice(TOPICS), self.random.choice(NAMES)
        holders = [job for job in self.rules.jobs() if job.id == name]
        if len(holders) == 1 and holders[0].state in LIVE and self.random.random() < 0.3:
            seen = self.look_up(None, name, self.door(RespDoor))
            if seen is None:
                raise Difference(f"{name} is not found by its name alone")
            return self.compare(holders[0], seen)
        return self.check_job(topic, name)

    def counts(self):
        topic, door = self.random.choice(TOPICS), self.door()
        self.settle_doubts()
        answer = self.ask(door, door.counts(topic))[0]
        self.expect(answer, {state: len(self.rules.jobs(topic, state)) for state in STATES})

    def totals(self):
        """Of all topics together; what happened is what this server knows of."""
        door = self.door(HttpDoor)
        self.settle_doubts()
        answer = self.ask(door, door.totals())[0]
        self.expect(answer["counts"], {state: len(self.rules.jobs(None, state)) for state in STATES})
        if len(self.place.servers) == 1:
            names = ("pushed", "popped", "nacked", "expired")
            self.expect({name: answer["since_start"][name] for name in names}, {name: self.rules.tallies[name] for name in names})

    def forecast(self):
        door, topic = self.door(HttpDoor), self.random.choice((*TOPICS, ""))
        answer = self.ask(door, door.forecast(topic, now_ms() + 1_000, now_ms() + 120 * 365 * 24 * HOUR))[0]
        self.expect(answer, len(self.rules.jobs(topic or None, "delayed")))

    def walk(self, door, page, limit, name_of=None):
        """All pages, one after the other. With `name_of`, some of them are asked for twice: a look can be repeated."""
        cursor, all_items = "", []
        for _ in range(1_000):
            answer = self.ask(door, page(limit, cursor))[0]
            if isinstance(answer, Failure):
                raise Difference(f"page {cursor!r}: {answer}")
            if len(answer[1]) > limit:
                raise Difference(f"a page of {len(answer[1])}, and the limit is {limit}")
            if name_of and self.random.random() < 0.2:
                again = self.ask(door, page(limit, cursor))[0]
                if isinstance(again, Failure) or [name_of(item) for item in again[1]] != [name_of(item) for item in answer[1]]:
                    raise Difference(f"the page at {cursor!r}, asked for again, is another: {again}")
            cursor = answer[0]
            all_items += answer[1]
            if not cursor:
                return all_items
        raise Difference("the pages never end")

    def list(self):
        topic, state, door = self.random.choice(TOPICS), self.random.choice(STATES), self.door()
        self.settle_doubts()
        prefix = self.random.choice(("", "", "job-1", "job-", "none"))
        error = self.random.choice(("", "", "", "bank"))
        wanted = [job for job in self.rules.jobs(topic, state) if job.id.startswith(prefix)]
        if error and any(job.outcome is None for job in wanted):
            error = ""
        wanted = {job.id: job for job in wanted if error in (job.outcome or "")}
        seen = self.walk(door, lambda limit, cursor: door.list(topic, state, limit, cursor, prefix, error),
                         self.random.choice((1, 2, 3, 100)), lambda item: item["id"])
        names = [item["id"] for item in seen]
        if sorted(names) != sorted(wanted):
            raise Difference(f"listed are {sorted(names)}, and should be {sorted(wanted)}")
        for item in seen:
            self.compare(wanted[item["id"]], item)

    def list_topics(self):
        door = self.door()
        self.settle_doubts()
        seen = self.walk(door, door.topics, self.random.choice((1, 2, 100)), lambda item: item["topic"])
        self.expect([item["topic"] for item in seen], self.rules.named_topics())
        for item in seen:
            topic = item["topic"]
            self.expect(item, {"topic": topic, "counts": {state: len(self.rules.jobs(topic, state)) for state in STATES},
                               "paused": self.rules.setting(topic, "paused")})

    def export(self):
        door = self.door()
        self.settle_doubts()
        lines = self.walk(door, door.export, self.random.choice((2, 7, 1000)))
        seen = sorted((line["topic"], line["id"], line["state"], line["attempts"]) for line in lines if "settings" not in line)
        self.expect(seen, sorted((job.topic, job.id, job.state, job.attempts) for job in self.rules.jobs()))

    # ---- what is wrong

    def nonsense(self):
        """Refused by name, and nothing is stored or moved."""
        door, topic = self.door(RespDoor), self.random.choice(TOPICS)
        words = self.random.choice((
            ("PUSH", topic, "1x", "b", "ID", "job-0"), ("PUSH", topic, "0", "b", "ID", ""), ("PUSH", topic, "0", "b", "ID", "i" * 256),
            ("PUSH", "t" * 201, "0", "b"), ("PUSH", "a b", "0", "b"), ("PUSH", topic, "0", "b", "PRI", "-1"), ("PUSH", topic, "0", "b", "HEADER", "Host", "x"),
            ("PUSH", topic, "0", "b", "ATTEMPTS", "1000001"), ("PUSH", topic, "0", "b", "LEASE", "99ms"),
            ("PUSH", topic, "0", "b", "BACKOFF", "often"), ("PUSH", topic, "40000d", "b"), ("POP", topic, "COUNT", "0"),
            ("POP", topic, "COUNT", "1001"), ("POP", topic, "WAIT", "2h"), ("POP", topic, "LEASE", "25h"),
            ("EXTEND", f"{topic}/1-1", "99ms"), ("LIST", topic, "running"), ("RESCHEDULE", topic, "job-0", "soon"),
            ("PURGE", topic, "nothing")))
        self.expect(self.ask(door, (words, lambda reply: reply))[0], Failure("invalid"))

    # ---- faults

    def restart(self):
        """A server is stopped, or killed with commands on their way, and comes back."""
        self.settle_doubts()
        server = self.random.choice(self.place.servers)
        if self.random.random() < 0.4:
            self.say("a server is stopped and started")
            self.place.stop(server)
            self.come_back(is_killed=False)
            return
        doubtful = []
        if self.random.random() < 0.5:
            self.extend()  # what was answered last must be there, too
        else:
            doubtful = self.send_without_reading(server)
        self.say(f"a server is killed, {len(doubtful)} commands have no answer")
        self.place.kill(server)
        self.kills += 1
        self.come_back(is_killed=True)
        if self.place.keeps_jobs:
            for resolve in doubtful:
                resolve()
            self.rules.tallies.clear()  # of what was found there now, this life of the server has done nothing

    def come_back(self, is_killed):
        self.open_doors()
        self.rules.tallies.clear()
        if not self.place.keeps_jobs:
            self.rules = Rules(self.place)
            self.old_leases = {}
            self.begin()
        elif is_killed and self.place.may_lose_leases:
            for job in self.rules.jobs(None, "reserved"):
                self.resolve_lease(job)

    def resolve_lease(self, job):
        """A hand-over need not be on disk: when it is not, the job was never handed out."""
        seen = self.look_up(job.topic, job.id)
        if seen and seen["state"] == "ready" and not job.is_durable:
            job.attempts -= 1
            job.state, job.until, job.lease = "ready", None, ""
        elif seen:
            job.is_durable = True
        if seen is None:
            raise Difference(f"{job.topic}/{job.id} was reserved, and is gone")
        self.compare(job, seen)

    def send_without_reading(self, server):
        """Commands whose answers never come: each was carried out or not. Answers functions that find out."""
        if not self.place.keeps_jobs:
            return []
        door = next(door for door in self.doors if isinstance(door, RespDoor) and door.server is server)
        commands, resolves = [], []
        for number in range(self.random.randrange(0, 12)):
            job = self.new_job() | {"id": f"doubt-{self.calls}-{number}", "delay": HOUR}
            job.pop("at", None)
            commands.append(door.push(job)[0])
            resolves.append(lambda job=job: self.resolve_push(job, before))
        before = now_ms()
        self.say(f"RESP {commands}")
        door.client.send(*commands)
        return resolves

    def resolve_push(self, job, before):
        seen = self.look_up(job["topic"], job["id"])
        if seen is None:
            return
        self.span = Span(before, now_ms())
        self.pushed(job, {"id": job["id"]})
        self.compare(self.rules.find(job["topic"], job["id"]), seen)

    def begin(self):
        """Backoffs without chance in them, so that the model knows when a retry is due."""
        door = self.door(HttpDoor)
        self.expect(self.ask(door, door.change("*", {"backoff": "1h"}))[0], "ok")
        self.rules.change_settings("*", {"backoff": [HOUR]})

    # ---- what must be noticed

    def do_by_stealth(self, canary):
        """What must not happen happens to one job, and the rules are not told. Answers whether there was such a job."""
        state = {"lost": "delayed", "early": "delayed", "acked": "reserved"}[canary]
        jobs = [job for job in self.rules.jobs(None, state) if job.id in NAMES]
        if not jobs:
            return False
        job, door = jobs[0], self.door(RespDoor)
        door.ask(*{"lost": lambda: door.cancel(job.topic, job.id), "early": lambda: door.reschedule(job.topic, job.id, 0),
                   "acked": lambda: door.ack([job.lease])}[canary]())
        self.say(f"by stealth: {canary} {job.topic}/{job.id}")
        return True

    # ---- the play

    DEEDS = {"push": 26, "push_several": 5, "push_batch": 3, "pop": 18, "ack": 12, "nack": 9, "extend": 4, "cancel": 6, "cancel_group": 2, "reschedule": 5,
             "redrive": 3, "purge": 1, "pause": 2, "change": 3, "get": 12, "counts": 4, "totals": 1, "forecast": 1, "list": 4, "list_topics": 2, "export": 1,
             "nonsense": 2, "limit_rate": 0.3, "pop_and_wait": 2, "push_to_waiting": 2, "restart": 0.5}

    def play(self, calls, deadline, canary=None):
        self.begin()
        names, weights = list(self.DEEDS), list(self.DEEDS.values())
        while self.calls < calls and time.monotonic() < deadline:
            self.let_time_pass()
            if canary and self.calls > calls / 2 and self.do_by_stealth(canary):
                canary = None
            getattr(self, self.random.choices(names, weights)[0])()
        for topic in TOPICS:
            for name in NAMES:
                self.check_job(topic, name)
