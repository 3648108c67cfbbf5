#!/usr/bin/env python3
"""A black-box model of the documents. Random verbs over RESP and HTTP, restarts and kill -9, and every answer compared with what
docs/reference says. A failure is a seed.

  tests/model/run.py [--engine memory|journal|redis|redis2|all] [--seeds 1-20] [--calls 1500] [--seconds 600]
  tests/model/run.py --engine journal --seed 7            the same choices again, with all calls on the screen
  tests/model/run.py --engine memory --canary lost        must fail: the model would notice

The seed settles the calls, not how long they take. A call during which a job falls due proves nothing: such a seed is played once more."""
import argparse
import collections
import concurrent.futures
import pathlib
import sys
import time
import traceback

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
# pylint: disable=wrong-import-position
from comparing import TooSlow
from places import PLACES
from player import Player
from rules import Difference

SHOWN = 40
TRIES = 4


def parse_seeds(text):
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def play(engine, seed, options, deadline):
    """Answers the player when there was no difference, else None."""
    said = collections.deque(maxlen=SHOWN)

    def say(text):
        said.append(text)
        if options.verbose:
            print(text, flush=True)

    place = PLACES[engine]()
    player = None
    is_right = False
    try:
        place.open()
        player = Player(place, seed, say)
        player.play(options.calls, deadline, options.canary)
        is_right = True
        return player
    except TooSlow:
        is_right = True
        raise
    except (Difference, AssertionError, OSError) as problem:
        print(*said, sep="\n")
        if not isinstance(problem, Difference):
            traceback.print_exc()
        print(f"\n{engine}, seed {seed}, call {player.calls if player else 0}: {problem}\nlogs: {place.directory}\n"
              f"again: tests/model/run.py --engine {engine} --seed {seed} --calls {options.calls}", flush=True)
        return None
    finally:
        if player:
            player.close()
        place.close(keep_logs=not is_right)


def play_until_it_proves_something(engine, seed, options, deadline):
    for _ in range(TRIES):
        try:
            return play(engine, seed, options, deadline)
        except TooSlow:
            print(f"{engine} seed {seed}: the machine was too slow for a moment; once more", flush=True)
    raise RuntimeError(f"{engine} seed {seed}: the machine is too slow")


def play_seeds(engine, seeds, options):
    """How many seeds were played, with how many calls and kills, and how many of them showed a difference."""
    deadline = time.monotonic() + options.seconds
    played = calls = kills = failed = 0
    for seed in seeds:
        if time.monotonic() > deadline:
            break
        player = play_until_it_proves_something(engine, seed, options, deadline)
        played += 1
        failed += player is None
        calls += player.calls if player else 0
        kills += player.kills if player else 0
    return played, calls, kills, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", default="all", choices=[*PLACES, "all"])
    parser.add_argument("--seeds", type=parse_seeds, default=range(1, 6), metavar="FIRST-LAST")
    parser.add_argument("--seed", type=int, help="one seed, with all its calls")
    parser.add_argument("--calls", type=int, default=1_500, help="of each seed")
    parser.add_argument("--seconds", type=float, default=600, help="for all seeds of an engine; the engines are played side by side")
    parser.add_argument("--canary", choices=["lost", "early", "acked"], help="one job suffers this by stealth, and the run must fail by it")
    options = parser.parse_args()
    options.verbose = options.seed is not None
    seeds = [options.seed] if options.verbose else options.seeds
    engines = list(PLACES) if options.engine == "all" else [options.engine]
    # Most of the time a run waits for something to fall due, so the engines are played side by side.
    with concurrent.futures.ProcessPoolExecutor(len(engines)) as processes:
        played, calls, kills, failed = map(sum, zip(*processes.map(play_seeds, engines, [seeds] * len(engines), [options] * len(engines))))
    print(f"{played} seeds, {calls} calls, {kills} kill -9, {failed} with differences")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
