"""Does a mailbox give its owner what came, in loops and in asyncio?"""

import asyncio
import select
import threading

import numpy as np
import pytest


def test_it_holds_what_came_until_it_is_taken(bus, ticks, long):
    with bus.mailbox("test.*") as box:
        assert box.take() is None and not box.wait(0)
        for n in range(100):
            assert ticks.publish(n=n)
        got = []
        while len(got) < 100:
            assert box.wait(long)
            got += [record.n for batch in box for record in batch]
        assert got == list(range(100))
        assert box.stats().delivered == 100
    assert box.closed and box.take() is None and not box.wait(0)
    assert ticks.publish(n=1).code == "unheard"


def test_its_descriptor_is_for_select(bus, ticks, long):
    with bus.mailbox("test.*") as box:
        assert select.select([box], [], [], 0)[0] == []
        assert ticks.publish(n=1)
        assert select.select([box], [], [], long)[0] == [box]
        assert [record.n for batch in box for record in batch] == [1]
        assert select.select([box], [], [], 0)[0] == []


def test_asyncio_hears_batch_by_batch(bus, ticks, long):
    async def hear():
        got = []
        async for batch in box:
            got += [record.n for record in batch]
            if len(got) == 1000:
                return got

    box = bus.mailbox("test.*")
    publisher = threading.Thread(target=lambda: [ticks.publish(n=n) for n in range(1000)])
    publisher.start()
    assert asyncio.run(asyncio.wait_for(hear(), long)) == list(range(1000))
    publisher.join()
    box.close()


@pytest.mark.parametrize("end", ["mailbox", "bus"])
def test_asyncio_ends_with_the_mailbox_or_the_bus(bus, ticks, long, end):
    async def run():
        box = bus.mailbox("test.*")
        got = []

        async def hear():
            async for batch in box:
                got.extend(record.n for record in batch)

        task = asyncio.create_task(hear())
        ticks.publish(n=1)
        while not got:
            await asyncio.sleep(0)
        (box if end == "mailbox" else bus).close()
        await asyncio.wait_for(task, long)
        return got

    assert asyncio.run(run()) == [1]


def test_a_cancelled_task_leaves_the_mailbox_usable(bus, ticks, long):
    async def run():
        box = bus.mailbox("test.*")

        async def first():
            async for batch in box:
                return [record.n for record in batch]

        task = asyncio.create_task(first())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        ticks.publish(n=7)
        return await asyncio.wait_for(first(), long)

    assert asyncio.run(run()) == [7]


def test_waiting_gives_the_gil_up_and_ends_when_it_is_closed(bus, long):
    box = bus.mailbox("test.*")
    began, answers = threading.Event(), []

    def wait():
        began.set()
        answers.append(box.wait(long))

    thread = threading.Thread(target=wait)
    thread.start()
    assert began.wait(long)
    box.close()
    thread.join(long)
    assert answers == [False] and box.closed


def test_what_does_not_fit_is_dropped_and_counted(bus, ticks, long, eventually):
    with bus.mailbox("test.*", queue_events=8, overflow="drop_oldest") as box:
        for n in range(100):
            assert ticks.publish(n=n)
        assert eventually(lambda: box.stats().offered == 100)
        got = [record.n for batch in box for record in batch]
        assert got == list(range(8, 16)), "8 wait, as many are pushed out, and then it is full"
        figures = box.stats()
        assert figures.delivered + figures.dropped == 100


def test_an_overrun_mailbox_gives_no_more_than_is_asked_for(bus, long):
    dtype = np.dtype([("n", "u8")])
    ticks = bus.channel("test.overrun", dtype=dtype)
    box = bus.mailbox("test.overrun", queue_events=1000, overflow="drop_oldest")
    assert ticks.publish_all(np.arange(1900, dtype="u8").view(dtype)).accepted == 1900
    assert bus.flush(long)
    taken = []
    while (batch := box.take(10)) is not None:
        assert len(batch) <= 10
        taken += batch.array["n"].tolist()
    assert taken == list(range(900, 1900))


def test_two_loops_over_one_mailbox_share_its_batches_and_both_end(bus, ticks, long):
    async def run():
        box = bus.mailbox("test.*")
        got = []

        async def hear():
            async for batch in box:
                got.extend(record.n for record in batch)

        tasks = [asyncio.create_task(hear()) for _ in range(2)]
        for n in range(100):
            ticks.publish(n=n)
            while len(got) <= n:
                await asyncio.sleep(0)
        box.close()
        await asyncio.wait_for(asyncio.gather(*tasks), long)
        return got

    assert asyncio.run(run()) == list(range(100))


def test_one_that_is_closed_before_it_waits_ends_its_loop(bus, long):
    async def run():
        box = bus.mailbox("test.*")
        take = box.take

        def take_then_close(*arguments):
            found = take(*arguments)
            box.close()
            return found

        box.take = take_then_close
        return [batch async for batch in box]

    assert asyncio.run(asyncio.wait_for(run(), long)) == []


def test_a_limit_that_is_no_number_is_refused(bus):
    for call in (bus.mailbox("test.*").wait, bus.flush):
        with pytest.raises(ValueError, match="timeout is no number"):
            call(float("nan"))


@pytest.mark.parametrize("limit", [-1.0, -float("inf"), 0.0])
def test_a_limit_that_is_no_time_is_over_at_once(bus, limit):
    assert not bus.mailbox("test.*").wait(limit)
    assert bus.flush(limit) in (True, False)


def test_a_limit_longer_than_the_clock_counts_is_for_ever(bus, ticks, long):
    box = bus.mailbox("test.*")
    assert ticks.publish(n=1)
    for limit in (float("inf"), 1e300, 1e10):
        assert box.wait(limit) and bus.flush(limit)
