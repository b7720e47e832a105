#!/usr/bin/env python3
"""How long, and in how much memory, does `ringmain fr analyze` judge a large job? By hand: it writes some 400 MB.

usage: scale.py [--ranks N] [--operations N]      RINGMAIN_BINARY is the program

One rank of the world never enqueues its last operation. Fails if that is not what is found, or if it takes more than 1 GiB.
"""

import argparse
import json
import os
import pickle
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

START = 1_767_225_600_000_000_000


def write(folder, ranks, operations):
    everybody = str(list(range(ranks)))
    config = {"0": {"name": "0", "desc": "default_pg", "ranks": everybody}}
    culprit = ranks // 3
    size = 0
    for rank in range(ranks):
        pair = f"pair{rank // 2}"
        config[pair] = {"name": pair, "desc": "tp", "ranks": str([rank // 2 * 2, rank // 2 * 2 + 1])}
        entries = []
        for i in range(operations - (rank == culprit)):
            group, desc, seq = ("0", "default_pg", i // 2 + 1) if i % 2 else (pair, "tp", i // 2 + 1)
            over = i < operations - 1
            at = START + i * 5_000_000 + rank * 100
            entries.append({
                "record_id": i, "pg_id": i % 2, "process_group": (group, desc), "collective_seq_id": seq, "p2p_seq_id": 0,
                "op_id": i, "profiling_name": "nccl:all_reduce", "time_created_ns": at, "input_sizes": [[1024, i + 1]],
                "input_dtypes": ["BFloat16"], "output_sizes": [[1024, i + 1]], "output_dtypes": ["BFloat16"],
                "state": "completed" if over else "started", "time_discovered_started_ns": at + 1000,
                "time_discovered_completed_ns": at + 3_000_000 if over else None, "retired": over, "timeout_ms": 600000,
                "is_p2p": False, "thread_id": "1", "thread_name": "main"})
        dump = {"version": "2.10", "comm_lib_version": "2.28.9", "pg_config": config, "pg_status": {}, "entries": entries}
        made = pickle.dumps(dump, protocol=2)
        size += len(made)
        (Path(folder) / f"rank_{rank}").write_bytes(made)
        del config[pair]
    return culprit, size


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=4096)
    parser.add_argument("--operations", type=int, default=256)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        culprit, size = write(folder, arguments.ranks, arguments.operations)
        begun = time.monotonic()
        ran = subprocess.run([os.environ["RINGMAIN_BINARY"], "fr", "analyze", "--json", folder],
                             capture_output=True, text=True, check=False)
        took = time.monotonic() - begun
    use = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{arguments.ranks} ranks x {arguments.operations} operations, {size / 2**20:.0f} MiB: {took:.1f} s, "
          f"of which {use.ru_utime + use.ru_stime:.1f} s of a processor, {use.ru_maxrss / 1024:.0f} MiB at most")
    if ran.returncode != 1:
        print(ran.stderr)
        return 1
    found = json.loads(ran.stdout)
    print(found["findings"][0]["sentence"])
    return 0 if found["culprits"] == [culprit] and use.ru_maxrss < 2**20 else 1


if __name__ == "__main__":
    sys.exit(main())
