"""Is what was said of operations, and told to hooks, what happened? Judged by a program's own log; nothing of ringmain or
PyTorch is in here.

usage: hooks_judge.py FOLDER WORLD_SIZE

FOLDER has log.RANK.json of the program (hooks_program.py) and heard.RANK.jsonl, JSON lines of the events. Exits with 1 after a
line for each thing that is not so.
"""

import collections
import json
import sys
from pathlib import Path

wrong = []


def must(so, *what):
    if not so:
        wrong.append(" ".join(map(str, what)))


def judge(folder, rank):
    log = json.loads((folder / f"log.{rank}.json").read_text())
    events = collections.defaultdict(list)
    for line in (folder / f"heard.{rank}.jsonl").read_text().splitlines():
        event = json.loads(line)
        if event.get("source") == "torch":
            events[event["channel"]].append(event)
    issued = events["collective.issued"]
    calls = collections.Counter((call["group"], call["number"], call["op"]) for call in log["calls"] + log["refused"])
    said = collections.Counter((event["group"], event["correlation"], event["op"]) for event in issued)
    must(said == calls, f"rank {rank}: issued and called differ by {said - calls} and {calls - said}")
    failed = {event["op_id"]: event for event in events["collective.failed"]}
    by_id = {event["op_id"]: event for event in issued}
    refused = collections.Counter((call["group"], call["number"], call["op"], call["reason"]) for call in log["refused"])
    vetoed = collections.Counter((by_id[id]["group"], by_id[id]["correlation"], by_id[id]["op"], event["reason"])
                                 for id, event in failed.items() if event["how"] == "vetoed")
    must(refused and vetoed == refused, f"rank {rank}: vetoed and refused differ: {vetoed - refused}, {refused - vetoed}")
    must(all(event["how"] == "vetoed" for event in failed.values()), f"rank {rank}: others failed: {failed}")
    completed = collections.Counter(event["op_id"] for event in events["collective.completed"])
    must(completed == collections.Counter(id for id in by_id if id not in failed), f"rank {rank}: not each call that was made completed once")
    shapes = collections.Counter((event["op"], event["group"], event["input"], event["output"]) for event in events["collective.shapes"])
    logged = collections.Counter((call["op"], call["group"], call["input"], call["output"]) for call in log["calls"] + log["refused"])
    must(shapes == logged, f"rank {rank}: shapes differ by {shapes - logged} and {logged - shapes}")
    must([id for id, _, _ in log["before"]] == [event["op_id"] for event in sorted(issued, key=lambda one: one["op_id"])],
         f"rank {rank}: pre hooks were not told of each operation once, in order")
    told = [[id, "refused" if id in failed else "issued"] for id, _, _ in log["before"]]
    must(log["after"] == told, f"rank {rank}: post hooks were not told of each once, and how")
    changes = collections.Counter(event["change"] for event in events["collective.group"])
    must(changes["made"] == changes["ended"] > 0, f"rank {rank}: groups {changes}")
    return len(issued)


def main():
    folder, world = Path(sys.argv[1]), int(sys.argv[2])
    said = sum(judge(folder, rank) for rank in range(world))
    print("\n".join(wrong[:50]) or f"{said} operations are as they were")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
