"""What has C++ called for that no method of ours saw? PyTorch's own recorder knows: DDP's reducer, functional collectives.

Reading it is asking for all of it, as text, with the GIL held. So we ask only when a group has given numbers that nobody
accounts for, and so seldom that it takes 1/500 of a processor; 1/50, if it would forget entries otherwise. Where nobody calls
for anything in C++, even the question costs: a thread that wakes up beside training finds its caches cold. So it rests longer.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from typing import Any

from ._c10d import recorded
from ._collectives import Collectives
from ._groups import Groups, ProcessGroup

_IDLE_S, _IDLE_S_MAX, _PAUSE_S_MAX = 0.1, 1.0, 30.0
_SHARE, _SHARE_MAX = 1 / 500, 1 / 50
_ENTRIES = 2000  # that it remembers, unless TORCH_FR_BUFFER_SIZE says otherwise

Entry = dict[str, Any]


class Dump:
    """One recorder of PyTorch's: that of gloo, or that of NCCL."""

    def __init__(self, text: Callable[[], bytes], number: str) -> None:
        self._text = text
        self._number = number  # the key of an entry under which the group's own number stands
        self.newest = -1

    def entries(self) -> list[Entry]:
        """Those after the newest that was read, in order."""
        entries = newer(self._text(), self.newest)
        if entries:
            self.newest = int(entries[-1]["record_id"])
        return entries

    def number(self, entry: Entry) -> int:
        return int(entry[self._number])


def newer(text: bytes, than: int) -> list[Entry]:
    """The entries after this record. Only what follows it is parsed, where the text is written as it is known here."""
    text = bytes(text)
    place = text.rfind(b'"record_id":%d,' % than) if than >= 0 else -1
    if place >= 0:
        after = text.find(b"},{", place)
        if after < 0:
            return []
        try:
            return list(json.loads(b'{"entries":[' + text[after + 2:])["entries"])
        except (ValueError, KeyError):
            pass
    entries = [entry for entry in json.loads(text).get("entries", ()) if "record_id" in entry]
    if entries and int(entries[-1]["record_id"]) < than:
        return entries  # it was emptied, and counts from 0 again
    return [entry for entry in entries if int(entry["record_id"]) > than]


class Recorder:
    """Looks into PyTorch's recorders from time to time, in a thread of its own."""

    def __init__(self, dumps: list[Dump], collectives: Collectives, groups: Groups,
                 failed: Callable[[BaseException], None]) -> None:
        self._dumps = dumps
        self._collectives = collectives
        self._groups = groups
        self._failed = failed
        self._process = os.getpid()
        self._lock = threading.Lock()  # one looks at a time
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._quiet_ns = 0  # the last time at which nobody listened
        self.pause_s = _IDLE_S
        self.forgotten = 0  # operations that the recorder had forgotten before it was asked
        try:
            self.capacity = int(os.environ.get("TORCH_FR_BUFFER_SIZE", _ENTRIES))
        except ValueError:
            self.capacity = _ENTRIES

    def start(self) -> None:
        """What was recorded until now is not told."""
        self._quiet_ns = time.time_ns()
        for dump in self._dumps:
            self._calibrate(dump)
        self._thread = threading.Thread(target=self._run, name="ringmain-recorder", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        self.look()

    def look(self) -> None:
        """Tells what is new. Never raises."""
        if os.getpid() != self._process:
            return  # a forked child: its groups are the parent's, and a lock may be held for ever
        try:
            with self._lock:
                self._look()
        except Exception as error:
            self._failed(error)

    def _run(self) -> None:
        while not self._stopped.wait(self.pause_s):
            self.look()

    def _look(self) -> None:
        if not self._collectives.heard:
            self._quiet_ns, self.pause_s = time.time_ns(), _IDLE_S
            return
        if not any(known.unseen() for known in self._groups):
            self.pause_s = max(min(2 * self.pause_s, _IDLE_S_MAX), _IDLE_S)
            return
        before = time.thread_time()
        told = 0
        for dump in self._dumps:
            entries = dump.entries()
            told += len(entries)
            for entry in entries:
                self._hear(dump, entry)
        for known in self._groups:
            known.forget_spans()
        self._rest(time.thread_time() - before, told)

    def _rest(self, took_s: float, entries: int) -> None:
        """How long until the next look?"""
        pause = min(took_s / _SHARE, _PAUSE_S_MAX)
        if entries:
            pause = min(pause, self.pause_s * self.capacity / 2 / entries)
        self.pause_s = max(pause, took_s / _SHARE_MAX, _IDLE_S)

    def _hear(self, dump: Dump, entry: Entry) -> None:
        named = entry.get("process_group") or [""]
        known = self._groups.named(str(named[0]))
        if known is None or entry.get("is_p2p"):
            return
        number = dump.number(entry)
        unheard = int(entry.get("time_created_ns", 0)) < self._quiet_ns
        self._account(known, number, unheard)
        thread = entry.get("thread_id")
        if known.seen(number, int(thread) if thread is not None else None):
            return
        known.told += 1
        if not unheard:
            known.operations += 1
            known.reporter.was_issued(recorded(entry, known.backend, number))

    def _account(self, known: ProcessGroup, number: int, unheard: bool) -> None:
        """Between this entry and the one before, all numbers are a method's, or nobody has said them."""
        for missing in range(max(known.known + 1, number - self.capacity), number):
            if not known.seen(missing, None):
                known.told += 1
                self.forgotten += not unheard
        known.known = max(known.known, number)

    def _calibrate(self, dump: Dump) -> None:
        """Groups that were there before us: how many of their numbers are no collective's?"""
        for entry in dump.entries():
            known = self._groups.named(str((entry.get("process_group") or [""])[0]))
            if known is not None and "op_id" in entry and dump.number(entry) <= known.first:
                # What came after it, and was not recorded, is point to point.
                known.point_to_point = known.first - int(entry["collective_seq_id"])
