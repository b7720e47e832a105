"""What does attach() do, and what does detach() leave? One attachment per process: PyTorch has one slot of each kind."""

from __future__ import annotations

import sys
import threading
from dataclasses import dataclass
from typing import Any

from ._distributed import Distributed
from ._gpu import GpuTrace
from ._hooks import BackendNames, CompileCallbacks, GuardVerdicts, MonitorEvents
from ._profiler import ProfilerLoan
from ._publishers import BusPublishers
from ._surface import Publishers, Surface, log
from ._tap import TraceTap
from ._waits import WaitCounters

_lock = threading.RLock()
_attached: Attachment | None = None


class AlreadyAttached(RuntimeError):
    """PyTorch is attached to another bus already."""


@dataclass(frozen=True)
class SurfaceReport:
    """Whether one of PyTorch's interfaces is heard."""

    name: str
    live: bool
    why_not: str  # "" if live
    errors: int  # kept away from PyTorch
    last_error: str
    lacks: str = ""  # live, but without this


@dataclass(frozen=True)
class Report:
    """What is heard of PyTorch and what is not. str() of it is a table for people."""

    torch: str
    surfaces: tuple[SurfaceReport, ...]

    def __getitem__(self, name: str) -> SurfaceReport:
        for surface in self.surfaces:
            if surface.name == name:
                return surface
        raise KeyError(f"{name!r}; there are {', '.join(surface.name for surface in self.surfaces)}")

    def __str__(self) -> str:
        lines = [f"PyTorch {self.torch}"]
        for surface in self.surfaces:
            state = "live" if surface.live else f"not live: {surface.why_not}"
            state += f", without {surface.lacks}" if surface.lacks else ""
            failed = f"; {surface.errors} errors kept away, the last: {surface.last_error}" if surface.errors else ""
            lines.append(f"  {surface.name:<18} {state}{failed}")
        return "\n".join(lines)


class Attachment:
    """PyTorch's events on a bus, until detach(). A context manager."""

    def __init__(self, bus: Any, publishers: Publishers, surfaces: list[Surface]) -> None:
        self.bus = bus
        self._publishers = publishers
        self._surfaces = surfaces
        self._gives_way = ""  # a sentence to log when the program attaches a bus of its own: a run must not change it

    @property
    def attached(self) -> bool:
        return _attached is self

    def report(self) -> Report:
        torch = sys.modules.get("torch")
        version = str(getattr(torch, "__version__", "not imported yet"))
        return Report(version, tuple(SurfaceReport(s.name, s.live, s.why_not, s.errors, s.last_error, _lacks(s))
                                     for s in self._surfaces))

    def detach(self) -> None:
        """Puts everything back as it was. May be called again."""
        global _attached
        with _lock:
            if _attached is not self:
                return
            _attached = None
            for surface in reversed(self._surfaces):
                surface.detach()

    def __repr__(self) -> str:
        live = sum(surface.live for surface in self._surfaces)
        state = f"{live} of {len(self._surfaces)} surfaces live" if self.attached else "detached"
        return f"<PyTorch's events on {self.bus!r}: {state}>"

    def __enter__(self) -> Attachment:
        return self

    def __exit__(self, *_: object) -> None:
        self.detach()


def _lacks(surface: Surface) -> str:
    try:
        return surface.lacks() if surface.live else ""
    except Exception as error:
        return f"what could not be looked for ({type(error).__name__}: {error})"


def attach(bus: Any = None, *, callbacks: bool = True, trace: bool = True, guards: bool = True,
           gpu_trace: bool | None = None, monitor: bool = True, backends: bool = True,
           waits: bool = True, profiler: bool = True, distributed: bool = True) -> Attachment:
    """Puts PyTorch's events on the bus (without one: on Bus.process()) from now on; report() says which of PyTorch's
    interfaces are live.

    gpu_trace: None takes it where PyTorch was built for a GPU; True activates it anyway, which cannot be undone.
    distributed: what process groups do; from PyTorch 2.14 on attach before traffic, for groups that are there already.
    profiler: CUDA's source, if there is one, steps aside for torch.profiler where that needs CUPTI's one place.
    The same bus again returns the existing attachment; another bus raises AlreadyAttached.
    """
    global _attached
    from ringmain import Bus

    if bus is None:
        bus = Bus.process()
    with _lock:
        if _attached is not None:
            if _attached.bus is bus:
                _attached._gives_way = ""
                return _attached
            if _is_closed_part_of(_attached.bus, bus):
                _attached.detach()
        if _attached is not None:
            if not _attached._gives_way:
                raise AlreadyAttached(f"PyTorch speaks to {_attached.bus!r} already; detach() that attachment first, or "
                                      "subscribe there")
            log.warning(_attached._gives_way)
            _attached.detach()
        publishers = BusPublishers(bus)
        wanted: list[tuple[bool, Surface]] = [
            (trace, TraceTap(publishers, _when_dynamo_is_there)), (callbacks, CompileCallbacks(publishers)),
            (guards, GuardVerdicts(publishers)), (gpu_trace is not False, GpuTrace(publishers, gpu_trace)),
            (monitor, MonitorEvents(publishers)), (backends, BackendNames(publishers)),
            (waits, WaitCounters(publishers, bus is Bus._of_process)), (profiler, ProfilerLoan(publishers)),
            (distributed, Distributed(publishers))]
        attachment = _attached = Attachment(bus, publishers, [surface for _, surface in wanted])
        dynamo_loaded = "torch._dynamo.callback" in sys.modules
        for asked_for, surface in wanted:
            if not asked_for:
                continue
            if isinstance(surface, (CompileCallbacks, BackendNames)) and trace and not dynamo_loaded:
                surface.why_not = _LATER
                continue
            surface.attach()
        return attachment


def _is_closed_part_of(attached: Any, bus: Any) -> bool:
    """The process's bus has a new Python object after each close(): what was attached by the old one ended with it."""
    return bool(attached.closed and attached._native.same_bus(bus._native))


_LATER = "waits for TorchDynamo to be imported"


def _when_dynamo_is_there() -> None:
    """TorchDynamo's own modules take a second to import, and a program that never compiles does not pay that. Its first
    trace record comes before its first callback."""
    if "torch._dynamo.callback" not in sys.modules:
        return
    with _lock:
        for surface in _attached._surfaces if _attached is not None else ():
            if surface.why_not == _LATER:
                surface.attach()
