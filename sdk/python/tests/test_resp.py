"""What is on the wire, without a server: replies in pieces, bounds, durations and moments, the words of commands."""
from __future__ import annotations

import random
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from support import seed

from delayq import Error, NewJob, _commands, _resp, _times
from delayq._calls import Lost, Rounds, make_options, slices
from delayq._engine import clean_reason, in_order
from delayq._resp import Parser, ProtocolError

REPLIES: list[tuple[bytes, Any]] = [
    (b"+OK\r\n", b"OK"), (b":-7\r\n", -7), (b"(123456789012345678901234567890\r\n", 123456789012345678901234567890), (b"_\r\n", None),
    (b"#t\r\n", True), (b"#f\r\n", False), (b",1.5\r\n", 1.5), (b"$-1\r\n", None), (b"*-1\r\n", None), (b"$0\r\n\r\n", b""),
    (b"$5\r\na\r\nb\x00\r\n", b"a\r\nb\x00"), (b"=7\r\ntxt:abc\r\n", b"abc"), (b"*0\r\n", []), (b"%0\r\n", {}), (b"~2\r\n:1\r\n:2\r\n", [1, 2]),
    (b"*3\r\n:1\r\n*2\r\n$1\r\na\r\n_\r\n%1\r\n$1\r\nk\r\n*1\r\n*0\r\n", [1, [b"a", None], {b"k": [[]]}]),
]
STREAM = b"".join(data for data, _ in REPLIES)
VALUES = [value for _, value in REPLIES]


@pytest.mark.parametrize("data, value", REPLIES, ids=lambda part: repr(part)[:20])
def test_a_reply(data: bytes, value: Any) -> None:
    assert Parser().feed(data) == [value]


def test_replies_that_arrive_byte_by_byte() -> None:
    parser = Parser()
    assert [reply for at in range(len(STREAM)) for reply in parser.feed(STREAM[at:at + 1])] == VALUES


def test_replies_that_arrive_in_random_pieces() -> None:
    chance = random.Random(seed())
    for _ in range(300):
        parser, at, replies = Parser(), 0, []
        while at < len(STREAM):
            size = chance.randrange(1, 40)
            replies += parser.feed(STREAM[at:at + size])
            at += size
        assert replies == VALUES


def test_a_large_text_in_pieces() -> None:
    parser, body = Parser(), bytes(3_000_000)
    data = b"*2\r\n$%d\r\n%b\r\n:1\r\n" % (len(body), body)
    assert [reply for at in range(0, len(data), 65536) for reply in parser.feed(data[at:at + 65536])] == [[body, 1]]


def test_errors() -> None:
    (one, two) = Parser().feed(b"-NOTFOUND there is none\r\n!9\r\nINVALID x\r\n")
    assert isinstance(one, Error) and (one.code, one.message, str(one)) == ("not_found", "there is none", "not_found: there is none")
    assert isinstance(two, Error) and (two.code, two.message) == ("invalid", "x")


def test_what_a_server_pushes_is_passed_over() -> None:
    assert Parser().feed(b">2\r\n+message\r\n:1\r\n:2\r\n") == [2]


@pytest.mark.parametrize("data", [
    b"HTTP/1.1 400 Bad Request\r\n", b":one\r\n", b"$x\r\n", b"*x\r\n", b"?\r\n", b",x\r\n", b"\r\n", b"%1\r\n*0\r\n:1\r\n",
    b"+" + b"x" * (_resp.LONGEST_LINE + 10), b"$%d\r\n" % (_resp.LARGEST_REPLY + 1), b"*%d\r\n" % (_resp.MOST_ITEMS + 1),
    b"%%%d\r\n" % (_resp.MOST_ITEMS // 2 + 1), b"*2\r\n*%d\r\n" % (_resp.MOST_ITEMS - 1), b"*1\r\n" * (_resp.DEEPEST + 1)],
    ids=lambda data: repr(data[:12]))
def test_bounds_and_nonsense(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        Parser().feed(data)


def test_a_reply_of_many_small_parts_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_resp, "LARGEST_REPLY", 1000)
    parser = Parser()
    parser.feed(b"*100\r\n")
    with pytest.raises(ProtocolError):
        for _ in range(100):
            parser.feed(b"$20\r\n01234567890123456789\r\n")


@pytest.mark.parametrize("value, text", [
    (1800, "1800000ms"), (0.25, "250ms"), (0.0001, "1ms"), (0, "0ms"), (1.1, "1100ms"), (timedelta(days=30), "2592000000ms"),
    (timedelta(microseconds=1), "1ms"), (timedelta(milliseconds=-1), "-1ms"), ("1h30m", "1h30m")])
def test_a_duration(value: _times.Duration, text: str) -> None:
    assert _times.from_duration("process_in", value) == text


@pytest.mark.parametrize("value, text", [
    (1900000000, "1900000000.000"), (1900000000.1234, "1900000000.123"), (datetime(2030, 3, 17, 17, 46, 40, 123000, timezone.utc), "1900000000.123"),
    (datetime(2030, 3, 17, 19, 46, 40, tzinfo=timezone(timedelta(hours=2))), "1900000000.000"), ("2030-01-31T08:00:00Z", "2030-01-31T08:00:00Z")])
def test_a_moment(value: _times.Moment, text: str) -> None:
    assert _times.from_moment("process_at", value) == text


@pytest.mark.parametrize("function, value", [
    (_times.from_duration, True), (_times.from_duration, float("nan")), (_times.from_duration, None), (_times.from_duration, datetime.now()),
    (_times.from_moment, datetime(2030, 1, 1)), (_times.from_moment, float("inf")), (_times.from_moment, timedelta(1)), (_times.from_moment, False)])
def test_what_is_no_time_names_its_field(function: Any, value: Any) -> None:
    with pytest.raises(Error, match="the_field") as caught:
        function("the_field", value)
    assert caught.value.code == "invalid"


@pytest.mark.parametrize("text, value", [
    ("1h30m", timedelta(hours=1.5)), ("250ms", timedelta(milliseconds=250)), ("7d", timedelta(days=7)), ("1m0.5s", timedelta(seconds=60.5))])
def test_a_duration_of_the_server(text: str, value: timedelta) -> None:
    assert _times.to_timedelta(text) == value


@pytest.mark.parametrize("text", ["", "1", "h", "1x", "1h ", "-1s"])
def test_what_is_no_duration_of_the_server(text: str) -> None:
    with pytest.raises(ValueError):
        _times.to_timedelta(text)


def words(data: bytes) -> list[bytes]:
    reply = Parser().feed(data)[0]
    assert isinstance(reply, list)
    return reply


def test_a_push() -> None:
    job = NewJob("t", "1", {"ü": [1, None]}, process_in=1800, priority=7, retry=3, backoff="1s", timeout=5, group="g", callback="http://x/", headers={"a": "b"})
    assert words(_commands.push(job).data) == [
        b"PUSH", b"t", b"1800000ms", '{"ü":[1,null]}'.encode(), b"ID", b"1", b"PRI", b"7", b"ATTEMPTS", b"3", b"BACKOFF", b"1s", b"LEASE", b"5000ms",
        b"GROUP", b"g", b"CALLBACK", b"http://x/", b"HEADER", b"a", b"b", b"REPLACE"]
    assert words(_commands.push(NewJob("t", "1", bytearray(b"\xff"), process_at=1900000000, on_conflict="keep")).data) == [
        b"PUSH", b"t", b"0", b"\xff", b"AT", b"1900000000.000", b"ID", b"1", b"KEEP"]
    assert words(_commands.push(NewJob("t", "1", memoryview(b"x"), on_conflict="reject")).data) == [b"PUSH", b"t", b"0", b"x", b"ID", b"1"]


@pytest.mark.parametrize("job, field", [
    (NewJob("t", "1", object()), "payload"), (NewJob("t", "1", float("nan") * 1j), "payload"), (NewJob(7, "1", ""), "topic"),  # type: ignore[arg-type]
    (NewJob("t", 7, ""), "id"), (NewJob("t", "1", "\ud800"), "payload"), (NewJob("t", "1", "", priority=True), "priority"),  # type: ignore[arg-type]
    (NewJob("t", "1", "", retry="3"), "retry"), (NewJob("t", "1", "", headers={"a": 1}), "headers.a"),  # type: ignore[arg-type, dict-item]
    (NewJob("t", "1", "", on_conflict="explode"), "on_conflict")])  # type: ignore[arg-type]
def test_what_cannot_be_sent_names_its_field(job: NewJob, field: str) -> None:
    with pytest.raises(Error, match=field) as caught:
        _commands.push(job)
    assert caught.value.code == "invalid"


def test_ids_that_are_made_sort_by_time() -> None:
    made = [_commands.new_id() for _ in range(1000)]
    assert len(set(made)) == 1000
    assert [id[:13] for id in made] == sorted(id[:13] for id in made)
    assert all(id[14] == "7" and id[19] in "89ab" for id in made)


@pytest.mark.parametrize("address, host, port", [
    ("localhost", "localhost", 9278), ("10.0.0.1:99", "10.0.0.1", 99), ("[::1]:99", "::1", 99), ("[::1]", "::1", 9278), ("::1", "::1", 9278)])
def test_an_address(address: str, host: str, port: int) -> None:
    options = make_options(address, None, None, False, 1, 1, 1)
    assert (options.host, options.port) == (host, port)


@pytest.mark.parametrize("address", ["", ":99", "host:0", "host:65536", "host:x"])
def test_what_is_no_address(address: str) -> None:
    with pytest.raises(Error, match="address"):
        make_options(address, None, None, False, 1, 1, 1)


def test_slices_are_bounded_and_complete() -> None:
    commands: list[_commands.Command[Any]] = [_commands.push(NewJob("t", "1", "x" * size)) for size in (10, 10, 10, 5000, 10)]
    commands.insert(1, _commands.get("t", "1"))
    parts = [list(part) for part in slices(commands, 3, 1000)]
    assert [len(part) for part in parts] == [2, 3, 1]
    assert [command for part in parts for command in part] == commands
    assert list(slices([], 3, 1000)) == []


def test_what_is_sent_again() -> None:
    commands: list[_commands.Command[Any]] = [
        _commands.push(NewJob("t", "1", "x")), _commands.push(NewJob("t", None, "x")), _commands.push(NewJob("t", "1", "x", on_conflict="reject")),
        _commands.cancel("t", "1"), _commands.cancel_group("g"), _commands.run_schedule("s"), _commands.remove_schedule("s"),
        _commands.get("t", "1"), _commands.reschedule("t", "1", 1, None)]
    for reply, sent_again in ((Lost("x", sent=True), [0, 1, 7, 8]), (Lost("x", sent=False), list(range(9))), (Error("unavailable", ""), [0, 1, 7, 8]),
                              (Error("overloaded", ""), list(range(9))), (Error("conflict", ""), [])):
        rounds = Rounds(commands, 30.0, 0.0)
        pause = rounds.absorb([reply] * 9, 0.0)
        assert (pause is not None) == bool(sent_again)
        assert [at for at, command in enumerate(commands) if command in rounds.due()] == sent_again
        assert all(result is reply for result in rounds.results)


def test_a_job_with_an_id_of_ours_is_kept_when_it_is_sent_again() -> None:
    ours, theirs = _commands.push(NewJob("t", None, "x")), _commands.push(NewJob("t", "1", "x"))
    rounds = Rounds([ours, theirs], 30.0, 0.0)
    rounds.absorb([Lost("x", sent=True)] * 2, 0.0)
    assert words(ours.data)[-1] == b"KEEP" and words(theirs.data)[-1] == b"REPLACE"


def test_it_is_sent_again_when_the_server_says_and_not_for_ever() -> None:
    rounds = Rounds([_commands.get("t", "1")], 10.0, 100.0)
    pause = rounds.absorb([Error("overloaded", "", timedelta(seconds=3))], 100.0)
    assert pause == 3.0
    assert rounds.absorb([Error("overloaded", "", timedelta(seconds=3))], 108.0) is None
    assert rounds.results[0].code == "overloaded"


def test_a_reply_that_makes_no_sense_is_an_error() -> None:
    rounds = Rounds([_commands.cancel_group("g"), _commands.cancel("t", "1")], 10.0, 0.0)
    assert rounds.absorb([b"many", 7], 0.0) is None
    assert [result.code for result in rounds.results] == ["internal", "internal"]


@pytest.mark.parametrize("reason, cleaned", [
    ("a\x00b\x7fc\x85d\te\nf\rg", b"a b c d\te\nf g"), ("x" * 2000, b"x" * 1000), ("€" * 400, "€".encode() * 333), ("a\ud800b", "a\ufffdb".encode())])
def test_a_reason(reason: str, cleaned: bytes) -> None:
    assert clean_reason(reason) == cleaned


def test_topics_that_look_like_options_come_first() -> None:
    assert in_order(["a", "count", "b"]) == ("count", "a", "b")
    with pytest.raises(Error, match="topic"):
        in_order(["wait", "a", "COUNT"])
