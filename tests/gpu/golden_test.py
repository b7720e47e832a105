#!/usr/bin/env python3
"""Does the source hear in a recording of CUPTI's callbacks what it heard on the machine that the recording is from?

Recordings of machines with a GPU are goldens/NAME.calls, with goldens/NAME.events: what ringmain heard there, in words.
run_all.sh writes both (G6). usage: golden_test.py TESTCASE, with the build folder in $GPU_BUILD
"""

import os
import sys
import tempfile
import unittest
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[1] / "support")]
import heard
from cases import main
from place import Place
from recordings import comparable, read_recording, record, version_of

GOLDENS = Path(__file__).resolve().parent / "goldens"
STANDS_FOR = "130001"  # the CUPTI whose calls the stand-ins make


class OverStandIns(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.place = Place(Path(os.environ["GPU_BUILD"]), Path(folder.name), fakes=True)

    def replayed(self, recording):
        _, events, run = self.place.heard(self.place.program("replay_recording"), str(recording), FAKE_CUPTI_VERSION=version_of(recording))
        self.assertNotIn("without its parameters", run.stderr)
        return heard.in_words(events)

    def lived(self, name, *words):
        return heard.in_words(self.place.heard(self.place.program(name), *words)[1])


class GoldenTest(OverStandIns):
    def test_what_was_recorded_with_a_gpu_is_heard_as_it_was_there(self):
        recordings = sorted(path.with_suffix(".calls") for path in GOLDENS.glob("*.events"))
        if not recordings:
            self.skipTest("no recording from a GPU yet")
        for recording in recordings:
            with self.subTest(recording.name):
                self.assertEqual(self.replayed(recording), recording.with_suffix(".events").read_text().splitlines())


class StandInsTest(OverStandIns):
    """That the libraries that stand in call back as CUPTI did on a machine with a GPU."""

    def both(self, recording):
        name = recording.stem
        stood_in = record(self.place, name, self.place.program(name))
        return comparable(read_recording(stood_in)), comparable(read_recording(recording))

    def test_they_call_back_as_a_gpus_did(self):
        recordings = [path for path in sorted(GOLDENS.glob("*.calls")) if version_of(path) == STANDS_FOR]
        if not recordings:
            self.skipTest("no recording from a GPU yet")
        for recording in recordings:
            with self.subTest(recording.name):
                stood_in, real = self.both(recording)
                self.assertGreater(len(real), 40)
                self.assertEqual(stood_in, real)

    def test_one_callback_that_differs_is_found(self):
        real = read_recording(GOLDENS / "runtime_calls.calls")
        within = next(at for at, line in enumerate(real) if line["name"] == "cuEventRecord")
        for change in ({"name": "cuEventRecord_ptsz"}, {"result": 1}, {"depth": 1}, {"handle": "event:9"}, {"context": 0}, {"correlation": 1}):
            other = [*real[:within], {**real[within], **change}, *real[within + 1:]]
            self.assertNotEqual(comparable(other), comparable(real), change)
        self.assertNotEqual(comparable(real[:within] + real[within + 1:]), comparable(real))


class RecorderTest(OverStandIns):
    """That recorder, recording and replay are right is shown by recordings of the libraries that stand in for CUDA's."""

    def check(self, name, *words):
        recording = record(self.place, name, self.place.program(name), *words)
        events = self.lived(name, *words)
        self.assertGreater(len(events), 5)
        self.assertEqual(self.replayed(recording), events)
        return recording, events

    def test_a_program_of_the_runtime_is_heard_in_its_recording(self):
        self.check("runtime_calls")

    def test_default_streams_of_threads_are_heard_in_the_recording(self):
        _, events = self.check("runtime_calls_per_thread")
        self.assertTrue(any(" 2 " in line for line in events))

    def test_a_program_of_the_driver_is_heard_in_its_recording(self):
        self.check("driver_calls")

    def test_failures_are_heard_in_the_recording(self):
        _, events = self.check("failing_calls")
        self.assertEqual(sum(" failed " in line for line in events), 4)

    def test_threads_are_told_apart_in_the_recording(self):
        recording = record(self.place, "thread_calls", self.place.program("thread_calls"), "5")
        lived, replayed = self.lived("thread_calls", "5"), self.replayed(recording)
        # Which thread is first is another in each run, and so are its handles' numbers.
        self.assertEqual(len(replayed), len(lived))
        self.assertEqual({line.split()[0] for line in replayed}, {str(thread) for thread in range(1, 9)})

    def test_a_recording_that_was_changed_is_told_from_what_was_heard(self):
        recording, events = self.check("runtime_calls")
        text = recording.read_text()
        for old, new in (("cudaEventRecord 0 event:1 ", "cudaEventRecord 0 event:2 "), (" cudaMallocHost 0 ", " cudaMallocHost 2 ")):
            with self.subTest(new):
                self.assertIn(old, text)
                recording.write_text(text.replace(old, new))
                self.assertNotEqual(self.replayed(recording), events)

    def test_the_replay_says_what_is_no_recording(self):
        wrong = self.place.folder / "wrong"
        for text, why in (("", "this is no recording"), ("# recording of CUDA's callbacks, 1\n# cupti 130001\n", "no call was recorded"),
                          ("# recording of CUDA's callbacks, 1\nenter 1 1\n", "this line lacks columns")):
            wrong.write_text(text)
            run = self.place.run(self.place.program("replay_recording"), str(wrong), status=2)
            self.assertIn(why, run.stderr)


if __name__ == "__main__":
    sys.exit(main())
