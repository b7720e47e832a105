"""Arguments that the extension module would refuse in its binder's words are refused in ours."""

from __future__ import annotations

import operator
from typing import Any


def seconds(timeout: Any) -> float | None:
    if timeout is None:
        return None
    if isinstance(timeout, bool) or not hasattr(timeout, "__float__"):
        raise TypeError(f"timeout is {timeout!r}; give seconds as a number, or None to wait for ever")
    found = float(timeout)
    if found != found:
        raise ValueError("timeout is no number; give seconds, or None to wait for ever")
    return found


def milliseconds(what: str, value: Any) -> float:
    if isinstance(value, bool) or not hasattr(value, "__float__"):
        raise TypeError(f"{what} is {value!r}; give milliseconds as a number from 0")
    found = float(value)
    if not found >= 0:
        raise ValueError(f"{what} is {value!r}; give milliseconds as a number from 0")
    return found


def whole(what: str, value: Any, least: int, most: int) -> int:
    try:
        found = operator.index(value)
    except TypeError:
        raise TypeError(f"{what} is {value!r}; give a whole number") from None
    if not least <= found <= most:
        raise ValueError(f"{what} is {found}; give a whole number from {least} to {most}")
    return found


def text(what: str, value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{what} is {value!r}; give a str")
    return value


def instance(what: str, value: Any, of: type, how: str) -> None:
    if not isinstance(value, of):
        raise TypeError(f"{what} is {value!r}; give {how}")


def flag(what: str, value: Any) -> bool:
    instance(what, value, bool, "True or False")
    return bool(value)
