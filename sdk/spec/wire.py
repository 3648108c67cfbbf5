#!/usr/bin/env python3
"""The server of a call in wire.json, for the runners of all languages.

    wire.py NAME    plays the server of the call with this name

Prints its port, and serves until its standard input ends. Then it compares the commands that have come with `sent` of the call:
without a difference it ends with 0, otherwise it prints the difference and ends with 1.
"""
import collections
import json
import pathlib
import socket
import sys
import threading

HELLO = b"%2\r\n$6\r\nserver\r\n$6\r\ndelayq\r\n$5\r\nproto\r\n:3\r\n"
UNKNOWN = "-INVALID unknown command\r\n"
LONGEST = 60.0  # seconds that a connection may be silent


class Closed(Exception):
    """The connection is to be closed."""


def read_command(stream):
    """The words of the next command. None: the other side has closed. Raises ValueError if it is no command."""
    line = stream.readline()
    if not line:
        return None
    if line[:1] != b"*":
        raise ValueError(line)
    words = []
    for _ in range(int(line[1:])):
        words.append(stream.read(int(stream.readline()[1:]) + 2)[:-2])
    return words


class Play:
    """What the server of one call says, and what has come."""

    def __init__(self, answers):
        self.answers = {verb.encode(): given for verb, given in {"HELLO": ["hello"], **answers}.items()}
        self.lock = threading.Lock()
        self.sent = collections.Counter()

    def next_answer(self, verb):
        """The last answer of a verb is given again and again."""
        with self.lock:
            number = self.sent[verb]
            self.sent[verb] += 1
        given = self.answers.get(verb, [UNKNOWN])
        return given[min(number, len(given) - 1)]

    def say(self, connection, stream, answer):
        if isinstance(answer, list):
            for part in answer:
                self.say(connection, stream, part)
        elif answer == "hello":
            connection.sendall(HELLO)
        elif answer == "silence":
            while stream.read1(4096):
                pass
            raise Closed
        elif answer == "cut":
            raise Closed
        else:
            text = answer["repeat"] * answer["times"] if isinstance(answer, dict) else answer
            connection.sendall(text.encode())

    def serve(self, connection):
        connection.settimeout(LONGEST)
        try:
            with connection, connection.makefile("rb") as stream:
                while True:
                    try:
                        words = read_command(stream)
                    except ValueError:
                        connection.sendall(b"-ERR Protocol error: not a command\r\n")
                        raise Closed from None
                    if words is None:
                        raise Closed
                    self.say(connection, stream, self.next_answer(words[0].upper()))
        except (OSError, Closed):
            pass
        finally:
            connection.close()

    def accept(self, listener):
        while True:
            connection, _ = listener.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()


def main():
    table = json.loads(pathlib.Path(__file__).with_name("wire.json").read_text())
    (call,) = [each for each in table["calls"] if each["name"] == sys.argv[1]]
    play = Play(call["server"])
    listener = socket.create_server(("127.0.0.1", 0), backlog=100)
    threading.Thread(target=play.accept, args=(listener,), daemon=True).start()
    print(listener.getsockname()[1], flush=True)
    sys.stdin.buffer.read()
    sent = {verb.decode(errors="replace"): count for verb, count in play.sent.items()}
    wrong = {verb: f"sent {sent.get(verb, 0)} times, expected {count}" for verb, count in call.get("sent", {}).items() if sent.get(verb, 0) != count}
    if wrong:
        print(wrong, flush=True)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
