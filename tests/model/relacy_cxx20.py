#!/usr/bin/env python3
"""Copies Relacy to DIR/relacy with two edits, each of which must match exactly once.

1 C++20 release sequences: a thread's own later stores do not continue one (they did in C++11).
2 systemwide_fence() is membarrier: the caller and, one after another, every thread pass a seq_cst
  fence where they stand. As shipped it orders everything with everything and so hides races.
Usage: relacy_cxx20.py DIR [/usr/include/relacy]
"""
import pathlib
import shutil
import sys

target = pathlib.Path(sys.argv[1]) / "relacy"
source = sys.argv[2] if len(sys.argv) > 2 else "/usr/include/relacy"
shutil.copytree(source, target, dirs_exist_ok=True)


def edit(name, start, end, text):
    """Replaces what lies from start up to end (or start itself) by text."""
    file = target / name
    code = file.read_bytes().decode().replace("\r\n", "\n")
    if code.count(start) != 1:
        sys.exit(f"relacy_cxx20.py: '{start.strip()}' is {code.count(start)} times in {name}, not "
                 "once: this Relacy is not Debian's 2013 release; adapt the edits to it.")
    i = code.index(start)
    j = code.index(end, i) if end else i + len(start)
    file.write_bytes((code[:i] + text + code[j:]).encode())


edit("thread.hpp", "(rmw || (index_ == prev.thread_id_))", None, "rmw")
edit("context.hpp", "    void rl_global_fence()\n    {",
     "    virtual void atomic_thread_fence_acquire()", """    void rl_global_fence()
    {
        atomic_thread_fence_seq_cst();
        for (thread_id_t i = 0; i != thread_count; ++i)
        {
            sched();
            threads_[i].atomic_thread_fence_seq_cst(seq_cst_fence_order_);
        }
        atomic_thread_fence_seq_cst();
    }

""")
