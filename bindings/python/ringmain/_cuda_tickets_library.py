"""How are completions of CUDA streams called from Python? Through the functions for C of libringmain_cuda.

ctypes gives the GIL up for each call, so that a driver that takes its time holds up no thread that it needs.
"""

from __future__ import annotations

import ctypes
from typing import Literal, get_args

from . import _cuda_library, _native

Strategy = Literal["automatic", "memory_writes", "event_queries", "host_functions"]
Code = Literal["armed", "capturing", "other_context", "full", "no_lane", "no_memory", "driver", "lost", "ended", "forbidden"]
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)
CODES: tuple[Code, ...] = get_args(Code)
FIGURES = ("armed", "completed", "failed", "abandoned", "pending", "refused", "asked", "lanes", "strategy", "result")
_ERRORS: dict[int, type[Exception]] = {1: ValueError, 3: MemoryError}  # others are RuntimeError
_SENTENCE_BYTES = 1024


class TicketsLibrary:
    """What is an Error in C++ raises RuntimeError with its sentence."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        text, size, address, number = ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_uint64
        ticket, result = ctypes.POINTER(ctypes.c_uint64), ctypes.POINTER(ctypes.c_int32)
        places = ctypes.POINTER(ctypes.c_void_p)
        for name, gives, arguments in (
                ("make", ctypes.c_int, (address, ticket, places, text, size)), ("release", None, (address,)),
                ("arm", ctypes.c_int, (address, address, number, ticket, result)),
                ("arm_after_launch", ctypes.c_int,
                 (address, address, address, number, ticket, result, ctypes.POINTER(ctypes.c_int))),
                ("add_host_node", ctypes.c_int,
                 (address, address, places, size, number, places, ctypes.POINTER(ctypes.c_uint32), text, size)),
                ("end", ctypes.c_int, (address, ctypes.c_int64)),
                ("figures", None, (address, ctypes.POINTER(ctypes.c_int64), size))):
            function = getattr(library, f"ringmain_cuda_completions_{name}")
            function.restype, function.argtypes = gives, arguments

    def make(self, bus: _native.NativeBus, numbers: tuple[int, ...]) -> int:
        """The address, for the functions below."""
        why, made = ctypes.create_string_buffer(_SENTENCE_BYTES), ctypes.c_void_p()
        _raise(self._library.ringmain_cuda_completions_make(
            bus.address, (ctypes.c_uint64 * len(numbers))(*numbers), ctypes.byref(made), why, len(why)), why)
        return made.value or 0

    def release(self, completions: int) -> None:
        """Nothing else is called with it from here on."""
        self._library.ringmain_cuda_completions_release(completions)

    def arm(self, completions: int, stream: int, tag: int) -> tuple[int, Code, int]:
        ticket, result = ctypes.c_uint64(), ctypes.c_int32()
        code = self._library.ringmain_cuda_completions_arm(completions, stream, tag, ctypes.byref(ticket), ctypes.byref(result))
        return ticket.value, CODES[code], result.value

    def arm_after_launch(self, completions: int, graph: int, stream: int, tag: int) -> tuple[int, Code, int, bool]:
        ticket, result, launched = ctypes.c_uint64(), ctypes.c_int32(), ctypes.c_int()
        code = self._library.ringmain_cuda_completions_arm_after_launch(
            completions, graph, stream, tag, ctypes.byref(ticket), ctypes.byref(result), ctypes.byref(launched))
        return ticket.value, CODES[code], result.value, bool(launched.value)

    def add_host_node(self, completions: int, graph: int, dependencies: tuple[int, ...], tag: int) -> tuple[int, int]:
        why, node, lane = ctypes.create_string_buffer(_SENTENCE_BYTES), ctypes.c_void_p(), ctypes.c_uint32()
        nodes = (ctypes.c_void_p * len(dependencies))(*dependencies)
        _raise(self._library.ringmain_cuda_completions_add_host_node(
            completions, graph, nodes, len(dependencies), tag, ctypes.byref(node), ctypes.byref(lane), why, len(why)), why)
        return node.value or 0, lane.value

    def end(self, completions: int, limit_ns: int) -> _cuda_library.Detached:
        return _cuda_library.DETACHED[int(self._library.ringmain_cuda_completions_end(completions, limit_ns))]

    def figures(self, completions: int) -> tuple[dict[str, int], dict[Code, int]]:
        """The second: answers of arm() by code but for "armed"."""
        found = (ctypes.c_int64 * (len(FIGURES) + len(CODES)))()
        self._library.ringmain_cuda_completions_figures(completions, found, len(found))
        return dict(zip(FIGURES, found, strict=False)), dict(zip(CODES[1:], found[len(FIGURES) + 1:], strict=True))


def load() -> TicketsLibrary:
    """Raises ImportError, in one sentence, where this copy of ringmain has no such library, or an older one is loaded."""
    global _loaded
    if _loaded is None:
        try:
            _loaded = TicketsLibrary(_cuda_library.load().library)
        except AttributeError as error:
            raise ImportError(f"the {_native.cuda_library} that is loaded is another version's, without completions ({error}); "
                              "install one ringmain") from None
    return _loaded


_loaded: TicketsLibrary | None = None


def _raise(code: int, why: ctypes.Array[ctypes.c_char]) -> None:
    if code != 0:
        raise _ERRORS.get(code, RuntimeError)(why.value.decode(errors="replace"))
