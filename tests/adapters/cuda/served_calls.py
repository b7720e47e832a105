"""What must be heard of the calls that the fake served? Told by its own log, without ringmain's tables.

Each line of the log is a call that came in. expected() makes of them the events that a listener must get; heard() takes the
same fields out of JSON lines. Both are lists by (process, thread), in order, of dicts that can be compared.
"""

import re
from collections import defaultdict

NO_STREAM = 2**64 - 1
NO_RESULT = -1

# By the call's name without cuda or cu, version and _ptsz: the channel, and the class of memory.
KINDS = {
    **dict.fromkeys(("EventCreate", "EventCreateWithFlags"), ("event_creation", "")),
    "EventDestroy": ("event_deletion", ""),
    **dict.fromkeys(("EventRecord", "EventRecordWithFlags"), ("event_record", "")),
    "StreamWaitEvent": ("event_wait", ""),
    "EventSynchronize": ("event_synchronization", ""),
    **dict.fromkeys(("StreamCreate", "StreamCreateWithFlags", "StreamCreateWithPriority"), ("stream_creation", "")),
    "StreamDestroy": ("stream_deletion", ""),
    "StreamSynchronize": ("stream_synchronization", ""),
    **dict.fromkeys(("DeviceSynchronize", "CtxSynchronize"), ("device_synchronization", "")),
    **dict.fromkeys(("Malloc", "MallocPitch", "Malloc3D", "MemAlloc", "MemAllocPitch"), ("memory_allocation", "device")),
    **dict.fromkeys(("MallocAsync", "MallocFromPoolAsync", "MemAllocAsync", "MemAllocFromPoolAsync"),
                    ("memory_allocation", "stream_ordered")),
    **dict.fromkeys(("MallocArray", "Malloc3DArray", "MallocMipmappedArray", "ArrayCreate", "Array3DCreate",
                     "MipmappedArrayCreate"), ("memory_allocation", "array")),
    **dict.fromkeys(("MallocHost", "HostAlloc", "MemAllocHost", "MemHostAlloc"), ("memory_allocation", "host_pinned")),
    **dict.fromkeys(("HostRegister", "MemHostRegister"), ("memory_allocation", "host_registered")),
    **dict.fromkeys(("MallocManaged", "MemAllocManaged"), ("memory_allocation", "managed")),
    **dict.fromkeys(("IpcOpenMemHandle",), ("memory_allocation", "ipc")),
    "MemCreate": ("memory_allocation", "physical"),
    "MemMap": ("memory_allocation", "mapping"),
    **dict.fromkeys(("Free", "MemFree"), ("memory_deallocation", "device")),
    **dict.fromkeys(("FreeAsync", "MemFreeAsync"), ("memory_deallocation", "stream_ordered")),
    **dict.fromkeys(("FreeArray", "FreeMipmappedArray", "ArrayDestroy", "MipmappedArrayDestroy"),
                    ("memory_deallocation", "array")),
    **dict.fromkeys(("FreeHost", "MemFreeHost"), ("memory_deallocation", "host_pinned")),
    **dict.fromkeys(("HostUnregister", "MemHostUnregister"), ("memory_deallocation", "host_registered")),
    **dict.fromkeys(("IpcCloseMemHandle",), ("memory_deallocation", "ipc")),
    "MemRelease": ("memory_deallocation", "physical"),
    "MemUnmap": ("memory_deallocation", "mapping"),
    "StreamBeginCapture": ("capture", ""), "StreamEndCapture": ("capture", ""), "GraphLaunch": ("capture", ""),
}
CAPTURE_STEPS = {"StreamBeginCapture": "begin", "StreamEndCapture": "end", "GraphLaunch": "graph_launch"}
BEGIN_AND_END = {"event_synchronization", "stream_synchronization", "device_synchronization"}
BEFORE = {"event_deletion", "stream_deletion", "memory_deallocation"}


def stem(name):
    """("EventRecord", "cudaEventRecord") of "cudaEventRecord_ptsz" and "cuEventRecord_v2"."""
    api = re.sub(r"(_ptsz|_ptds|_v\d+)+$", "", name)
    return re.sub(r"^cuda|^cu", "", api), api


def number(text):
    return None if text is None else int(text, 0)


class Handles:
    """Generations and bytes in one process. A handle is used and taken back by the thread that made it."""

    def __init__(self):
        self.made, self.live = defaultdict(int), {}

    def make(self, thread, key, size=0):
        self.made[key] += 1
        self.live[thread, key] = (self.made[key], size)
        return self.made[key]

    def look(self, thread, key):
        return self.live.get((thread, key), (0, 0))

    def take_back(self, thread, key):
        self.live.pop((thread, key), None)


def class_of(channel, memory):
    if channel.startswith("event"):
        return "event"
    if channel.startswith("stream"):
        return "stream"
    return "array" if memory == "array" else "host" if memory.startswith("host") else "memory"


def bytes_of(call):
    """What a call that makes memory says of its bytes: of a mipmapped array they cannot be told from its arguments."""
    return 0 if "Mipmapped" in call["name"] else call["bytes"]


def generation_of(call, channel, key, handles):
    """The generation, and the bytes of what is taken back."""
    generation, size = handles.look(call["tid"], key)
    failed = call["result"] != 0
    if channel in ("event_creation", "stream_creation", "memory_allocation"):
        return (0 if failed else handles.make(call["tid"], key, bytes_of(call))), bytes_of(call)
    if channel in BEFORE and not failed:
        handles.take_back(call["tid"], key)
    return generation, size


def fields_of(call, channel, memory, handles):
    """What a call's events have in common."""
    stream = number(call["stream"])
    shown = NO_STREAM if stream is None else stream
    handle = shown if channel == "stream_synchronization" else number(call["handle"])
    what, api = stem(call["name"])
    event = {"channel": f"cuda.{channel}", "api": api, "layer": "runtime" if call["domain"] == 2 else "driver",
             "cbid": call["cbid"], "thread": call["tid"], "context": call["context"], "device": 0, "result": call["result"]}
    if channel == "device_synchronization":
        return event
    if channel == "capture":
        return {**event, "step": CAPTURE_STEPS[what], "stream": shown, "graph": number(call["graph"])}
    generation, size = generation_of(call, channel, (class_of(channel, memory), handle), handles)
    event["generation"] = generation
    if channel.startswith("event"):
        event["event"] = handle
    if channel in ("event_record", "event_wait"):
        event["stream"] = shown
    if channel in ("event_creation", "event_record", "event_wait", "stream_creation"):
        event["flags"] = call["flags"]
    if channel.startswith("stream"):
        event["stream"] = handle
    if channel == "stream_creation":
        event["priority"] = call["priority"]
    if channel.startswith("memory"):
        event.update(address=handle, memory=memory, stream=shown, bytes=size)
    return event


def events_of(call, handles):
    """The events of one call, in order."""
    channel, memory = KINDS[stem(call["name"])[0]]
    event = fields_of(call, channel, memory, handles)
    last = "failed" if call["result"] != 0 else "end" if channel in BEGIN_AND_END else "instant"
    if channel in BEGIN_AND_END:
        return [{**event, "phase": "begin", "result": NO_RESULT}, {**event, "phase": last}]
    if channel in BEFORE:
        before = {**event, "phase": "instant", "result": NO_RESULT}
        return [before, {**event, "phase": last}] if last == "failed" else [before]
    return [{**event, "phase": last}]


def is_told(call, driver_only):
    what, _ = stem(call["name"])
    if what not in KINDS:
        return False
    if KINDS[what][0] == "memory_deallocation" and number(call["handle"]) == 0:
        return False
    return call["domain"] == 1 if driver_only else call["depth"] == 1


def expected(served, driver_only=False):
    """Of the log's lines, which are written when a call returns: so what is made again comes after what was made first."""
    handles, threads = defaultdict(Handles), defaultdict(list)
    for call in served:
        if is_told(call, driver_only):
            threads[call["pid"], call["tid"]] += events_of(call, handles[call["pid"]])
    return dict(threads)


class Lives:
    """The lives of addresses, which the log numbers 1, 2, 3 and a listener hears as rising generations, not always by one."""

    def __init__(self):
        self.heard = {}

    def fault(self, pid, wanted, given):
        """Of the two events of one call: "" or what is wrong with the generation given."""
        if wanted.get("generation", 0) == 0 or given.get("generation") is None:
            return "" if wanted.get("generation") == given.get("generation") else f"generation {given.get('generation')}"
        channel = wanted["channel"].removeprefix("cuda.")
        handle = next(wanted[field] for field in ("event", "address", "stream") if field in wanted)
        key = (pid, class_of(channel, wanted.get("memory", "")), handle)
        known = self.heard.setdefault((key, wanted["generation"]), given["generation"])
        before = self.heard.get((key, wanted["generation"] - 1), 0)
        if known == given["generation"] > before:
            return ""
        return f"life {wanted['generation']} of {key} has generation {given['generation']}, and {known}; the one before {before}"


def heard(events, pid_of):
    """Of JSON lines. `pid_of`: the process by its origin."""
    threads = defaultdict(list)
    for event in sorted(events, key=lambda one: one["time_ns"]):
        kept = {key: value for key, value in event.items()
                if key in ("channel", "api", "layer", "cbid", "thread", "context", "device", "result", "phase", "event", "stream",
                           "flags", "priority", "address", "memory", "bytes", "generation", "step", "graph")}
        threads[pid_of[event["origin"]], event["thread"]].append(kept)
    return dict(threads)
