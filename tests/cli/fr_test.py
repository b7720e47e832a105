#!/usr/bin/env python3
"""Do `ringmain fr analyze`, `merge` and `convert` do what their help says?

usage: fr_test.py [CASE]      RINGMAIN_BINARY is the program
"""

import copy
import json
import os
import pickle
import subprocess
import tempfile
import unittest
import xml.dom.minidom
from pathlib import Path

BINARY = os.environ["RINGMAIN_BINARY"]


def fr(*words, **options):
    return subprocess.run([BINARY, "fr", *map(str, words)], capture_output=True, text=True, check=False, **options)


def entry(record, seq, **changes):
    made = {"record_id": record, "pg_id": 0, "process_group": ("dp", "grad"), "collective_seq_id": seq, "p2p_seq_id": 0,
            "op_id": record, "profiling_name": "nccl:all_reduce", "time_created_ns": 1767225600000000000 + seq * 1000000,
            "input_sizes": [[512, 96]], "input_dtypes": ["BFloat16"], "output_sizes": [[512, 96]], "output_dtypes": ["BFloat16"], "state": "completed",
            "is_p2p": False, "retired": True, "timeout_ms": 600000, "time_discovered_started_ns": None,
            "time_discovered_completed_ns": None}
    made.update(changes)
    return made


def healthy_job(ranks=4, operations=7):
    group = {"dp": {"name": "dp", "desc": "grad", "ranks": str(list(range(ranks)))}}
    return [{"version": "2.10", "comm_lib_version": "", "pg_config": group, "pg_status": {},
             "nccl_comm_state": {"c": {"k": "v"}}, "entries": [entry(i, i + 1) for i in range(operations)]} for _ in range(ranks)]


def with_faults():
    """(name, job, what fr_trace calls it, our kind, culprit)"""
    job = healthy_job()
    for dump in job:
        dump["entries"][-1].update(state="started", retired=False)
    missing = copy.deepcopy(job)
    del missing[2]["entries"][-1]
    yield "rank", missing, "Not all ranks joining collective", "not_joined", 2
    for name, changes, theirs, ours in (
            ("size", {"input_sizes": [[512, 95]], "output_sizes": [[512, 95]]}, "SIZE_OR_SYNTAX_MISMATCH", "size"),
            ("dtype", {"input_dtypes": ["Float"], "output_dtypes": ["Float"]}, "COLLECTIVE_DTYPE_MISMATCH", "type"),
            ("operation", {"profiling_name": "nccl:broadcast"}, "COLLECTIVE_TYPE_MISMATCH", "operation"),
            ("state", {"state": "started", "retired": False}, "COLLECTIVE_STATE_MISMATCH", "state")):
        wrong = healthy_job()
        wrong[2]["entries"][-1].update(changes)
        yield name, wrong, theirs, ours, 2


class FrTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = Path(self.folder.name)

    def write(self, job, name="rank_{}", form=pickle.dumps):
        for rank, dump in enumerate(job):
            made = form(dump)
            (self.path / name.format(rank)).write_bytes(made if isinstance(made, bytes) else made.encode())


class AnalyzeTest(FrTest):
    def test_nothing_is_found_in_a_healthy_job(self):
        self.write(healthy_job())
        ran = fr("analyze", self.path)
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        self.assertIn("4 dumps, 1 group, 7 operations compared", ran.stdout)
        self.assertIn("Nothing was found to be wrong.", ran.stdout)

    @unittest.skipUnless(os.path.exists("/dev/full"), "there is no /dev/full")
    def test_a_finding_that_cannot_be_written_is_not_lost_in_silence(self):
        self.write(next(job for _, job, *_ in with_faults()))
        with open("/dev/full", "w") as full:
            ran = subprocess.run([BINARY, "fr", "analyze", str(self.path)], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual((ran.returncode, ran.stderr), (1, "ringmain: standard output cannot be written to\n"))

    def test_each_fault_is_named_with_its_culprit_in_text_json_and_picture(self):
        for name, job, _, kind, culprit in with_faults():
            with self.subTest(name):
                self.write(job)
                ran = fr("analyze", self.path)
                self.assertEqual(ran.returncode, 1, ran.stdout + ran.stderr)
                self.assertIn(f"1. {kind}", ran.stdout)
                self.assertIn(f"First cause: rank {culprit}", ran.stdout)
                told = json.loads(fr("analyze", "--json", self.path).stdout)
                self.assertEqual(([f["kind"] for f in told["findings"]], told["culprits"]), ([kind], [culprit]))
                picture = fr("analyze", "--svg", "-", self.path).stdout
                self.assertTrue(picture.startswith("<svg ") and picture.endswith("</svg>\n"), picture[:80])
                texts = [text.firstChild.data for text in xml.dom.minidom.parseString(picture).getElementsByTagName("text")]
                self.assertIn(f"rank {culprit} (culprit)", texts)  # a row of its own, though its cells be as others'
                self.assertIn(told["findings"][0]["sentence"], " ".join(text for text in texts if len(text) > 40))
                self.assertLess(max(map(len, texts)), 151)  # what the picture has room for
                self.assertLessEqual({int(text) for text in texts if text.isdigit()}, set(range(1, 8)))  # that are there

    def test_ranks_come_from_the_content_the_name_or_an_expression(self):
        job = [{**dump, "rank": rank} for rank, dump in enumerate(healthy_job())]
        self.write(job, "host9_{}.dump.7", json.dumps)
        self.assertEqual(fr("analyze", self.path).returncode, 0)
        for file in self.path.iterdir():
            file.unlink()
        self.write(healthy_job(), "r{}-host07")
        ran = fr("analyze", self.path)
        self.assertEqual(ran.returncode, 2)
        self.assertIn("are both of rank 7", ran.stderr)
        self.assertEqual(fr("analyze", "--rank-from", r"r(\d+)-", self.path).returncode, 0)
        self.assertIn("is no regular expression", fr("analyze", "--rank-from", "(", self.path).stderr)

    def test_a_missing_file_is_named_and_suspected_where_all_others_wait(self):
        job = healthy_job()
        for dump in job:
            dump["entries"][-1].update(state="started", retired=False)
        self.write(job)
        (self.path / "rank_3").unlink()
        told = json.loads(fr("analyze", "--json", self.path).stdout)
        self.assertEqual((told["missing"], told["findings"][0]["suspects"]), ([3], [3]))
        self.write(healthy_job())
        (self.path / "rank_3").unlink()
        ran = fr("analyze", self.path)
        self.assertEqual(ran.returncode, 2)
        self.assertIn("the files of rank 3 are missing", ran.stderr)

    def test_a_cut_or_foreign_file_is_one_sentence_and_does_not_hide_the_others(self):
        self.write(healthy_job())
        whole = (self.path / "rank_2").read_bytes()
        for made, sentence in ((whole[:len(whole) // 2], "it was cut"), (b"", "it is empty"),
                               (b"\x80\x02cos\nsystem\n.", "GLOBAL"), (b'{"version": "2.10", "entr', "no whole JSON"), (b'{"version": "3.0"}', "version 3.0"),
                               (b"\x80\x02]q\x00h\x00a.", "holds itself")):
            with self.subTest(sentence):
                (self.path / "rank_2").write_bytes(made)
                ran = fr("analyze", self.path / "rank_0", self.path / "rank_1", self.path / "rank_2", self.path / "rank_3")
                self.assertEqual(ran.returncode, 2)
                self.assertIn(sentence, ran.stderr)
                self.assertEqual(ran.stderr.count("\n"), 1)
                self.assertIn("3 dumps", ran.stdout)

    def test_a_short_wait_is_no_finding_where_the_files_times_tell_it(self):
        job = healthy_job()
        job[2]["entries"].pop()
        for rank in (0, 1, 3):
            job[rank]["entries"][-1].update(state="started", retired=False)
        self.write(job)
        last = job[0]["entries"][-1]["time_created_ns"]
        for file in self.path.iterdir():
            os.utime(file, ns=(last + 10**9, last + 10**9))
        ran = fr("analyze", self.path)
        self.assertEqual(ran.returncode, 0, ran.stdout)
        self.assertIn("no finding so soon", ran.stdout)
        self.assertEqual(fr("analyze", "--grace", "0.5", self.path).returncode, 1)

    def test_torchcomms_counts_of_all_groups_are_told_apart(self):
        """One counter for all groups, no peers, retired when issued: what torchcomms writes."""
        job = []
        for rank in range(4):
            own = f"pair{rank // 2}"
            group = {"world": {"name": "world", "desc": "ncclx", "ranks": "[0, 1, 2, 3]"},
                     own: {"name": own, "desc": "ncclx", "ranks": str([rank // 2 * 2, rank // 2 * 2 + 1])}}
            names = ["world", own, own, "world"] if rank < 2 else ["world", own, "world"]
            job.append({"version": "2.10", "pg_config": group, "pg_status": {}, "entries": [
                entry(i, i + 1, process_group=(name, "ncclx"), profiling_name="ncclx:all_reduce", timeout_ms=600000)
                for i, name in enumerate(names)]})
        self.write(job)
        self.assertEqual(fr("analyze", self.path).returncode, 0, fr("analyze", self.path).stdout)
        job[3]["entries"].pop()
        for rank in range(3):
            job[rank]["entries"][-1].update(state="scheduled")
        self.write(job)
        told = json.loads(fr("analyze", "--json", self.path).stdout)
        self.assertEqual(told["culprits"], [3], told)

    def test_what_cannot_be_decided_is_told_and_is_2(self):
        """torchcomms counts all groups together: a ring that has wrapped does not say which operation of a group is which."""
        group = {"world": {"name": "world", "desc": "ncclx", "ranks": "[0, 1]"}}
        job = [{"version": "2.10", "pg_config": group, "pg_status": {}, "entries": [
            entry(i, i + 1, process_group=("world", "ncclx"), profiling_name="ncclx:all_reduce", state="scheduled") for i in range(5, 9)]}
            for _ in range(2)]
        self.write(job)
        ran = fr("analyze", self.path)
        self.assertEqual(ran.returncode, 2, ran.stdout)
        self.assertNotIn("Nothing was found to be wrong", ran.stdout)
        self.assertIn("What rank 0 did in world (ncclx) cannot be said", ran.stdout + ran.stderr)
        told = json.loads(fr("analyze", "--json", self.path).stdout)
        self.assertEqual((told["findings"], len(told["undecided"])), ([], 2))

    def test_json_and_a_picture_do_not_share_standard_output(self):
        self.write(healthy_job())
        ran = fr("analyze", "--json", "--svg", "-", self.path)
        self.assertEqual((ran.returncode, ran.stdout), (2, ""))
        self.assertIn("both write to standard output", ran.stderr)
        self.assertEqual(fr("analyze", "--json", "--svg", self.path / "a.svg", self.path).returncode, 0)

    def test_a_file_that_is_named_twice_is_read_once(self):
        self.write(healthy_job())
        (self.path / "other").symlink_to(self.path)
        for more in (self.path / "rank_0", self.path / "other" / "rank_0", self.path / "." / "rank_3", self.path / "other"):
            for order in ((self.path, more), (more, self.path)):
                with self.subTest(order):
                    ran = fr("analyze", *order)
                    self.assertEqual((ran.returncode, ran.stderr), (0, ""))
                    self.assertIn("4 dumps", ran.stdout)
        # What is named by itself is read also where its folder passes it over.
        (self.path / "notes_9").write_text("no dump")
        self.assertIn("notes_9", fr("analyze", self.path, self.path / "other" / "notes_9").stderr)
        # Two names of one file are two ranks, where the dump does not say which it is.
        (self.path / "notes_9").unlink()
        (self.path / "rank_3").unlink()
        os.link(self.path / "rank_2", self.path / "rank_3")
        self.assertIn("4 dumps", fr("analyze", self.path).stdout)

    def test_a_wrong_call_is_2(self):
        for words in (["analyze"], ["analyze", "--grace", "soon", "."], ["analyze", self.path / "no"], ["analyze", self.path],
                      ["convert"], ["merge", "."], ["convert", "--to", "xml", __file__], ["analyse", "."]):
            with self.subTest(words):
                ran = fr(*words, env={"PATH": ""})
                self.assertEqual((ran.returncode, ran.stderr.startswith("ringmain: ")), (2, True), ran.stderr)


class ConvertTest(FrTest):
    def test_a_pickle_becomes_json_and_the_same_pickle_again(self):
        dump = healthy_job()[0]
        dump["pg_status"] = {"0": {"last_enqueued_collective": 7, "last_started_collective": -1,
                                   "last_completed_collective": 7}}
        dump["entries"][1].update(duration_ms=2.0, thread_id="1", thread_name="py\u00e9", op_id=-1, time_created_ns=2**61,
                                  frames=[{"name": "f", "filename": "a.py", "line": 70000}], later_field=[1, None, True])
        for protocol in (2, 3, 4, 5):
            file = self.path / "0"
            file.write_bytes(pickle.dumps(dump, protocol=protocol))
            made = json.loads(fr("convert", file).stdout)
            self.assertEqual(made["pg_status"]["0"]["last_started_collective"], "-1")
            self.assertEqual(made["entries"][0]["time_discovered_started_ns"], 0)
            self.assertEqual(made["entries"][0]["process_group"], ["dp", "grad"])
            (self.path / "1.json").write_text(json.dumps(made))
            self.assertEqual(fr("convert", self.path / "1.json", "-o", self.path / "1").returncode, 0)
            again = pickle.loads((self.path / "1").read_bytes())
            self.assertEqual(again, dump)
            self.assertIs(type(again["entries"][1]["duration_ms"]), float)

    def test_no_entries_are_a_list_in_a_pickle_and_no_key_in_json(self):
        (self.path / "0").write_text(json.dumps({"version": "2.10", "pg_config": {}, "pg_status": {}}))
        self.assertEqual(fr("convert", self.path / "0", "-o", self.path / "1").returncode, 0)
        self.assertEqual(pickle.loads((self.path / "1").read_bytes())["entries"], [])
        self.assertNotIn("entries", json.loads(fr("convert", self.path / "1").stdout))

    def test_an_output_that_cannot_be_written_stays_as_it_was(self):
        self.write(healthy_job(1))
        ran = fr("convert", self.path / "rank_0", "-o", self.path / "no" / "such" / "folder")
        self.assertEqual((ran.returncode, ran.stderr.count("\n")), (1, 1))
        self.assertEqual(fr("convert", self.path / "rank_0", "-o", "/dev/full").returncode, 1)


class MergeTest(FrTest):
    def merged(self, *more):
        ran = fr("merge", self.path, "-o", self.path / "out" / "fr_", *more)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        files = sorted((self.path / "out").iterdir(), key=lambda f: int(f.name[3:]))
        return ran.stdout, [pickle.loads(f.read_bytes()) for f in files]

    def test_rings_that_wrapped_differently_hold_the_same_afterwards(self):
        job = healthy_job(3, 20)
        for rank, dump in enumerate(job):
            dump["entries"] = dump["entries"][rank * 4:]
        self.write(job)
        said, dumps = self.merged()
        self.assertIn("3 files with 36 operations: 12 not in all rings", said)
        self.assertEqual([[e["collective_seq_id"] for e in d["entries"]] for d in dumps], [list(range(9, 21))] * 3)
        self.assertEqual([e["record_id"] for e in dumps[2]["entries"]], list(range(12)))

    def test_names_tensors_and_groups_are_those_that_the_analyzer_takes(self):
        job = healthy_job(2, 0)
        for dump in job:
            dump["pg_config"] = {"": {"name": "", "desc": "", "ranks": "[]"}}
            of = {"process_group": ("0", "default_pg")}
            dump["entries"] = [
                entry(0, 1, profiling_name="mpi:barrier", **of), entry(1, 2, profiling_name="mpi:split", **of),
                entry(2, 3, profiling_name="mpi:all_gather", output_sizes=[[512, 96]] * 2,
                      output_dtypes=["BFloat16"] * 2, **of),
                entry(3, 4, profiling_name="mpi:reduce", output_sizes=[], output_dtypes=[], **of)]
        self.write(job)
        _, dumps = self.merged()
        entries = dumps[0]["entries"]
        self.assertEqual([e["profiling_name"] for e in entries], ["nccl:all_reduce_barrier", "nccl:all_gather", "nccl:reduce"])
        self.assertEqual((entries[1]["output_sizes"], entries[1]["output_dtypes"]), ([[2, 512, 96]], ["BFloat16"]))
        self.assertEqual(entries[2]["output_sizes"], [[512, 96]])
        self.assertEqual(dumps[0]["pg_config"], {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}})

    def test_where_one_cannot_be_written_it_says_how_many_are(self):
        self.write(healthy_job(3, 1))
        (self.path / "out/fr_1").mkdir(parents=True)
        ran = fr("merge", self.path, "-o", self.path / "out" / "fr_")
        self.assertEqual(ran.returncode, 1)
        self.assertIn("; only the first 1 of 3 files are written\n", ran.stderr)
        self.assertTrue((self.path / "out/fr_0").is_file())


if __name__ == "__main__":
    unittest.main()
