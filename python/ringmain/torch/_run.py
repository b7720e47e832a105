"""How does a program that `ringmain run` started come by its attachment, with nothing changed in it?

The run's library is loaded and asked for the process's bus, on which it opens the run's sinks. Where there is no run,
RINGMAIN_ATTACH alone attaches PyTorch to the process's bus.
"""

from __future__ import annotations

import ctypes
import os

import ringmain

from ._attach import Attachment, attach

SOURCE = "torch"


def attach_as_asked() -> Attachment | None:
    """None: this process belongs to a run that did not ask for PyTorch."""
    if "RINGMAIN_RUN_SOURCES" in os.environ and not _joined():
        return None
    return attach(ringmain.Bus.process())


def _joined() -> bool:
    """Whether the run asks for PyTorch; then its sinks are open on the process's bus."""
    library = ctypes.CDLL(os.environ.get("RINGMAIN_RUN_LIBRARY", "libringmain_run.so.0"), mode=ctypes.RTLD_GLOBAL)
    join = library.ringmain_run_join
    join.argtypes = [ctypes.c_char_p]
    join.restype = ctypes.c_void_p
    return bool(join(SOURCE.encode()))
