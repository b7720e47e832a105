#!/usr/bin/env python3
"""What does a callback registry in pure Python cost, as training scripts have them?

Prints a report in the form of Google Benchmark's, so that it is read like any other peer.
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


def main():
    runs = []
    for _ in range(7):
        for callbacks in (0, 1, 4):
            runs.append({"name": f"python/fire/callbacks:{callbacks}", "value": time_fire(callbacks)})
        runs.append({"name": "python/hand_over", "value": time_hand_over()})
    print(json.dumps({"context": {}, "benchmarks": [{**run, "run_type": "iteration"} for run in runs]}))


if __name__ == "__main__":
    main()
