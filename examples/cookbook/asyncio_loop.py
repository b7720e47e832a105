# How do I hear events in asyncio?
import asyncio

import ringmain


async def main():
    with ringmain.Bus() as bus, bus.mailbox("train.step") as mailbox:
        with bus.step(7):
            pass
        async for events in mailbox:
            for event in events:
                print("step", event.step, event.edge)
                if event.edge == "end":
                    return


asyncio.run(asyncio.wait_for(main(), 60))
