"""Collectives with hooks: torchcomms' interface on ringmain's communicators.

    from ringmain import comms

    comm = comms.new_comm("loopback", name="main")

    def before(args: comms.PreHookArgs) -> None:
        print(args.name, args.op_id, args.tensors)

    handle = comm.register_pre_hook(before)
    comm.all_reduce([1.0, 2.0], comms.ReduceOp.SUM, async_op=False)
    handle.remove()
    comm.finalize()

Hooks come and go at any time, from any thread; one that is to refuse says why. What happens is published on collective.*. Hooks of
a communicator that somebody else made: hooks_of(name). docs/python.md says what differs from torchcomms.
"""

from ._args import AbortHookArgs, C10dPostHookArgs, C10dPreHookArgs, CompletionHookArgs, PostHookArgs, PreHookArgs, SplitPreHookArgs
from ._comm import Aborted, BatchSendRecv, Comm, TorchComm, new_comm
from ._flight import FlightRecorderHook
from ._hooks import Hooks, RemovableHandle, hooks_of
from ._loopback import run_ranks
from ._names import HookOpName, OpName, RedOpType, ReduceOp
from ._watchdog import Watchdog
from ._work import CommunicatorAborted, OperationVetoed, Work

__all__ = [
    "AbortHookArgs", "Aborted", "BatchSendRecv", "C10dPostHookArgs", "C10dPreHookArgs", "Comm", "CommunicatorAborted",
    "CompletionHookArgs", "FlightRecorderHook", "HookOpName", "Hooks", "OpName", "OperationVetoed", "PostHookArgs", "PreHookArgs", "RedOpType", "ReduceOp",
    "RemovableHandle", "SplitPreHookArgs", "TorchComm", "Watchdog", "Work", "finalize", "get_rank", "get_size", "hooks_of", "new_comm", "run_ranks",
]


def get_rank(comm: Comm) -> int:
    """comm.get_rank()."""
    return comm.get_rank()


def get_size(comm: Comm) -> int:
    """comm.get_size()."""
    return comm.get_size()


def finalize(comm: Comm) -> None:
    """comm.finalize()."""
    comm.finalize()
