#!/usr/bin/env python3
"""Does any file of the project name a folder of the machine it was written on?

Looks for absolute paths below somebody's home or workplace in all text files, and inside gzipped ones: recordings
carry the paths of the programs that were recorded.
"""

import gzip
import re
import sys
import zlib

import tree

PRIVATE = re.compile(rb"(?<![\w./~-])/(?:home|root|work|Users|mnt)/(?!someone\b)[\w.-]+")  # someone: an example


def content_of(path):
    data = path.read_bytes()
    if data[:2] == b"\x1f\x8b":
        try:
            return gzip.decompress(data)
        except (OSError, EOFError, zlib.error):
            pass  # a damaged file, kept as a test's input, is looked at as it is
    return data


def main():
    root = tree.root_argument(__doc__)
    paths = tree.files(root)
    findings = []
    for path in paths:
        data = content_of(root / path)
        for found in PRIVATE.finditer(data):
            line = data.count(b"\n", 0, found.start()) + 1
            findings.append(f"{path}:{line}: {found[0].decode()} is a path of one machine; write it another way")
    return tree.tell(findings, len(paths))


if __name__ == "__main__":
    sys.exit(main())
