#!/usr/bin/env python3
"""Does ringmain-nccl-conformance pass what is right, and fail what is wrong by the rule that names the fault?"""

import json
import os
import re
import subprocess
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

PROGRAM = os.environ.get("RINGMAIN_NCCL_CONFORMANCE", "")
PLUGINS = Path(os.environ.get("RINGMAIN_NCCL_PLUGINS", "."))

# Each wrong plugin: the scenario that is made for its fault, and the one rule that it breaks there, which names the fault.
WRONG = {
    "believes_the_direction": ("transports", "record.direction"),
    "counts_some_types": ("H1", "call.survives"),
    "counts_states": ("dead", "record.repeated"),
    "dead_handle_is_an_error": ("masks", "stop.dead_handle"),
    "dead_state_is_an_error": ("dead", "record.dead_handle"),
    "follows_foreign_context": ("processes", "start.foreign_context"),
    "follows_foreign_parent": ("processes", "start.foreign_parent"),
    "forgets_a_file": ("again", "unload.files"),
    "forgets_memory": ("again_mapped", "unload.memory"),
    "frees_context": ("H7", "finalize.context_used_later"),
    "frees_on_stop": ("masks", "stop.dead_handle"),
    "full_is_an_error": ("full", "start.full"),
    "half_a_table": ("H1", "load.opens"),
    "handle_not_written": ("H1", "start.handle_written"),
    "init_fails": ("H4", "init.succeeds"),
    "init_gives_up": ("inits", "init.concurrent"),
    "keeps_descriptor": ("dead", "start.descriptor_kept"),
    "keeps_name": ("names", "init.name"),
    "leaves_a_thread": ("again", "unload.threads"),
    "one_handle": ("H3", "start.handle_distinct"),
    "restart_is_an_error": ("H1", "start.restarted"),
    "runs_on_without_code": ("again", "unload.threads"),
    "serves_once": ("again_mapped", "unload.again"),
    "too_wide_a_mask": ("H4", "init.mask"),
    "trusts_its_mask": ("masks", "mask.changes"),
    "unfollowed_is_an_error": ("H1", "start.succeeds"),
    "unknown_state_is_an_error": ("unknown", "record.unknown_state"),
    "unknown_type_ends_it": ("unknown", "start.unknown_type"),
    "unused_state_is_an_error": ("H1", "record.succeeds"),
    "uses_what_it_freed": ("dead", "record.dead_handle"),
    "waits_for_room": ("full", "call.returns"),
    "wants_a_live_parent": ("H6", "start.dead_parent"),
    "wants_a_parent": ("copies", "start.null_parent"),
    "wants_all_ends": ("abort", "finalize.open_events"),
    "wants_arguments": ("H1", "record.null_args"),
    "wants_the_ends_in_order": ("H1", "stop.succeeds"),
    "wants_name": ("names", "init.no_name"),
    "wants_to_end_last": ("H4", "finalize.succeeds"),
}


def run(*arguments, env=None):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, check=False, env=env)


def judged(plugin, *arguments):
    """The JSON of a run, and its exit status."""
    ended = run("--plugin", PLUGINS / f"{plugin}.so", "--json", *arguments)
    return json.loads(ended.stdout), ended.returncode


class RightTest(unittest.TestCase):
    def test_a_plugin_that_keeps_every_rule_passes_all_of_them(self):
        ended = run("--plugin", PLUGINS / "right.so", "--patience", 60)
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        self.assertRegex(ended.stdout.splitlines()[-1], r"^\d+ passed, 0 failed$")


class WrongTest(unittest.TestCase):
    def test_there_is_a_source_for_each_and_no_other(self):
        there = {path.stem for path in (Path(__file__).parent / "wrong").glob("*.cpp")} - {"right"}
        self.assertEqual(there, set(WRONG))

    def test_each_fails_by_the_rule_that_names_its_fault(self):
        def broken(plugin):
            scenario, rule = WRONG[plugin]
            # One never comes back, however long it is waited for; the others are given the time that a busy machine takes.
            patience = 2 if rule == "call.returns" else 120
            said, status = judged(plugin, "--abi", 7, "--scenario", scenario, "--patience", patience)
            return plugin, status, {finding["rule"] for one in [said, *said["runs"]] for finding in one["findings"]}
        with ThreadPoolExecutor(2) as pool:
            for plugin, status, rules in pool.map(broken, sorted(WRONG)):
                with self.subTest(plugin):
                    _, rule = WRONG[plugin]
                    self.assertEqual(status, 1)
                    if rule == "unload.threads":  # a thread without code may do anything
                        self.assertIn(rule, rules)
                    else:
                        self.assertEqual(rules, {rule})

    def test_each_rule_has_one_that_breaks_it(self):
        rules = run("--list").stdout.partition("rules")[2]
        self.assertEqual(set(re.findall(r"^  (\w+\.\w+) ", rules, re.M)), {rule for _, rule in WRONG.values()})


class OursTest(unittest.TestCase):
    """ringmain's plugin."""

    PLUGIN = os.environ.get("RINGMAIN_NCCL_PROFILER", "")
    PUBLISHED = os.environ.get("RINGMAIN_NCCL_PUBLISHED", "")
    SANITIZED = os.environ.get("RINGMAIN_SANITIZE", "")

    # The main thread holds a mutex of ringmain's for its life, which is in no order with those of who loads the plugin.
    ENVIRONMENT = {**os.environ, "TSAN_OPTIONS": ":".join(filter(None, [os.environ.get("TSAN_OPTIONS"), "detect_deadlocks=0"]))}

    def test_it_keeps_every_rule(self):
        abis = ("--abi", 7) if self.SANITIZED else ()
        ended = run("--plugin", self.PLUGIN, "--patience", 60, "--rounds", 2, *abis, env=self.ENVIRONMENT)
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)

    def test_each_span_that_it_took_is_published_once_as_it_was_told(self):
        def played(words):
            ended = subprocess.run([self.PUBLISHED, self.PLUGIN, *words], capture_output=True, text=True, check=False,
                                   env=self.ENVIRONMENT)
            return words, ended
        scenarios = ("H1", "H3", "H6", "H7", "abort", "random")
        if not self.SANITIZED:
            scenarios += ("H2", "processes", "transports", "laps", "H4", "H5", "full", "copies", "network", "phases")
        calls = [(scenario, "7", "2.32", "1") for scenario in scenarios]
        if not self.SANITIZED:
            calls += [("random", "7", "2.32", str(seed)) for seed in range(2, 4)]
            calls += [(scenario, abi, "2.30", "1") for abi in "456" for scenario in ("H1", "H2", "H3", "H5", "H6", "H7", "abort", "random")]
        with ThreadPoolExecutor(2) as pool:
            for words, ended in pool.map(played, calls):
                with self.subTest(words):
                    self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
                    told = re.search(r"(\d+) spans were told, (\d+) events published", ended.stdout)
                    self.assertEqual(told[1], told[2])
                    self.assertGreater(int(told[1]), 0)

    def test_wrong_plugins_behind_it_take_nothing_from_it(self):
        if self.SANITIZED:
            self.skipTest("wrong plugins are built without a sanitizer only")
        # Of the wrong ones all but those that end the process by an address of their own, or of NULL.
        ends = {"counts_some_types", "keeps_descriptor", "keeps_name", "wants_arguments", "wants_name"}
        wrong = sorted(set(WRONG) - ends)
        def played(words):
            chain, scenario = words
            return words, subprocess.run([self.PUBLISHED, self.PLUGIN, scenario, "7", "2.32", "1"], capture_output=True, text=True, check=False,
                                         env={**os.environ, "RINGMAIN_NCCL_CHAIN": ":".join(str(PLUGINS / f"{one}.so") for one in chain)})
        calls = [(wrong[at:at + 3], scenario) for at in range(0, len(wrong), 3) for scenario in ("random", "masks")]
        with ThreadPoolExecutor(2) as pool:
            for words, ended in pool.map(played, calls):
                with self.subTest(words):
                    self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)


class ProgramTest(unittest.TestCase):
    def test_help_and_lists(self):
        self.assertIn("--plugin FILE", run("--help").stdout)
        said = run("--list").stdout
        for words in WRONG.values():
            for word in words:
                self.assertIn(f"  {word} ", said)
        self.assertRegex(run("--version").stdout, r"^ringmain-nccl-conformance \d+\.\d+\.\d+\n$")

    def test_a_wrong_word_gets_one_sentence_and_status_2(self):
        for words in ((), ("--plugin",), ("--plugin", ""), ("--plugin", "x", "--abi", "3"), ("--plugin", "x", "--scenario", "H9"),
                      ("--plugin", "x", "--release", "2.1"), ("--plugin", "x", "--seed", "-1"), ("--plugin", "x", "--patience", "no"),
                      ("--plugin", "x", "--patience", "5x"), ("--plugin", "x", "--patience", "inf"), ("--plugin", "x", "--rounds", "0"),
                      ("--plugin", "x", "--seed", "99999999999999999999"), ("--quick",), ("--json=yes",)):
            ended = run(*words)
            self.assertEqual((ended.returncode, ended.stdout), (2, ""), words)
            self.assertRegex(ended.stderr, r"\Aringmain-nccl-conformance: [^\n]+; --help says what it takes\n\Z")

    def test_what_is_no_plugin_fails_to_load(self):
        for file, why in (("/nowhere/plugin.so", "cannot open shared object file"), ("libm.so.6", "it exports no ncclProfiler_v")):
            ended = run("--plugin", file)
            self.assertEqual(ended.returncode, 1)
            self.assertRegex(ended.stdout, rf"FAIL load.opens: .*{why}")
            self.assertEqual(ended.stdout.splitlines()[-1], "0 passed, 1 failed")
        said, status = judged("nowhere")
        self.assertEqual((status, said["passed"], said["failed"], len(said["findings"])), (1, 0, 1, 1))

    def test_a_plugin_named_without_a_folder_is_told_where_it_lies(self):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "mine.so").write_text("no library")
            ended = subprocess.run([Path(PROGRAM).resolve(), "--plugin", "mine.so"], cwd=folder, capture_output=True, text=True, check=False)
        self.assertRegex(ended.stdout, r"FAIL load.opens: .*; the file in this folder is \./mine.so")

    def test_a_version_whose_table_is_not_whole_is_a_fault_beside_one_that_is(self):
        said, status = judged("one_table_is_half", "--scenario", "H4", "--release", "2.30")
        self.assertEqual((status, said["versions"], said["passed"], said["failed"]), (1, [5], 1, 1))
        self.assertEqual([(one["rule"], one["text"]) for one in said["findings"]],
                         [("load.opens", "ncclProfiler_v6 has a name or a function that is NULL")])
        said, status = judged("one_table_is_half", "--scenario", "H4", "--release", "2.30", "--abi", 5)
        self.assertEqual((status, said["findings"]), (0, []))

    def test_nothing_to_play_is_a_wrong_call_and_no_success(self):
        ended = run("--plugin", PLUGINS / "right.so", "--abi", 7, "--release", "2.28")
        self.assertEqual((ended.returncode, ended.stdout), (2, ""))
        self.assertIn("v7, and NCCL 2.28 knows none above v5", ended.stderr)

    def test_without_a_release_each_version_is_called_as_its_own_release_does(self):
        said, _ = judged("wants_arguments", "--abi", 5, "--scenario", "H1")
        broken = {one["release"]: {finding["rule"] for finding in one["findings"]} for one in said["runs"]}
        self.assertEqual(broken, {"2.28": {"record.null_args"}, "2.30": set(), "2.32": set()})

    def test_a_crash_says_what_lay_at_its_address(self):
        for plugin, scenario, rule, what in (
                ("keeps_name", "H1", "init.name", "where the communicator's name was while init ran"),
                ("wants_name", "names", "init.no_name", "which is near NULL")):
            said, _ = judged(plugin, "--abi", 7, "--release", "2.32", "--scenario", scenario)
            (finding,) = said["runs"][0]["findings"]
            self.assertEqual(finding["rule"], rule)
            self.assertRegex(finding["text"], rf"^Segmentation fault at 0x[0-9a-f]+, {what}, in \w+, called by thread ")

    def test_a_seed_repeats_what_one_thread_at_a_time_does(self):
        def calls(seed):
            said, _ = judged("right", "--scenario", "random", "--serial", "--rounds", 2, "--abi", 6, "--release", "2.30", "--seed", seed)
            return [one["calls"] for one in said["runs"]]
        self.assertEqual(calls(3), calls(3))
        self.assertNotEqual(calls(3), calls(5))

    def test_json_says_what_ran(self):
        said, status = judged("right", "--scenario", "H4", "--scenario", "names")
        self.assertEqual((status, said["passed"], said["failed"], said["versions"]), (0, 16, 0, [7, 6, 5, 4]))
        self.assertEqual({one["scenario"] for one in said["runs"]}, {"H4", "names"})
        self.assertTrue(all(one["calls"] > 0 for one in said["runs"]))


if __name__ == "__main__":
    unittest.main()
