#!/usr/bin/env python3
"""What does a callback registry in pure Python cost, as training scripts have them, and a publish from Python?

Prints a report in the form of Google Benchmark's, so that it is read like any other peer. What is published goes
through the package ringmain; without it only the registry is measured.
"""

import json
import queue
import statistics
import threading
import time


class Registry:
    """Callbacks by name, called in turn; one that throws does not harm the others."""

    def __init__(self):
        self.callbacks = []
        self.faults = []

    def register(self, callback):
        self.callbacks.append(callback)

    def fire(self, *arguments):
        for callback in self.callbacks:
            try:
                callback(*arguments)
            except Exception as fault:  # a registry must outlive its callbacks
                self.faults.append(fault)


def time_fire(callbacks, rounds=20000):
    registry = Registry()
    heard = [0]

    def hear(number, name):
        heard[0] += number

    for _ in range(callbacks):
        registry.register(hear)
    since = time.perf_counter_ns()
    for _ in range(rounds):
        registry.fire(1, "event")
    spent = time.perf_counter_ns() - since
    if heard[0] != rounds * callbacks:
        raise SystemExit("events were lost")
    return spent / rounds


def time_hand_over(rounds=300):
    """From put() until the thread that waits in get() has it; nanoseconds, the median."""
    waiting, samples = queue.Queue(), []

    def hear():
        while (sent := waiting.get()) is not None:
            samples.append(time.perf_counter_ns() - sent)

    thread = threading.Thread(target=hear)
    thread.start()
    for _ in range(rounds):
        time.sleep(20e-6)
        waiting.put(time.perf_counter_ns())
    waiting.put(None)
    thread.join()
    return statistics.median(samples)


def time_publish(ringmain, heard, rounds=20000):
    """One event of a number and a name for each call; what is heard waits in a mailbox, and is counted there."""
    with ringmain.Bus() as bus:
        channel = bus.channel("bench.python", dtype=[("number", "i8"), ("name", "S16")])
        mailbox = bus.mailbox("bench.python", queue_events=2 * rounds) if heard else None
        since = time.perf_counter_ns()
        for _ in range(rounds):
            channel.publish(number=1, name="event")
        spent = time.perf_counter_ns() - since
        if mailbox is None:
            return spent / rounds
        bus.flush(10)
        taken = 0
        while (events := mailbox.take()) is not None:
            taken += len(events)
        if taken != rounds:
            raise SystemExit(f"{taken} of {rounds} events came")
    return spent / rounds


def package():
    try:
        import ringmain
    except ImportError:
        return None
    return ringmain


def main():
    runs = []
    ringmain = package()
    for _ in range(7):
        for callbacks in (0, 1, 4):
            runs.append({"name": f"python/fire/callbacks:{callbacks}", "value": time_fire(callbacks)})
        runs.append({"name": "python/hand_over", "value": time_hand_over()})
        if ringmain is not None:
            runs.append({"name": "python/publish_unheard", "value": time_publish(ringmain, False)})
            runs.append({"name": "python/publish", "value": time_publish(ringmain, True)})
    print(json.dumps({"context": {}, "benchmarks": [{**run, "run_type": "iteration"} for run in runs]}))


if __name__ == "__main__":
    main()
