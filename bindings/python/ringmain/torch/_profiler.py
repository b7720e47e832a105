"""How does torch.profiler get at the GPU while CUDA's source has CUPTI's one place?

Kineto, the library below torch.profiler, takes that place when the first profiler is prepared. If it finds the place taken
it records nothing of the GPU for the rest of the process, without a word. So where this PyTorch's Kineto does that, the
source lets go before each profiler is prepared, and asks for the place again after it and, since Kineto keeps what it
has got, again and again later.
"""

from __future__ import annotations

import importlib
import re
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any, Protocol

from .. import _cuda_library
from ._patch import Patch
from ._surface import Publishers, Surface, log

BORROWER = "torch.profiler"
_WAIT_S_MIN, _WAIT_S_MAX = 1.0, 60.0  # between two questions for the place


def takes_the_place(version: str) -> bool:
    """Whether Kineto in this PyTorch, built for CUDA, takes CUPTI's place for callbacks.

    It did until kineto#1250 (2026-08-13), which PyTorch took over on 2026-08-18 (pytorch#193990): libkineto_init subscribes
    in the wheel of 2.14.1 and does not in that of 2.15.0. Builds of 2.15 before its release may be of either kind. CUPTI's
    version is no help: from 13.3 on it serves several subscribers, but not one in the old form, which is Kineto's, beside one
    in the new form (pytorch#191944).
    """
    found = re.match(r"(\d+)\.(\d+)(?:\.\d+)*(a|b|rc|\.dev)?", version)
    if found is None:
        return True
    number = int(found[1]), int(found[2])
    return number < (2, 15) or (number == (2, 15) and found[3] is not None)


class Source(Protocol):
    """CUDA's source in this process, whoever attached it."""

    def state(self) -> str | None: ...

    def lend(self, to: str) -> bool: ...

    def take_back(self) -> bool: ...


class Loan:
    """The place, lent to torch.profiler while one of its profilers runs. Nothing here raises."""

    def __init__(self, source: Callable[[], Source | None], clock: Callable[[], float] = time.monotonic) -> None:
        self._source = source
        self._clock = clock
        self._lock = threading.Lock()  # for the fields below, never across a call of the source
        self._running: weakref.WeakSet[Any] = weakref.WeakSet()
        self._asking = False
        self._next = 0.0
        self._wait = _WAIT_S_MIN
        self._warned = False
        self.lent = False  # by us, and not taken back yet

    def begin(self, profiler: Any) -> None:
        """Before the profiler is prepared."""
        with self._lock:
            self._running.add(profiler)
        source = self._source()
        if source is None:
            return
        try:
            if source.lend(BORROWER):
                self.lent = True
        except RuntimeError as error:
            if not self._warned:
                self._warned = True
                log.warning("torch.profiler will record nothing of the GPU, in this process: CUDA's source keeps CUPTI's "
                            "place (%s)", error)

    def end(self, profiler: Any) -> None:
        """After it has stopped."""
        with self._lock:
            self._running.discard(profiler)
            self._wait = _WAIT_S_MIN
        self._ask()

    def chance(self) -> None:
        """Something else has happened in PyTorch. Asks again if it is time to."""
        if self.lent and self._clock() >= self._next:
            self._ask()

    def _ask(self) -> None:
        with self._lock:
            if not self.lent or self._asking or len(self._running):
                return
            self._asking = True
        back = False
        try:
            source = self._source()
            back = source is None or source.take_back() or source.state() != "lent"
        except RuntimeError as error:
            log.debug("CUDA's source cannot ask for CUPTI here: %s", error)
        finally:
            with self._lock:
                self._asking = False
                self.lent = self.lent and not back
                self._next = self._clock() + self._wait
                self._wait = min(2 * self._wait, _WAIT_S_MAX)


class ProfilerHook:
    """The process's one link to PyTorch's profilers: it stands while somebody wants it.

    torch.profiler.profile is made of torch.autograd.profiler.profile, so both come by that class's _prepare_trace(), before
    anything of Kineto, and by its __exit__().
    """

    def __init__(self, loan: Loan) -> None:
        self.loan = loan
        self._wanted_by: list[object] = []
        self._lock = threading.RLock()
        self._patches: list[Patch] = []

    def connect(self, by: object) -> str:
        """Returns "" or why it does not stand."""
        with self._lock:
            if not self._patches:
                reason = self._stand()
                if reason:
                    return reason
            if not any(other is by for other in self._wanted_by):
                self._wanted_by.append(by)
            return ""

    def disconnect(self, by: object) -> None:
        with self._lock:
            self._wanted_by = [other for other in self._wanted_by if other is not by]
            if not self._wanted_by:
                for patch in self._patches:
                    patch.take_out()
                self._patches.clear()

    def _stand(self) -> str:
        import torch

        if not torch.version.cuda:
            return "this PyTorch was not built for CUDA"
        if not takes_the_place(str(torch.__version__)):
            return "not needed: this PyTorch's profiler leaves CUPTI's place for callbacks alone"
        profile: Any = getattr(importlib.import_module("torch.autograd.profiler"), "profile", None)
        missing = [name for name in ("_prepare_trace", "__exit__") if name not in vars(profile or object)]
        if missing:
            return f"torch.autograd.profiler.profile of this PyTorch has no {', '.join(missing)}"
        self._patches = [Patch(profile, "_prepare_trace", self._prepare), Patch(profile, "__exit__", self._exit)]
        return ""

    def _prepare(self, original: Callable[..., Any], profiler: Any, *args: Any, **kwargs: Any) -> Any:
        self.loan.begin(profiler)
        try:
            return original(profiler, *args, **kwargs)
        except BaseException:
            self.loan.end(profiler)
            raise

    def _exit(self, original: Callable[..., Any], profiler: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return original(profiler, *args, **kwargs)
        finally:
            self.loan.end(profiler)


loan = Loan(_cuda_library.loaded)
hook = ProfilerHook(loan)


class ProfilerLoan(Surface):
    """CUDA's source steps aside for PyTorch's profilers."""

    name = "torch.profiler"

    def __init__(self, publishers: Publishers) -> None:
        super().__init__(publishers)

    def hook_in(self) -> str:
        return hook.connect(self)

    def hook_out(self) -> None:
        hook.disconnect(self)
