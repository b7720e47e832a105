#!/usr/bin/env python3
"""Is each call of CUDA's classified, under the number that CUPTI gives it, in each version that is known?

    calls_test.py Calls    the table against the headers of CUPTI, and the names that its libraries give
    calls_test.py Faults   whether what must be found would be found

The environment has the table's rows (RINGMAIN_DUMP_CALLS prints them) and the headers (RINGMAIN_CUDA_HEADERS: one folder
for each version, or one toolkit's). Ignored calls and the reasons stand in ignored_calls.txt.
"""

import ctypes
import json
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
DOMAINS = {1: ("driver", "cupti_driver_cbid.h"), 2: ("runtime", "cupti_runtime_cbid.h")}
NO_CALLS = {"INVALID", "SIZE", "FORCE_INT"}
# Libraries that name calls where there is no driver. CUPTI 13.2 ends its process there, and 13.3 and later answer 999.
NAMING = ("12.9", "13.0", "13.1")


class Version:
    """What the headers of one CUPTI say."""

    def __init__(self, name, number, calls, structs):
        self.name, self.number = name, number  # as in "13.0", and CUPTI_API_VERSION
        self.calls = calls  # {(domain, cbid): name}
        self.structs = structs  # {name: members}


def read_version(include, name):
    number = int(re.search(r"#define CUPTI_API_VERSION (\d+)", (include / "cupti_version.h").read_text())[1])
    calls = {}
    for domain, (_, header) in DOMAINS.items():
        for call, cbid in re.findall(r"CUPTI_(?:DRIVER|RUNTIME)_TRACE_CBID_(\w+)\s*=\s*(\w+)", (include / header).read_text()):
            if call not in NO_CALLS:
                calls[domain, int(cbid, 0)] = call
    structs = {}
    for header in ("generated_cuda_meta.h", "generated_cuda_runtime_api_meta.h"):
        for call, members in re.findall(r"typedef struct (\w+)_params_st \{(.*?)\}", (include / header).read_text(), re.DOTALL):
            structs[call] = " ".join(members.split())
    return Version(name, number, calls, structs)


def folders():
    """[(version, folder of its headers)]; empty where there are none."""
    root = os.environ.get("RINGMAIN_CUDA_HEADERS", "")
    if not root or not Path(root).is_dir():
        return []
    if (Path(root) / "cupti_version.h").exists():
        return [("toolkit", Path(root))]
    return sorted((folder.name, folder / "include") for folder in Path(root).iterdir() if (folder / "include/cupti_version.h").exists())


def read_rows():
    lines = subprocess.run([os.environ["RINGMAIN_DUMP_CALLS"]], check=True, capture_output=True, text=True).stdout.splitlines()
    return [json.loads(line) for line in lines]


def read_ignored(text):
    """[(pattern, reason)]; what has no reason is refused."""
    ignored = []
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        pattern, _, reason = line.partition("  ")
        if not reason.strip():
            raise ValueError(f"no reason for {pattern}")
        ignored.append((re.compile(pattern), reason.strip()))
    return ignored


def without_version(call):
    return re.sub(r"(_(ptsz|ptds|spt|v\d+))+$", "", call)


def problems(rows, ignored, versions):
    """What is wrong, each as a sentence."""
    found, used = [], set()
    for version in versions:
        valid = {(row["domain"], row["cbid"]): row for row in rows if row["since"] <= version.number < row["until"]}
        for key, row in valid.items():
            if version.calls.get(key) != row["cupti"]:
                found.append(f"{version.name}: {DOMAINS[key[0]][0]} {key[1]} is {version.calls.get(key)}, not {row['cupti']}")
        for key, call in version.calls.items():
            matching = [place for place, (pattern, _) in enumerate(ignored) if pattern.fullmatch(without_version(call))]
            used.update(matching)
            if key not in valid and not matching:
                found.append(f"{version.name}: {DOMAINS[key[0]][0]} {key[1]} {call} is in no row, and ignored for no reason")
            if key in valid and matching:
                found.append(f"{version.name}: {call} is in a row, and ignored by {ignored[matching[0]][0].pattern}")
    for place, (pattern, _) in enumerate(ignored):
        if place not in used:
            found.append(f"no call is ignored by {pattern.pattern}")
    seen = {call for version in versions for call in version.calls.values()}
    found += [f"no CUPTI has {row['cupti']}" for row in rows if row["cupti"] not in seen]
    return found


def changed_structs(rows, versions):
    """Arguments that lie otherwise in one version than in another: [sentence]."""
    found = []
    for row in rows:
        forms = {version.structs[row["cupti"]] for version in versions if row["cupti"] in version.structs}
        if len({layout(form) for form in forms}) > 1:
            found.append(f"{row['cupti']}: {sorted(forms)}")
    return found


def layout(members):
    """The members' types without their names, which may change."""
    return tuple(re.sub(r"\w+$", "", member.strip()).replace(" ", "") for member in members.split(";") if member.strip())


class CallsTest(unittest.TestCase):
    """With NVIDIA's headers."""

    def setUp(self):
        self.maxDiff = None
        self.versions = [read_version(include, name) for name, include in folders()]
        self.rows = read_rows()
        self.ignored = read_ignored((HERE / "ignored_calls.txt").read_text())

    def test_each_call_is_in_a_row_or_ignored_with_a_reason(self):
        found = problems(self.rows, self.ignored, self.versions)
        if self.versions[0].name == "toolkit":  # one version shows neither all rows nor all patterns
            found = [line for line in found if not line.startswith("no ")]
        self.assertEqual(found, [])

    def test_arguments_lie_alike_in_all_versions(self):
        self.assertEqual(changed_structs(self.rows, self.versions), [])

    def test_libraries_name_calls_as_their_headers_do(self):
        checked = 0
        for version, (name, include) in zip(self.versions, folders()):
            library = next(iter(sorted((include.parent / "lib").glob("libcupti.so.*"))), None)
            if name not in NAMING or library is None:
                continue
            cupti = ctypes.CDLL(str(library))
            for (domain, cbid), call in version.calls.items():
                given = ctypes.c_char_p()
                self.assertEqual(cupti.cuptiGetCallbackName(domain, cbid, ctypes.byref(given)), 0, f"{name}: {domain} {cbid}")
                self.assertEqual(given.value.decode(), call, f"{name}: {domain} {cbid}")
                checked += 1
        if checked == 0:
            self.skipTest(f"no library of CUPTI {', '.join(NAMING)} beside the headers")
        print(f"{checked} names")


class FaultsTest(unittest.TestCase):
    """With calls of its own: what must be found, is."""

    ROWS = [{"domain": 2, "cbid": 20, "cupti": "cudaMalloc_v3020", "since": 0, "until": 2**32 - 1},
            {"domain": 1, "cbid": 783, "cupti": "cuMade", "since": 0, "until": 130100},
            {"domain": 1, "cbid": 783, "cupti": "cuCaptured_ptsz", "since": 130100, "until": 2**32 - 1}]
    IGNORED = "cudaGet\\w+  asks\ncuda\\d+  has no name\n"

    def versions(self, **more):
        old = {(2, 20): "cudaMalloc_v3020", (2, 21): "cudaGetDevice_v3020", (1, 783): "cuMade"}
        new = {(2, 20): "cudaMalloc_v3020", (2, 21): "cuda21", (1, 783): "cuCaptured_ptsz"}
        return [Version("old", 28, old, {}), Version("new", 130101, {**new, **more.get("new", {})}, {})]

    def problems(self, rows=None, ignored=None, **more):
        return problems(rows or self.ROWS, read_ignored(ignored or self.IGNORED), self.versions(**more))

    def test_nothing_is_found_where_all_is_in_order(self):
        self.assertEqual(self.problems(), [])

    def test_a_call_that_nobody_classified(self):
        self.assertEqual(self.problems(new={(2, 22): "cudaMallocNew_v13060"}),
                         ["new: runtime 22 cudaMallocNew_v13060 is in no row, and ignored for no reason"])

    def test_another_version_of_a_call_in_a_row(self):
        self.assertEqual(self.problems(new={(2, 22): "cudaMalloc_v13060"}),
                         ["new: runtime 22 cudaMalloc_v13060 is in no row, and ignored for no reason"])

    def test_a_number_that_has_become_another_call(self):
        rows = [self.ROWS[0], {**self.ROWS[1], "until": 2**32 - 1}]
        self.assertIn("new: driver 783 is cuCaptured_ptsz, not cuMade", self.problems(rows=rows))

    def test_a_row_of_the_wrong_number(self):
        rows = [{**self.ROWS[0], "cbid": 19}, *self.ROWS[1:]]
        found = self.problems(rows=rows)
        self.assertIn("old: runtime 19 is None, not cudaMalloc_v3020", found)
        self.assertIn("old: runtime 20 cudaMalloc_v3020 is in no row, and ignored for no reason", found)

    def test_a_row_that_no_version_has(self):
        rows = [*self.ROWS, {"domain": 1, "cbid": 5, "cupti": "cuNever", "since": 5, "until": 6}]
        self.assertEqual(self.problems(rows=rows), ["no CUPTI has cuNever"])

    def test_a_pattern_that_matches_nothing(self):
        self.assertEqual(self.problems(ignored=self.IGNORED + "cuGone  was there\n"), ["no call is ignored by cuGone"])

    def test_a_call_that_is_in_a_row_and_ignored(self):
        self.assertIn("old: cudaMalloc_v3020 is in a row, and ignored by cudaMalloc", self.problems(ignored=self.IGNORED + "cudaMalloc  why\n"))

    def test_a_pattern_without_a_reason(self):
        with self.assertRaises(ValueError):
            read_ignored("cudaMalloc\n")

    def test_arguments_that_lie_otherwise(self):
        forms = ["void **devPtr; size_t size;", "void **pointer; size_t bytes;", "void **devPtr; unsigned int size;"]
        versions = [Version(str(place), place, {}, {"cudaMalloc_v3020": form}) for place, form in enumerate(forms)]
        self.assertEqual(changed_structs(self.ROWS, versions[:2]), [])
        self.assertEqual(len(changed_structs(self.ROWS, versions)), 1)


if __name__ == "__main__":
    if sys.argv[1:2] == ["Calls"] and not folders():
        print("skipped: no headers of CUPTI; ./dev test fetches them, RINGMAIN_CUDA_HEADERS names a folder")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *(f"{subject}Test" for subject in sys.argv[1:])])
