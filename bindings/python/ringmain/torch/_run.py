"""How is an unchanged program attached that `ringmain run` started?

The run's library is loaded and asked for the process's bus, on which it opens the run's sinks. Without a run,
RINGMAIN_ATTACH alone attaches PyTorch to the process's bus. RINGMAIN_STEPS=optimizer says the steps, too.
"""

from __future__ import annotations

import ctypes
import os
import sys

import ringmain
from ringmain import _native

from ._attach import Attachment, attach
from ._optimizer_steps import steps_from_optimizer
from ._profiler import hook
from ._surface import log

SOURCE = "torch"


def attach_as_asked() -> Attachment | None:
    """None: this process belongs to a run that asked for other sources, or compiles for another process."""
    if any("compile_worker" in word for word in sys.orig_argv):
        return None  # one of Inductor's: what it does is the other process's compile
    sources = [line.partition(":")[0] for line in os.environ.get("RINGMAIN_RUN_SOURCES", "").splitlines()]
    if "cuda" in sources:
        beside_cuda()
    if sources and SOURCE not in sources:
        _steps_as_asked()
        return None
    if sources:
        _join()
    attachment = attach(ringmain.Bus.process())
    _steps_as_asked()
    attachment._gives_way = "this program attaches PyTorch to a bus of its own: ringmain run hears no more of it"
    return attachment


def _steps_as_asked() -> None:
    """RINGMAIN_STEPS=optimizer: the program is unchanged, so that its first step begins with the optimizer's first."""
    asked = os.environ.get("RINGMAIN_STEPS", "")
    if asked == "optimizer":
        steps_from_optimizer(ringmain.Bus.process(), begin_now=False, _gives_way=True)
    elif asked:
        raise ValueError(f"RINGMAIN_STEPS is {asked!r}; the one thing to ask for is optimizer")


def beside_cuda() -> None:
    """For the rest of the process CUDA's source steps aside for torch.profiler, whoever listens to PyTorch."""
    reason = hook.connect(beside_cuda)
    if reason:
        log.debug("CUDA's source does not step aside for torch.profiler: %s", reason)


def _join() -> None:
    """Opens the run's sinks on the process's bus."""
    library = ctypes.CDLL(os.environ.get("RINGMAIN_RUN_LIBRARY", _native.run_library), mode=ctypes.RTLD_GLOBAL)
    join = library.ringmain_run_join
    join.argtypes = [ctypes.c_char_p]
    join.restype = ctypes.c_void_p
    if not join(SOURCE.encode()):
        raise RuntimeError("the library of `ringmain run` found no run to join")
