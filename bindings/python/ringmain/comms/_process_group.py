"""torch.distributed as a backend: each communicator is a process group of its own."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

from ._moves import Call
from ._names import RedOpType, ReduceOp
from ._work import Work

_ENDS_KNOWN = ("gloo",)  # by the future of a Work; ProcessGroupNCCL's is done when the work is enqueued (pytorch#48561)


class ProcessGroupBackend:
    """One rank's end of a process group."""

    def __init__(self, torch: Any, group: Any, name: str) -> None:
        self._torch, self._group, self._name = torch, group, name
        self.rank: int = torch.distributed.get_rank(group)
        self.size: int = torch.distributed.get_world_size(group)

    @classmethod
    def make(cls, backend: str, name: str, store: Any) -> ProcessGroupBackend:
        try:
            import torch
        except ImportError as missing:
            raise ValueError(f"backend {backend!r} is torch.distributed's, and PyTorch is not installed; use 'loopback'") from missing
        dist = torch.distributed
        if not dist.is_available() or not dist.is_backend_available(backend):
            raise ValueError(f"this PyTorch has no backend {backend!r}; use 'loopback', or one of torch.distributed's such as 'gloo'")
        if not dist.is_initialized():
            if store is None and "RANK" not in os.environ:
                dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
            else:
                rank, size = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
                dist.init_process_group(backend, store=store, rank=rank if store else -1, world_size=size if store else -1)
        return cls(torch, dist.new_group(backend=backend, group_desc=name), backend)

    def start(self, call: Call) -> None:
        start: Callable[[Call], Any] | None = getattr(self, "_" + call.op, None)
        if start is None:
            raise NotImplementedError(f"{call.op}: torch.distributed has no such operation; use another, or the backend 'loopback'")
        work, said = start(call), call.said()
        if work is None:  # it was done at once, or this rank has nothing to do
            return said._complete()
        # Who waits finds the end where no future does: of sends and receives, and of GPUs.
        said._block = lambda limit: self._wait(said, work, limit)  # type: ignore[method-assign]
        if self._name in _ENDS_KNOWN:
            with suppress(RuntimeError):
                work.get_future().add_done_callback(lambda future: _over(said, future))

    def _wait(self, said: Work, work: Any, limit: float | None) -> None:
        if self._name not in _ENDS_KNOWN:
            said._operation = None  # it orders the GPU's stream, and does not mean that the operation is done
        try:
            if limit is None:
                work.wait()
            else:
                work.wait(timedelta(seconds=limit))
        except Exception as error:
            said._fail(error, "timed_out" if "imed out" in str(error) else "error")
        else:
            said._complete()

    def finalize(self) -> None:
        self._torch.distributed.destroy_process_group(self._group)

    # --- operations ---

    @property
    def _how(self) -> dict[str, Any]:
        return {"group": self._group, "async_op": True}

    def _reduction(self, op: ReduceOp | None) -> Any:
        assert op is not None
        if op.type is RedOpType.PREMUL_SUM:
            return self._torch.distributed._make_nccl_premul_sum(op.factor)
        return getattr(self._torch.distributed.ReduceOp, op.type.name)

    def _send(self, call: Call) -> Any:
        return self._torch.distributed.isend(call.inputs[0], group=self._group, group_dst=call.peer)

    def _recv(self, call: Call) -> Any:
        return self._torch.distributed.irecv(call.outputs[0], group=self._group, group_src=call.peer)

    def _broadcast(self, call: Call) -> Any:
        return self._torch.distributed.broadcast(call.inputs[0], group_src=call.peer, **self._how)

    def _all_reduce(self, call: Call) -> Any:
        return self._torch.distributed.all_reduce(call.inputs[0], self._reduction(call.reduce), **self._how)

    def _reduce(self, call: Call) -> Any:
        return self._torch.distributed.reduce(call.inputs[0], op=self._reduction(call.reduce), group_dst=call.peer, **self._how)

    def _all_gather(self, call: Call) -> Any:
        return self._torch.distributed.all_gather(call.outputs, call.inputs[0], **self._how)

    _all_gather_v = _all_gather

    def _all_gather_single(self, call: Call) -> Any:
        return self._torch.distributed.all_gather_into_tensor(call.outputs[0], call.inputs[0], **self._how)

    def _reduce_scatter(self, call: Call) -> Any:
        return self._torch.distributed.reduce_scatter(call.outputs[0], call.inputs, self._reduction(call.reduce), **self._how)

    _reduce_scatter_v = _reduce_scatter

    def _reduce_scatter_single(self, call: Call) -> Any:
        return self._torch.distributed.reduce_scatter_tensor(call.outputs[0], call.inputs[0], self._reduction(call.reduce), **self._how)

    def _all_to_all_single(self, call: Call) -> Any:
        return self._torch.distributed.all_to_all_single(call.outputs[0], call.inputs[0], **self._how)

    def _all_to_all_v_single(self, call: Call) -> Any:
        return self._torch.distributed.all_to_all_single(call.outputs[0], call.inputs[0], list(call.splits[1]), list(call.splits[0]),
                                                         **self._how)

    def _all_to_all(self, call: Call) -> Any:
        return self._torch.distributed.all_to_all(call.outputs, call.inputs, **self._how)

    def _barrier(self, call: Call) -> Any:
        return self._torch.distributed.barrier(**self._how)

    def _scatter(self, call: Call) -> Any:
        mine = call.inputs if call.peer == self.rank else None
        return self._torch.distributed.scatter(call.outputs[0], mine, group_src=call.peer, **self._how)

    def _gather(self, call: Call) -> Any:
        mine = call.outputs if call.peer == self.rank else None
        return self._torch.distributed.gather(call.inputs[0], mine, group_dst=call.peer, **self._how)

    def _gather_single(self, call: Call) -> Any:
        mine = list(call.outputs[0].view(self.size, *call.inputs[0].shape).unbind()) if call.peer == self.rank else None
        return self._torch.distributed.gather(call.inputs[0], mine, group_dst=call.peer, **self._how)

    def _split(self, call: Call) -> None:
        if call.ranks:
            dist = self._torch.distributed
            ranks = [dist.get_global_rank(self._group, rank) for rank in call.ranks]
            group = dist.new_group(ranks, backend=self._name, use_local_synchronization=True, group_desc=call.name)
            call.part = ProcessGroupBackend(self._torch, group, self._name)


def _over(work: Work, future: Any) -> None:
    try:
        future.wait()
    except Exception as error:
        work._fail(error)
    else:
        work._complete()
