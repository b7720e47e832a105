#!/usr/bin/env python3
"""Three ranks wait in an all_reduce to which the fourth does not come; what each rank's recorder holds is written.

usage: flight_recorder.py FOLDER      then: ringmain fr analyze --grace 0 FOLDER

With torchrun and a process group of PyTorch's in place of "loopback" (ringmain.torch.attach(), then register_with_comm(group)) the ranks are
processes.
"""

import os
import sys
import threading

from ringmain import comms

RANKS, SLEEPS = 4, 2
all_wait = threading.Barrier(RANKS)


def rank() -> str:
    comm = comms.new_comm("loopback", name="dp")
    recorder = comms.FlightRecorderHook(100, isolated=True, rank=comm.get_rank())
    recorder.register_with_comm(comm)
    comm.all_reduce([1.0, 2.0], comms.ReduceOp.SUM)
    if comm.get_rank() != SLEEPS:
        comm.all_reduce([1.0, 2.0], comms.ReduceOp.SUM, async_op=True)
    all_wait.wait()  # all that will join have joined
    return recorder.dump_file()


def main() -> None:
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    os.environ["TORCHCOMM_FR_DUMP_TEMP_FILE"] = os.path.join(sys.argv[1], "rank_")
    for file in comms.run_ranks(RANKS, rank):
        print(file)


if __name__ == "__main__":
    main()
