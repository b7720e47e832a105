"""What is told of PyTorch's recorder: read after a record, once, and what it forgot is counted. On texts of its form."""

import json
import threading
import time

import pytest
import ringmain.torch._recorder as recorder_module
from heard import Heard
from ringmain.torch._collectives import LedgerCollectives
from ringmain.torch._groups import Groups
from ringmain.torch._recorder import Dump, Recorder, newer


class Group:
    """A group of which C++ and Python call for operations, all of them recorded."""

    group_name, group_desc = "0", ""

    def __init__(self, ring):
        self.number, self.ring = 0, ring

    def name(self):
        return "gloo"

    def rank(self):
        return 0

    def size(self):
        return 2

    def _get_sequence_number_for_group(self):
        return self.number

    def op(self, name="gloo:all_reduce", **more):
        self.number += 1
        self.ring.add(self, name, **more)


class Ring:
    """PyTorch's recorder: the newest `capacity` entries."""

    def __init__(self, capacity):
        self.entries, self.records, self.capacity, self.asked = [], 0, capacity, 0

    def add(self, group, name, **more):
        self.entries.append({
            "collective_seq_id": group.number, "input_dtypes": ["Float"], "input_sizes": [[2, 3]], "is_p2p": False,
            "op_id": group.number, "output_dtypes": ["Float"], "output_sizes": [[2, 3]], "process_group": [group.group_name, "}"],
            "profiling_name": name, "record_id": self.records, "thread_id": str(threading.get_ident()),
            "time_created_ns": time.time_ns(), **more})
        self.records += 1
        del self.entries[:-self.capacity]

    def text(self):
        self.asked += 1
        whole = {"comm_lib_version": "", "entries": self.entries, "nccl_comm_state": {}, "version": "2.10"}
        return json.dumps(whole, separators=(",", ":")).encode()


class Job:
    def __init__(self, bus, capacity=100):
        self.errors = []
        self.ring = Ring(capacity)
        collectives = LedgerCollectives(bus)
        self.groups = Groups(collectives, self.errors.append)
        self.recorder = Recorder([Dump(self.ring.text, "op_id")], collectives, self.groups, self.errors.append)
        self.recorder.capacity = capacity
        self.group = Group(self.ring)

    def by_method(self):
        """Python's method calls for it, and is seen."""
        known = self.groups.of(self.group)
        before = known.begin()
        self.group.op()
        known.over(before, False)


@pytest.fixture
def job(bus, monkeypatch):
    monkeypatch.setattr(recorder_module, "_IDLE_S", 3600.0)  # the test looks
    made = Job(bus)
    yield made
    made.recorder.stop()
    assert not made.errors


def started(job):
    job.groups.of(job.group)
    job.recorder.pause_s = 3600.0
    job.recorder.start()
    return job


def sequences(heard):
    return [event["sequence"] for event in heard.on("collective.issued")]


def test_it_tells_what_no_method_saw_and_each_once(bus, job):
    started(job)
    heard = Heard(bus, "collective.*")
    job.by_method()
    job.group.op()
    job.by_method()
    job.group.op("gloo:broadcast")
    job.recorder.look()
    job.recorder.look()
    said = heard.on("collective.issued")
    assert [(event["op"], event["sequence"], event["correlation"]) for event in said] == [
        ("all_reduce", 2, 2), ("broadcast", 4, 4)]
    assert (said[0]["bytes"], said[0]["in_elements"], said[0]["dtype"], said[0]["backend"]) == (24, 6, "float32", "gloo")
    assert job.recorder.forgotten == 0


def test_what_was_recorded_before_it_began_is_not_told(bus, job):
    heard = Heard(bus, "collective.*")
    job.group.op()
    started(job)
    job.group.op()
    job.recorder.look()
    assert sequences(heard) == [2]


def test_it_asks_only_if_somebody_listens_and_something_is_missing(bus, job):
    started(job)
    asked = job.ring.asked
    job.group.op()
    job.recorder.look()
    assert job.ring.asked == asked
    Heard(bus, "collective.*")
    job.recorder.look()
    assert job.ring.asked == asked + 1
    job.by_method()
    job.recorder.look()
    assert job.ring.asked == asked + 1


def test_what_was_called_for_while_nobody_listened_is_not_told_later(bus, job):
    started(job)
    job.group.op()
    job.recorder.look()
    heard = Heard(bus, "collective.*")
    job.group.op()
    job.recorder.look()
    assert sequences(heard) == [2] and job.recorder.forgotten == 0


def test_a_method_that_is_under_way_is_not_told_as_cpps(bus, job):
    started(job)
    heard = Heard(bus, "collective.*")
    known = job.groups.of(job.group)
    before = known.begin()
    job.group.op()
    job.recorder.look()
    job.group.op(thread_id="1")  # another thread's, meanwhile
    job.recorder.look()
    known.over(before, False)
    job.recorder.look()
    assert sequences(heard) == [2]


def test_it_does_not_ask_for_a_method_that_is_under_way(bus, job):
    started(job)
    Heard(bus, "collective.*")
    asked, known = job.ring.asked, job.groups.of(job.group)
    before = known.begin()
    job.group.op()
    job.recorder.look()
    known.over(before, False)
    job.recorder.look()
    assert job.ring.asked == asked
    job.group.op()
    job.recorder.look()
    assert job.ring.asked == asked + 1


def test_what_it_forgot_is_counted(bus, job):
    started(job)
    heard = Heard(bus, "collective.*")
    for _ in range(150):
        job.group.op()
        if job.group.number == 20:
            job.by_method()
    job.recorder.look()
    assert sequences(heard) == list(range(52, 152))
    assert job.recorder.forgotten == 50  # one of the 51 was a method's


def test_one_that_was_emptied_counts_from_0_again(bus, job):
    started(job)
    heard = Heard(bus, "collective.*")
    job.group.op()
    job.group.op()
    job.recorder.look()
    job.ring.entries, job.ring.records = [], 0
    job.group.op()
    job.recorder.look()
    assert sequences(heard) == [1, 2, 3]


def test_point_to_point_and_groups_that_are_gone_are_left_out(bus, job):
    started(job)
    heard = Heard(bus, "collective.*")
    job.group.op(is_p2p=True)
    job.group.op(process_group=["gone", ""])
    job.recorder.look()
    assert not sequences(heard)


def test_a_group_that_had_point_to_point_before_is_counted_right(bus, job):
    job.group.number = 5  # three of them
    job.ring.add(job.group, "gloo:all_reduce", collective_seq_id=2)
    job.group.number = 6  # and one more, which gloo does not record
    started(job)
    assert job.groups.of(job.group).sequence(6, False) == 3


def test_only_what_is_new_is_read_and_any_form_of_the_text_will_do():
    entries = [{"a": "},{", "record_id": n, "z": [{}, {}]} for n in range(5)]
    tight = json.dumps({"entries": entries, "version": 1}, separators=(",", ":")).encode()
    loose = json.dumps({"entries": entries, "version": 1}).encode()
    for text in (tight, loose):
        for than in range(-1, 5):
            assert [entry["record_id"] for entry in newer(text, than)] == list(range(than + 1, 5))
    assert newer(b'{"version":"2.10"}', -1) == newer(b'{"version":"2.10"}', 7) == []


def test_it_rests_so_long_that_it_takes_little_and_forgets_nothing(job):
    job.recorder.pause_s = 1.0
    job.recorder._rest(0.01, 10)
    assert job.recorder.pause_s == 3600.0  # the shortest, in this test
    recorder_module._IDLE_S = 0.1
    job.recorder._rest(0.01, 1)
    assert job.recorder.pause_s == pytest.approx(5.0)  # 1/500 of a processor
    job.recorder._rest(0.01, 250)
    assert job.recorder.pause_s == pytest.approx(1.0)  # half of what it remembers
    job.recorder._rest(0.01, 100_000)
    assert job.recorder.pause_s == pytest.approx(0.5)  # 1/50, and no more


def test_it_asks_less_often_while_nothing_is_missing(bus, job, monkeypatch):
    started(job)
    Heard(bus, "collective.*")
    monkeypatch.setattr(recorder_module, "_IDLE_S", 0.1)
    pauses = []
    job.recorder.pause_s = 0.1
    for _ in range(6):
        job.recorder.look()
        pauses.append(job.recorder.pause_s)
    assert pauses == pytest.approx([0.2, 0.4, 0.8, 1.0, 1.0, 1.0])
