"""What was published on a bus, for tests to look at."""


class Heard:
    """What was said on a bus, in the order in which it came: (channel, fields)."""

    def __init__(self, bus, *patterns):
        self._bus = bus
        self._events = []
        for pattern in patterns:
            bus.subscribe(pattern, self._hear)

    def _hear(self, batch):
        self._events.extend((batch.channel, event._asdict()) for event in batch)

    @property
    def events(self):
        assert self._bus.flush(60)
        return list(self._events)

    def on(self, channel):
        return [fields for heard, fields in self.events if heard == channel]

    def forget(self):
        assert self._bus.flush(60)
        self._events.clear()
