"""Three ranks of gloo that know nothing of ringmain. Rank 2 leaves an operation out in which the others then wait.

usage: flight_rings.py FOLDER      copies the rings to FOLDER/whole while all is well; FOLDER/left is where they are
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

RANKS = 3


def launch(folder: Path) -> int:
    ranks = [subprocess.Popen([sys.executable, __file__, folder, str(rank)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                              env=os.environ | {"RANK": str(rank), "WORLD_SIZE": str(RANKS)}) for rank in range(RANKS)]

    def all_say(word: str) -> bool:
        return all(rank.stdout.readline().strip() == word for rank in ranks)

    def tell_all() -> None:
        for rank in ranks:
            print("go on", file=rank.stdin, flush=True)

    good = all_say("done")
    shutil.copytree(folder / "left", folder / "whole")
    tell_all()
    good = good and all_say("issued")
    tell_all()
    return max(rank.wait() for rank in ranks) if good else 1


def run(folder: Path, rank: int) -> None:
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=RANKS)
    for _ in range(3):
        dist.all_reduce(torch.ones(4))
    if rank == 0:  # while rank 2 does nothing
        dist.send(torch.ones(3), 1)
    elif rank == 1:
        dist.recv(torch.ones(3), 0)
    both = [dist.P2POp(dist.isend, torch.ones(2), (rank + 1) % RANKS), dist.P2POp(dist.irecv, torch.ones(2), (rank - 1) % RANKS)]
    for work in dist.batch_isend_irecv(both):
        work.wait()
    dist.barrier()
    print("done", flush=True)
    sys.stdin.readline()
    waits = dist.all_reduce(torch.ones(8), async_op=True) if rank != 2 else None
    print("issued", flush=True)
    sys.stdin.readline()
    del waits
    os._exit(0)


if __name__ == "__main__":
    if len(sys.argv) == 2:
        sys.exit(launch(Path(sys.argv[1])))
    run(Path(sys.argv[1]), int(sys.argv[2]))
