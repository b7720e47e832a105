"""ringmain: one hook slot in, many safe subscribers out.

    import ringmain

    bus = ringmain.Bus.process()

    @bus.on("train.*")
    def seen(events):               # a run of one event type, on one dispatcher thread
        print(events.channel, events.array["loss"].mean())

    @ringmain.event("train.loss")
    class Loss:
        step: int
        loss: float

    bus.publish(Loss(1, 2.5))
    bus.flush(10)
    seen.remove()                   # after this, never called again

docs/python.md says what runs in which thread, and what fork and exit do.
"""

import atexit

from . import _native, _thread, events
from ._bus import Bus, Subscription, in_subscriber
from ._channel import Channel
from ._door import Door, open_door
from ._mailbox import Mailbox
from ._native import Batch, BatchResult, PublishResult, Record, Stamp
from ._paths import cmake_prefix, get_include, program
from ._recording import Recording
from ._stats import ChannelStats, PythonStats, Stats, SubscriberStats
from ._steps import StepFollow, StepPlace
from ._types import EventType, Text, Unit, event, name, name_text

__version__: str = _native.__version__

atexit.register(_thread.at_exit)

__all__ = [
    "Batch", "BatchResult", "Bus", "Channel", "ChannelStats", "Door", "EventType", "Mailbox", "PublishResult",
    "PythonStats", "Record", "Recording", "Stamp", "Stats", "StepFollow", "StepPlace", "Subscription", "SubscriberStats", "Text", "Unit",
    "cmake_prefix", "event", "events", "get_include", "in_subscriber", "name", "name_text", "open_door",
    "program",
]
