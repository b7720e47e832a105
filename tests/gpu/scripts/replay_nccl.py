"""Plays a recording of a profiler plugin's calls (NAME.nccl_calls) to the plugin that NCCL_PROFILER_PLUGIN names.

usage: replay_nccl.py RECORDING. Calls come in the recording's order, all in one thread, by ABI v7; layouts are those of NCCL's headers.
"""

import ctypes
import os
import struct
import sys

POINTER, INT, U64 = ctypes.c_void_p, ctypes.c_int, ctypes.c_uint64
TEXTS = {"func", "dtype", "algo", "proto", "variant"}
HANDLES = {"parent", "group"}
# Where each type has its members, and how they are packed.
COLL = {"seq": (24, "Q"), "func": (32, "Q"), "send": (40, "Q"), "recv": (48, "Q"), "count": (56, "Q"), "root": (64, "i"), "dtype": (72, "Q"),
        "channels": (80, "B"), "warps": (81, "B"), "algo": (88, "Q"), "proto": (96, "Q"), "group": (104, "Q"), "variant": (112, "Q"),
        "symmetric": (120, "?"), "tag": (128, "Q")}
P2P = {"func": (24, "Q"), "buff": (32, "Q"), "dtype": (40, "Q"), "count": (48, "Q"), "peer": (56, "i"), "channels": (60, "B"), "group": (64, "Q"),
       "tag": (72, "Q")}
COLL_API = {"func": (24, "Q"), "count": (32, "Q"), "dtype": (40, "Q"), "root": (48, "i"), "stream": (56, "Q"), "captured": (64, "?"), "tag": (72, "Q")}
P2P_API = {"func": (24, "Q"), "count": (32, "Q"), "dtype": (40, "Q"), "stream": (48, "Q"), "captured": (56, "?"), "tag": (64, "Q")}
MEMBERS = {0x2: COLL, 0x4: P2P, 0x8: {"pid": (24, "i"), "channel": (28, "B"), "peer": (32, "i"), "steps": (36, "i"), "chunk": (40, "i"),
                                      "is_send": (44, "i")},
           0x10: {"step": (24, "i")}, 0x40: {"channel": (24, "B"), "timer": (32, "Q")}, 0x100: {"captured": (24, "?"), "depth": (28, "i")},
           0x200: COLL_API, 0x400: P2P_API, 0x800: {"stream": (24, "Q")}}
BYTES = 136


class Replay:
    def __init__(self, plugin):
        table = (POINTER * 6).in_dll(plugin, "ncclProfiler_v7")
        self.init = ctypes.CFUNCTYPE(INT, POINTER, U64, POINTER, ctypes.c_char_p, INT, INT, INT, POINTER)(table[1])
        self.start = ctypes.CFUNCTYPE(INT, POINTER, POINTER, POINTER)(table[2])
        self.stop = ctypes.CFUNCTYPE(INT, POINTER)(table[3])
        self.record = ctypes.CFUNCTYPE(INT, POINTER, INT, POINTER)(table[4])
        self.finalize = ctypes.CFUNCTYPE(INT, POINTER)(table[5])
        self.mask, self.contexts, self.handles, self.texts = INT(0), {}, {}, {}

    def text(self, word):
        """Kept, as NCCL's are."""
        if word == "null":
            return 0
        kept = self.texts.setdefault(word, ctypes.create_string_buffer(word.encode()))
        return ctypes.addressof(kept)

    def packed(self, name, word):
        if name in TEXTS:
            return self.text(word)
        if name in HANDLES:
            return self.handles.get(word) or 0
        if name == "pid":
            return os.getpid() if word == "self" else os.getpid() + 1
        return 0 if word == "(nil)" else int(word, 16) if word.startswith("0x") else int(word)

    def told_init(self, fields, answer):
        context = POINTER()
        name = None if fields["name"] == "null" else fields["name"].encode()
        self.init(ctypes.addressof(context), int(fields["id"], 16), ctypes.addressof(self.mask), name, int(fields["nodes"]), int(fields["ranks"]),
                  int(fields["rank"]), None)
        self.contexts[answer] = context.value

    def told_start(self, fields, answer):
        kind, handle = int(fields["type"], 16), POINTER()
        descriptor = ctypes.create_string_buffer(BYTES)
        struct.pack_into("<QQi", descriptor, 0, kind, self.packed("parent", fields.get("parent", "(nil)")), int(fields["rank"]))
        for name, (offset, form) in MEMBERS.get(kind, {}).items():
            if name in fields:
                struct.pack_into("<" + form, descriptor, offset, self.packed(name, fields[name]))
        self.start(self.contexts.get(fields.get("context")), ctypes.addressof(handle), ctypes.addressof(descriptor))
        self.handles[answer] = handle.value

    def told_state(self, handle, state, fields):
        args = U64(self.packed("timer", fields.get("timer", fields.get("bytes", fields.get("appended", "0")))))
        null = fields.get("args") == "null"
        if self.handles.get(handle):
            self.record(self.handles[handle], state, None if null else ctypes.addressof(args))

    def line(self, text):
        told, _, answer = text.partition(" -> ")
        what, *words = told.split()
        fields = dict(word.split("=", 1) for word in words if "=" in word)
        if what == "init":
            self.told_init(fields, answer)
        elif what == "start":
            self.told_start(fields, answer)
        elif what == "stop" and self.handles.get(words[0]):
            self.stop(self.handles[words[0]])
        elif what == "state":
            self.told_state(words[0], int(words[1]), fields)
        elif what == "finalize":
            self.finalize(self.contexts.get(words[0]))
        elif what not in ("load", "unload", "stop"):
            sys.exit(f"this is no line of a recording: {text}")


def main():
    replay = Replay(ctypes.CDLL(os.environ["NCCL_PROFILER_PLUGIN"]))
    with open(sys.argv[1], encoding="utf-8") as recording:
        for text in recording:
            replay.line(text.rstrip("\n"))


if __name__ == "__main__":
    main()
