"""What does a TORCH_TRACE log say? Read by plain Python; nothing of ringmain or PyTorch is in here."""

import json
import re
from pathlib import Path

HEAD = re.compile(r"^V\d{4} \d\d:\d\d:\d\d\.\d{6} \d+ \S+ ?(?:\S+:\d+)?\] (\{.*)$")


def read(folder):
    """The records of the one log in this folder: (kind, value, metadata, payload)."""
    [log] = Path(folder).glob("dedicated_log_torch_trace_*.log")
    records, payload = [], []
    for line in log.read_text(encoding="utf-8").split("\n"):
        if line.startswith("\t"):
            payload.append(line[1:])
        elif "] {" in line:
            metadata = json.loads(line[line.index("] {") + 2:])
            payload = []
            kind = next(iter(metadata))
            records.append((kind, metadata[kind], metadata, payload))
    return [(kind, value, metadata, "\n".join(lines)) for kind, value, metadata, lines in records]


def artifacts(records, name):
    return [(metadata, payload) for kind, value, metadata, payload in records
            if kind == "artifact" and value["name"] == name]


def of_kind(records, kind):
    return [(value, metadata, payload) for found, value, metadata, payload in records if found == kind]


def id_of(metadata):
    return metadata.get("frame_id", -1), metadata.get("frame_compile_id", -1)
