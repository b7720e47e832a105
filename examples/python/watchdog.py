#!/usr/bin/env python3
"""Three ranks wait in an all_reduce to which the fourth does not come: a watchdog says so, has each rank's recorder write its dump, and gives
the group up. Beside that, what was published last stays in a file, whatever becomes of the process.

usage: watchdog.py FOLDER      then: ringmain fr analyze --grace 0 FOLDER, and ringmain post-mortem FOLDER/flight

With torchrun and a process group of PyTorch's in place of "loopback" the ranks are processes (ringmain.torch.attach(), then
register_with_comm(group) of the watchdog and of the recorder), and dumps_on_signal=signal.SIGUSR2 has `kill -USR2` write a dump.
"""

import os
import sys
import threading

import ringmain
from ringmain import Record, comms

RANKS, SLEEPS = 4, 2
recorders: list[comms.FlightRecorderHook] = []
all_there = threading.Barrier(RANKS)
over = threading.Event()


def before_abort(first: Record) -> None:
    print(f"{first.op} of {first.group} is overdue since it was {first.since}")
    for recorder in list(recorders):
        recorder.dump_file()


def rank() -> str:
    comm = comms.new_comm("loopback", name="dp")
    recorder = comms.FlightRecorderHook(100, isolated=True, rank=comm.get_rank())
    recorder.register_with_comm(comm)
    recorders.append(recorder)
    all_there.wait()
    if comm.get_rank() == SLEEPS:
        over.wait()
        return "slept"
    try:
        comm.all_reduce([1.0, 2.0], comms.ReduceOp.SUM)
        return "went on"
    except comms.CommunicatorAborted as why:
        return f"given up, as {why}"
    finally:
        over.set()


def main() -> None:
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    os.environ["TORCHCOMM_FR_DUMP_TEMP_FILE"] = os.path.join(sys.argv[1], "rank_")
    bus = ringmain.Bus.process()
    with (bus.record("collective.>", folder=os.path.join(sys.argv[1], "flight")),
          comms.Watchdog(bus, from_issue=0.5, period=0.1, before_abort=before_abort, abort=True)):
        for number, told in enumerate(comms.run_ranks(RANKS, rank)):
            print(f"rank {number}: {told}")


if __name__ == "__main__":
    main()
