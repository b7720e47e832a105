"""The last operations of communicators, in the files that PyTorch's analyzer and `ringmain fr` read."""

from __future__ import annotations

import atexit
import logging
import os
import weakref
from typing import Any

from .. import _check, _native
from ._hooks import Hooks, hooks_of


class FlightRecorderHook:
    """Records what is called for on the communicators that it is registered with, in C++ and without the GIL.

    Remembers the newest `max_entries` operations (None: what TORCHCOMM_FR_BUFFER_SIZE says, else 2000). Recorders that are not
    `isolated` share one ring of the process. `variables` "torch": TORCH_FR_… in place of TORCHCOMM_FR_…. `backend` stands before the
    colon of operations' names; without it the group's own where PyTorch's analyzer knows it, else nccl. `rank` is this process's in the
    job (None: the variable RANK); files that nobody asks for need it, else ValueError: dumps_on_abort, before a group is given up
    through its communicator; dumps_on_failure, at the first operation that fails or times out; dumps_at_exit, when the interpreter
    ends; dumps_on_signal, whenever the process gets that signal (signal.SIGUSR2), in a thread that needs no GIL: also while Python is
    stuck. What the program has set for that signal before, also by signal.signal(), is called as well. Threads: any.
    """

    def __init__(self, max_entries: int | None = None, isolated: bool = False, *, variables: str = "torchcomms", backend: str = "",
                 rank: int | None = None, dumps_on_abort: bool = False, dumps_on_failure: bool = False, dumps_at_exit: bool = False,
                 dumps_on_signal: int | None = None) -> None:
        entries = 0 if max_entries is None else _check.whole("max_entries", max_entries, 1, 2**31 - 1)
        self._rank = _environment_rank() if rank is None else _check.whole("rank", rank, 0, 2**31 - 1)
        number = 0 if dumps_on_signal is None else _check.whole("dumps_on_signal", dumps_on_signal, 1, 64)
        for word, wanted in (("dumps_on_abort", dumps_on_abort), ("dumps_on_failure", dumps_on_failure), ("dumps_at_exit", dumps_at_exit),
                             ("dumps_on_signal", number)):
            if wanted and self._rank < 0:
                raise ValueError(f"{word} needs a rank for the file's name: give rank=, or set the variable RANK")
        self._native = _native.FlightRecorder(entries, bool(isolated), _check.text("variables", variables),
                                              _check.text("backend", backend), self._rank, bool(dumps_on_abort), bool(dumps_on_failure), number)
        if dumps_at_exit:
            atexit.register(_dump, weakref.ref(self), os.getpid())

    def register_with_comm(self, comm: Any) -> None:
        """A communicator of ringmain.comms, its hooks (hooks_of), or a process group of PyTorch's that ringmain.torch hears. From its next
        operation on; parts of a split are recorded with it. Again: nothing."""
        self._native.register_with_comm(hooks_with_timeout(comm)._native)

    def unregister(self) -> None:
        """Nothing is recorded any more; what is there stays."""
        self._native.unregister()

    def dump_json(self, include_completed: bool = True) -> str:
        """Every operation, by its own name."""
        return self._native.dump_json(bool(include_completed))

    def dump_pickle(self, include_completed: bool = True) -> bytes:
        """What PyTorch's analyzer knows, by the names that every release of it does."""
        return self._native.dump_pickle(bool(include_completed))

    def dump_file(self, rank: int | None = None, include_completed: bool = True) -> str:
        """Writes that pickle to <prefix><rank>, whole or not at all; returns the path. The prefix is TORCHCOMM_FR_DUMP_TEMP_FILE, else
        torch/comm_lib_trace_rank_ in the user's cache folder. OSError: it cannot be written."""
        number = self._rank if rank is None else _check.whole("rank", rank, 0, 2**31 - 1)
        return self._native.dump_file(number, bool(include_completed))

    def reset(self) -> None:
        """Forgets all operations, also those that are open."""
        self._native.reset()

    def is_enabled(self) -> bool:
        """Was it, or one that shares its ring, ever registered?"""
        return self._native.is_enabled()

    def size(self) -> int:
        """How many operations it holds."""
        return self._native.size()

    def lost(self) -> int:
        """How many operations could not be recorded, as there was no memory."""
        return self._native.lost

    def complaint(self) -> str:
        """Why the last dump that nobody called for was not written, in one sentence; "" if it was."""
        return self._native.complaint

    def __len__(self) -> int:
        return self.size()

    def __bool__(self) -> bool:
        return True  # an empty one, too

    def __repr__(self) -> str:
        return f"<flight recorder, {self.size()} operations>"


def hooks_with_timeout(comm: Any) -> Hooks:
    """Of a communicator, whose time-out is known from then on if PyTorch says it."""
    try:
        hooks = comm if isinstance(comm, Hooks) else hooks_of(comm)
    except TypeError:
        raise TypeError(f"comm is {comm!r}; give a communicator of ringmain.comms, its hooks, a torch.distributed.ProcessGroup, or a "
                        "group's name") from None
    if not isinstance(comm, (Hooks, str)):
        limit = timeout_of(comm)
        if limit is not None:
            hooks._native.set_timeout(limit)
    return hooks


def _environment_rank() -> int:
    said = os.environ.get("RANK", "")
    return int(said) if said.isascii() and said.isdigit() else -1  # "²" is a digit, too


def timeout_of(group: Any) -> float | None:
    """Seconds, as PyTorch's backend has it. None: not known."""
    for device in getattr(group, "_device_types", ()):
        try:
            limit = getattr(getattr(group._get_backend(device), "options", None), "_timeout", None)
        except RuntimeError:  # it has no such backend
            continue
        if limit is not None:
            return float(limit.total_seconds())
    return None


def _dump(recorder: weakref.ref[FlightRecorderHook], process: int) -> None:
    held = recorder()
    if held is None or os.getpid() != process:
        return
    try:
        held.dump_file()
    except (OSError, ValueError) as error:
        logging.getLogger("ringmain").error("the flight recorder's dump at exit was not written: %s", error)
