"""A small PyTorch program that writes down what PyTorch's own GPU trace says. usage: torch_calls.py FILE"""

import json
import sys
import threading

import torch
from torch.cuda import _gpu_trace as trace

file = open(sys.argv[1], "w", encoding="utf-8")


def told(kind):
    def write(*given):
        file.write(json.dumps({"kind": kind, "given": list(given), "thread": threading.get_native_id()}) + "\n")

    return write


torch.cuda.init()
for kind in ("event_creation", "event_deletion", "event_record", "event_wait", "memory_allocation", "memory_deallocation",
             "stream_creation", "device_synchronization", "stream_synchronization", "event_synchronization"):
    getattr(trace, f"register_callback_for_{kind}")(told(kind))
torch._C._activate_gpu_trace()

stream = torch.cuda.Stream()
numbers = torch.zeros(1000, device="cuda")
for _ in range(10):
    event = torch.cuda.Event()
    event.record()
    event.wait(stream)
    with torch.cuda.stream(stream):
        numbers = numbers * 2
    event.synchronize()
    del event
stream.synchronize()
del numbers
torch.cuda.synchronize()
file.close()
