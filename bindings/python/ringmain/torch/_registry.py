"""Where does this PyTorch keep its compiler backends, and their tags?

In torch._dynamo.backends.registry, under private names: functions in _COMPILER_FNS, plugins in _BACKENDS, tags from 2.14 on in
_BACKEND_TAGS and before 2.14 on the functions themselves. If a PyTorch keeps them elsewhere, registry_of_torch() says so.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable
from typing import Any

NAME = "torch._dynamo.backends.registry"
_PARTS = ("_BACKENDS", "_COMPILER_FNS", "_lazy_import")


class Registry:
    """PyTorch's registry: its own dictionaries, never copies of them."""

    def __init__(self, module: Any) -> None:
        self.plugins: dict[str, Any] = module._BACKENDS
        self.functions: dict[str, Callable[..., Any]] = module._COMPILER_FNS
        tags = getattr(module, "_BACKEND_TAGS", None)
        self._tags: dict[str, tuple[str, ...]] | None = tags if isinstance(tags, dict) else None
        self.import_all: Callable[[], None] = module._lazy_import

    def tags_of(self, name: str) -> tuple[str, ...]:
        if self._tags is not None:
            return tuple(self._tags.get(name, ()))
        return tuple(getattr(self.functions.get(name), "_tags", ()))

    def put(self, name: str, function: Callable[..., Any], tags: tuple[str, ...]) -> Callable[..., Any]:
        """Makes the name known to torch.compile(). Returns what was registered: the function, or, if PyTorch wants tags on
        the function and it cannot have any, another function that calls it.

        One function with two names has one set of tags in PyTorch, so PyTorch's list may hide what ours shows."""
        self.plugins[name] = None
        if self._tags is not None:
            self._tags[name] = tags
        elif not hasattr(function, "_tags"):
            try:
                function._tags = tags  # type: ignore[attr-defined]
            except AttributeError:  # a bound method or a builtin
                function = _with_tags(function, tags)
        self.functions[name] = function
        return function

    def drop(self, name: str) -> None:
        for table in (self.functions, self.plugins, self._tags):
            if table is not None:
                table.pop(name, None)

    def lacks(self) -> str:
        """What is missing although the registry was found: judged by a backend of PyTorch's whose tag is known."""
        if "eager" in self.functions and "debug" not in self.tags_of("eager"):
            return "tags, which this PyTorch keeps elsewhere"
        return ""


def registry_of_torch(load: bool = True) -> tuple[Registry | None, str]:
    """PyTorch's registry, or why it is not there. `load`: import TorchDynamo if nobody has."""
    if not load and NAME not in sys.modules:
        return None, "TorchDynamo is not imported yet"
    try:
        module = importlib.import_module(NAME)
    except Exception as error:  # no torch here, or one whose TorchDynamo does not start
        return None, f"{NAME} cannot be imported: {error}"
    missing = [part for part in _PARTS if not hasattr(module, part)]
    if missing:
        return None, f"this PyTorch's backend registry has no {', '.join(missing)}"
    return Registry(module), ""


def _with_tags(function: Callable[..., Any], tags: tuple[str, ...]) -> Callable[..., Any]:
    def compiler(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    functools.update_wrapper(compiler, function, updated=())
    compiler._tags = tags  # type: ignore[attr-defined]
    return compiler
