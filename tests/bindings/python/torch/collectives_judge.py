"""Is what was said of collectives what happened? Judged by a program's own log and PyTorch's recorder; nothing of ringmain
or PyTorch is in here.

usage: collectives_judge.py FOLDER WORLD_SIZE [--hooks]

FOLDER has log.RANK.json of the program (collectives_program.py) and heard.RANK.jsonl, JSON lines of the events. --hooks:
PyTorch has hooks, so ends of what C++ calls for are said, too. Exits with 1 after a line for each thing that is not so.
"""

import argparse
import collections
import json
import sys
from pathlib import Path

POINT_TO_POINT = ("send", "recv")
ROOTED = ("gather", "scatter")  # ranks move different amounts
LATE_NS = 300_000_000

wrong = []


def must(so, *what):
    if not so:
        wrong.append(" ".join(map(str, what)))


class Rank:
    """What one rank logged, and what was heard of it."""

    def __init__(self, folder, rank):
        self.rank = rank
        self.log = json.loads((folder / f"log.{rank}.json").read_text())
        lines = (folder / f"heard.{rank}.jsonl").read_text().splitlines()
        self.events = collections.defaultdict(list)
        for line in lines:
            event = json.loads(line)
            if event.get("source") == "torch":
                self.events[event["channel"]].append(event)
        self.issued = collections.defaultdict(list)  # group and number: events
        for event in self.events["collective.issued"]:
            self.issued[event["group"], event["correlation"]].append(event)
        self.calls = {(call["group"], call["before"] + 1): call for call in self.log["calls"]}

    def of(self, key):
        """The one that was issued under this number."""
        found = self.issued.get(key, [])
        must(len(found) == 1, f"rank {self.rank}: {key} was issued {len(found)} times")
        return found[0] if found else None

    def judge_issued(self):
        """Each call of Python's once, and each entry of the recorder that is none of them once; nothing else."""
        by_python = {(call["group"], number) for call in self.log["calls"] for number in range(call["before"] + 1, call["after"] + 1)}
        by_cpp = 0
        for key, call in self.calls.items():
            event = self.of(key)
            if event is not None:
                must(event["op"] == call["op"], f"rank {self.rank}: {key} is {call['op']}, and was called {event['op']}")
                must(event["backend"] == "gloo", f"rank {self.rank}: {key} is on {event['backend']}")
                must("to" not in call or event["peer"] == call["to"], f"rank {self.rank}: {key} is to {call.get('to')}")
                must(event["asynchronous"] or not call.get("late"), f"rank {self.rank}: {key} was asynchronous")
                must(bool(event["bytes"]) == (call["op"] != "barrier"), f"rank {self.rank}: {key} moved {event['bytes']} bytes")
        for entry in self.log["recorder"]:
            key = entry["process_group"][0], entry["op_id"]
            event = None
            if key not in by_python:
                by_cpp += 1
                event = self.of(key)
                must(event is None or "gloo:" + event["op"] == entry["profiling_name"], f"rank {self.rank}: {key} is {event}")
            elif key in self.calls:
                event = self.of(key)
            if event is not None:
                must(event["event_sequence"] == entry["collective_seq_id"],
                     f"rank {self.rank}: {key} is the {entry['collective_seq_id']}th, not the {event['sequence']}th")
        said = len(self.events["collective.issued"])
        must(said == len(self.calls) + by_cpp, f"rank {self.rank}: {said} were issued, {len(self.calls)} + {by_cpp} called for")
        must(by_cpp > 0, f"rank {self.rank}: C++ called for nothing")

    def judge_ends(self, hooks):
        """One end for each call of Python's, and the right one."""
        completed = collections.Counter(event["op_id"] for event in self.events["collective.completed"])
        failed = collections.Counter(event["op_id"] for event in self.events["collective.failed"])
        ids = [event["op_id"] for event in self.events["collective.issued"]]
        must(len(set(ids)) == len(ids), f"rank {self.rank}: ids came twice")
        must(set(completed) | set(failed) <= set(ids), f"rank {self.rank}: an end of what was not issued")
        must(all(n == 1 for n in (completed + failed).values()), f"rank {self.rank}: two ends of one operation")
        for key, found in self.issued.items():
            call = self.calls.get(key)
            if call is None:
                must(not hooks or completed[found[0]["op_id"]], f"rank {self.rank}: {key} of C++ did not complete")
                continue
            ended = failed if call.get("killed") else completed
            must(ended[found[0]["op_id"]] == 1, f"rank {self.rank}: {key} {call['op']} did not end as it should")
        must(len(failed) == len(self.log["failures"]), f"rank {self.rank}: {len(failed)} failed, {self.log['failures']}")
        for event in self.events["collective.failed"]:
            must(event["how"] in ("error", "timed_out") and event["reason"], f"rank {self.rank}: no reason: {event}")

    def judge_late(self):
        late = [self.of(key) for key, call in self.calls.items() if call.get("late")]
        durations = {event["op_id"]: event["duration_ns"] for event in self.events["collective.completed"]}
        for event in late:
            took = durations.get(event["op_id"], 0) if event else 0
            must(took >= LATE_NS, f"rank {self.rank}: it waited for a late rank, and took {took} ns")

    def judge_groups(self, world, ended):
        made = {event["group"]: event for event in self.events["collective.group"] if event["change"] == "made"}
        pairs = sorted(event["ranks"] for event in made.values())
        must(pairs == (["0-1"] if self.rank < 2 else []) + [f"0-{world - 1}"] if world > 2 else pairs == ["0-1", "0-1"],
             f"rank {self.rank}: groups of {pairs}")
        for event in made.values():
            must(event["backend"] == "gloo" and event["rank"] == self.rank, f"rank {self.rank}: {event}")
        if self.rank < 2:
            must("a pair" in {event["description"] for event in made.values()}, f"rank {self.rank}: no description")
        over = {event["group"]: event["operations"] for event in self.events["collective.group"] if event["change"] == "ended"}
        if ended:
            counted = collections.Counter(event["group"] for event in self.events["collective.issued"])
            must(over == counted, f"rank {self.rank}: groups ended with {over}, of {counted}")


def judge_together(ranks):
    """The same operation under the same sequence on every rank of a group."""
    by_sequence = collections.defaultdict(dict)
    members = collections.defaultdict(set)
    for rank in ranks:
        for event in rank.events["collective.issued"]:
            members[event["group"]].add(rank.rank)
            if event["op"] not in POINT_TO_POINT:
                by_sequence[event["group"], event["event_sequence"]][rank.rank] = event
            must((event["event_sequence"] == 0) == (event["op"] in POINT_TO_POINT), f"rank {rank.rank}: sequence of {event}")
    for key, events in by_sequence.items():
        must(set(events) == members[key[0]], f"{key}: on ranks {sorted(events)} only")
        words = {event["op"] for event in events.values()}
        must(len(words) == 1, f"{key}: {words}")
        if not words & set(ROOTED):
            must(len({event["bytes"] for event in events.values()}) == 1, f"{key}: ranks move different amounts")


def main():
    options = argparse.ArgumentParser()
    options.add_argument("folder", type=Path)
    options.add_argument("world", type=int)
    options.add_argument("--hooks", action="store_true")
    asked = options.parse_args()
    ranks = [Rank(asked.folder, rank) for rank in range(asked.world) if (asked.folder / f"log.{rank}.json").exists()]
    killed = any(rank.log["failures"] for rank in ranks)
    must(len(ranks) == asked.world - killed, f"{len(ranks)} ranks have a log")
    for rank in ranks:
        rank.judge_issued()
        rank.judge_ends(asked.hooks)
        rank.judge_late()
        rank.judge_groups(asked.world, not killed)
    judge_together(ranks)
    print("\n".join(wrong[:50]) or f"{sum(len(rank.events['collective.issued']) for rank in ranks)} operations are as they were")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
