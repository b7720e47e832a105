#!/usr/bin/env python3
"""Do the checks of the source tree find what they look for, and nothing else?"""

import gzip
import re
import shutil
import unittest

from check_fixture import ROOT, CheckTest


class Guarantees(CheckTest):
    CHECK = "check_guarantees.py"

    def setUp(self):
        super().setUp()
        self.write("tests/bus/detach_test.cpp", "TEST(DetachTest, ItWaits) {\n}\nTEST_P(DetachTest, ItNeverWaits) {\n}\n")
        self.write("tests/model/models.txt", "gate.pml -DSELF hold\n")

    def page(self, shown_by):
        self.write("docs/guarantees.md", f"| | promise | shown by |\n|---|---|---|\n| G3 | it waits | {shown_by} |\n")

    def test_tests_suites_models_and_files_are_found(self):
        self.page("`DetachTest.ItWaits`, `…ItNeverWaits`, `DetachTest`, `gate.pml -DSELF`, `detach_test.cpp`")
        self.assert_passes(self.CHECK)

    def test_a_test_that_was_renamed_is_missed(self):
        self.page("`DetachTest.ItWaited`")
        self.assert_fails(self.CHECK, "G3 `DetachTest.ItWaited`: DetachTest has no test ItWaited")
        self.page("`DetachTest.ItWaits`, `…ItWaited`")
        self.assert_fails(self.CHECK, "DetachTest has no test ItWaited")

    def test_a_suite_a_variant_and_a_file_that_are_gone_are_missed(self):
        self.page("`GateTest`, `gate.pml -DOTHER`, `gone_test.cpp`")
        self.assert_fails(self.CHECK, "no suite GateTest")
        self.assert_fails(self.CHECK, "the models' table has no -DOTHER")
        self.assert_fails(self.CHECK, "no such file")

    def test_what_only_ctest_names_is_found_or_missed(self):
        self.write("tests/stress/CMakeLists.txt", "add_test(NAME soak.a_small_one COMMAND soak)\n")
        self.write("tests/interleave/faults.txt", "[woken-late] park\nengine/worker.cpp\n- a\n+ b\n")
        self.page("`soak.a_small_one`, `interleave.finds.woken-late`")
        self.assert_passes(self.CHECK)
        self.page("`interleave.finds.woken-early`")
        self.assert_fails(self.CHECK, "no test or suite of that name")

    def test_a_promise_without_a_test_is_none(self):
        self.page("by construction")
        self.assert_fails(self.CHECK, "G3 names no test")

    def test_a_name_stands_for_one_promise(self):
        row = "| G3 | it waits | `DetachTest` |\n"
        self.write("docs/guarantees.md", "| | promise | shown by |\n|---|---|---|\n" + row + row)
        self.assert_fails(self.CHECK, "G3 is the name of another row")


class Quotes(CheckTest):
    CHECK = "check_quotes.py"

    def setUp(self):
        super().setUp()
        self.write("examples/hello.cpp", "int main() {\n  int heard = 0;\n  return heard;\n}\n")

    def test_what_an_example_holds_may_be_quoted(self):
        self.write("README.md", "```cpp\n  int heard = 0;\n```\n")
        self.write("CONTRIBUTING.md", "1. Write:\n\n   ```cpp\n     return heard;\n   ```\n")
        self.assert_passes(self.CHECK)

    def test_what_none_holds_is_found_on_every_page(self):
        for page in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/run.md"):
            for indent in ("", "   "):
                with self.subTest(page, indent=indent):
                    path = self.write(page, f"{indent}```cpp\n{indent}  int told = 0;\n{indent}```\n")
                    self.assert_fails(self.CHECK, f"{page} quotes what no example holds")
                    path.unlink()


class Cookbook(CheckTest):
    CHECK = "check_quotes.py"
    PAGE = "# Cookbook\n\n### How?\n\n[how.py](../examples/cookbook/how.py)\n\n```python\nprint()\n```\n"

    def setUp(self):
        super().setUp()
        self.write("examples/cookbook/how.py", "# How?\nprint()\n")

    def test_a_page_that_shows_its_programs_passes(self):
        self.write("docs/cookbook.md", self.PAGE)
        self.assert_passes(self.CHECK)

    def test_another_program_question_or_file_is_found(self):
        for page in (self.PAGE.replace("print()", "print(1)"), self.PAGE.replace("### How?", "### Why?")):
            self.write("docs/cookbook.md", page)
            self.assert_fails(self.CHECK, "docs/cookbook.md is not what the programs are")
        self.write("docs/cookbook.md", self.PAGE)
        self.write("examples/cookbook/why.sh", "# Why?\ntrue\n")
        self.assert_fails(self.CHECK, "docs/cookbook.md does not show examples/cookbook/why.sh")


class Links(CheckTest):
    CHECK = "check_links.py"

    def setUp(self):
        super().setUp()
        self.write("examples/hello.cpp", "")
        self.write("docs/run.md", "# Run\n\n## What `run` does: it's all\n\n## Twice\n\n## Twice\n\n```\n## No heading\n```\n")

    def test_files_folders_headings_and_other_sites_pass(self):
        self.write("README.md", "[a](docs/run.md) [b](examples/) [c](docs/run.md#what-run-does-its-all) [d](docs/run.md#twice-1)\n"
                                "[e](https://nowhere.example/x) `[f](gone.md)`\n```\n[g](gone.md)\n```\n")
        self.write("docs/page.md", "[a](../examples/hello.cpp) [`b`](run.md#twice)\n")
        self.assert_passes(self.CHECK)

    def test_what_leads_nowhere_is_found(self):
        for link, sentence in (("gone.md", "leads to no file"), ("../docs/run.md", "leads to no file"),
                               ("docs/run.md#gone", "names no heading of docs/run.md"), ("docs/run.md#no-heading", "names no heading"),
                               ("#gone", "names no heading of README.md"), ("docs/run.md#twice-2", "names no heading")):
            with self.subTest(link):
                self.write("README.md", f"# R\n\n[x]({link})\n")
                self.assert_fails(self.CHECK, f"README.md:3: {link} {sentence}")


class Layers(CheckTest):
    CHECK = "check_layers.py"

    def setUp(self):
        super().setUp()
        for name in ("engine/publish/lane.hpp", "bus/bus.hpp", "adapters/registry.hpp", "adapters/sources/cuda/source.hpp",
                     "events/cuda.hpp", "cli/cli.hpp"):
            self.write(name, "#pragma once\n")

    def test_a_room_may_include_itself_and_those_below(self):
        self.write("bus/bus.cpp", '#include "bus/bus.hpp"\n#include "engine/publish/lane.hpp"\n')
        self.write("adapters/sinks/lines.hpp", '#include "../../events/cuda.hpp"\n'
                                               '#include "../registry.hpp"\n#include <vector>\n')
        self.write("tests/cli/cli_test.cpp", '#include "cli/cli.hpp"\n')
        self.write("bindings/c/ringmain.h", "")
        self.write("adapters/sources/mpi/publish.hpp", '#include "bindings/c/ringmain.h"\n')
        self.assert_passes(self.CHECK)

    def test_a_room_may_not_include_one_above(self):
        self.write("engine/bad.cpp", '#include "bus/bus.hpp"\n')
        self.assert_fails(self.CHECK, "engine/bad.cpp:1: engine/ must not include bus/")
        self.write("engine/bad.cpp", "")
        self.write("events/bad.hpp", '#include "../adapters/registry.hpp"\n')
        self.assert_fails(self.CHECK, "events/bad.hpp:1: events/ must not include adapters/")

    def test_rooms_of_the_same_height_do_not_include_each_other(self):
        self.write("bench/bad.cpp", '#include "cli/cli.hpp"\n')
        self.assert_fails(self.CHECK, "bench/ must not include cli/")

    def test_adapters_do_not_include_each_other(self):
        self.write("adapters/sources/nccl/source.hpp", '#include "adapters/sources/cuda/source.hpp"\n')
        self.assert_fails(self.CHECK, "adapters do not include each other")

    def test_sources_include_installed_headers_of_the_few_that_are_shared(self):
        line = '#include "adapters/sources/collective/collective_ledger.hpp"\n'
        self.write("adapters/sources/collective/collective_ledger.hpp", "#pragma once\n")
        self.write("adapters/sources/collective/private.hpp", "#pragma once\n")
        self.write("adapters/sources/nccl/source.cpp", line)
        self.assert_passes(self.CHECK)
        self.write("adapters/sources/nccl/source.cpp", '#include "adapters/sources/collective/private.hpp"\n')
        self.assert_fails(self.CHECK, "adapters do not include each other")
        self.write("adapters/sources/nccl/source.cpp", "")
        self.write("adapters/sinks/lines/lines.cpp", line)
        self.assert_fails(self.CHECK, "adapters do not include each other")

    def test_an_installed_header_includes_installed_ones_by_relative_lines(self):
        self.write("bus/bad.hpp", '#include "engine/publish/lane.hpp"\n')
        self.assert_fails(self.CHECK, "bus/bad.hpp:1: write a relative line")
        self.write("bus/bad.hpp", '#include "../engine/publish/lane.hpp"\n')
        self.assert_passes(self.CHECK)
        self.write("adapters/launch/own.hpp", "")
        self.write("adapters/bad.hpp", '#include "launch/own.hpp"\n')
        self.assert_fails(self.CHECK, "bad.hpp is installed and adapters/launch/own.hpp is not")

    def test_others_write_the_path_from_the_root(self):
        self.write("bus/bad.cpp", '#include "bus.hpp"\n')
        self.assert_fails(self.CHECK, 'bus/bad.cpp:1: write "bus/bus.hpp": only installed headers write relative lines')
        self.write("bus/bad.cpp", '#include "gone.hpp"\n')
        self.assert_fails(self.CHECK, "bus/bad.cpp:1: there is no gone.hpp in the tree")
        self.write("bus/bad.cpp", "#include <ringmain/bus/bus.hpp>\n")
        self.assert_fails(self.CHECK, 'bus/bad.cpp:1: write "bus/bus.hpp": only users write')

    def test_examples_write_what_users_write(self):
        self.write("examples/one.cpp", "#include <ringmain/bus/bus.hpp>\n")
        self.assert_passes(self.CHECK)
        self.write("examples/one.cpp", '#include "bus/bus.hpp"\n')
        self.assert_fails(self.CHECK, "examples/one.cpp:1: users write <ringmain/")
        self.write("examples/one.cpp", "#include <ringmain/cli/cli.hpp>\n")
        self.assert_fails(self.CHECK, "cli/cli.hpp is not installed")

    def test_an_included_file_is_there(self):
        self.write("bus/bad.cpp", '#include "bus/gone.hpp"\n')
        self.assert_fails(self.CHECK, "there is no bus/gone.hpp")

    def test_memory_orders_live_in_the_engine(self):
        self.write("engine/good.cpp", "x.load(std::memory_order_relaxed);\n")
        self.write("bus/good.cpp", "// memory_order is the engine's word\n")
        self.assert_passes(self.CHECK)
        self.write("bus/bad.cpp", "int a;\nx.load(std::memory_order_relaxed);\n")
        self.assert_fails(self.CHECK, "bus/bad.cpp:2: memory orders live in engine/")

    def test_an_empty_tree_shows_nothing(self):
        for name in ("engine", "bus", "events", "adapters", "cli"):
            shutil.rmtree(self.tree / name)
        self.assert_fails(self.CHECK, "nothing to look at")


class Knots(CheckTest):
    CHECK = "check_knots.py"

    def circle(self, room, size):
        for i in range(size):
            self.write(f"{room}/m{i}.hpp", f'#include "m{(i + 1) % size}.hpp"\n')

    def test_a_circle_may_be_as_large_as_its_room_allows(self):
        self.circle("engine", 3)
        self.assert_passes(self.CHECK)
        self.circle("engine", 4)
        self.assert_fails(self.CHECK, "engine/: 4 modules use each other in a circle, at most 3 may")

    def test_a_source_counts_with_its_header(self):
        for name in "abcd":
            self.write(f"engine/{name}.hpp", "")
        for name, used in zip("abcd", "bcda"):
            self.write(f"engine/{name}.cpp", f'#include "engine/{used}.hpp"\n')
        self.assert_fails(self.CHECK, "engine/a engine/b engine/c engine/d")

    def test_a_row_of_modules_is_no_circle(self):
        for name, used in zip("abcd", "bcde"):
            self.write(f"engine/{name}.hpp", f'#include "{used}.hpp"\n')
        self.write("engine/e.hpp", "")
        self.assert_passes(self.CHECK)


class Orders(CheckTest):
    CHECK = "check_orders.py"
    PAIR = ("a.store(1, std::memory_order_release);  // e.published\n"
            "// e.published: sees what came before.\nint b = a.load(std::memory_order_acquire);\n")

    def table(self, *names):
        self.write("docs/edges.md", "| edge |\n|---|\n" + "".join(f"| `{name}` |\n" for name in names))

    def check(self, text):
        self.write("engine/some.hpp", text)
        self.table(*sorted(set(re.findall(r"\b[a-z]\.(?:published|released|calls|closing|attended)\b", text))))

    def test_an_edge_with_both_ends_passes(self):
        self.check(self.PAIR + "n.fetch_add(1, std::memory_order_relaxed);\n")
        self.assert_passes(self.CHECK)

    def test_ends_may_be_in_two_files(self):
        self.table("e.published")
        self.write("engine/one.hpp", "a.store(1, std::memory_order_release);  // e.published\n")
        self.assert_fails(self.CHECK, "edge e.published is worn on its releasing side only")
        self.write("engine/two.cpp", "a.load(std::memory_order_acquire);  // e.published\n")
        self.assert_passes(self.CHECK)

    def test_a_missing_acquiring_end_is_found(self):
        self.check(self.PAIR.replace("int b = a.load(std::memory_order_acquire);", "int b;"))
        self.assert_fails(self.CHECK, "edge e.published is worn on its releasing side only")

    def test_a_missing_releasing_end_is_found(self):
        self.check("a.load(std::memory_order_acquire);  // e.published\n")
        self.assert_fails(self.CHECK, "edge e.published is worn on its acquiring side only")

    def test_acq_rel_is_both_ends(self):
        self.check("n.fetch_sub(1, std::memory_order_acq_rel);  // r.released\n")
        self.assert_passes(self.CHECK)

    def test_an_order_without_a_name_is_found(self):
        self.check(self.PAIR + "\na.load(std::memory_order_acquire);  // looks again\n")
        self.assert_fails(self.CHECK, "engine/some.hpp:5: acquire wears no edge's name")

    def test_only_names_of_the_table_count_and_all_of_them_are_worn(self):
        self.check(self.PAIR + "c.load(std::memory_order_seq_cst);  // e.g. a look at e.unknown\n")
        self.assert_fails(self.CHECK, "engine/some.hpp:4: seq_cst wears no edge's name")
        self.check(self.PAIR)
        self.table("e.published", "e.forgotten")
        self.assert_fails(self.CHECK, "docs/edges.md: edge e.forgotten is worn nowhere")
        self.table("e.published", "e.published")
        self.assert_fails(self.CHECK, "docs/edges.md: edge e.published is there twice")

    def test_a_name_does_not_reach_over_another_statement(self):
        self.check(self.PAIR + "c = 1;\na.load(std::memory_order_acquire);\n")
        self.assert_fails(self.CHECK, "engine/some.hpp:5: acquire wears no edge's name")

    def test_a_name_reaches_over_a_broken_line(self):
        self.check("a.compare_exchange_weak(now, next,\n    std::memory_order_acq_rel,  // g.calls\n"
                   "    std::memory_order_relaxed);\n")
        self.assert_passes(self.CHECK)

    def test_an_operation_without_an_order_is_found(self):
        self.check(self.PAIR + "a.load();\n")
        self.assert_fails(self.CHECK, "engine/some.hpp:4: this atomic operation names no memory order")

    def test_the_barrier_has_a_light_and_a_heavy_side(self):
        self.check(self.PAIR + "asymmetric_fence_light();  // l.closing\n")
        self.assert_fails(self.CHECK, "edge l.closing is worn on its light side only")
        self.check(self.PAIR + "asymmetric_fence_heavy();  // l.closing\n")
        self.assert_fails(self.CHECK, "edge l.closing is worn on its heavy side only")
        self.check(self.PAIR + "asymmetric_fence_light();  // l.closing\nasymmetric_fence_light_or_full();  // l.attended\n"
                   "asymmetric_fence_heavy();  // l.closing, l.attended\n")
        self.assert_passes(self.CHECK)


class Paths(CheckTest):
    CHECK = "check_paths.py"

    def test_common_paths_pass(self):
        self.write("README.md", "see /usr/include, https://example.org/home/page, ~/work/x and engine/work/x\n")
        self.assert_passes(self.CHECK)

    def test_a_home_is_found(self):
        self.write("README.md", "fine\nlook in /" + "home/ada/trace.json\n")
        self.assert_fails(self.CHECK, "README.md:2: /" + "home/ada")

    def test_a_home_inside_a_recording_is_found(self):
        self.write("trace.json.gz", gzip.compress(b'{"name": "/' + b'root/train.py(3): step"}'))
        self.assert_fails(self.CHECK, "trace.json.gz:1: /" + "root/train.py")


class Lengths(CheckTest):
    CHECK = "check_lengths.py"

    def test_400_lines_pass_and_401_do_not(self):
        self.write("bus/long.cpp", "int x;\n" * 400)
        self.assert_passes(self.CHECK)
        self.write("bus/long.cpp", "int x;\n" * 401)
        self.assert_fails(self.CHECK, "bus/long.cpp:400: 401 lines")


class Format(CheckTest):
    CHECK = "check_format.py"

    def setUp(self):
        super().setUp()
        if not shutil.which("clang-format-14"):
            self.skipTest("clang-format 14 is not here")
        shutil.copy(ROOT / ".clang-format", self.tree)

    def test_a_formatted_file_passes(self):
        self.write("bus/some.cpp", "int main() {\n  return 0;\n}\n")
        self.assert_passes(self.CHECK)

    def test_an_unformatted_file_is_found(self):
        self.write("bus/some.cpp", "int x;\nint main( ){ return 0; }\n")
        self.assert_fails(self.CHECK, "bus/some.cpp:2: not as the formatter writes it")


if __name__ == "__main__":
    unittest.main()
