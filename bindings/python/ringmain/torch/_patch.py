"""How does a function of ours get into the place of PyTorch's own, and out again?"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


class Patch:
    """A function of ours in the place of a class's or module's own: `call(original, …)`. What others put around it stays
    theirs: ours then only hands on."""

    def __init__(self, owner: Any, name: str, call: Callable[..., Any]) -> None:
        self._owner, self.name = owner, name
        self._original = original = vars(owner)[name]
        self._stands = True

        @functools.wraps(original)
        def instead(*args: Any, **kwargs: Any) -> Any:
            return call(original, *args, **kwargs) if self._stands else original(*args, **kwargs)

        self._instead = instead
        setattr(owner, name, instead)

    @property
    def in_place(self) -> bool:
        return vars(self._owner).get(self.name) is self._instead

    def take_out(self) -> None:
        self._stands = False
        if self.in_place:
            setattr(self._owner, self.name, self._original)
