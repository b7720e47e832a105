"""What the tests of the Python package share."""

import threading
import time

import pytest
import ringmain

LONG = 60.0  # seconds: how long a test waits for what must come, however loaded the machine is


@pytest.fixture
def bus():
    with ringmain.Bus("test") as made:
        yield made


@ringmain.event("test.tick")
class Tick:
    n: int
    x: float = 0.0
    word: str = ""


@pytest.fixture
def ticks(bus):
    return bus.channel(Tick)


@pytest.fixture
def tick():
    return Tick


class Keep:
    """A callback that keeps the batches."""

    def __init__(self):
        self.batches = []

    def __call__(self, batch):
        self.batches.append(batch)

    @property
    def numbers(self):
        return [record.n for batch in self.batches for record in batch]


@pytest.fixture
def keep():
    return Keep()


@pytest.fixture
def long():
    return LONG


@pytest.fixture
def eventually():
    def wait_for(condition):
        end = time.monotonic() + LONG
        while not condition() and time.monotonic() < end:
            threading.Event().wait(0.001)
        return condition()

    return wait_for
