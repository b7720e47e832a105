"""torch._dynamo.backends.registry, for code that moves over by changing its import.

The same names and forms; what is registered here is known to torch.compile(backend=...) too, and PyTorch's own backends
are listed and found here. What is mended: a taken name is a typed error, or replaced on purpose; tags belong to the name,
not to the function; plugins are listed without being loaded, found when they come later, loaded once, tried again after
a failure; a backend can be removed; registrations can be heard.

A plugin's tags are known before it is loaded if it writes them as extras: `name = module:function [debug]`.
"""

from __future__ import annotations

import difflib
import functools
import importlib
import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any, Protocol

from ._callbacks import CallbackList, Handle
from ._registry import NAME, registry_of_torch

log = logging.getLogger("ringmain.torch.backends")

GROUP = "torch_dynamo_backends"
CompilerFn = Callable[..., Any]


class CompiledFn(Protocol):
    """What a backend returns."""

    def __call__(self, *args: Any) -> tuple[Any, ...]: ...


class BackendError(Exception):
    """Something about a backend's name or registration."""


class DuplicateBackend(BackendError, AssertionError):
    """The name is taken. An AssertionError too, as PyTorch's is."""


class NoBackend(BackendError, AssertionError, TypeError):
    """What was to be registered cannot be a backend."""


class BackendLoadError(BackendError):
    """A plugin's backend could not be loaded; the next use tries again."""


@functools.cache
def _invalid_backend() -> Any:
    """InvalidBackend, with PyTorch's as a base; made late, because TorchDynamo, which has that, takes a second to import."""
    try:
        from torch._dynamo.exc import InvalidBackend as of_torch
    except Exception:  # no PyTorch here
        of_torch = BackendError

    class InvalidBackend(BackendError, LookupError, of_torch):  # type: ignore[misc]
        """No backend has this name."""

        def __init__(self, name: str, suggestions: Iterable[str] | None = None, *, known: Iterable[str] = ()) -> None:
            self.name, self.known = name, sorted(known)
            close = suggestions or difflib.get_close_matches(name, self.known, n=1, cutoff=0.6)
            meant = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
            shown = ", ".join(self.known) or "what list_backends(None) names"
            of_torch.__bases__[0].__init__(self, f"Invalid backend: {name!r}.{meant} Known are {shown}.")

    InvalidBackend.__module__, InvalidBackend.__qualname__ = __name__, "InvalidBackend"
    return InvalidBackend


# Of PyTorch's own module, never copies: what its tests and its users' clean-up reach into.
_OF_TORCH = ("_BACKENDS", "_BACKEND_TAGS", "_COMPILER_FNS", "_lazy_import", "_discover_entrypoint_backends",
             "_is_registered_backend")


def __getattr__(name: str) -> Any:
    if name == "InvalidBackend":
        return _invalid_backend()
    if name in _OF_TORCH:
        return getattr(importlib.import_module(NAME), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@dataclass(frozen=True)
class BackendEvent:
    """What happened to a backend: `registered`, `loaded`, `load_failed` or `unregistered`."""

    what: str
    name: str
    origin: str  # "ringmain", "torch" or the plugin's "module:attribute"
    tags: tuple[str, ...] = ()
    took_ns: int = 0
    reason: str = ""


@dataclass
class _Entry:
    name: str
    origin: str
    tags: tuple[str, ...]
    function: CompilerFn | None = None
    in_torch: CompilerFn | None = None  # what stands in PyTorch's registry for it
    plugin: metadata.EntryPoint | None = None
    lock: threading.RLock = field(default_factory=threading.RLock)
    tries: int = 0
    failure: BaseException | None = None


_entries: dict[str, _Entry] = {}
_lock = threading.RLock()
events: CallbackList[[BackendEvent]] = CallbackList()


def subscribe(callback: Callable[[BackendEvent], Any], *, backfill: bool = False) -> Handle:
    """Calls it with what happens to backends from now on; with `backfill` also once for each that is known already."""
    with _lock:
        handle = events.add(callback)
        known = list(_entries.values()) if backfill else []
    for entry in known:
        callback(BackendEvent("registered", entry.name, entry.origin, entry.tags))
    return handle


def register_backend(compiler_fn: CompilerFn | None = None, name: str | None = None, tags: Sequence[str] = (),
                     *, replace: bool = False) -> Callable[..., Any]:
    """Gives a compiler a name: bare, as a decorator with arguments, or as a call. Returns the function.

    Raises DuplicateBackend if the name is taken and `replace` is not given, NoBackend if the compiler cannot be called.
    """
    if compiler_fn is None:
        return functools.partial(register_backend, name=name, tags=tags, replace=replace)
    if not callable(compiler_fn):
        raise NoBackend(f"a backend is callable, {type(compiler_fn).__name__} is not")
    name = name or getattr(compiler_fn, "__name__", None)
    if not name:
        raise NoBackend(f"{compiler_fn!r} has no __name__; say register_backend(..., name=...)")
    refresh()
    entry = _Entry(name, "ringmain", tuple(tags), compiler_fn)
    with _lock:
        taken = _entries.get(name)
        if taken is not None and taken.plugin is None and not replace:
            raise DuplicateBackend(f"there is a backend {name!r} (from {taken.origin}) already; say replace=True to "
                                   "put this one in its place, or give it another name")
        _entries[name] = entry
    _tell_torch(entry)
    _say(entry, "registered")
    return compiler_fn


register_debug_backend = functools.partial(register_backend, tags=("debug",))
register_experimental_backend = functools.partial(register_backend, tags=("experimental",))


def unregister_backend(name: str) -> bool:
    """Forgets the name, here and in PyTorch; compiles that use it go on. False if there is no such name."""
    with _lock:
        entry = _entries.pop(name, None)
    if entry is None:
        return False
    of_torch, _ = registry_of_torch()
    if of_torch is not None:
        of_torch.drop(name)
    _say(entry, "unregistered")
    return True


def lookup_backend(compiler_fn: str | CompilerFn) -> CompilerFn:
    """The compiler of this name, loaded if it is a plugin's; a callable is handed back as it is."""
    if not isinstance(compiler_fn, str):
        return compiler_fn
    if compiler_fn not in _entries:
        refresh()
    with _lock:
        entry = _entries.get(compiler_fn)
        known = list(_entries)
    if entry is None:
        raise _invalid_backend()(compiler_fn, known=known)
    return entry.function if entry.function is not None else _load(entry)


def list_backends(exclude_tags: Iterable[str] | None = ("debug", "experimental")) -> list[str]:
    """The names, sorted, without those that have one of the tags. Loads no plugin."""
    refresh()
    hidden = set(exclude_tags or ())
    with _lock:
        return sorted(name for name, entry in _entries.items() if not hidden.intersection(entry.tags))


def get_default_backend() -> str | CompilerFn:
    """What torch.compile() takes where no backend is named. PyTorch's own setting."""
    default: str | CompilerFn = _setting_of_torch("get_default_backend")()
    return default


def set_default_backend(backend: str | CompilerFn | None) -> None:
    """Sets it, in PyTorch; None: as it was at first."""
    _setting_of_torch("set_default_backend")(backend)


def _setting_of_torch(name: str) -> Callable[..., Any]:
    found: Callable[..., Any] | None = getattr(importlib.import_module(NAME), name, None)
    if found is None:
        raise BackendError("this PyTorch has no default backend that could be set; 2.13 and later have one")
    return found


def refresh() -> None:
    """Looks again for PyTorch's own backends and for plugins. list_backends() and unknown names do it by themselves."""
    of_torch, _ = registry_of_torch()
    if of_torch is not None:
        try:
            of_torch.import_all()
        except Exception as error:  # one of its modules does not import; PyTorch tries again as well
            log.warning("PyTorch's backends could not all be imported: %s", error)
    observe()
    for plugin in metadata.entry_points(group=GROUP):
        with _lock:
            if plugin.name in _entries:
                continue
            entry = _entries[plugin.name] = _plugin(plugin.name, plugin)
        if of_torch is not None:
            of_torch.plugins.setdefault(plugin.name, plugin)
        _say(entry, "registered")


def observe() -> None:
    """Takes over what PyTorch's registry has now; imports nothing."""
    of_torch, _ = registry_of_torch(load=False)
    if of_torch is None:
        return
    functions = dict(of_torch.functions)
    for name, function in functions.items():
        with _lock:
            entry = _entries.get(name)
            if entry is not None and (entry.in_torch is function or entry.function is function):
                entry.in_torch = function
                continue
            was_plugin = entry is not None and entry.plugin is not None
            origin = entry.origin if entry is not None and was_plugin else "torch"
            entry = _entries[name] = _Entry(name, origin, of_torch.tags_of(name), function, in_torch=function)
        _say(entry, "loaded" if was_plugin else "registered")
    for name, plugin in list(of_torch.plugins.items()):
        with _lock:
            if plugin is None or name in _entries:
                continue
            entry = _entries[name] = _plugin(name, plugin)
        _say(entry, "registered")
    with _lock:
        gone = [entry for name, entry in _entries.items() if entry.in_torch is not None and name not in functions]
        for entry in gone:
            del _entries[entry.name]
    for entry in gone:
        _say(entry, "unregistered")


def _plugin(name: str, plugin: Any) -> _Entry:
    return _Entry(name, str(plugin.value), tuple(plugin.extras), plugin=plugin)


def _load(entry: _Entry) -> CompilerFn:
    """Loads a plugin once, however many threads ask; threads that waited for a failed try get its reason."""
    tries_before = entry.tries
    with entry.lock:
        if entry.function is not None:
            return entry.function
        if entry.tries != tries_before and entry.failure is not None:
            raise _load_error(entry) from entry.failure
        entry.tries += 1
        began = time.monotonic_ns()
        try:
            assert entry.plugin is not None
            function = entry.plugin.load()
            if not callable(function):
                raise NoBackend(f"{entry.origin} is not callable")
        except Exception as error:
            entry.failure = error
            _say(entry, "load_failed", time.monotonic_ns() - began, f"{type(error).__name__}: {error}")
            raise _load_error(entry) from error
        entry.function = function
    _tell_torch(entry)
    _say(entry, "loaded", time.monotonic_ns() - began)
    return entry.function


def _load_error(entry: _Entry) -> BackendLoadError:
    return BackendLoadError(f"the backend {entry.name!r} could not be loaded from {entry.origin}: {entry.failure}; "
                            "the next use tries again")


def _tell_torch(entry: _Entry) -> None:
    of_torch, _ = registry_of_torch()
    if of_torch is not None and entry.function is not None:
        entry.in_torch = of_torch.put(entry.name, entry.function, entry.tags)


def _say(entry: _Entry, what: str, took_ns: int = 0, reason: str = "") -> None:
    event = BackendEvent(what, entry.name, entry.origin, entry.tags, took_ns, reason)
    events.fire(lambda handle, error: log.error("Exception in %r, which listens to backends", handle.call,
                                                exc_info=error), event)
