"""What PyTorch waits for in C++: its wait counters, on compile.wait.

PyTorch looks once for a library that hears them, before its first counter, and keeps what it found for ever. So this is
for Bus.process(), which is never destroyed, and it can come too late; `ringmain run --source torch_waits` never does.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

from ._surface import Publishers, Surface

_LIBRARY = "ringmain/libringmain_wait_counter.so"


class WaitCounters(Surface):
    """The library that PyTorch looks for, put where it looks."""

    name = "wait counters"

    def __init__(self, publishers: Publishers, on_process_bus: bool) -> None:
        super().__init__(publishers)
        self._on_process_bus = on_process_bus

    def hook_in(self) -> str:
        if not self._on_process_bus:
            return "PyTorch keeps for ever what hears them: attach to Bus.process() for these"
        from torch._C._monitor import _WaitCounter

        library = self._library()
        if library is None:
            return f"{_LIBRARY} is not beside this package; install ringmain again"
        keys = library.ringmain_wait_counter_keys
        keys.restype = ctypes.c_uint64
        attach = library.ringmain_wait_counter_attach
        attach.argtypes = [ctypes.c_void_p]
        if not attach(None):
            return "another bus hears them already"
        if not keys():
            _WaitCounter("ringmain.attach")  # a name that was not there: it is offered, unless we come too late
        return "" if keys() else ("it came too late: PyTorch had a wait counter before; attach before the first compile or "
                                  "process group, or use ringmain run --source torch_waits")

    def hook_out(self) -> None:
        pass  # PyTorch keeps it; without a subscriber it costs a load and a branch

    @staticmethod
    def _library() -> ctypes.CDLL | None:
        loaded = ctypes.CDLL(None)
        if hasattr(loaded, "ringmain_wait_counter_keys"):
            return loaded
        package = Path(__file__).resolve().parents[1]
        for folder in (package / "lib", package.parents[1] / "lib"):  # a wheel's, the build tree's
            if (folder / _LIBRARY).exists():
                return ctypes.CDLL(str(folder / _LIBRARY), mode=os.RTLD_GLOBAL | os.RTLD_NOW)
        return None
