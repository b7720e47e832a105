#!/usr/bin/env python3
"""Which structure bends first on a machine with many cores? Computed from counted lines and instructions; nothing is measured.

Each structure has a cost, counted in the source: instructions of the thread that does the work, cache lines that another core
wrote, and interrupts. With a time for each of the three that gives how many events a second a publisher may publish before the
structure is full, if all publishers of the machine publish alike. The smallest of these is what bends first. What the figures
say, and what then: docs/notes/2026-11-27-many-cores-on-paper.md.
"""

import argparse
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
QUANTUM = 256  # events of one turn, at most: engine/deliver/worker.cpp
WORKERS_MAX = 32  # of one bus: engine/deliver/workers.hpp

# Lines that move between cores.
SLOT_LINES = 48 / 64  # an event of 32 bytes and its header, written by the publisher, read by the worker
LONE_LINES = 1.25  # alone: one line; each fourth slot of 48 bytes has its payload on the line after its header's
# A turn where more channels wait than there are workers (engine/deliver/ready_channels.hpp), all on the line of `passed`: a
# read-modify-write takes the channel, one passes it on, and two looks whether anything waits fetch the line anew.
TURN_MOVES = 4
# An event that finds its worker searching: `idle` is changed twice (Worker::stop_searching, Worker::search).
SEARCH_MOVES = 2
# Instructions that no file counts: TestBus::deliver() with nothing there, by callgrind, for a channel with 1 and with 65 lanes, and
# for 65 channels with one.
LOOK_BY_HAND = 424
LOOK_LANE, LOOK_CHANNEL = (3624 - LOOK_BY_HAND) / 64, (12392 - LOOK_BY_HAND) / 64
# Bytes: a lane with its two segments of 32 slots (engine/publish/segment_size.hpp, segments.hpp, lane.hpp).
LANE_BYTES = 2 * (32 * 48 + 128) + 320


def counted():
    """Of GCC 12: what `./dev test` compares each build with."""
    return json.loads((ROOT / "bench" / "instructions" / "GNU-12.json").read_text(encoding="utf-8"))


class Machine:
    """So many cores, in complexes of cores that share a cache, on so many sockets."""

    def __init__(self, cores, complex_, sockets, times):
        self.cores, self.sockets, self.times = cores, sockets, times
        socket = cores // sockets
        near, far = min(complex_, socket), socket
        others = cores - 1
        # The mean over all pairs: publishers and workers lie anywhere.
        self.c2c = ((near - 1) * times.near + (far - near) * times.far + (cores - far) * times.socket) / others


class Load:
    """Cores are workers and publishers, at least `each` publishers for a worker; `channels` for each worker."""

    def __init__(self, machine, each, channels, callback_ns):
        self.machine, self.channels, self.callback_ns = machine, channels, callback_ns
        self.workers = min(WORKERS_MAX, max(1, machine.cores // (each + 1)))
        self.publishers = machine.cores - self.workers


def structures(load):
    """(name, how many events a second each publisher may publish before it is full)."""
    machine, times, cost = load.machine, load.machine.times, counted()
    c2c, publishers = machine.c2c, load.publishers

    def worker(instructions, lines):
        each = instructions * times.instruction + lines * c2c + load.callback_ns
        return 1e9 * load.workers / each / publishers

    def line(moves, events):
        return 1e9 * events / (moves * c2c) / publishers

    found = [
        ("publisher's core, full runs", 1e9 / (cost["publish_segments"] * times.instruction + times.overlap * SLOT_LINES * c2c)),
        ("worker's core, full runs", worker(cost["dispatch_segments"], times.overlap * SLOT_LINES)),
        ("worker's core, lone events", worker(cost["dispatch_alone_segments"] - LOOK_BY_HAND, LONE_LINES)),
    ]
    if load.workers > 1:
        found += [("word of searching workers, lone events", line(SEARCH_MOVES, 1))]
        if load.channels > 1:
            found += [("list of ready channels, full turns", line(TURN_MOVES, QUANTUM)),
                      ("list of ready channels, lone events", line(TURN_MOVES, 1))]
    # Each park interrupts every core that runs a thread of the process: a hundredth of each core is the limit.
    found += [("barrier at each park, an event each", 0.01 * 1e9 / times.interrupt / publishers)]
    return found


def looks_ns(load):
    """How long a worker that finds nothing needs to look at all that is its own: a lone event waits for half of it."""
    lanes = load.publishers  # each publisher has a lane in each channel of one worker, at worst
    return (LOOK_CHANNEL * load.channels + LOOK_LANE * lanes * load.channels) * load.machine.times.instruction


def parse(words):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--near", type=float, default=32, help="ns for a line from a core of the same complex: 32")
    parser.add_argument("--far", type=float, default=152, help="ns from a core of another complex: 152")
    parser.add_argument("--socket", type=float, default=300, help="ns from another socket: 300, assumed")
    parser.add_argument("--instruction", type=float, default=0.105, help="ns for an instruction: 0.105")
    parser.add_argument("--overlap", type=float, default=0.41, help="share of a line's time that is not hidden in a stream: 0.41")
    parser.add_argument("--interrupt", type=float, default=1000, help="ns that a barrier takes from each core: 1000, assumed")
    parser.add_argument("--callback", type=float, default=100, help="ns of a callback: 100")
    parser.add_argument("--channels", type=int, default=4, help="channels for each worker: 4")
    parser.add_argument("--json", action="store_true", help="the same as JSON")
    arguments = parser.parse_args(words)
    for name, value in vars(arguments).items():
        if not isinstance(value, bool) and not value > 0:
            parser.error(f"--{name} wants a number above 0")
    return arguments


MACHINES = ((8, 8, 1), (64, 8, 1), (192, 8, 2))
EACH = (1, 7, 31)


def compute(arguments):
    rows = []
    for cores, complex_, sockets in MACHINES:
        machine = Machine(cores, complex_, sockets, arguments)
        for each in EACH:
            if each >= cores:
                continue
            load = Load(machine, each, arguments.channels, arguments.callback)
            full = structures(load)
            rows.append({"cores": cores, "sockets": sockets, "publishers": load.publishers, "workers": load.workers,
                         "c2c_ns": round(machine.c2c, 1), "full_at": {name: round(rate) for name, rate in full},
                         "first": min((one for one in full if "lone" not in one[0] and "park" not in one[0]),
                                      key=lambda one: one[1])[0],
                         "first_of_lone_events": min((one for one in full if "lone" in one[0]), key=lambda one: one[1])[0],
                         "looks_ns": round(looks_ns(load)),
                         "lanes_mib": round(LANE_BYTES * load.publishers * arguments.channels * load.workers / 2**20, 1)})
    return rows


def table(rows):
    names = list(dict.fromkeys(name for row in rows for name in row["full_at"]))
    lines = ["| | " + " | ".join(f"{row['cores']} cores, {row['publishers']}:{row['workers']}" for row in rows) + " |",
             "|---" * (len(rows) + 1) + "|",
             "| core to core, mean of all pairs, ns | " + " | ".join(f"{row['c2c_ns']:g}" for row in rows) + " |"]
    for name in names:
        cells = []
        for row in rows:
            value = row["full_at"].get(name)
            text = "–" if value is None else f"{value / 1e6:.3g} M" if value >= 1e6 else f"{value / 1e3:.3g} k"
            cells.append(f"**{text}**" if name in (row["first"], row["first_of_lone_events"]) else text)
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    lines.append("| all looks of a worker once, ns | " + " | ".join(str(row["looks_ns"]) for row in rows) + " |")
    lines.append("| lanes, if every thread publishes on every channel, MiB | " + " | ".join(f"{row['lanes_mib']:g}" for row in rows) + " |")
    return "\n".join(lines)


def main(words=None):
    arguments = parse(words)
    rows = compute(arguments)
    print(json.dumps(rows, indent=1) if arguments.json else table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
