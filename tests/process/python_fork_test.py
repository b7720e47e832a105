#!/usr/bin/env python3
"""Does a bus that lives in a Python process survive os.fork, multiprocessing and PyTorch's DataLoader?

The threads of python_plugin.cpp publish all the while. usage: python_fork_test.py TESTCASE, with the plugin in
$RINGMAIN_PLUGIN
"""

import ctypes
import multiprocessing
import os
import signal
import sys
import unittest

SKIPPED = 77
ACCEPTED, FORKED = 0, 1
plugin = ctypes.CDLL(os.environ["RINGMAIN_PLUGIN"])
plugin.heard.restype = ctypes.c_ulonglong


def work(item):
    """What a worker of a pool does: it publishes as the parent would, and it may have a bus of its own."""
    return plugin.publish(), plugin.own_bus_works() if item % 10 == 0 else 1


class ForkTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        signal.alarm(200)  # whatever hangs ends the test
        plugin.start()
        while plugin.heard() < 1000:
            pass

    @classmethod
    def tearDownClass(cls):
        if plugin.balances() != 1:
            raise AssertionError("the parent's bus does not balance")

    def test_children_of_os_fork_end(self):
        for i in range(40):
            child = os.fork()
            if child == 0:
                signal.alarm(60)
                fine = work(i) == (FORKED, 1)
                if i % 2:
                    os._exit(0 if fine else 1)
                ctypes.CDLL(None).exit(0 if fine else 1)  # with static destructors
            self.assertEqual(os.waitpid(child, 0)[1], 0, f"fork {i}")
        self.assertEqual(plugin.publish(), ACCEPTED)

    def test_pools_come_and_go(self):
        context = multiprocessing.get_context("fork")
        for _ in range(3):
            with context.Pool(3) as pool:
                self.assertEqual(set(pool.map(work, range(60))), {(FORKED, 1)})
        self.assertEqual(plugin.publish(), ACCEPTED)


class DataLoaderTest(unittest.TestCase):
    def test_its_workers_load_while_the_parent_publishes(self):
        from torch.utils import data

        class Items(data.Dataset):
            def __len__(self):
                return 200

            def __getitem__(self, i):
                return work(i)

        plugin.start()
        for _ in range(3):
            loader = data.DataLoader(Items(), batch_size=10, num_workers=2, multiprocessing_context="fork")
            for codes, own in loader:
                self.assertEqual(set(codes.tolist()), {FORKED})
                self.assertEqual(set(own.tolist()), {1})
        self.assertEqual(plugin.publish(), ACCEPTED)
        self.assertEqual(plugin.balances(), 1)


if __name__ == "__main__":
    if "DataLoaderTest" in sys.argv:
        try:
            import torch  # noqa: F401
        except ImportError:
            print("skipped: PyTorch is not installed, so its DataLoader is not tried")
            sys.exit(SKIPPED)
    unittest.main()
