"""What must a recorded trace not tell about the machine that recorded it?

A Kineto trace carries the host's name, the path it was written to and, when Python stacks are
recorded, the path of every source file. `without_residue` takes these out of the text of a trace,
string by string: everything else stays byte for byte what the profiler wrote, odd spacing included,
since that is what a reader of traces meets in the field.
"""

from __future__ import annotations

import getpass
import json
import re
import socket

STRING = re.compile(r'"(?P<text>(?:[^"\\]|\\.)*)"(?P<colon>\s*:)?')
PATH = re.compile(r"""(?<![\w.:/])(?:file://)?/(?:[^\s/"'\\:;,]+/)*([^\s/"'\\:;,]+)/?""")


def personal_words() -> dict[str, str]:
    """What this machine and its user are called, and what stands for it in a trace."""
    host = socket.gethostname()
    words = {host: "host", host.split(".")[0]: "host"}
    try:
        words[getpass.getuser()] = "user"
    except (KeyError, OSError):  # a container may run under a number that has no name
        pass
    words.pop("", None)
    return words


def without_residue(trace: str, name: str) -> str:
    """The trace without what tells on the machine that recorded it.

    Values only, never keys; numbers, process and thread ids and times stay as they are.
      "host_name", "hostname"     become "host"
      "traceName"                 becomes `name`
      an absolute path anywhere   keeps its last part: "/home/someone/train.py" is ".../train.py"
      the host's, the user's name become "host" and "user" where they stand as a word of their own
    """
    words = personal_words()
    word = re.compile("|".join(rf"(?<!\w){re.escape(text)}(?!\w)" for text in words))
    key = ""

    def cleaned(string: re.Match[str]) -> str:
        nonlocal key
        if string["colon"]:
            key = string["text"]
            return string[0]
        said = json.loads(f'"{string["text"]}"')
        if key in ("host_name", "hostname"):
            kept = "host"
        elif key == "traceName":
            kept = name
        else:
            kept = word.sub(lambda match: words[match[0]], PATH.sub(r".../\1", said))
        return string[0] if kept == said else json.dumps(kept)

    return STRING.sub(cleaned, trace)
