"""Occurrences around clock changes, compared with croniter and with plain_cron.py.

    tools/pypi croniter python tests/calendar/croniter_test.py OCCURRENCES      the program of main.cc
  DELAYQ_CALENDAR_RULES=20000    so many random rules, each in every zone around both clock changes of three years
  DELAYQ_SEED=n                  other rules, or the same again

Every answer must be what plain_cron.py expects. croniter must give the same answer, or the difference is of one of the kinds
of kind_of(), which docs/guide/recurring.md names; the test prints how many there were of each. croniter alone cannot be the judge:
around clock changes it follows other rules, and has a bug.
"""
import collections
import concurrent.futures
import datetime
import os
import random
import subprocess
import sys
import zoneinfo

import croniter

import plain_cron

RULES = int(os.environ.get("DELAYQ_CALENDAR_RULES", 300))
SEED = int(os.environ.get("DELAYQ_SEED", 20261118))
JOBS = os.cpu_count() if "DELAYQ_CALENDAR_RULES" in os.environ else 1
CHUNK = 100
SHOWN = 20

YEARS = (2024, 2025, 2026)
# Zone -> years. Clocks change at 2:00, at 1:00 and at midnight; by one hour, two hours and half an hour; in Dublin and Casablanca
# winter (or Ramadan) is the exception. Shanghai has no changes, and is asked around those of Berlin.
ZONES = {
    "Europe/Berlin": YEARS,
    "Europe/Dublin": YEARS,
    "America/New_York": YEARS,
    "America/Havana": YEARS,
    "America/Santiago": YEARS,
    "America/Sao_Paulo": (2016, 2017, 2018),
    "Africa/Cairo": YEARS,
    "Africa/Casablanca": YEARS,
    "Australia/Lord_Howe": YEARS,
    "Pacific/Chatham": YEARS,
    "Antarctica/Troll": YEARS,
    "Asia/Shanghai": YEARS,
}
CHANGES = {name: plain_cron.clock_changes(name, years) or plain_cron.clock_changes("Europe/Berlin", years) for name, years in ZONES.items()}


def questions(rule, dice):
    """(zone, moment): one for each clock change of each zone, on the day before it or in the two hours around it."""
    for name, changes in CHANGES.items():
        for change in changes:
            after = change + dice.choice((-dice.randrange(26 * 3600), -dice.randrange(7200), dice.randrange(7200)))
            yield name, after // 900 * 900 if dice.random() < 0.5 else after


def answers(program, asked):
    lines = "".join(f"{rule.text}\t{zone}\t{after}\t1\n" for rule, zone, after in asked)
    found = subprocess.run([program], input=lines, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    assert len(found) == len(asked), f"{len(found)} answers to {len(asked)} questions"
    return found


def of_croniter(rule, zone, after):
    iterator = croniter.croniter(rule.croniter, datetime.datetime.fromtimestamp(after, zone), second_at_beginning=True)
    return int(iterator.get_next(float))


def kind_of(rule, zone, after, ours, theirs):
    """What makes croniter's answer another one; None when there is no excuse."""
    is_repeated = {moment: datetime.datetime.fromtimestamp(moment, zone).fold == 1 for moment in (ours, theirs)}
    shift = plain_cron.offset_at(zone, ours) - plain_cron.offset_at(zone, ours - 1)
    if rule.names_hours and theirs < ours and is_repeated[theirs]:
        return "croniter runs twice: the local time comes for the second time"
    if rule.names_hours and shift > datetime.timedelta() and theirs == ours + rule.seconds[0]:
        return "croniter waits for the rule's second after a gap"
    if not rule.names_hours and ours < theirs and is_repeated[ours]:
        if zone.key == "Australia/Lord_Howe":
            return "croniter misses an occurrence in a repeated half hour"
        # After the repeated time the rule rests until the offset is the first one again: croniter sees no change between.
        if plain_cron.offset_at(zone, after) == plain_cron.offset_at(zone, theirs):
            return "croniter misses the repeated time before a rest of months"
    return None


def check(rule, zone, after, answer):
    """Returns what to count, and what is wrong or None."""
    ours = int(answer) if answer else None
    expected = plain_cron.next_after(rule, zone, after)
    show = lambda moment: moment and datetime.datetime.fromtimestamp(moment, zone).isoformat()  # noqa: E731
    asked = f"{rule.text!r} in {zone.key} after {show(after)}: {show(ours)}"
    if expected is None and (ours is None or ours - after > plain_cron.HORIZON.total_seconds()):
        return "beyond five years", None
    if ours != expected:
        return "wrong", f"{asked}, expected {show(expected)}"
    if rule.croniter is None:
        return "not a rule for croniter", None
    theirs = of_croniter(rule, zone, after)
    if ours == theirs:
        return "equal", None
    kind = kind_of(rule, zone, after, ours, theirs)
    return (kind, None) if kind else ("wrong", f"{asked}, croniter says {show(theirs)}")


def run(program, chunk):
    """Compares CHUNK rules. Returns the counts, and what was wrong."""
    counts, wrong = collections.Counter(), []
    dice = random.Random(f"{SEED} {chunk}")
    rules = [plain_cron.Rule(dice) for _ in range(min(CHUNK, RULES - chunk * CHUNK))]
    asked = [(rule, zone, after) for rule in rules for zone, after in questions(rule, dice)]
    for (rule, zone, after), answer in zip(asked, answers(program, asked)):
        if answer.startswith("error: "):
            # Of all rules that are made here, only those that never match are to be refused.
            never = answer.endswith("no day ever matches it") and not rule.matches_any_day()
            kind, problem = ("never matches", None) if never else ("wrong", f"{rule.text!r}: {answer}")
        else:
            kind, problem = check(rule, zoneinfo.ZoneInfo(zone), after, answer)
        counts[kind] += 1
        if problem:
            wrong.append(problem)
    return counts, wrong


def main(program):
    counts, wrong = collections.Counter(), []
    chunks = range((RULES + CHUNK - 1) // CHUNK)
    with concurrent.futures.ProcessPoolExecutor(JOBS) as pool:
        for some, problems in pool.map(run, [program] * len(chunks), chunks):
            counts += some
            wrong += problems
    print(f"seed {SEED}, {RULES} rules in {len(ZONES)} zones, {sum(counts.values())} questions")
    for kind, count in counts.most_common():
        print(f"{count:10}  {kind}")
    for problem in wrong[:SHOWN]:
        print(problem)
    # A generator that makes nothing but easy rules would prove nothing.
    assert counts["equal"] > sum(counts.values()) // 2, "croniter was hardly asked"
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
