"""How is the library of NCCL's source called from Python? Through its functions for C.

ctypes gives the GIL up for each call, so that waiting for events under way holds up no thread that they need.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Literal, get_args

from . import _native

Detached = Literal["done", "deferred", "timeout", "was_not_attached"]
DETACHED: tuple[Detached, ...] = get_args(Detached)
COUNTS = ("started", "stopped", "stale", "aborted", "published", "refused", "filtered", "no_room", "no_context", "unknown_types",
          "unknown_states", "stale_stops", "stale_states", "detached", "lost_starts", "suspect", "unfollowed")
PLUGIN = "ringmain/libnccl-profiler-ringmain.so"  # beside the library
_ERRORS: dict[int, type[Exception]] = {1: ValueError, 3: MemoryError}  # of attach(); others are RuntimeError
_SENTENCE_BYTES = 1024


class NcclLibrary:
    """libringmain_nccl. What is an Error in C++ raises RuntimeError with its sentence."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._library = library = ctypes.CDLL(str(path), mode=os.RTLD_NOW)
        text, size, source = ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p
        for name, result, arguments in (
                ("attach", ctypes.c_int, (ctypes.c_void_p, text, ctypes.POINTER(source), text, size)),
                ("release", None, (source,)), ("detach", ctypes.c_int, (source,)),
                ("tell_stalled", ctypes.c_uint32, (source,)), ("counts", None, (ctypes.POINTER(ctypes.c_uint64), size))):
            function = getattr(library, f"ringmain_nccl_{name}")
            function.restype, function.argtypes = result, arguments

    def plugin(self) -> str:
        """The whole path of what NCCL is to load."""
        return str(self.path.parent / PLUGIN)

    def attach(self, bus: _native.NativeBus, options: str) -> int:
        """The source's address, for the functions below."""
        why, made = ctypes.create_string_buffer(_SENTENCE_BYTES), ctypes.c_void_p()
        code = self._library.ringmain_nccl_attach(bus.address, options.encode(), ctypes.byref(made), why, len(why))
        if code != 0:
            raise _ERRORS.get(code, RuntimeError)(why.value.decode(errors="replace"))
        return made.value or 0

    def detach(self, source: int) -> Detached:
        return DETACHED[int(self._library.ringmain_nccl_detach(source))]

    def release(self, source: int) -> None:
        """Nothing else is called with this source from here on."""
        self._library.ringmain_nccl_release(source)

    def tell_stalled(self, source: int | None) -> int:
        """None: of the process's source, whoever attached it."""
        return int(self._library.ringmain_nccl_tell_stalled(source))

    def counts(self) -> dict[str, int]:
        found = (ctypes.c_uint64 * len(COUNTS))()
        self._library.ringmain_nccl_counts(found, len(found))
        return dict(zip(COUNTS, found, strict=True))


def load() -> NcclLibrary:
    """Raises ImportError, in one sentence, where this copy of ringmain has no such library."""
    package = Path(__file__).resolve().parent
    for folder in (package / "lib", package.parents[1] / "lib"):  # a wheel's, the build tree's
        path = folder / _native.nccl_library
        if path.exists():
            try:
                return NcclLibrary(path)
            except (OSError, AttributeError) as error:
                raise ImportError(f"NCCL's source cannot be loaded from {path}: {error}") from None
    raise ImportError(f"this copy of ringmain has no {_native.nccl_library}, which NCCL's source is; install ringmain again")
