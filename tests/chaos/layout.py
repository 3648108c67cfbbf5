"""As much of the keys and records in Redis as it takes to look a job up there: docs/reference/redis-layout.md."""
import re
import struct

PREFIX = "delayq"
WAITING, RESERVED, DONE, DEAD = 0, 2, 3, 4
MASK = (1 << 64) - 1


OCCURRENCE = re.compile(r"(?sa)(.+)@\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z")


def owner_of(name):
    """The schedule that has made a job of that id, or the id itself."""
    found = OCCURRENCE.fullmatch(name)
    return found[1] if found else name


def shard_of(name, shards, version=3):
    if shards == 1:
        return 0
    return siphash((owner_of(name) if version >= 3 else name).encode()) % shards


def tags_of(count, written):
    """By shard. `written` is what delayq:meta says, None where it says nothing."""
    return written.decode().split(" ") if written else [str(shard) for shard in range(count)]


def pool_key(tag, topic):
    return f"{PREFIX}:{{{tag}}}:job:{topic}"


def siphash(data):
    """The low 64 bits of SipHash-2-4-128 with the key that says where jobs are."""
    low, high = 0x64656c6179712072, 0x6564697320736864
    v = [low ^ 0x736f6d6570736575, high ^ 0x646f72616e646f6d ^ 0xee, low ^ 0x6c7967656e657261, high ^ 0x7465646279746573]
    padded = data + bytes(7 - len(data) % 8) + bytes([len(data) & 0xff])
    for word in struct.unpack(f"<{len(padded) // 8}Q", padded):
        v[3] ^= word
        mix(v, 2)
        v[0] ^= word
    v[2] ^= 0xee
    mix(v, 4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def mix(v, rounds):
    a, b, c, d = v
    for _ in range(rounds):
        a = (a + b) & MASK
        b = ((b << 13 | b >> 51) & MASK) ^ a
        a = (a << 32 | a >> 32) & MASK
        c = (c + d) & MASK
        d = ((d << 16 | d >> 48) & MASK) ^ c
        a = (a + d) & MASK
        d = ((d << 21 | d >> 43) & MASK) ^ a
        c = (c + b) & MASK
        b = ((b << 17 | b >> 47) & MASK) ^ c
        c = (c << 32 | c >> 32) & MASK
    v[:] = a, b, c, d


class Record:
    """What a job's record says of where it is: its state, and its lease as consumers have it behind the shard."""

    def __init__(self, record):
        assert record[0] == 0x9c, record[:1]  # an array of twelve
        at, numbers = 1, []
        while len(numbers) < 11:
            first = record[at]
            size = {0xcc: 1, 0xcd: 2, 0xce: 4, 0xcf: 8, 0xd0: 1, 0xd1: 2, 0xd2: 4, 0xd3: 8}.get(first, 0)
            assert size or first < 0x80, first
            numbers.append(int.from_bytes(record[at + 1:at + 1 + size], "big") if size else first)
            at += 1 + size
        number, nonce = numbers[8], numbers[10] >> 1
        self.state, self.lease = numbers[1], f"{number}.{nonce}" if nonce else str(number)

    def is_live(self):
        return self.state in (WAITING, RESERVED)
