"""How does a callback want to be called? Told by how many arguments it must be given, or by `style=`.

style          pre                    post                                      abort
"args"         cb(args)               cb(args)                                  cb(args)
"torchcomms"   cb(name, op_id, args)  cb(op_id, args), or cb(name, op_id, args) cb()
"c10d"         cb(args)               cb(args)                                  cb()

"c10d" is meant where an id is given in front of the callback; its args have c10d's fields.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from .._bus import check_callback
from ._args import AbortHookArgs, C10dPostHookArgs, C10dPreHookArgs, CompletionHookArgs, PostHookArgs, PreHookArgs, SplitPreHookArgs
from ._names import OpName

STYLES = ("args", "torchcomms", "c10d")
Call = Callable[..., object]


def needed(callback: Call) -> int | None:
    """How many arguments it must be given by position; None: it does not say."""
    try:
        parameters = inspect.signature(callback).parameters.values()
    except (TypeError, ValueError):
        return None
    missing = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
    if missing:
        raise TypeError(f"a hook is called with arguments by position, and {callback!r} needs {missing[0]}= as well")
    return sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty for p in parameters)


def _style(kind: str, callback: Call, style: str | None, counts: dict[int, str], says: str) -> tuple[str, int | None]:
    check_callback(callback)
    if style is not None and style not in STYLES:
        raise ValueError(f"style is {style!r}; use 'args', 'torchcomms' or 'c10d'")
    count = needed(callback)
    if style is not None:
        return style, count
    if count is None:
        return "args", count
    given = max(count, 1) if counts.get(count) == "args" else count
    try:
        inspect.signature(callback).bind(*[None] * given)
    except TypeError:
        given = -1
    if given not in counts:
        raise TypeError(f"a {kind} hook is called as {says}, and {callback!r} needs {count} arguments; say which by style=")
    return counts[count], count


def pre(callback: Call, style: str | None) -> Call:
    style, _ = _style("pre", callback, style, {0: "args", 1: "args", 3: "torchcomms"}, "cb(args) or cb(name, op_id, args)")
    if style == "torchcomms":
        def call(*words: Any) -> object:
            args = PreHookArgs(*words)
            return callback(args.name, args.op_id, SplitPreHookArgs(args) if args.name == OpName.split else args)

        return call
    if style == "c10d":
        return lambda *words: callback(C10dPreHookArgs(PreHookArgs(*words)))
    return lambda *words: callback(PreHookArgs(*words))


def post(callback: Call, style: str | None) -> Callable[[PostHookArgs], object]:
    style, count = _style("post", callback, style, {0: "args", 1: "args", 2: "torchcomms", 3: "torchcomms"},
                          "cb(args) or cb(op_id, args)")
    if style == "torchcomms":
        if count == 3:
            return lambda args: callback(args.name, args.op_id, args)
        return lambda args: callback(args.op_id, args)
    if style == "c10d":
        return lambda args: callback(C10dPostHookArgs(args))
    return callback


def completion(callback: Call) -> Callable[[CompletionHookArgs], object]:
    _style("completion", callback, None, {0: "args", 1: "args"}, "cb(args)")
    return callback


def abort(callback: Call, style: str | None) -> Callable[[AbortHookArgs], object]:
    style, _ = _style("abort", callback, style, {0: "torchcomms", 1: "args"}, "cb() or cb(args)")
    return callback if style == "args" else lambda args: callback()
