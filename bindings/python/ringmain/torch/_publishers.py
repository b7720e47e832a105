"""How do the hooks publish on a bus? Through the native tap for compiles, and through channels for all else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import ringmain
import ringmain._native as _native
from ringmain import events

from ._collectives import Collectives, LedgerCollectives
from ._surface import CudaWatch, GuardHook
from ._tap import CHANNELS

if TYPE_CHECKING:
    from ringmain import Bus, Channel


@ringmain.event("torch.monitor")
class MonitorEvent:
    """One entry of the data of an event that was logged through torch.monitor."""

    name: str
    key: str
    number: float  # not a number: the value is text
    text: str
    logged_at_ns: Annotated[int, ringmain.Unit.NS]  # since 1970


@ringmain.event("torch.memory_block")
class MemoryBlock:
    """The caching allocator handed a block out, or took one back: a tensor's storage, not a call of cudaMalloc."""

    address: Annotated[int, ringmain.Unit.ADDRESS, "u64"]
    generation: Annotated[int, ringmain.Unit.COUNT, "u32"]  # how often this address was handed out; 0: before us
    freed: bool


class BusPublishers:
    """Publishers for one bus."""

    def __init__(self, bus: Bus) -> None:
        self._tap = _native.CompileTap(bus._native)
        self._bus = bus._native
        self._python_bus = bus
        self._channels: dict[str, Channel] = {}
        for name in CHANNELS:
            self._channels[name] = bus.channel(events.all_events[name])
        for name, described in events.all_events.items():
            if name.startswith("cuda."):
                self._channels[name] = bus.channel(described)
        for event in (MonitorEvent, MemoryBlock):
            channel = bus.channel(event)
            self._channels[channel.name] = channel

    def wanted(self, channel: str) -> bool:
        return self._channels[channel].wanted

    def publish(self, channel: str, **fields: object) -> None:
        self._channels[channel].publish(**fields)

    def record(self, metadata: str, payload: str | None, time_ns: int) -> None:
        self._tap.record(metadata, payload, time_ns)

    def compile_started(self, trigger: int, compile_id: str) -> str:
        said = self._tap.started(trigger, compile_id)
        return str(said.why or "no reason was given") if said.code == "vetoed" else ""

    def compile_ended(self, trigger: int, compile_id: str) -> None:
        self._tap.ended(trigger, compile_id)

    def watch_cuda(self) -> CudaWatch:
        return _native.CudaWatch(self._bus)

    def collectives(self) -> Collectives:
        return LedgerCollectives(self._python_bus)

    def guard_hook(self, chained: object) -> GuardHook:
        hook: GuardHook = _native.GuardHook(self._tap, chained)
        return hook

    def reset(self) -> None:
        self._tap.reset()

    def finish(self) -> None:
        self._tap.finish()
