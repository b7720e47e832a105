#!/usr/bin/env python3
"""Does `ringmain sort` name each line that is not a whole event, and read all others right?

usage: sort_lines_test.py TESTCASE, with the program in $RINGMAIN_BINARY
"""

import json
import random
import re
import subprocess
import sys

from sort_test import BINARY, SANITIZED, SortTest, line, main


class SortLinesTest(SortTest):
    """A line that is no whole event is named and never guessed at."""

    def test_a_torn_last_line_is_said_and_left_out_where_that_is_asked_for(self):
        path = self.file("a", line(2, clocks=(0, 0)), line(1), line(3)[:-20])
        self.refuses(path, says=f"{path}, line 3: ")
        self.assertIn("torn", self.said)
        self.assertIn("--skip-torn", self.said)
        self.assertEqual(self.sorts("--skip-torn", path, status=1), [line(1), line(2, clocks=(0, 0))])
        self.assertEqual(len(self.said.splitlines()), 1, self.said)
        self.assertIn(f"1 line was left out: {path}, line 3: ", self.said)

    def test_a_last_line_that_lacks_only_its_end_is_whole(self):
        path = self.file("a", line(1, clocks=(0, 0)), line(2)[:-1])
        self.assertEqual(self.sorts(path), [line(1, clocks=(0, 0)), line(2)])
        self.assertEqual(self.sorts(self.file("b", line(5, clocks=(0, 0)), line(2)[:-1])), [line(2), line(5, clocks=(0, 0))])

    def test_blanks_are_what_a_sink_leaves_of_a_torn_line_and_no_loss(self):
        first = line(2, clocks=(0, 0))[:-1] + b"  \n"
        self.assertEqual(self.sorts(self.file("a", first, b"    \n", b"\n", line(1), b"   ")), [line(1), first])

    def test_what_is_no_event_is_named_with_its_file_and_line(self):
        fine = line(1)[:-1]
        for bad, says in ((b"hello", "no JSON"), (b"[1]", "no JSON object"), (b"{}", '"channel"'),
                          (b'{"channel":"x"}', '"time_ns"'), (b'{"channel":"x","time_ns":1}', '"origin"'),
                          (fine.replace(b":1,", b":1.5,", 1), '"time_ns"'), (fine.replace(b":1,", b':"1",', 1), '"time_ns"'),
                          (fine.replace(b":1,", b":9223372036854775808,", 1), '"time_ns"'),
                          (fine.replace(b"a" * 16, b"a" * 15), '"origin"'), (fine.replace(b'"x"', b"7"), '"channel"'),
                          (fine + b"x", "no JSON"), (fine + fine, "no JSON"), (fine[:-1] + b',"f":01}', "no JSON"),
                          (fine[:-1] + b',"f":nan}', "no JSON"), (fine[:-1] + b',"f":[1,]}', "no JSON"),
                          (fine[:-1] + b',"f":"\xff"}', "no JSON"), (fine[:-1] + b',"f":"\x00"}', "no JSON"),
                          (fine[:-1] + b',"f":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "no JSON"),
                          (fine[:-1] + b',"origin_process":{"monotonic_ns":1}}', '"origin_process"'),
                          (fine[:-1] + b',"origin_process":3}', '"origin_process"'),
                          (fine[:-1] + b',"origin_process":{"monotonic_ns":-9223372036854775808,"realtime_ns":1}}', "clock")):
            with self.subTest(bad=bad[:200]):
                path = self.file("a", line(5, clocks=(0, 0)), bad + b"\n", line(1))
                self.refuses(path, "-o", self.out, says=f"{path}, line 2: ")
                self.assertIn(says, self.said)
                self.assertLess(len(self.said), 400 + len(str(path)))

    def test_a_time_of_day_beyond_what_can_be_counted_is_refused(self):
        most = 2**63 - 1
        path = self.file("a", line(most, clocks=(0, most)), line(1, "b" * 16, (0, 0)))
        self.refuses(path, says="a, line 1: ")

    def test_a_line_that_never_ends_is_refused_and_takes_no_memory(self):
        path = self.file("a", line(1, clocks=(0, 0)))
        with path.open("ab") as growing:
            growing.truncate(1 << 34)  # 16 GiB of zeros, which take no room
        self.refuses(path, says="a, line 2: ")

    def test_of_many_that_are_left_out_the_first_is_named_and_all_are_counted(self):
        path = self.file("a", *(b"log\n" for _ in range(1500)), line(1, clocks=(0, 0)))
        self.assertEqual(self.sorts("--skip-torn", path, status=1), [line(1, clocks=(0, 0))])
        self.assertIn("1,500 lines were left out, the first of them ", self.said)
        self.assertEqual(len(self.said.splitlines()), 1)

    def test_hostile_bytes_are_kept_or_refused_and_never_misplaced(self):
        chance = random.Random(7)
        for round_ in range(40 if SANITIZED else 150):
            origins = [f"{chance.getrandbits(64):016x}" for _ in range(chance.randint(1, 4))]
            offset = {origin: (chance.randrange(1000), chance.randrange(1000)) for origin in origins}
            files = []
            for _ in range(chance.randint(1, 3)):
                known = set()
                for _ in range(chance.randint(0, 30)):
                    origin = chance.choice(origins)
                    clocks = None if origin in known else offset[origin]
                    known.add(origin)
                    files.append((_, line(chance.randrange(2000), origin, clocks, s="\u00e4\u2028\U0001f600" * chance.randrange(3),
                                          f=chance.choice((1.5, -3, None, True, [], {}, [1, {"channel": 3}])))))
            split = chance.randint(0, len(files))
            parts = [[event for _, event in files[:split]], [event for _, event in files[split:]]]
            if files and round_ % 3:
                at = chance.choice([p for p in parts if p])
                victim = chance.randrange(len(at))
                at[victim] = mutated(at[victim], chance)
            paths = [self.file(f"in{n}", *part) for n, part in enumerate(parts)]
            with self.subTest(round=round_, parts=parts):
                self.agrees(paths, parts)

    def agrees(self, paths, parts):
        """The program's answer equals that of a simple model of what is promised."""
        for torn in ((), ("--skip-torn",)):
            want, fault = plainly_sorted([b"".join(part) for part in parts], bool(torn))
            run = subprocess.run([BINARY, "sort", *torn, *map(str, paths)], capture_output=True, timeout=100, check=False)
            said = run.stderr.decode(errors="replace")
            if want is None:
                self.assertEqual((run.returncode, run.stdout), (1, b""), said)
                self.assertRegex(said, fault)
            else:
                self.assertEqual(run.stdout, b"".join(want), said)
                self.assertEqual(run.returncode, 1 if fault else 0, said)
            self.assertLessEqual(len(said.splitlines()), 1)


def mutated(event, chance):
    event = bytearray(event)
    for _ in range(chance.choice((1, 1, 2, 5))):
        at = chance.randrange(len(event))
        how = chance.randrange(5)
        if how == 0:
            event[at] = chance.randrange(256)
        elif how == 1:
            event[at] = chance.choice(b'{}[]",:\\\n0e-.')
        elif how == 2:
            del event[at:at + chance.randint(1, 9)]
        elif how == 3:
            event[at:at] = bytes(chance.randrange(256) for _ in range(chance.randint(1, 9)))
        else:
            event[at:at] = event[at:at + 30]
        event = event or bytearray(b"\n")
    return bytes(event)


def parsed(text):
    """(time, origin, offset of the clocks or None) of a line; None if it is no event."""
    def refuse(_):
        raise ValueError

    def first_of_each(pairs):
        made = {}
        for key, value in pairs:
            made.setdefault(key, value)
        return made

    try:
        event = json.loads(text.decode(), parse_constant=refuse, object_pairs_hook=first_of_each)
        json.dumps(event, ensure_ascii=False).encode()  # no lone surrogates
    except (ValueError, RecursionError):
        return None
    if not isinstance(event, dict) or not isinstance(event.get("channel"), str):
        return None

    def whole(number):
        return isinstance(number, int) and not isinstance(number, bool) and -2**63 <= number < 2**63

    origin = event.get("origin")
    if not whole(event.get("time_ns")) or not isinstance(origin, str) or not re.fullmatch("[0-9a-f]{16}", origin):
        return None
    clocks = None
    if "origin_process" in event:
        process = event["origin_process"]
        if not isinstance(process, dict) or not whole(process.get("monotonic_ns")) or not whole(process.get("realtime_ns")):
            return None
        clocks = process["realtime_ns"] - process["monotonic_ns"]
        if not -2**63 <= clocks < 2**63:
            return None
    return event["time_ns"], origin, clocks


def plainly_sorted(contents, skips):
    """The lines in order, and what the sentence must say; None in place of lines where it is refused."""
    events, offsets, fault = [], {}, None
    for n, content in enumerate(contents):
        lines = content.split(b"\n")
        if lines[-1] == b"":
            lines.pop()
        for number, text in enumerate(lines, 1):
            if not text.strip(b" \t\r"):
                continue
            event = parsed(text)
            if event is None:
                fault = fault or rf"in{n}, line {number}: "
                if not skips:
                    return None, fault
                continue
            events.append((*event, text + b"\n"))
            if event[2] is not None:
                offsets.setdefault(event[1], event[2])
    origins = {event[1] for event in events}
    if len(origins) > 1 and origins - set(offsets):
        return None, "in[01], line [0-9]+: "
    keys = [event[0] + offsets.get(event[1], 0) for event in events]
    if any(not -2**63 <= key < 2**63 for key in keys):
        return None, "in[01], line [0-9]+: "
    order = sorted(range(len(events)), key=lambda i: keys[i])
    return [events[i][3] for i in order], fault


if __name__ == "__main__":
    sys.exit(main())
