"""With which arguments was torch.compile() called? The trace does not say, but the compile that writes it knows.

TorchDynamo's function _compile() is on the stack when its start is written: we read its arguments there, and two of
Dynamo's settings that `dynamic` sets meanwhile. What is not found there is left out.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any


def with_options(metadata: dict[str, Any]) -> dict[str, Any]:
    """The record of a start, with its arguments: a copy, because other handlers see the same record."""
    start = metadata["dynamo_start"]
    options = _options(sys._getframe(1))
    return metadata | {"dynamo_start": start | {"ringmain": options}} if isinstance(start, dict) else metadata


def _options(frame: FrameType | None) -> dict[str, str]:
    found = {"dynamic": _dynamic()}
    while frame is not None:
        if frame.f_code.co_name == "_compile" and frame.f_globals.get("__name__") == "torch._dynamo.convert_frame":
            arguments = frame.f_locals
            found["backend"] = _name(arguments.get("compiler_fn"))
            one_graph = arguments.get("one_graph")
            found["fullgraph"] = "" if not isinstance(one_graph, bool) else "yes" if one_graph else "no"
            break
        frame = frame.f_back
    return found


def _name(compiler: Any) -> str:
    """The name under which the compiler was registered, or its own; a wrapper knows the name of what it wraps."""
    for attribute in ("_compiler_name", "compiler_name", "__name__"):
        name = getattr(compiler, attribute, None)
        if isinstance(name, str) and name:
            return name
    return type(compiler).__name__ if compiler is not None else ""


def _dynamic() -> str:
    config = sys.modules.get("torch._dynamo.config")
    static, automatic = (getattr(config, name, None) for name in ("assume_static_by_default", "automatic_dynamic_shapes"))
    if not isinstance(static, bool) or not isinstance(automatic, bool):
        return ""
    return "on" if not static else "automatic" if automatic else "off"
