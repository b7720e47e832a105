"""What do PyTorch's process groups do? Each collective, whoever calls for it, as collective.* events.

PyTorch 2.14 and later: its own hooks (_pg_hooks.py). Before: the methods that Python calls (_methods.py), and what C++ calls
for from PyTorch's recorder (_recorder.py). Ends come from the futures of Works (_follow.py).
"""

from __future__ import annotations

import atexit
import importlib
import os
import time
from collections.abc import Callable
from typing import Any

from ._collectives import Collectives
from ._follow import Works
from ._groups import ENDS_KNOWN, Groups, world
from ._methods import MethodCalls
from ._patch import Patch
from ._pg_hooks import HookCalls
from ._recorder import Dump, Recorder
from ._surface import Publishers, Surface

_MODULE = "torch.distributed.distributed_c10d"
_MAKING = ("_register_process_group",)
_ENDING = ("_unregister_process_group", "_unregister_all_process_groups")
_EXIT_WAIT_S = 1.0


class Distributed(Surface):
    """PyTorch's process groups."""

    name = "torch.distributed"

    def __init__(self, publishers: Publishers) -> None:
        super().__init__(publishers)
        self._hooks: HookCalls | None = None
        self._methods: MethodCalls | None = None
        self._recorder: Recorder | None = None
        self._groups: Groups | None = None
        self._collectives: Collectives | None = None
        self._patches: list[Patch] = []
        self._missing: list[str] = []
        self._process = os.getpid()

    def hook_in(self) -> str:
        import torch

        if not torch.distributed.is_available():
            return "this PyTorch was built without torch.distributed"
        native: Any = getattr(torch._C, "_distributed_c10d", None)
        process_group = getattr(native, "ProcessGroup", None)
        if not isinstance(process_group, type):
            return "this PyTorch keeps its ProcessGroup elsewhere"
        collectives = self._collectives = self.publishers.collectives()
        module = importlib.import_module(_MODULE)
        works = Works(collectives, self.failed)
        hooked = all(hasattr(process_group, name) for name in ("register_pre_hook", "register_post_hook"))
        if hooked:
            hooks = self._hooks = HookCalls(collectives, works, self.failed)
            groups = self._groups = Groups(collectives, self.failed, hooks.add)
            hooks.hook_in(process_group)
        else:
            groups = self._groups = Groups(collectives, self.failed)
            self._methods = MethodCalls(collectives, groups, works, self.failed)
            if not self._stand_before(process_group, self._methods):
                return "the methods of this PyTorch's ProcessGroup are not known here"
        self._follow_groups(module, groups)
        if "wait" in vars(getattr(native, "Work", object)):
            self._patches.append(Patch(native.Work, "wait", works.wait))
        else:
            self._missing.append("collective.wait")
        if not hooked:
            self._record(native, collectives, groups)
        atexit.register(self._exit)
        return ""

    def hook_out(self) -> None:
        atexit.unregister(self._exit)
        if self._recorder is not None:
            self._recorder.stop()  # first: without our methods it would take what Python calls for as C++'s
        for patch in self._patches:
            patch.take_out()
        if self._methods is not None:
            self._methods.hook_out()
        if self._hooks is not None:
            self._hooks.hook_out()
        if self._groups is not None:
            self._groups.leave()

    def lacks(self) -> str:
        parts = list(self._missing)
        if self._methods is not None:
            parts.append("the ends of what C++ calls for (DDP, functional collectives), and hooks on it"
                         if self._recorder is not None else
                         "what C++ calls for (DDP, functional collectives): PyTorch's recorder is off")
            parts += [f"{name} (somebody took ours out)" for name in self._methods.gone()]
        if self._hooks is not None and self._hooks.missed:
            parts.append(f"the groups {', '.join(self._hooks.missed)}, which took no hooks")
        if self._recorder is not None and self._recorder.forgotten:
            parts.append(f"{self._recorder.forgotten} operations that PyTorch's recorder forgot before it was read "
                         "(TORCH_FR_BUFFER_SIZE)")
        others = sorted({known.backend for known in self._groups or ()} - set(ENDS_KNOWN))
        if others:
            parts.append(f"the ends of operations on {', '.join(others)}")
        return ", ".join(parts)

    @staticmethod
    def _stand_before(process_group: type, methods: MethodCalls) -> bool:
        methods.hook_in(process_group)
        return bool(methods.count) and not methods.gone()

    def _follow_groups(self, module: Any, groups: Groups) -> None:
        """Those that are there, and those that come and go."""
        for group in list(getattr(world(), "pg_map", {})):
            self._kept(groups.of, group)

        def made(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
            said = original(*args, **kwargs)
            group = args[1] if len(args) > 1 else kwargs.get("group")
            if group is not None:
                self._kept(groups.of, group)
            return said

        def ended(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
            name = args[0] if args else kwargs.get("group_name")
            if self._recorder is not None:
                self._recorder.look()
            said = original(*args, **kwargs)
            self._kept(groups.end, None if name is None else str(name))
            return said

        for names, call in ((_MAKING, made), (_ENDING, ended)):
            for name in names:
                if name in vars(module):
                    self._patches.append(Patch(module, name, call))
                else:
                    self._missing.append(f"groups that come and go ({name} is elsewhere)")

    def _kept(self, call: Callable[..., Any], *args: Any) -> None:
        """What goes wrong in it stays here."""
        try:
            call(*args)
        except Exception as error:
            self.failed(error)

    def _record(self, native: Any, collectives: Collectives, groups: Groups) -> None:
        dumps = [Dump(text, number) for text, number in
                 ((getattr(native, "_dump_fr_trace_json", None), "op_id"),
                  (getattr(native, "_dump_nccl_trace_json", None), "collective_seq_id")) if text is not None]
        recorder = Recorder(dumps, collectives, groups, self.failed)
        if dumps and recorder.capacity > 0:
            recorder.start()
            self._recorder = recorder

    def _exit(self) -> None:
        """The interpreter ends: what was recorded is told, and Works whose end would be told to nobody have a moment. What
        was under way at a fork ends in the parent."""
        if os.getpid() != self._process:
            return
        if self._recorder is not None:
            self._recorder.stop()
        if self._collectives is not None:
            deadline = time.monotonic() + _EXIT_WAIT_S
            while self._collectives.open and time.monotonic() < deadline:
                time.sleep(0.001)

