"""How is the library of CUDA's source called from Python? Through its functions for C.

ctypes gives the GIL up for each call, so that waiting for CUDA calls under way holds up no thread that they need.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Literal, get_args

from . import _native

State = Literal["attached", "unavailable", "lent", "lost", "detached"]
Detached = Literal["done", "deferred", "timeout", "was_not_attached"]
STATES: tuple[State, ...] = get_args(State)
DETACHED: tuple[Detached, ...] = get_args(Detached)
COUNTS = ("published", "refused", "suppressed", "unkept")
_ERRORS: dict[int, type[Exception]] = {1: ValueError, 3: MemoryError}  # of attach(); others are RuntimeError
_SENTENCE_BYTES = 1024


class CudaLibrary:
    """libringmain_cuda. What is an Error in C++ raises RuntimeError with its sentence."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = self._library = library
        text, size = ctypes.c_char_p, ctypes.c_size_t
        source = ctypes.c_void_p
        for name, result, arguments in (
                ("attach", ctypes.c_int, (ctypes.c_void_p, text, ctypes.POINTER(source), text, size)),
                ("release", None, (source,)), ("detach", ctypes.c_int, (source,)),
                ("state_of", ctypes.c_int, (source,)), ("counts", None, (source, ctypes.POINTER(ctypes.c_uint64))),
                ("lend_source", ctypes.c_int, (source, text, text, size)),
                ("take_back_source", ctypes.c_int, (source, text, size)), ("state", ctypes.c_int, (ctypes.c_void_p,)),
                ("lend", ctypes.c_int, (text, text, size)), ("take_back", ctypes.c_int, (text, size))):
            function = getattr(library, f"ringmain_cuda_{name}")
            function.restype, function.argtypes = result, arguments

    # --- the source of this process, whoever attached it ---

    def state(self) -> State | None:
        """None: there is no source."""
        return _state(self._library.ringmain_cuda_state(None))

    def lend(self, to: str) -> bool:
        """False: it has nothing to let go of."""
        why = ctypes.create_string_buffer(_SENTENCE_BYTES)
        return _answer(self._library.ringmain_cuda_lend(to.encode(), why, len(why)), why)

    def take_back(self) -> bool:
        """False: CUPTI is taken still, or was not lent."""
        why = ctypes.create_string_buffer(_SENTENCE_BYTES)
        return _answer(self._library.ringmain_cuda_take_back(why, len(why)), why)

    # --- a source of Python's own ---

    def attach(self, bus: _native.NativeBus, options: str) -> int:
        """The source's address, for the functions below."""
        why, made = ctypes.create_string_buffer(_SENTENCE_BYTES), ctypes.c_void_p()
        code = self._library.ringmain_cuda_attach(bus.address, options.encode(), ctypes.byref(made), why, len(why))
        if code != 0:
            raise _ERRORS.get(code, RuntimeError)(why.value.decode(errors="replace"))
        return made.value or 0

    def detach(self, source: int) -> Detached:
        return DETACHED[int(self._library.ringmain_cuda_detach(source))]

    def release(self, source: int) -> None:
        """Nothing else is called with this source from here on."""
        self._library.ringmain_cuda_release(source)

    def state_of(self, source: int) -> State:
        return STATES[int(self._library.ringmain_cuda_state_of(source))]

    def counts(self, source: int) -> dict[str, int]:
        found = (ctypes.c_uint64 * len(COUNTS))()
        self._library.ringmain_cuda_counts(source, found)
        return dict(zip(COUNTS, found, strict=True))

    def lend_source(self, source: int, to: str) -> bool:
        why = ctypes.create_string_buffer(_SENTENCE_BYTES)
        return _answer(self._library.ringmain_cuda_lend_source(source, to.encode(), why, len(why)), why)

    def take_back_source(self, source: int) -> bool:
        why = ctypes.create_string_buffer(_SENTENCE_BYTES)
        return _answer(self._library.ringmain_cuda_take_back_source(source, why, len(why)), why)


def loaded() -> CudaLibrary | None:
    """The library, if the process has loaded it: without it there is no source."""
    global _loaded
    if _loaded is None:
        try:
            _loaded = CudaLibrary(ctypes.CDLL(_native.cuda_library, mode=os.RTLD_NOLOAD | os.RTLD_LAZY))
        except (OSError, AttributeError):  # it is not loaded, or another one's
            return None
    return _loaded


def load() -> CudaLibrary:
    """Raises ImportError, in one sentence, where this copy of ringmain has no such library."""
    global _loaded
    found = loaded()
    if found is not None:
        return found
    package = Path(__file__).resolve().parent
    for folder in (package / "lib", package.parents[1] / "lib"):  # a wheel's, the build tree's
        path = folder / _native.cuda_library
        if path.exists():
            try:
                _loaded = CudaLibrary(ctypes.CDLL(str(path), mode=os.RTLD_NOW))
            except (OSError, AttributeError) as error:
                raise ImportError(f"CUDA's source cannot be loaded from {path}: {error}") from None
            return _loaded
    raise ImportError(f"this copy of ringmain has no {_native.cuda_library}, which CUDA's source is; install ringmain again")


_loaded: CudaLibrary | None = None


def _state(number: int) -> State | None:
    return STATES[number] if 0 <= number < len(STATES) else None


def _answer(code: int, why: ctypes.Array[ctypes.c_char]) -> bool:
    if code < 0:
        raise RuntimeError(why.value.decode(errors="replace"))
    return code == 1
