"""Packages that ringmain can do without: asked for when they are used, and missed in one sentence."""

from __future__ import annotations

import importlib
import time
from typing import Any

_to_realtime_ns: int | None = None


def need(module: str, for_what: str, install: str) -> Any:
    """The module; ImportError with the line for pip where its package is not there."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if (error.name or "").partition(".")[0] != package:
            raise  # it is there, and misses something itself
        raise ImportError(f"{for_what} needs {package}, which is not installed: pip install {install}", name=package) from None


def to_realtime_ns() -> int:
    """What a time of CLOCK_MONOTONIC, as stamps have it, lacks to nanoseconds since 1970. Taken once: batches of one process are
    moved by the same amount, whatever becomes of the clock."""
    global _to_realtime_ns
    if _to_realtime_ns is None:
        tries = []
        for _ in range(5):  # the pair that was taken in the shortest time is the best
            before = time.monotonic_ns()
            now = time.time_ns()
            after = time.monotonic_ns()
            tries.append((after - before, now - (before + after) // 2))
        _to_realtime_ns = min(tries)[1]
    return _to_realtime_ns
