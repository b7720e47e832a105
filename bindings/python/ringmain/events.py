"""The events that ringmain describes in C++, as event types: ringmain.events.train_step is that of "train.step".

They are there before the first of them is published: `bus.channel(ringmain.events.cuda_memory_allocation)`.
"""

from ._native import described as _described
from ._types import EventType

all_events: dict[str, EventType] = {layout.name: EventType(layout) for layout in _described()}
_by_attribute = {name.replace(".", "_"): event for name, event in all_events.items()}


def __getattr__(name: str) -> EventType:
    try:
        return _by_attribute[name]
    except KeyError:
        raise AttributeError(f"ringmain describes no event {name!r}; it has {', '.join(sorted(_by_attribute))}") from None


def __dir__() -> list[str]:
    return ["all_events", *sorted(_by_attribute)]
