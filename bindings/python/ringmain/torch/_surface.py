"""What of PyTorch is heard, what is not, and why not? One Surface for each place where we hook in."""

from __future__ import annotations

import logging
import threading
from typing import Any, Protocol

from ._collectives import Collectives

log = logging.getLogger("ringmain.torch")


class GuardHook(Protocol):
    """A guard-complete hook that never raises; the hook chained after it decides."""

    @property
    def errors(self) -> int: ...

    @property
    def last_error(self) -> str: ...

    def __call__(self, hit: bool) -> bool: ...

    def chain(self, next: Any) -> Any:
        """Chains another hook after this one; returns the hook that was chained before."""


class CudaWatch(Protocol):
    """What CUDA's own source does on a bus."""

    @property
    def tells(self) -> bool:
        """It tells this process's calls just now."""

    def end(self) -> None: ...


class Publishers(Protocol):
    """Where the hooks publish what they hear. Nothing in it waits, or raises because a bus has closed."""

    def wanted(self, channel: str) -> bool: ...

    def publish(self, channel: str, **fields: object) -> None: ...

    def record(self, metadata: str, payload: str | None, time_ns: int) -> None: ...

    def compile_started(self, trigger: int, compile_id: str) -> str:
        """Returns why the compile is vetoed, or ""."""

    def compile_ended(self, trigger: int, compile_id: str) -> None: ...

    def watch_cuda(self) -> CudaWatch: ...

    def collectives(self) -> Collectives: ...

    def guard_hook(self, chained: Any) -> GuardHook: ...

    def reset(self) -> None: ...


class Surface:
    """One place of PyTorch where we listen. Subclasses hook in and out; what they do there never raises."""

    name = ""

    def __init__(self, publishers: Publishers) -> None:
        self.publishers = publishers
        self.live = False
        self.why_not = "not asked for"
        self._errors = 0
        self._last_error = ""
        self._lock = threading.Lock()

    def hook_in(self) -> str:
        """Returns "" or why it cannot. May raise: then the exception is the reason."""
        raise NotImplementedError

    def hook_out(self) -> None:
        """Restores what was there before."""
        raise NotImplementedError

    def lacks(self) -> str:
        """What of a live surface this PyTorch does not give, or not where it is looked for; "" if nothing."""
        return ""

    @property
    def errors(self) -> int:
        """How many errors of ours were kept away from PyTorch."""
        return self._errors

    @property
    def last_error(self) -> str:
        return self._last_error

    def attach(self) -> None:
        try:
            self.why_not = self.hook_in()
        except Exception as error:
            self.why_not = f"{type(error).__name__}: {error}"
            self._undo()
        self.live = not self.why_not

    def detach(self) -> None:
        if not self.live:
            return
        self.live = False
        self.why_not = "detached"
        try:
            self.hook_out()
        except Exception as error:
            self.failed(error)

    def _undo(self) -> None:
        """Takes out the hooks that were in when hooking failed."""
        try:
            self.hook_out()
        except Exception:
            log.debug("%s could not be taken out of PyTorch", self.name, exc_info=True)

    def failed(self, error: BaseException) -> None:
        """Keeps an error of ours away from PyTorch: counted, and the first is logged."""
        with self._lock:
            self._errors += 1
            self._last_error = f"{type(error).__name__}: {error}"
            first = self._errors == 1
        if first:
            log.error("ringmain.torch: %s went wrong and goes on", self.name, exc_info=error)
