#!/usr/bin/env python3
"""Does ./dev test --nccl run what loads NCCL, and nothing else?"""

import sys
import unittest

from dev_test import DevTest, JUNIT


class Nccl(DevTest):
    def setUp(self):
        super().setUp()
        self.everything_is_here()
        (self.state / "junit.xml").write_text(JUNIT.format(more=""))

    def test_another_version_runs_what_needs_it(self):
        for words in (("--nccl", "2.30.7"), ("--nccl=2.30.7",)):
            run = self.dev("test", *words)
            self.assertEqual((run.returncode, run.stdout.splitlines()[-1]), (0, "1 passed, 0 failed, 1 skipped"), run.stderr)
        tests = [call for call in self.calls() if call.startswith("ctest")]
        self.assertEqual(len(tests), 2)
        self.assertTrue(all("-L ^nccl$" in call for call in tests))

    def test_a_wrong_word_gets_one_sentence_and_status_2(self):
        for words in (("--nccl",), ("--nccl=newest",), ("--nccl", "2.30"), ("--nccl", "2.30.7", "--quick"), ("--quick", "--nccl")):
            run = self.dev("test", *words)
            self.assertEqual(run.returncode, 2, words)
            self.assertRegex(run.stderr, r"\Adev: [^\n]+\n\Z", words)
        self.assertEqual(self.calls(), [])


if __name__ == "__main__":
    sys.exit(unittest.main())
