#!/usr/bin/env python3
"""Does group collectives pass over gloo, and does each of its tests fail where ringmain is at fault?

usage: collectives_test.py TESTCASE, with the build in $GPU_BUILD, by a Python with PyTorch. The programs are the real ones, on a real
group of one rank; a fault is planted in ringmain's package as the program starts.
"""

import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]
import run_tests
import tests_of_collectives
from cases import main
from place import Failed, Place, Skipped

BUILD = Path(os.environ["GPU_BUILD"])

# What is run as the program starts; the test that must fail; what it must say.
FAULTS = {
    "each pre hook is called twice": ("C1", "pre hooks were called for", """
from ringmain.comms import _hooks
once = _hooks.Hooks.register_pre_hook
_hooks.Hooks.register_pre_hook = lambda self, *given, **how: (once(self, *given, **how), once(self, *given, **how))[1]
"""),
    "what one rank need not do is not done": ("C1", "the backend was called 20 times for 35 operations", """
from ringmain.torch import _patch
made = _patch.Patch.__init__
def idle(self, owner, name, call):
    def instead(original, *given, **how):
        return call(lambda *given, **how: None, *given, **how)
    made(self, owner, name, instead if name in ("allreduce", "broadcast", "barrier") else call)
_patch.Patch.__init__ = idle
"""),
    "hooks get an id of their own": ("C2", "collective.issued says", """
from ringmain.comms import _args
made = _args.PreHookArgs.__init__
_args.PreHookArgs.__init__ = lambda self, op_id, *given, **how: made(self, op_id + 1000, *given, **how)
"""),
    "a refusal is not heeded": ("C3", "not refused", """
from ringmain.torch import _collectives, _pg_hooks
issue = _collectives.LedgerGroup.issue
def heedless(self, call, ends, shown=None):
    try:
        return issue(self, call, ends, shown)
    except _collectives.CollectiveVetoed:
        return issue(self, call, ends, None)
_collectives.LedgerGroup.issue = heedless
"""),
    "ends are taken from every future": ("C4", "operations of which an end was said", """
from ringmain.torch import _distributed, _follow, _groups, _methods, _pg_hooks
for module in (_distributed, _follow, _groups, _methods, _pg_hooks):
    module.ENDS_KNOWN = ("gloo", "mpi", "nccl", "standin", "custom")
"""),
    "nothing is said": ("C4", "nothing was heard as issued", """
from ringmain.torch import _collectives
_collectives.LedgerGroup.heard = property(lambda self: False)
"""),
    "detach() takes nothing out": ("C5", "after detach()", """
from ringmain.torch import _distributed
_distributed.Distributed.hook_out = lambda self: None
"""),
    "no event gets to who subscribed": ("C5", "before detach()", """
import ringmain
subscribe = ringmain.Bus.subscribe
ringmain.Bus.subscribe = lambda self, channels, *given, **how: subscribe(self, "elsewhere", *given, **how)
"""),
    "detach() ends subscriptions": ("C5", "when attached again", """
import ringmain
from ringmain.torch import _distributed
made, subscribe, out = [], ringmain.Bus.subscribe, _distributed.Distributed.hook_out
ringmain.Bus.subscribe = lambda self, *given, **how: made.append(subscribe(self, *given, **how)) or made[-1]
_distributed.Distributed.hook_out = lambda self: (out(self), [subscription.remove() for subscription in made])
"""),
    "what C++ calls for is passed over": ("C6", "operations of DDP's that were issued", """
from ringmain.torch import _pg_hooks, _recorder
_recorder.Recorder._look = lambda self: None
_pg_hooks.Relay.pre = lambda self, args: None
"""),
}


class Planted(Place):
    """A place whose programs run with a fault."""

    def __init__(self, *where, code):
        super().__init__(*where)
        (self.folder / "sitecustomize.py").write_text(code)

    def package(self):
        return f"{self.folder}:{super().package()}"


class CollectivesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        if importlib.util.find_spec("torch") is None:
            self.skipTest("there is no PyTorch")
        try:
            self.place().package()
        except Skipped as why:
            self.skipTest(str(why))

    def place(self, build=BUILD, kind=Place, **more):
        made = kind(build, self.folder, True, **more)
        self.addCleanup(made.close)
        return made

    def test_the_group_passes_over_gloo(self):
        run = subprocess.run(["bash", str(HERE / "run_all.sh"), "--build", str(BUILD), "--no-build", "--fakes", "--group", "collectives",
                              "--python", sys.executable, "--output", str(self.folder)], capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        *lines, last = run.stdout.splitlines()
        names = [name for name, (group, _, _) in run_tests.TESTS.items() if group == "collectives"]
        self.assertEqual([line.split()[:2] for line in lines], [[name, "PASS"] for name in names])
        self.assertEqual(last, f"{len(names)} passed, 0 failed, 0 skipped")

    def test_each_fails_where_ringmain_is_at_fault(self):
        self.assertEqual({name for name, _, _ in FAULTS.values()}, set(tests_of_collectives.TESTS))
        for fault, (name, says, code) in FAULTS.items():
            with self.subTest(fault):
                with self.assertRaises(Failed) as failed:
                    tests_of_collectives.TESTS[name][2](self.place(kind=Planted, code=code))
                self.assertIn(says, str(failed.exception))

    def test_ends_that_gloo_knows_are_wanted_of_gloo(self):
        seen = tests_of_collectives.seen_of(self.place(), "kinds")
        self.assertIn("each said once", tests_of_collectives.judge_ends(seen))
        ended = next(event for event in seen["events"] if event["channel"] == "collective.completed")
        for events in ([one for one in seen["events"] if one is not ended], [*seen["events"], ended]):
            with self.assertRaises(Failed):
                tests_of_collectives.judge_ends({**seen, "events": events})

    def test_a_refusal_that_is_said_twice_fails(self):
        seen = tests_of_collectives.seen_of(self.place(), "refusal")
        self.assertIn("none of them reached the backend", tests_of_collectives.judge_refusal(seen))
        for channel, says in (("failed", "collective.failed says"), ("issued", "what was issued")):
            twice = next(event for event in seen["events"] if event["channel"] == f"collective.{channel}")
            with self.assertRaisesRegex(Failed, says):
                tests_of_collectives.judge_refusal({**seen, "events": [*seen["events"], twice]})

    def test_a_pytorch_in_the_callers_path_is_used(self):
        (self.folder / "torch.py").write_text("raise ImportError('of the caller')\n")
        with mock.patch.dict(os.environ, PYTHONPATH=str(self.folder)), self.assertRaisesRegex(Skipped, "there is no PyTorch .of the caller"):
            self.place().with_package("group_hooks.py", "kinds", "gloo", str(self.folder / "kinds.json"))

    def test_no_package_is_a_skip_with_its_reason_and_one_that_did_not_build_a_failure(self):
        place = self.place(self.folder)
        with self.assertRaisesRegex(Skipped, "was not built below"):
            tests_of_collectives.TESTS["C1"][2](place)
        (self.folder / "package.txt").write_text("python3 has no nanobind\n")
        with self.assertRaisesRegex(Skipped, "^python3 has no nanobind$"):
            tests_of_collectives.TESTS["C1"][2](place)
        (self.folder / "package.txt").write_text("FAILED: it did not build\n")
        with self.assertRaisesRegex(Failed, "^it did not build$"):
            tests_of_collectives.TESTS["C1"][2](place)


if __name__ == "__main__":
    sys.exit(main())
