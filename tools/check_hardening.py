#!/usr/bin/env python3
"""Were these files built with the hardening flags of cmake/Hardening.cmake?

Looks for a relocation table that is read-only after start (RELRO with immediate binding), a stack that cannot be
executed, position independence, the stack protector, and memory of threads that can be had however late a file is loaded.

usage: check_hardening.py FILE…
"""

import re
import subprocess
import sys


def read(option, path):
    run = subprocess.run(["readelf", "--wide", option, path], capture_output=True, text=True, check=False)
    return run.stdout


def faults_of(path):
    header, segments, dynamic = read("--file-header", path), read("--segments", path), read("--dynamic", path)
    if "ELF" not in header:
        yield "readelf cannot read it"
        return
    if not re.search(r"Type:\s+DYN", header):
        yield "not position independent (-fPIE, -fPIC)"
    if "GNU_RELRO" not in segments:
        yield "relocations stay writable (-z relro)"
    if not re.search(r"\(FLAGS(?:_1)?\).*\b(?:BIND_)?NOW\b", dynamic):
        yield "functions are bound late (-z now)"
    if not re.search(r"GNU_STACK.*\sRW\s", segments):
        yield "the stack may be executable (-z noexecstack)"
    if "__stack_chk_fail" not in read("--dyn-syms", path):
        yield "no stack protector (-fstack-protector-strong)"
    if "INTERP" in segments:
        return  # a program: what it needs is there before it
    for name in re.findall(r"R_X86_64_TPOFF64 +[0-9a-f]{16} +([A-Za-z_]\w*)", read("--relocs", path)):
        if "ringmain" not in name:
            yield f"{name} is another library's memory of a thread, at a fixed place: where that was loaded late, this cannot be"


def main():
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    findings = [f"{path}: {fault}" for path in sys.argv[1:] for fault in faults_of(path)]
    print("\n".join(findings + [f"{len(sys.argv) - 1} looked at, {len(findings)} found"]))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
