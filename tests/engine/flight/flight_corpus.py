#!/usr/bin/env python3
"""Writes small files of the flight recorder into a folder, as docs/flight-ring.md describes them and not as the library does.

They are where flight_fuzz begins, and RingReaderTest reads them: so the page, this script and the library agree.
usage: flight_corpus.py FOLDER
"""
import pathlib
import struct
import sys

MASK = (1 << 64) - 1
FIRST, SECOND = 0x9D3C5A71E86B42F5, 0x4BE197D2C0735A9D  # Sum's, of engine/flight/record.hpp
SALT = 0x1234567


def fold(a, b):
    product = a * b
    return (product ^ product >> 64) & MASK


def sum_of_words(salt, pairs):
    state = salt ^ FIRST
    for a, b in pairs:
        state = (fold(a ^ state, b ^ SECOND) + (a ^ b << 1 & MASK)) & MASK
    return fold(state ^ SECOND, FIRST)


def pairs_of(data):
    padded = data + bytes(-len(data) % 16)
    words = struct.unpack(f"<{len(padded) // 8}Q", padded)
    return list(zip(words[::2], words[1::2]))


def sum_of(salt, data):
    return sum_of_words(salt, pairs_of(data) + [(len(data), 0)])


class Row:
    """A row of cells and the words of its writer."""

    def __init__(self, cells):
        self.cells, self.data = cells, bytearray(cells * 64)
        self.position = self.number = self.before = 0

    def record(self, payload, time=1, sequence=1, schema=7, source=1, code=0):
        cells = (len(payload) + 48 + 63) // 64
        self.number += 1
        packed = len(payload) | code << 11 | self.before << 16 | source << 21 | (self.number % (1 << 27)) << 37
        generation = self.position + 1
        total = sum_of_words(SALT, [(generation, packed), (time, sequence), (schema, len(payload))] + pairs_of(payload))
        record = struct.pack("<6Q", generation, total, time, sequence, schema, packed) + payload
        for i, byte in enumerate(record):
            self.data[(self.position * 64 + i) % len(self.data)] = byte
        self.position += cells
        self.before = cells

    def line(self, at, under_way=0):
        return struct.pack("<5Q", at, self.cells, self.position + under_way, self.position, self.number)


def text(kind, number, data):
    head = struct.pack("<3Q", kind << 32 | len(data), number, sum_of(SALT, data))
    entry = struct.pack("<IIQQ", kind, len(data), sum_of(SALT, head), number) + data
    return entry + bytes(-len(entry) % 16)


def operation(number):
    source_and_kind = 1 | 2 << 32
    total = sum_of_words(SALT, [(number, 5), (source_and_kind, 3), (number, 4096)])
    return struct.pack("<8Q", 2 * (number + 1), total, number, 5, source_and_kind, 3, number, 4096)


def file_of(rings, under_way=0):
    said = (text(1, 17, b"ncclAllReduce") + text(2, 7, b"a schema") + text(3, 1, struct.pack("<Q", 7) + b"collective.issued")
            + text(4, 1, b"collective.>") + text(5, 1, struct.pack("<4I", 1, 2, 3, 0) + b"trainer"))
    operations = operation(1) + bytes(64) + operation(2)
    lines_at, lines = 4096, 128 * len(rings)
    operations_at = lines_at + lines
    text_at = operations_at + len(operations)
    cells_at = (text_at + len(said) + 127) // 128 * 128
    cells = sum(len(ring.data) + len(annex.data) for ring, annex in rings)
    size = cells_at + cells
    fixed = struct.pack("<8sIIQQQ16sQQ", b"RMFLIGHT", 1, 4096, 0x0102030405060708, size, SALT, bytes(range(16)), 99, 0)
    fixed += struct.pack("<12I", 4242, 1000, 3, 1, 8, 2, 0, rings[0][0].cells, rings[0][1].cells, 64, 48, 1024)
    fixed += struct.pack("<8Q", lines_at, lines, operations_at, len(operations), text_at, len(said), cells_at, cells)
    fixed += b"node7".ljust(128, b"\0") + b"job-12".ljust(128, b"\0") + b"torchrun".ljust(32, b"\0") + b"train".ljust(32, b"\0")
    fixed += struct.pack("<Q", sum_of(0, fixed))
    counts = struct.pack("<8Q", len(said), 0, 0, 0, 0, 1, 1, 0)
    clock = struct.pack("<QQQ", 1000, 1700000000000000000, 1)
    clocks = clock + struct.pack("<Q", sum_of(SALT, clock))
    data = bytearray(fixed.ljust(1024, b"\0") + counts.ljust(1024, b"\0") + clocks.ljust(2048, b"\0"))
    at = cells_at
    for ring, annex in rings:
        data += ring.line(at, under_way) + annex.line(at + len(ring.data)) + struct.pack("<3Q", 1, 0, 1) + bytes(24)
        at += len(ring.data) + len(annex.data)
    data += operations + said
    data += bytes(cells_at - len(data))
    for ring, annex in rings:
        data += ring.data + annex.data
    return bytes(data)


def filled(cells, records):
    row = Row(cells)
    for i in range(records):
        row.record(bytes((i + j) % 251 for j in range(i * 37 % 300)), time=100 + i, sequence=i + 1, code=i % 9)
    return row


def file_with_a_ring_of(cells):
    """As "some", but its ring is said to lie behind it, with so many cells, all of them written."""
    data = bytearray(file_of([(filled(32, 5), filled(32, 2))]))
    at, size = len(data), 1 << 32
    data[24:32] = struct.pack("<Q", size)
    data[168:184] = struct.pack("<2Q", at, size - at)
    data[504:512] = struct.pack("<Q", sum_of(0, bytes(data[:504])))
    data[4096:4176] = struct.pack("<10Q", at, cells, cells, cells, cells, at + 64 * cells, 32, 0, 0, 0)
    return bytes(data)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    files = {
        "empty": file_of([(filled(32, 0), filled(32, 0))]),
        "some": file_of([(filled(32, 5), filled(32, 2))]),
        "wrapped": file_of([(filled(64, 200), filled(32, 50)), (filled(64, 3), filled(32, 0))]),
        "torn": file_of([(filled(32, 90), filled(32, 1))], under_way=3),
    }
    files["cut"] = files["wrapped"][:-700]
    files["header"] = files["some"][:4096]
    for name, data in files.items():
        (folder / name).write_bytes(data)


if __name__ == "__main__":
    main()
