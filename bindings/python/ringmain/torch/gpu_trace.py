"""torch.cuda._gpu_trace, for code that moves over by changing its import.

The same ten registries and register functions, with handles: what was added can be taken away. While a registry has
callbacks, one function of ours stands in PyTorch's registry of the same name and hands on what the GPU trace fires;
with none it does not stand there. Activation stays PyTorch's: torch._C._activate_gpu_trace(), once, for good.
"""

from __future__ import annotations

import importlib
import logging
import threading
from collections.abc import Callable, Iterable
from typing import Any, Generic, ParamSpec

from ._callbacks import CallbackList, Handle, LiveCalls

P = ParamSpec("P")
log = logging.getLogger("ringmain.torch.gpu_trace")


class CallbackRegistry(Generic[P]):
    """The callbacks of one kind. What one of them raises is logged with the registry's name."""

    def __init__(self, name: str, of_torch: str = "") -> None:
        self.name = name
        self._of_torch = of_torch  # "torch.cuda._gpu_trace:EventCreationCallbacks", or "" to stand alone
        self._calls: CallbackList[P] = CallbackList()
        self._lock = threading.Lock()
        self._standing_in: Any = None

    def __repr__(self) -> str:
        return f"<callbacks of {self.name!r}: {len(self.callback_list)}>"

    @property
    def callback_list(self) -> LiveCalls:
        return LiveCalls(self._calls, self._stand)

    @callback_list.setter
    def callback_list(self, calls: Iterable[Callable[P, Any]]) -> None:
        self.callback_list.replace(calls)

    def add_callback(self, cb: Callable[P, Any]) -> Handle:
        """Calls it from now on, until the handle is removed."""
        handle = self._calls.add(cb)
        self._stand()
        return handle

    def remove_callback(self, cb: Callable[P, Any]) -> bool:
        """Removes the first that equals this one; False if there is none."""
        handle = self._calls.find(cb)
        removed = handle.remove() if handle else False
        self._stand()
        return removed

    def clear(self) -> None:
        """Removes all; when it returns outside of callbacks, none of them is running."""
        self._calls.clear()
        self._stand()

    def fire_callbacks(self, *args: P.args, **kwargs: P.kwargs) -> None:
        self._calls.fire(self._failed, *args, **kwargs)

    def _failed(self, handle: Handle, error: Exception) -> None:
        log.error("Exception in callback for %s registered with gpu trace", self.name, exc_info=error)

    def _hand_on(self, *args: Any, **kwargs: Any) -> None:
        if not len(self._calls):
            self._stand()  # a handle's remove() does not know PyTorch; the first event after it tidies up
            return
        self._calls.fire(self._failed, *args, **kwargs)

    def _stand(self) -> None:
        """Stands in PyTorch's registry exactly while there are callbacks here."""
        with self._lock:
            if len(self._calls) and self._standing_in is None:
                self._standing_in = _registry_of_torch(self._of_torch)
                if self._standing_in is not None:
                    self._standing_in.add_callback(self._hand_on)
            elif not len(self._calls) and self._standing_in is not None:
                take_out(self._standing_in, self._hand_on)
                self._standing_in = None


def take_out(registry: Any, callback: Callable[..., Any]) -> bool:
    """Takes a callback out of a registry of PyTorch's, which has no removal; its list is replaced, since a thread
    may be in a loop over the old one."""
    calls = getattr(registry, "callback_list", None)
    if not isinstance(calls, list) or callback not in calls:
        return False
    registry.callback_list = [other for other in calls if other != callback]
    return True


def _registry_of_torch(path: str) -> Any:
    module, _, name = path.partition(":")
    if not name:
        return None
    try:
        return getattr(importlib.import_module(module), name, None)
    except Exception as error:  # no torch here, or none with a GPU trace
        log.debug("%s is not there: %s", path, error)
        return None


def _of_cuda(kind: str, name: str) -> CallbackRegistry[...]:
    return CallbackRegistry(name, f"torch.cuda._gpu_trace:{kind}Callbacks")


EventCreationCallbacks: CallbackRegistry[[int]] = _of_cuda("EventCreation", "CUDA event creation")
EventDeletionCallbacks: CallbackRegistry[[int]] = _of_cuda("EventDeletion", "CUDA event deletion")
EventRecordCallbacks: CallbackRegistry[[int, int]] = _of_cuda("EventRecord", "CUDA event record")
EventWaitCallbacks: CallbackRegistry[[int, int]] = _of_cuda("EventWait", "CUDA event wait")
MemoryAllocationCallbacks: CallbackRegistry[[int]] = _of_cuda("MemoryAllocation", "CUDA memory allocation")
MemoryDeallocationCallbacks: CallbackRegistry[[int]] = _of_cuda("MemoryDeallocation", "CUDA memory deallocation")
StreamCreationCallbacks: CallbackRegistry[[int]] = _of_cuda("StreamCreation", "CUDA stream creation")
DeviceSynchronizationCallbacks: CallbackRegistry[[]] = _of_cuda("DeviceSynchronization", "CUDA device synchronization")
StreamSynchronizationCallbacks: CallbackRegistry[[int]] = _of_cuda("StreamSynchronization",
                                                                   "CUDA stream synchronization")
EventSynchronizationCallbacks: CallbackRegistry[[int]] = _of_cuda("EventSynchronization",
                                                                  "CUDA event synchronization")


def register_callback_for_event_creation(cb: Callable[[int], None]) -> Handle:
    return EventCreationCallbacks.add_callback(cb)


def register_callback_for_event_deletion(cb: Callable[[int], None]) -> Handle:
    return EventDeletionCallbacks.add_callback(cb)


def register_callback_for_event_record(cb: Callable[[int, int], None]) -> Handle:
    return EventRecordCallbacks.add_callback(cb)


def register_callback_for_event_wait(cb: Callable[[int, int], None]) -> Handle:
    return EventWaitCallbacks.add_callback(cb)


def register_callback_for_memory_allocation(cb: Callable[[int], None]) -> Handle:
    return MemoryAllocationCallbacks.add_callback(cb)


def register_callback_for_memory_deallocation(cb: Callable[[int], None]) -> Handle:
    return MemoryDeallocationCallbacks.add_callback(cb)


def register_callback_for_stream_creation(cb: Callable[[int], None]) -> Handle:
    return StreamCreationCallbacks.add_callback(cb)


def register_callback_for_device_synchronization(cb: Callable[[], None]) -> Handle:
    return DeviceSynchronizationCallbacks.add_callback(cb)


def register_callback_for_stream_synchronization(cb: Callable[[int], None]) -> Handle:
    return StreamSynchronizationCallbacks.add_callback(cb)


def register_callback_for_event_synchronization(cb: Callable[[int], None]) -> Handle:
    return EventSynchronizationCallbacks.add_callback(cb)
