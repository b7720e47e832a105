"""Where else does PyTorch let us listen? Compile callbacks, guard verdicts, torch.monitor, the backend registry."""

from __future__ import annotations

from typing import Any

from . import backends
from ._callbacks import Handle
from ._dynamo import dynamo_callbacks
from ._registry import registry_of_torch
from ._surface import GuardHook, Publishers, Surface


class CompileVetoed(AssertionError):
    """An inline subscriber of compile.start refused this compile. An AssertionError, because TorchDynamo lets those
    through unchanged."""


class CompileCallbacks(Surface):
    """TorchDynamo's start and end callbacks, and its reset."""

    name = "compile callbacks"

    def __init__(self, publishers: Publishers) -> None:
        super().__init__(publishers)
        self._handles: list[Handle] = []

    def hook_in(self) -> str:
        reason = dynamo_callbacks.connect()
        if not reason:
            self._handles = [dynamo_callbacks.starts.add(self._started), dynamo_callbacks.ends.add(self._ended),
                             dynamo_callbacks.resets.add(self.publishers.reset)]
        return reason

    def lacks(self) -> str:
        return dynamo_callbacks.lacks()

    def hook_out(self) -> None:
        for handle in self._handles:
            handle.remove()
        dynamo_callbacks.disconnect_if_idle()

    def _started(self, args: Any) -> None:
        veto = ""
        try:
            backends.observe()
            veto = self.publishers.compile_started(_number(args), str(args.compile_id))
        except Exception as error:
            self.failed(error)
        if veto:
            raise CompileVetoed(f"compile {args.compile_id} was vetoed: {veto}")

    def _ended(self, args: Any) -> None:
        try:
            self.publishers.compile_ended(_number(args), str(args.compile_id))
        except Exception as error:
            self.failed(error)


def _number(args: Any) -> int:
    number = getattr(args.callback_trigger, "value", 0)
    return number if isinstance(number, int) and 1 <= number <= 4 else 0


class GuardVerdicts(Surface):
    """PyTorch's one slot for a guard-complete hook. Ours stands in it. A hook that other code sets meanwhile, as guard
    collectives do, is chained after ours: its verdict counts, and the setter returns the hook that would have been there
    without us."""

    name = "guard verdicts"

    def __init__(self, publishers: Publishers) -> None:
        super().__init__(publishers)
        self._hook: GuardHook | None = None
        self._set: Any = None
        self._module: Any = None

    def hook_in(self) -> str:
        import torch

        module = getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None)
        self._set = getattr(module, "set_guard_complete_hook", None)
        if self._set is None:
            return "this PyTorch has no set_guard_complete_hook"
        self._module = module
        self._hook = self.publishers.guard_hook(None)
        self._hook.chain(self._set(self._hook))
        if self._taken_by() is not None:
            return "set_guard_complete_hook does not keep what it is given"
        self._module.set_guard_complete_hook = self._set_behind_us
        return ""

    def hook_out(self) -> None:
        if self._module.set_guard_complete_hook == self._set_behind_us:
            self._module.set_guard_complete_hook = self._set
        hook = self._hook
        chained = hook.chain(None) if hook is not None else None
        found = self._set(chained)
        if found is not hook:  # other code took the slot by the original function: it keeps it
            self._set(found)

    def lacks(self) -> str:
        other = self._taken_by()
        return f"everything: {other!r} took the slot" if other is not None else ""

    def _taken_by(self) -> Any:
        """The hook that stands in the slot in place of ours; None: ours does. The slot can only be read by setting it."""
        found = self._set(self._hook)
        if found is self._hook:
            return None
        self._set(found)
        return found if found is not None else "nobody"

    @property
    def errors(self) -> int:
        return self._errors + (self._hook.errors if self._hook is not None else 0)

    @property
    def last_error(self) -> str:
        return self._hook.last_error if self._hook is not None and self._hook.errors else self._last_error

    def _set_behind_us(self, next: Any) -> Any:
        return self._hook.chain(next) if self._hook is not None else self._set(next)


class MonitorEvents(Surface):
    """torch.monitor's events. PyTorch holds a lock while handlers run: an inline subscriber must not log one."""

    name = "torch.monitor"

    def __init__(self, publishers: Publishers) -> None:
        super().__init__(publishers)
        self._handle: Any = None

    def hook_in(self) -> str:
        try:
            from torch import monitor
        except ImportError as error:
            return f"torch.monitor cannot be imported: {error}"
        if not hasattr(monitor, "register_event_handler"):
            return "this PyTorch's torch.monitor has no register_event_handler"
        self._handle = monitor.register_event_handler(self._logged)
        return ""

    def hook_out(self) -> None:
        from torch import monitor

        handle, self._handle = self._handle, None
        if handle is not None:  # an unknown one is undefined behaviour there
            monitor.unregister_event_handler(handle)

    def _logged(self, event: Any) -> None:
        try:
            if not self.publishers.wanted("torch.monitor"):
                return
            at_ns = int(event.timestamp.timestamp() * 1e9)
            for key, value in (event.data or {"": ""}).items():
                number = float(value) if isinstance(value, (int, float)) else float("nan")
                text = "" if isinstance(value, (int, float)) else str(value)
                self.publishers.publish("torch.monitor", name=event.name, key=key, number=number, text=text,
                                   logged_at_ns=at_ns)
        except Exception as error:
            self.failed(error)


class BackendNames(Surface):
    """Which compiler backends there are: those that are known when we begin to listen, and what happens to them then."""

    name = "backend registry"

    def __init__(self, publishers: Publishers) -> None:
        super().__init__(publishers)
        self._handle: Handle | None = None

    def hook_in(self) -> str:
        registry, reason = registry_of_torch()
        if registry is None:
            return reason
        backends.observe()
        self._handle = backends.subscribe(self._said, backfill=True)
        return ""

    def lacks(self) -> str:
        registry, reason = registry_of_torch()
        return registry.lacks() if registry is not None else f"everything: {reason}"

    def hook_out(self) -> None:
        if self._handle is not None:
            self._handle.remove()

    def _said(self, event: backends.BackendEvent) -> None:
        try:
            what = {"registered": "registered", "unregistered": "removed"}.get(event.what)
            if what is not None:
                self.publishers.publish("compile.backend", what=what, name=event.name, tags=",".join(event.tags))
        except Exception as error:
            self.failed(error)
