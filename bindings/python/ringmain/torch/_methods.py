"""PyTorch before 2.14 has no hooks: what is heard there? The methods of ProcessGroup that Python calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._c10d import METHODS, Method, called
from ._collectives import Collectives, CollectiveVetoed, Issuing
from ._follow import Works
from ._groups import ENDS_KNOWN, Groups, ProcessGroup
from ._patch import Patch

_MADE_OF = "c10d::Work"  # what the text of a method says of its result


def methods_of(process_group: type) -> dict[str, Method]:
    """Those that call for operations: also one that is not known here, without its tensors."""
    found = {name: method for name, method in METHODS.items() if name in vars(process_group)}
    for name, value in vars(process_group).items():
        if not name.startswith("_") and name not in found and _MADE_OF in (getattr(value, "__doc__", None) or ""):
            found[name] = Method()
    return found


class MethodCalls:
    """Our functions in the place of ProcessGroup's methods."""

    def __init__(self, collectives: Collectives, groups: Groups, works: Works,
                 failed: Callable[[BaseException], None]) -> None:
        self._collectives = collectives
        self._groups = groups
        self._works = works
        self._failed = failed
        self._patches: list[Patch] = []

    def hook_in(self, process_group: type) -> None:
        for name, method in methods_of(process_group).items():
            self._patches.append(Patch(process_group, name, self._instead(name, method)))

    def hook_out(self) -> None:
        for patch in self._patches:
            patch.take_out()
        self._patches.clear()

    @property
    def count(self) -> int:
        return len(self._patches)

    def gone(self) -> list[str]:
        """Those in whose place others stand."""
        return [patch.name for patch in self._patches if not patch.in_place]

    def _instead(self, name: str, method: Method) -> Callable[..., Any]:
        def call(original: Callable[..., Any], group: Any, *args: Any, **kwargs: Any) -> Any:
            known = issuing = None
            before = 0
            try:
                known = self._groups.of(group)
                before = known.begin()
                if known.reporter.heard:
                    issuing, backend = self._issue(known, name, method, before, args, kwargs)
            except CollectiveVetoed:
                self._over(known, before, method)
                raise
            except Exception as error:
                self._failed(error)
            except BaseException:  # Ctrl-C came, in a hook or in here
                self._over(known, before, method)
                raise
            try:
                work = original(group, *args, **kwargs)
            except BaseException as error:
                if issuing is not None:
                    issuing.threw(str(error) or type(error).__name__)
                self._over(known, before, method)
                raise
            if issuing is not None:
                issuing.returned(work)
                ends = not self._works.follow(work, issuing.operation, backend)
                if work is not None and backend in ENDS_KNOWN:
                    self._works.hand_out(work, issuing.operation, ends)
            self._over(known, before, method)
            return work

        return call

    def _issue(self, known: ProcessGroup, name: str, method: Method, before: int, args: tuple[Any, ...],
               kwargs: dict[str, Any]) -> tuple[Issuing, str]:
        said = called(name, method, args, kwargs)
        backend = known.backend_of(said.device_type)
        sequence = known.sequence(before, method.point_to_point)
        known.operations += 1
        shown = said.shown() if known.reporter.shows else None
        return known.reporter.issue(said.call(sequence, before + 1, backend), backend in ENDS_KNOWN, shown), backend

    def _over(self, known: ProcessGroup | None, before: int, method: Method) -> None:
        try:
            if known is not None:
                known.over(before, method.point_to_point)
        except Exception as error:
            self._failed(error)
