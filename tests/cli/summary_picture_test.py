#!/usr/bin/env python3
"""Does the picture of `ringmain summary` show what its rows say?

usage: summary_picture_test.py SummaryPictureTest, with the program in $RINGMAIN_BINARY
"""

import sys
import xml.etree.ElementTree as ElementTree

from summary_test import SummaryTest, line, main


class SummaryPictureTest(SummaryTest):
    """The picture holds what the rows say, and is one that can be shown."""

    def test_each_operation_has_a_bar_for_each_rank_and_the_slowest_is_marked(self):
        lines = [line("x", origin=f"{rank:016x}", sequence=n, name=f"op<{op}>", took_ns=10 ** (3 + op) * (rank + 1), publisher=op,
                      rank=rank if n == 1 and op == 0 else None) for rank in range(3) for op in range(2) for n in (1, 2)]
        path, picture = self.file("a", *lines), self.folder / "a.svg"
        self.run_it(path, "--svg", picture)
        root = ElementTree.parse(picture).getroot()
        name = "{http://www.w3.org/2000/svg}"
        titles = [title.text for title in root.iter(name + "title")]
        self.assertEqual(len(titles), 6)
        self.assertIn("op<1>, took_ns, rank 2: median 30.0 us, p90 30.0 us, p99 30.0 us, max 30.0 us", titles)
        slowest = [group.find(name + "title").text for group in root.iter(name + "g")
                   if any(bar.get("fill") == "#f78154" for bar in group.iter(name + "rect"))]
        self.assertEqual(sorted(title.split(":")[0] for title in slowest), ["op<0>, took_ns, rank 2", "op<1>, took_ns, rank 2"])
        self.assertEqual(oct(picture.stat().st_mode & 0o777), "0o600")

    def test_it_can_go_to_standard_output_and_an_empty_one_says_so(self):
        root = ElementTree.fromstring(self.run_it(self.file("a", line("x")), "--svg", "-"))
        self.assertIn("No event says how long anything took.", [text.text for text in root.iter() if text.text])

    def test_one_that_cannot_be_written_is_said_and_the_text_is_told(self):
        out = self.run_it(self.file("a", line("x")), "--svg", self.folder / "no" / "such" / "a.svg", status=1)
        self.assertIn("1 event", out)
        self.assertIn("cannot be written", self.said)


if __name__ == "__main__":
    sys.exit(main())
