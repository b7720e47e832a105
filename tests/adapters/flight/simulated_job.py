"""What would the recorders of a job hold? A simulation of ranks that call collectives, written without a look at the reader.

Ranks call a shared program of operations in their groups. An operation starts when its last member has joined, and ends
everywhere at once; each rank has a clock of its own. A fault is planted into the program of one rank. dumps() gives what
PyTorch, or torchcomms, would write for each rank at its moment of dumping, with a ring that may have wrapped.
"""

import dataclasses
import random

SECOND = 1_000_000_000
START = 1_767_225_600 * SECOND
NEVER = None
KINDS = ("all_reduce", "broadcast", "all_gather", "reduce_scatter", "barrier", "all_to_all")
TYPES = ("Float", "BFloat16", "Long")


@dataclasses.dataclass
class Call:
    """One rank's call: what it asked for, and how far it came."""
    group: str
    name: str
    elements: int
    dtype: str
    seq: int = 0
    created: int = 0
    started: int = NEVER
    ended: int = NEVER
    never_ends: bool = False
    never_starts: bool = False
    peer: tuple = ()  # of a send or receive: (sender, receiver), global ranks
    p2p: int = 0      # of sends and receives: the rank's own count, the same for all of a batch
    batch: str = ""   # "member", "closing": only that one is followed to its end


@dataclasses.dataclass
class Fault:
    kind: str
    rank: int = -1
    group: str = ""
    at: int = 0  # of the program


class Job:
    def __init__(self, seed, fault_kind=None, ranks=None, rounds=None, batches=False):
        self.random = random.Random(seed)
        self.batches = batches
        self.size = ranks or self.random.choice((4, 6, 8) if fault_kind == "deadlock" else (3, 4, 4, 6, 8, 8, 12))
        self.groups = {"0": list(range(self.size))}
        if self.size % 2 == 0 and self.size >= 4:
            for i in range(self.size // 2):
                self.groups[f"tp{i}"] = [2 * i, 2 * i + 1]
            self.groups["even"] = list(range(0, self.size, 2))
            self.groups["odd"] = list(range(1, self.size, 2))
        self.clock = [self.random.randint(-2_000_000, 2_000_000) for _ in range(self.size)]
        self.program = self.make_program(rounds or self.random.randint(3, 25))
        self.fault = self.plant(fault_kind) if fault_kind else None
        self.calls = [[] for _ in range(self.size)]
        self.run()

    def make_program(self, rounds):
        program = []
        names = sorted(self.groups)
        for _ in range(rounds):
            for group in self.random.sample(names, self.random.randint(1, min(4, len(names)))):
                program.append((group, self.random.choice(KINDS), self.random.randint(1, 500) * 8, self.random.choice(TYPES)))
            if self.random.random() < 0.3:
                program.append(("0", "pass_on", self.random.randint(1, 500) * 8, "Float"))
            if self.batches and self.random.random() < 0.5:
                program.append((self.random.choice(names), self.random.choice(("exchange", "coalesced")), self.random.randint(1, 500) * 8, "Float"))
        program.append(("0", "all_reduce", 64, "Float"))
        return program

    def plant(self, kind):
        """Late in the program, so that rings still hold it."""
        at = len(self.program) - 1 - self.random.randint(0, min(2, len(self.program) - 1))
        if kind == "deadlock":
            at = len(self.program)
            self.program += [("0", "deadlock", 4096, "Float")]
            return Fault(kind, 2 * self.random.randrange(self.size // 2), "0", at)
        if kind == "lost_batch":
            self.program[at] = ("0", "exchange", 4096, "Float")
        elif kind == "lost_receive":
            self.program[at] = ("0", "pass_on", 4096, "Float")
        elif kind in ("size", "type", "operation", "skip", "state", "not_started"):
            self.program[at] = ("0", "all_reduce", 4096, "Float")
        elif self.program[at][1] in ("pass_on", "exchange"):
            self.program[at] = ("0", "barrier", 0, "Float")
        group = self.program[at][0]
        fault = Fault(kind, self.random.choice(self.groups[group]), group, at)
        if kind == "lost_receive" and fault.rank == 0:
            fault.rank = 1  # rank 0 receives nothing
        return fault

    # --- running ---

    def run(self):
        time = [START] * self.size
        seq = [dict.fromkeys(self.groups, 0) for _ in range(self.size)]
        dead = [False] * self.size   # has stopped calling
        blocked = [False] * self.size
        for at, (group, name, elements, dtype) in enumerate(self.program):
            fault = self.fault if self.fault and self.fault.at == at else None
            if name == "deadlock":
                self.deadlock(time, seq, elements, fault)
                continue
            if name == "pass_on":
                self.pass_on(time, blocked, dead, elements, fault)
                continue
            if name == "exchange":
                self.exchange(group, time, blocked, dead, elements, fault)
                continue
            members = self.groups[group]
            joined = []
            for rank in members:
                if fault and fault.rank == rank and fault.kind in ("dies", "lost_file"):
                    dead[rank] = True
                if dead[rank] or blocked[rank]:
                    continue
                if fault and fault.rank == rank and fault.kind == "skip":
                    continue
                time[rank] += self.random.randint(100_000, 80_000_000)
                seq[rank][group] += 1
                call = Call(group, name, elements, dtype, seq[rank][group], time[rank])
                if name == "coalesced":
                    call.batch = "closing"
                    self.calls[rank] += [dataclasses.replace(call, name="all_reduce", batch="member") for _ in range(3)]
                if fault and fault.rank == rank:
                    self.spoil(call, fault.kind)
                self.calls[rank].append(call)
                joined.append((rank, call))
            skipped = fault and fault.kind == "skip"
            everybody = len(joined) == len(members) or (skipped and at < len(self.program) - 1)
            if self.fault and self.fault.kind == "skip" and at == len(self.program) - 1 and self.fault.at < at:
                everybody = False  # who skipped has nothing to join it with
            self.end(joined, everybody, time, blocked, fault)
            if self.fault and self.fault.kind == "skip" and not everybody:
                for rank, call in joined:  # the last call of the one who skipped is the others' last but one
                    if rank == self.fault.rank:
                        call.ended = call.created + 1000

    @staticmethod
    def spoil(call, kind):
        if kind == "size":
            call.elements *= 2
        elif kind == "type":
            call.dtype = "Half"
        elif kind == "operation":
            call.name = "broadcast"
        elif kind == "state":
            call.never_ends = True
        elif kind == "not_started":
            call.never_starts = True

    def end(self, joined, everybody, time, blocked, fault):
        if not joined:
            return
        begin = max(call.created for _, call in joined)
        ended = begin + self.random.randint(50_000, 20_000_000)
        stuck = fault is not None and fault.kind in ("stuck", "not_started")
        for rank, call in joined:
            if not call.never_starts:
                call.started = call.created + 1000
            if everybody and not stuck and not call.never_ends:
                call.ended = ended
                time[rank] = ended
            else:
                blocked[rank] = True

    def pass_on(self, time, blocked, dead, elements, fault):
        """Rank 0 sends to 1, 1 to 2, …: as single sends and receives."""
        for sender in range(self.size - 1):
            receiver = sender + 1
            calls = {}
            for rank, name in ((sender, "send"), (receiver, "recv")):
                lost = fault and fault.kind == "lost_receive" and name == "recv" and fault.rank == rank
                if fault and fault.rank == rank and fault.kind in ("dies", "lost_file"):
                    dead[rank] = True
                if lost:
                    dead[rank] = True
                if dead[rank] or blocked[rank]:
                    continue
                time[rank] += self.random.randint(100_000, 5_000_000)
                calls[rank] = Call("0", name, elements, "Float", 0, time[rank], peer=(sender, receiver), p2p=self.next_p2p(rank))
                self.calls[rank].append(calls[rank])
            for rank, call in calls.items():
                call.started = call.created + 1000
                if len(calls) == 2:
                    call.ended = max(c.created for c in calls.values()) + 100_000
                    time[rank] = call.ended
                else:
                    blocked[rank] = True

    def exchange(self, group, time, blocked, dead, elements, fault):
        """Each rank of a group sends to the next one and receives from the one before, as one batch."""
        members = self.groups[group]
        joined = {}
        for rank in members:
            if fault and fault.rank == rank:
                dead[rank] = True
            if dead[rank] or blocked[rank]:
                continue
            at = members.index(rank)
            after, before = members[(at + 1) % len(members)], members[at - 1]
            time[rank] += self.random.randint(100_000, 5_000_000)
            closing = Call(group, "coalesced", 0, "Float", 0, time[rank], p2p=self.next_p2p(rank), batch="closing")
            parts = [dataclasses.replace(closing, name="send", elements=elements, peer=(rank, after), batch="member"),
                     dataclasses.replace(closing, name="recv", elements=elements, peer=(before, rank), batch="member")]
            self.random.shuffle(parts)
            self.calls[rank] += [*parts, closing]
            joined[rank] = closing
        for rank, call in joined.items():
            at = members.index(rank)
            both = [members[at - 1], members[(at + 1) % len(members)]]
            call.started = call.created + 1000
            if all(other in joined for other in both):
                call.ended = max(joined[other].created for other in (rank, *both)) + 100_000
                time[rank] = call.ended
            else:
                blocked[rank] = True

    def deadlock(self, time, seq, elements, fault):
        """Two ranks call for an operation of all and one of theirs, each another one first."""
        one, other = fault.rank, fault.rank + 1
        for rank in self.groups["0"]:
            group = f"tp{one // 2}" if rank == other else "0"
            time[rank] += self.random.randint(100_000, 80_000_000)
            seq[rank][group] += 1
            self.calls[rank].append(Call(group, "all_reduce", elements, "Float", seq[rank][group], time[rank], time[rank] + 1000))

    def next_p2p(self, rank):
        return 1 + max((call.p2p for call in self.calls[rank]), default=0)

    # --- dumping ---

    def last_moment(self):
        return max((call.ended or call.created) for calls in self.calls for call in calls)

    def entry(self, rank, record, call, now, states):
        world = len(self.groups[call.group])
        inputs, outputs = self.sizes(call, world)
        started = call.started is not NEVER and call.started <= now
        ended = call.ended is not NEVER and call.ended <= now
        if call.batch == "member":
            started = ended = False  # nobody follows them
        clock = self.clock[rank]
        name = call.name
        if call.peer:
            members = self.groups[call.group]
            sender, receiver = map(members.index, call.peer)
            name = f"send {sender}->{receiver}" if call.name == "send" else f"recv {receiver}<-{sender}"
        state = "completed" if ended else "started" if started else "scheduled"
        return {
            "record_id": record, "pg_id": sorted(self.groups).index(call.group), "process_group": (call.group, "made"),
            "collective_seq_id": call.seq, "p2p_seq_id": call.p2p, "op_id": record,
            "profiling_name": ("nccl:" if states else "gloo:") + name, "time_created_ns": call.created + clock,
            "input_sizes": inputs, "input_dtypes": [call.dtype] * len(inputs),
            "output_sizes": outputs, "output_dtypes": [call.dtype] * len(outputs),
            "state": state if states else "scheduled", "is_p2p": bool(call.p2p), "retired": ended, "timeout_ms": 600000,
            "time_discovered_started_ns": call.started + clock if started and states else None,
            "time_discovered_completed_ns": call.ended + clock if ended and states else None}

    @staticmethod
    def sizes(call, world):
        one = [[call.elements // 8, 8]]
        if call.name in ("barrier", "coalesced"):
            return [], []
        if call.name == "all_gather":
            return one, [[world, *one[0]]]
        if call.name == "reduce_scatter":
            return [[world, *one[0]]], one
        if call.name == "recv":
            return [], one
        return (one, []) if call.name == "send" else (one, one)

    def dumps(self, moments, ring=10_000, states=True):
        """{rank: dump} at these moments of each rank."""
        made = {}
        for rank, now in enumerate(moments):
            calls = [call for call in self.calls[rank] if call.created <= now]
            entries = [self.entry(rank, i, call, now, states) for i, call in enumerate(calls)][-ring:]
            config = {name: {"name": name, "desc": "made", "ranks": str(ranks)}
                      for name, ranks in self.groups.items() if rank in ranks}
            made[rank] = {"version": "2.10", "comm_lib_version": "", "pg_config": config,
                          "pg_status": {"0": {"last_enqueued_collective": 1, "last_started_collective": -1,
                                              "last_completed_collective": -1}}, "entries": entries}
        return made

    def torchcomms_dumps(self, moments):
        """The same as torchcomms writes: one counter for all groups, no peers, retired when issued, lists as they are."""
        made = self.dumps(moments)
        for dump in made.values():
            for entry in dump["entries"]:
                of = entry["process_group"][0]
                name = entry["profiling_name"].split(":")[1].split(" ")[0]
                entry.update(process_group=(of, "ncclx"), profiling_name=f"ncclx:{name}", collective_seq_id=entry["record_id"] + 1,
                             p2p_seq_id=0, is_p2p=False, retired=True, state="scheduled", duration_ms=0.02,
                             time_discovered_started_ns=None, time_discovered_completed_ns=None)
            for group in dump["pg_config"].values():
                group["desc"] = "ncclx"
            dump["pg_status"] = {}
        return made
