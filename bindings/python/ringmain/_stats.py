"""What has been counted. docs/guarantees.md says which sums balance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ChannelStats:
    name: str
    mailbox: bool
    offered: int
    accepted: int
    full: int
    closed: int
    no_memory: int
    too_deep: int
    vetoed: int
    delivered: int
    observed: int
    evicted: int
    discarded: int
    pending: int
    depth_max: int
    publishers: int
    subscribers: int


@dataclass(frozen=True)
class SubscriberStats:
    offered: int
    delivered: int
    threw: int
    filtered: int
    skipped: int
    dropped: int
    coalesced: int
    pending: int
    name: str = ""
    channel: str = ""
    inline: bool = False


@dataclass(frozen=True)
class PythonStats:
    """Of the dispatcher thread. `gil_taken` equals `batches`."""

    batches: int
    events: int
    raised: int
    gil_taken: int


@dataclass(frozen=True)
class Stats:
    channels: dict[str, ChannelStats]
    mailboxes: list[ChannelStats]
    subscriptions: list[SubscriberStats]
    python: PythonStats

    @staticmethod
    def of(figures: dict[str, Any]) -> Stats:
        rows = [ChannelStats(**row) for row in figures["channels"]]
        return Stats(channels={row.name: row for row in rows if not row.mailbox},
                     mailboxes=[row for row in rows if row.mailbox],
                     subscriptions=[SubscriberStats(**row) for row in figures["subscriptions"]],
                     python=PythonStats(**figures["python"]))
