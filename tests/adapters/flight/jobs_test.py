#!/usr/bin/env python3
"""Does `ringmain fr analyze` name who is to blame, and nobody in a healthy job? Simulated jobs, and a confusion matrix.

usage: jobs_test.py [--jobs N] [--seed N]      RINGMAIN_BINARY is the program

A case is a fault, or healthy, and how it is dumped: a long time after the end, at different moments long after it (`late`) or
so soon that it may not be told (`early`), in full swing (`running`, `skewed`), with rings that have wrapped, of gloo, or of torchcomms.
Every fault is planted into one rank. A false alarm, a fault that is not found, or the wrong rank is a failure. Rings of ringmain's
are not simulated: they are made by buses in ring_snapshot_test.cpp.
"""

import argparse
import collections
import json
import os
import pickle
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import simulated_job
from simulated_job import SECOND

# Which findings tell this fault.
PLANTED = {
    "dies": {"not_joined", "transfer"}, "lost_file": {"not_joined", "transfer", "not_finished"},
    "skip": {"operation", "size", "type", "not_joined"}, "size": {"size"}, "type": {"type"}, "operation": {"operation"},
    "state": {"state"}, "not_started": {"not_started"}, "stuck": {"not_finished"}, "lost_receive": {"transfer"},
    "lost_batch": {"transfer"}, "deadlock": {"deadlock"}}
HEALTHY = tuple(f"healthy{how}" for how in ("", " wrapped", " running", " skewed", " gloo", " running wrapped", " skewed wrapped", " torchcomms",
                                            " running torchcomms"))
# What each recorder can tell at all.
BY_GLOO = ("dies", "skip", "size", "type", "operation")
BY_TORCHCOMMS = ("dies", "size", "type", "operation")
CASES = (*HEALTHY, *(f"{kind}{how}" for kind in PLANTED for how in ("", " wrapped", " late", " late wrapped", " early")),
         *(f"{kind} gloo" for kind in BY_GLOO), *(f"{kind} torchcomms" for kind in BY_TORCHCOMMS))


def write(folder, job, dumps, moments, maker):
    for rank, dump in dumps.items():
        as_json = maker.random() < 0.3
        path = Path(folder) / f"dump_{rank}"
        if as_json:
            status = {k: {n: str(v) for n, v in of.items()} for k, of in dump["pg_status"].items()}
            shown = {**dump, "pg_status": status}
            if not shown["entries"]:
                del shown["entries"]
            path.write_text(json.dumps(shown))
        else:
            path.write_bytes(pickle.dumps(dump, protocol=maker.choice((2, 3, 4, 5))))
        written = moments[rank] + job.clock[rank]
        os.utime(path, ns=(written, written))


def moments_of(how, job, maker):
    end = job.last_moment()
    if "running" in how:
        return [maker.randint(simulated_job.START, end)] * job.size
    if "skewed" in how:
        middle = maker.randint(simulated_job.START, end)
        return [middle + maker.randint(0, 2 * SECOND) for _ in range(job.size)]
    if "late" in how:
        return [end + maker.randint(30, 600) * SECOND for _ in range(job.size)]
    if "early" in how:
        return [end + maker.randint(0, 2 * SECOND) for _ in range(job.size)]
    return [end + 600 * SECOND] * job.size


def judge(binary, folder):
    ran = subprocess.run([binary, "fr", "analyze", "--json", folder], capture_output=True, text=True, check=False)
    if ran.returncode not in (0, 1, 2) or not ran.stdout:
        raise SystemExit(f"exit {ran.returncode}: {ran.stderr}")
    return ran.returncode, json.loads(ran.stdout)


def fault_of(case, job, status, verdict, blind):
    """What is wrong with the verdict, or None."""
    findings = verdict["findings"]
    kind = case.split()[0]
    if kind == "healthy":
        return f"false alarm: {findings}" if findings or (status and not verdict["undecided"]) else None
    rank = job.fault.rank
    if "early" in case:  # so soon a wait is none, or is one by chance: nobody else may be blamed
        return None if set(verdict["culprits"]) <= {rank} else f"blamed {verdict['culprits']} and not {rank}"
    if status != 1:
        return f"exit {status}, not found"
    first = [f for f in findings if f["consequence_of"] is None]
    if kind == "deadlock" and {rank, rank + 1} & blind:  # a ring that holds nothing of the group of two tells no circle
        return None if set(verdict["culprits"]) <= {rank, rank + 1} else f"blamed {verdict['culprits']}"
    if not any(f["kind"] in PLANTED[kind] for f in first):
        return f"found other things: {[f['kind'] for f in findings]}"
    if kind == "stuck":
        return None if verdict["culprits"] == [] else f"blamed {verdict['culprits']} where nobody is to blame"
    if kind == "deadlock":
        wait = {r for f in first if f["kind"] == "deadlock" for r in f["suspects"]}
        good = wait == {rank, rank + 1} and verdict["culprits"] == []
        return None if good else f"blamed {verdict['culprits']}, suspected {wait} and not {rank} and {rank + 1}"
    if kind == "lost_file":
        suspects = {r for f in findings for r in f["suspects"]}
        return None if rank in suspects and set(verdict["culprits"]) <= {rank} else f"{rank} is not suspected"
    if verdict["culprits"] == [rank]:
        return None
    # Where as many ranks are on either side, no majority tells: both must be named, and nobody blamed.
    # Where rings have wrapped, an open batch does not tell which of its members it waits for.
    if kind == "lost_batch" and "wrapped" in case and set(verdict["culprits"]) <= {rank} and rank in {r for f in findings for r in f["suspects"]}:
        return None
    # A ring that holds no operation of the group does not tell whether its rank had joined.
    if rank in blind and verdict["culprits"] == [] and rank in {r for f in findings for r in f["suspects"]}:
        return None
    two = len(job.groups[job.fault.group]) == 2
    if two and verdict["culprits"] == [] and rank in {r for f in findings for r in f["suspects"]}:
        return None
    return f"blamed {verdict['culprits']} and not {rank}: {[f['sentence'] for f in findings]}"


def run_one(binary, case, seed):
    maker = random.Random(seed)
    kind, _, how = case.partition(" ")
    batches = kind == "lost_batch" or ("gloo" not in how and "torchcomms" not in how and maker.random() < 0.5)
    job = simulated_job.Job(seed, None if kind == "healthy" else kind, batches=batches)
    ring = maker.randint(12, 30) if "wrapped" in how else 10_000
    moments = moments_of(how, job, maker)
    dumps = job.torchcomms_dumps(moments) if "torchcomms" in how else job.dumps(moments, ring, "gloo" not in how)
    if kind == "lost_file":
        del dumps[job.fault.rank]
    with tempfile.TemporaryDirectory() as folder:
        write(folder, job, dumps, moments, maker)
        status, verdict = judge(binary, folder)
    groups = {rank: {e["process_group"][0] for e in dump["entries"] if not e["is_p2p"]} for rank, dump in dumps.items()}
    wanted = () if job.fault is None else {job.fault.group} | ({f"tp{job.fault.rank // 2}"} if kind == "deadlock" else set())
    blind = {rank for rank in dumps if "wrapped" in how and any(rank in job.groups[of] and of not in groups[rank] for of in wanted)}
    return fault_of(case, job, status, verdict, blind), verdict


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=240)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--case")
    arguments = parser.parse_args()
    binary = os.environ["RINGMAIN_BINARY"]
    cases = (arguments.case,) if arguments.case else CASES
    matrix = collections.Counter()
    wrong = []
    for i in range(arguments.jobs):
        case = cases[i % len(cases)]
        fault, verdict = run_one(binary, case, arguments.seed + i)
        kinds = {f["kind"] for f in verdict["findings"] if f["consequence_of"] is None} or {"nothing"}
        for found in kinds:
            matrix[case, found] += 1
        if fault:
            wrong.append(f"{case}, seed {arguments.seed + i}: {fault}")
    columns = sorted({found for _, found in matrix})
    print(f"{'':26}" + "".join(f"{column:>14}" for column in columns))
    for case in cases:
        print(f"{case:26}" + "".join(f"{matrix[case, column] or '.':>14}" for column in columns))
    print(f"{arguments.jobs} jobs, {len(wrong)} judged wrongly")
    for sentence in wrong[:20]:
        print(sentence)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
