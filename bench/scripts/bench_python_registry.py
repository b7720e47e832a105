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


def first_forms(ringmain, heard, rounds=1000, blocks=41):
    """What the documented first forms cost, beside channel.publish of the same fields: blocks in turn, so that the ratio of
    each block is of one moment, by the CPU clock of this thread; the making of the event object is apart. Medians."""

    @ringmain.event("bench.form")
    class Form:
        number: int
        loss: float
        name: str

    with ringmain.Bus() as bus:
        publish, made = bus.channel(Form).publish, Form(1, 2.5, "event")
        boxes = [bus.mailbox(name, queue_events=1 << 20) for name in ("bench.form", "train.step")] if heard else []

        def step():  # one call more than what it holds, as of each of them
            with bus.step(7):
                pass

        ways = {"channel": lambda: publish(number=1, loss=2.5, name="event"), "event": lambda: bus.publish(made),
                "name": lambda: bus.publish("bench.form", number=1, loss=2.5, name="event"), "step": step}
        return ways_cost(ways, bus, boxes, rounds, blocks)


def ways_cost(ways, bus, boxes, rounds, blocks):
    times = {name: [] for name in (*ways, "call")}
    for _ in range(blocks):
        for name, way in (*ways.items(), ("call", lambda: None)):
            since = time.thread_time_ns()
            for _ in range(rounds):
                way()
            times[name].append((time.thread_time_ns() - since) / rounds)
        bus.flush(10)
        for box in boxes:
            while box.take() is not None:
                pass
    call = statistics.median(times["call"])  # of the lambda around each
    net = {name: [max(1.0, spent - call) for spent in times[name]] for name in ways}
    return {name: (statistics.median(spent), statistics.median(a / b for a, b in zip(spent, net["channel"], strict=True)))
            for name, spent in net.items()}


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
            for heard in (True, False):
                for name, (spent, ratio) in first_forms(ringmain, heard).items():
                    runs.append({"name": f"python/form_{name}/heard:{int(heard)}", "value": spent})
                    runs.append({"name": f"python/form_{name}_ratio/heard:{int(heard)}", "value": ratio})
    print(json.dumps({"context": {}, "benchmarks": [{**run, "run_type": "iteration"} for run in runs]}))


if __name__ == "__main__":
    main()
