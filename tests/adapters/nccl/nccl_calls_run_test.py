"""Are the calls of a program that knows nothing of ringmain heard under `ringmain run --source nccl_calls`?"""
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

RINGMAIN = os.environ["RINGMAIN_BINARY"]
PROGRAM = os.environ["RINGMAIN_NCCL_PROGRAM"]
LOADER = os.environ["RINGMAIN_NCCL_LOADER"]
LIBRARY = os.environ["RINGMAIN_NCCL_LIBRARY"]
PRELOAD = os.environ["RINGMAIN_NCCL_PRELOAD"]


def run(*command, source="nccl_calls"):
    """The program's result, and what was heard of its collectives."""
    with tempfile.TemporaryDirectory() as folder:
        lines = Path(folder) / "events.jsonl"
        done = subprocess.run([RINGMAIN, "run", "--source", source, "--sink", f"json_lines:{lines}", "--", *command],
                              capture_output=True, text=True, check=False)
        heard = [json.loads(line) for line in lines.read_text().splitlines()] if lines.exists() else []
    return done, [event for event in heard if event.get("channel", event.get("event", "")).startswith("collective.")]


def of(events, channel):
    return [event for event in events if event.get("channel", event.get("event")) == channel]


def field(event, name):
    return event.get("fields", event).get(name)


class NcclCallsRunTest(unittest.TestCase):
    def check(self, done, heard):
        self.assertEqual(done.returncode, 0, done.stderr)
        issued = of(heard, "collective.issued")
        self.assertEqual([field(one, "op") for one in issued], ["all_reduce", "broadcast", "all_to_all", "all_reduce"])
        self.assertEqual({field(one, "group") for one in issued}, {"default_pg:0"})
        self.assertEqual([field(one, "sequence") for one in issued], [1, 2, 3, 4])
        self.assertEqual({field(one, "rank") for one in issued}, {1})
        self.assertEqual([field(one, "bytes") for one in issued], [32, 32, 32, 32])
        failed = of(heard, "collective.failed")
        self.assertEqual([field(one, "op_id") for one in failed][0], field(issued[3], "op_id"))
        self.assertEqual(field(failed[0], "reason"), "invalid argument")
        self.assertEqual([field(one, "change") for one in of(heard, "collective.group")], ["made", "ended"])
        self.assertEqual(of(heard, "collective.completed"), [])
        return failed

    def without(self, *command):
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def test_a_program_that_is_linked_with_nccl(self):
        done, heard = run(PROGRAM)
        self.assertEqual(len(self.check(done, heard)), 1)
        self.assertEqual(done.stdout, self.without(PROGRAM))

    def test_a_library_that_is_loaded_for_itself_alone(self):
        done, heard = run(LOADER, LIBRARY)
        self.assertEqual(len(self.check(done, heard)), 1)
        self.assertEqual(done.stdout, self.without(LOADER, LIBRARY))

    def test_an_abort_is_written_before_it_is_called(self):
        done, heard = run(PROGRAM, "abort")
        self.check(done, heard)
        self.assertEqual([field(one, "edge") for one in of(heard, "collective.abort")], ["begin", "end"])

    def test_a_forked_child_is_not_heard(self):
        done, heard = run(PROGRAM, "fork")
        self.check(done, heard)

    def test_words_are_looked_at_before_anything_starts(self):
        done, _ = run(PROGRAM, source="nccl_calls:tags,everything")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("knows the words ends and tags, and not 'everything'", done.stderr)

    def test_ends_without_a_gpu_leave_the_program_as_it_is(self):
        done, heard = run(PROGRAM, source="nccl_calls:ends,tags")
        self.assertEqual(len(self.check(done, heard)), 1)

    def test_a_preload_without_a_run_passes_everything_on(self):
        with_it = subprocess.run([PROGRAM], capture_output=True, text=True, check=False,
                                 env={**os.environ, "LD_PRELOAD": PRELOAD})
        self.assertEqual((with_it.returncode, with_it.stderr), (0, ""))
        self.assertEqual(with_it.stdout, self.without(PROGRAM))

    def test_a_function_that_only_the_preload_has_is_named_once(self):
        probe = "import ctypes; f = ctypes.CDLL(None).ncclGroupStart; print(f(), f())"
        done, heard = run(sys.executable, "-c", probe)
        self.assertEqual((done.returncode, done.stdout, heard), (0, "2 2\n", []))
        self.assertEqual(done.stderr.count("ncclGroupStart was called, which the program's NCCL does not have"), 1)

    def test_a_program_without_nccl_is_left_alone(self):
        done, heard = run("/bin/echo", "hello")
        self.assertEqual((done.returncode, done.stdout, heard), (0, "hello\n", []))


if __name__ == "__main__":
    unittest.main()
