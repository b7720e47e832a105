"""How do the ten kinds of PyTorch's GPU trace come onto the bus?

Eight are calls to the GPU and go onto cuda.*, with layer `torch`. Memory is the caching allocator's blocks, not
cudaMalloc: torch.memory_block. PyTorch gives neither device nor size. Handles are addresses that come again, so each
comes with its generation: how often that address has been made. It is 0 if the making was not seen (IPC, before us).

CUDA's own source tells the same calls, and more of each. While it does, PyTorch's eight are not said, so that none is there
twice. Blocks, which it cannot see, are.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from ._profiler import loan
from ._surface import CudaWatch, Publishers, Surface
from .gpu_trace import take_out

_HANDLES_MAX = 65_536  # beyond this many, handles are not told apart by generation
NO_STREAM = 2**64 - 1

# kind in PyTorch: channel, what its arguments are
KINDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "EventCreation": ("cuda.event_creation", ("event",)),
    "EventDeletion": ("cuda.event_deletion", ("event",)),
    "EventRecord": ("cuda.event_record", ("event", "stream")),
    "EventWait": ("cuda.event_wait", ("event", "stream")),
    "MemoryAllocation": ("torch.memory_block", ("address",)),
    "MemoryDeallocation": ("torch.memory_block", ("address",)),
    "StreamCreation": ("cuda.stream_creation", ("stream",)),
    "DeviceSynchronization": ("cuda.device_synchronization", ()),
    "StreamSynchronization": ("cuda.stream_synchronization", ("stream",)),
    "EventSynchronization": ("cuda.event_synchronization", ("event",)),
}
_MADE = {"EventCreation": "event", "StreamCreation": "stream", "MemoryAllocation": "address"}


class GpuTrace(Surface):
    """A callback in each of the ten registries. Activation cannot be undone in a process, so it is only done where
    PyTorch was built for a GPU, or if it is asked for."""

    name = "GPU trace"

    def __init__(self, publishers: Publishers, activate: bool | None) -> None:
        super().__init__(publishers)
        self._activate = activate
        self._added: list[tuple[Any, Callable[..., None]]] = []
        self._missing: list[str] = []
        self._made: dict[tuple[str, int], int] = {}
        self._cuda: CudaWatch | None = None

    def hook_in(self) -> str:
        if self._activate is False:
            return "not asked for"
        import torch

        built_for = torch.version.cuda or getattr(torch.version, "hip", None)
        if self._activate is None and not built_for:
            return "this PyTorch was not built for a GPU"
        activate = getattr(torch._C, "_activate_gpu_trace", None)
        if activate is None:
            return "this PyTorch has no GPU trace"
        registries = importlib.import_module("torch.cuda._gpu_trace")
        self._cuda = self.publishers.watch_cuda()
        for kind, (channel, names) in KINDS.items():
            registry: Any = getattr(registries, f"{kind}Callbacks", None)
            if not hasattr(registry, "add_callback") or not isinstance(getattr(registry, "callback_list", None), list):
                self._missing.append(kind)
                continue
            callback = self._callback(kind, channel, names, self._cuda)
            registry.add_callback(callback)
            self._added.append((registry, callback))
        if not self._added:
            return "torch.cuda._gpu_trace has none of the registries that are known here"
        activate()
        return ""

    def lacks(self) -> str:
        gone = [f"{registry.name} (somebody took ours out)" for registry, callback in self._added
                if callback not in registry.callback_list]
        told = ["its cuda.* events, which CUDA's own source says now"] if self._cuda is not None and self._cuda.tells else []
        return ", ".join(self._missing + gone + told)

    def hook_out(self) -> None:
        for registry, callback in self._added:
            take_out(registry, callback)
        self._added.clear()
        self._missing.clear()
        self._made.clear()
        if self._cuda is not None:
            self._cuda.end()

    def _callback(self, kind: str, channel: str, names: tuple[str, ...], cuda: CudaWatch) -> Callable[..., None]:
        publishers, made = self.publishers, _MADE.get(kind)
        is_call = channel.startswith("cuda.")
        own: dict[str, object] = {"layer": "torch"} if is_call else {"freed": kind == "MemoryDeallocation"}
        own |= {"phase": "begin"} if kind.endswith("Synchronization") else {}
        handle = names[0] if names else ""

        def say(*args: int) -> None:  # newer PyTorch may say more than we know names for
            try:
                if loan.lent:
                    loan.chance()
                generation = self._generation(handle, args[0], made is not None) if handle else 0
                if publishers.wanted(channel) and not (is_call and cuda.tells):
                    fields: dict[str, object] = dict(zip(names, args, strict=False))
                    publishers.publish(channel, **fields, **own, **({"generation": generation} if handle else {}))
            except Exception as error:
                self.failed(error)

        return say

    def _generation(self, handle: str, value: int, is_new: bool) -> int:
        key = (handle, value)
        generation = self._made.get(key, 0)
        if is_new:
            if len(self._made) >= _HANDLES_MAX:
                self._made.clear()
            generation += 1
            self._made[key] = generation
        return generation
