"""Did ringmain hear what a program says that it asked of CUDA? And, for recordings: the same in words that hold on any machine."""

import json
import sys
from collections import Counter, defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "adapters" / "cuda"))
import served_calls

# What a program can know of its own calls; contexts, numbers of calls and times are CUPTI's to tell.
FIELDS = ("channel", "api", "layer", "thread", "result", "phase", "event", "stream", "flags", "priority", "address", "memory", "bytes",
          "generation")
UNTOLD = ("cuda.source", "cuda.context", "cuda.capture")


class Different(Exception):
    """Where what was heard is not what was done."""


def read_lines(path):
    return [json.loads(line) for line in Path(path).read_text().splitlines()] if Path(path).exists() else []


def told_by(ledger):
    """The events of a program's own lines, by thread."""
    calls = []
    for line in ledger:
        call = {"context": 0, "graph": "0x0", "forbidden": False, **line}
        if served_calls.stem(call["name"])[0].startswith("Stream") and call["stream"] is None:
            call["stream"] = call["handle"]
        calls.append(call)
    threads = defaultdict(list)
    for (_, thread), events in served_calls.expected(calls).items():
        threads[thread] += [{key: event[key] for key in FIELDS if key in event} for event in events]
    return dict(threads)


def calls_of(events):
    """Of JSON lines: what is said of calls, by thread, in order."""
    threads = defaultdict(list)
    for event in sorted((one for one in events if one["channel"].startswith("cuda.")), key=lambda one: one["time_ns"]):
        if event["channel"] not in UNTOLD:
            threads[event["thread"]].append({key: event[key] for key in FIELDS if key in event})
    return dict(threads)


def same_life(lives, one, other):
    """Generations need not count from 1: each life of an address has its own, which stays the same, and 0 is that of none."""
    if "generation" not in one or "generation" not in other:
        return True
    done, got = one["generation"], other["generation"]
    if done == 0 or got == 0:
        return done == got
    key = (served_calls.class_of(one["channel"].removeprefix("cuda."), one.get("memory", "")),
           one.get("event", one.get("address", one.get("stream"))))
    known = lives.setdefault(key, {})
    return known.setdefault(done, got) == got and len(set(known.values())) == len(known)


def compare(ledger, events):
    """How many events there are, all alike; or raises Different, with the first that is not."""
    expected, heard, lives = told_by(ledger), calls_of(events), {}
    for thread, done in expected.items():
        got = heard.get(thread, [])
        for at, (one, other) in enumerate(zip(done, got)):
            # Old lines of JSON have no field that a newer source says, nor the other way round.
            differing = {key: (one.get(key), other.get(key)) for key in one.keys() & other.keys()
                         if key != "generation" and one[key] != other[key]}
            if not same_life(lives, one, other):
                differing["generation"] = (one["generation"], other["generation"])
            if differing:
                raise Different(f"event {at} of thread {thread}, {one['api']}: (done, heard) {differing}")
        if len(done) != len(got):
            raise Different(f"thread {thread} did what makes {len(done)} events, and {len(got)} were heard; then "
                            f"{(done + got)[min(len(done), len(got))]}")
    if extra := heard.keys() - expected.keys():
        raise Different(f"{len(extra)} threads were heard that did nothing, the first: {heard[min(extra)][:1]}")
    return sum(map(len, expected.values()))


def counts(events):
    """How often each channel spoke, for a line of a report."""
    return dict(sorted(Counter(one["channel"].removeprefix("cuda.") for one in events if one["channel"].startswith("cuda.")).items()))


def in_words(events):
    """Lines without addresses, threads' numbers, times: a handle is the Nth of its class whose life began."""
    names, threads, lines = {}, {}, []

    def name(kind, address, generation):
        if address <= 2 or address == served_calls.NO_STREAM:
            return "-" if address == served_calls.NO_STREAM else str(address)
        key = (kind, address, generation)
        if key not in names:
            names[key] = f"{kind}:{1 + sum(1 for one in names if one[0] == kind)}"
        return names[key]

    calls = calls_of(events)
    for thread in sorted(calls, key=lambda one: min(at["time_ns"] for at in events if at.get("thread") == one)):
        threads[thread] = len(threads) + 1
        for event in calls[thread]:
            channel = event["channel"].removeprefix("cuda.")
            words = [str(threads[thread]), channel, event["api"], event["layer"], event["phase"], str(event["result"])]
            if "event" in event:
                words.append(name("event", event["event"], event["generation"]))
            if "address" in event:
                words.append(name(served_calls.class_of(channel, event["memory"]), event["address"], event["generation"]))
                words += [event["memory"], str(event["bytes"])]
            if "stream" in event:
                words.append(name("stream", event["stream"], 0))
            words += [f"{key}={event[key]}" for key in ("flags", "priority") if key in event]
            lines.append(" ".join(words))
    return lines
