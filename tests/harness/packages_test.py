#!/usr/bin/env python3
"""Do the files for Conan, Spack and vcpkg still say what this tree says: its version, its options, its targets?

None of the three is needed: the recipe of Conan runs against a stand-in for Conan, the others are read.
"""

import ast
import importlib.util
import itertools
import json
import os
import re
import sys
import types
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import tree  # noqa: E402

BUILD = Path(os.environ["RINGMAIN_BUILD"]) if os.environ.get("RINGMAIN_BUILD") else None
PACKAGING = ROOT / "packaging"
TOP = (ROOT / "CMakeLists.txt").read_text()
VERSION = re.search(r"project\(ringmain VERSION ([0-9.]+)", TOP)[1]


def options(text):
    """Each option's name, and what it is where nobody says it, as the table of docs/packages.md has it."""
    made = {}
    for name, default in re.findall(r"^\s*option\((RINGMAIN_\w+) \"[^\"]*\" ([^)]+)\)", text, re.M):
        made[name] = "ON, alone" if default == "${PROJECT_IS_TOP_LEVEL}" else default
    for name, default in re.findall(r"^\s*set\((RINGMAIN_\w+) \"([^\"]*)\" CACHE ", text, re.M):
        made[name] = f"`{default.removeprefix('${PROJECT_SOURCE_DIR}/')}`" if default else "empty"
    return made


def cmake_texts():
    """Those of the whole tree."""
    return [(ROOT / path).read_text() for path in tree.files(ROOT) if path.name == "CMakeLists.txt" or path.suffix == ".cmake"]


def all_options():
    return {name: default for text in cmake_texts() for name, default in options(text).items()}


def searched():
    """What CMake looks for, and keeps the place of."""
    return {name for text in cmake_texts() for name in re.findall(r"\bfind_(?:path|program)\((RINGMAIN_\w+)", text)}


OPTIONS = set(options(TOP))
CMAKE = re.search(r"cmake_minimum_required\(VERSION ([0-9.]+)\)", TOP)[1]
CLI11 = re.search(r"find_package\(CLI11 ([0-9.]+)", (ROOT / "cli/CMakeLists.txt").read_text())[1]
# What is not in a package: what tests, measures and shows, and Python's module.
UNPACKAGED = {"bench", "bench/instructions", "bindings/python", "examples", "tests"}
TEXTS = [path for path in sorted(PACKAGING.rglob("*")) if path.is_file() and "__pycache__" not in path.parts] + [ROOT / "docs/packages.md"]
SPACK = PACKAGING / "spack/spack_repo/ringmain"


def exported():
    """The targets of an installed copy, and the file that each links, or None."""
    folder = next((BUILD / "CMakeFiles/Export").glob("*/ringmainTargets.cmake")).parent
    names = re.findall(r"^add_library\(ringmain::(\w+) ", (folder / "ringmainTargets.cmake").read_text(), re.M)
    files = dict(re.findall(r"set_target_properties\(ringmain::(\w+) PROPERTIES[^)]*?IMPORTED_LOCATION_\w+ \"[^\"]*/([^/\"]+)\"",
                            next(folder.glob("ringmainTargets-*.cmake")).read_text(), re.S))
    return {name: files.get(name) for name in names}


class Cpp:
    """Stands in for Conan's cpp_info, and for a component of it."""

    def __init__(self):
        self.properties, self.components = {}, {}

    def set_property(self, name, value):
        self.properties[name] = value


class Components(dict):
    def __missing__(self, name):
        return self.setdefault(name, Cpp())


class Refused(Exception):
    pass


class Toolchain:
    def __init__(self, recipe):
        recipe.toolchain = self
        self.cache_variables = {}

    def generate(self):
        pass


def conan_modules():
    """As much of Conan as the recipe imports."""
    def module(name, **names):
        made = types.ModuleType(name)
        vars(made).update(names)
        return name, made

    nothing = mock.MagicMock()
    return dict([module("conan", ConanFile=object), module("conan.errors", ConanInvalidConfiguration=Refused), module("conan.tools"),
                 module("conan.tools.build", check_min_cppstd=lambda recipe, standard: setattr(recipe, "standard", standard)),
                 module("conan.tools.cmake", CMake=nothing, CMakeDeps=nothing, CMakeToolchain=Toolchain),
                 module("conan.tools.files", copy=lambda recipe, pattern, *_: recipe.copied.append(pattern),
                        load=lambda recipe, path: Path(path).read_text())])


class Conan(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        spec = importlib.util.spec_from_file_location("recipe_of_ringmain", PACKAGING / "conan/conanfile.py")
        recipe = importlib.util.module_from_spec(spec)
        with mock.patch.dict(sys.modules, conan_modules()), mock.patch.object(sys, "dont_write_bytecode", True):
            spec.loader.exec_module(recipe)
        cls.recipe = recipe.Ringmain

    def made(self, system="Linux", dependencies=(), **options):
        recipe = self.recipe()
        recipe.recipe_folder, recipe.export_sources_folder, recipe.copied = str(PACKAGING / "conan"), "", []
        recipe.options = types.SimpleNamespace(**{**self.recipe.default_options, **options})
        recipe.settings = types.SimpleNamespace(os=system)
        recipe.cpp_info, recipe.required, recipe.dependencies = Cpp(), {}, dict(dependencies)
        recipe.cpp_info.components = Components()
        recipe.requires = lambda reference, **_: recipe.required.update([reference.split("/")])
        recipe.tool_requires = recipe.requires
        recipe.set_version()
        recipe.validate()
        recipe.requirements()
        recipe.generate()
        recipe.package_info()
        return recipe

    def combinations(self):
        """Each set of options that is accepted."""
        for values in itertools.product(*self.recipe.options.values()):
            options = dict(zip(self.recipe.options, values))
            if options["adapters"] or not options["program"]:
                yield options

    def test_it_has_the_version_of_the_project(self):
        self.assertEqual(self.made().version, VERSION)

    def test_each_set_of_options_gives_the_build_what_it_means(self):
        tried = 0
        for options in self.combinations():
            recipe = self.made(**options)
            given = recipe.toolchain.cache_variables
            self.assertLessEqual({name for name in given if name.startswith("RINGMAIN_")}, OPTIONS)
            self.assertEqual([given["RINGMAIN_BUILD_ADAPTERS"], given["RINGMAIN_BUILD_STATIC"], given["RINGMAIN_BUILD_CLI"]],
                             [options["adapters"], options["static"], options["program"]])
            self.assertNotEqual(given["RINGMAIN_BUILD_CLI"], given["RINGMAIN_LIBRARY_ONLY"])
            self.assertFalse(given["RINGMAIN_BUILD_TESTS"] or given["RINGMAIN_BUILD_EXAMPLES"])
            self.assertEqual({"simdjson", "zlib"} <= set(recipe.required), options["adapters"])
            self.assertEqual("cli11" in recipe.required, options["program"])
            tried += 1
        self.assertEqual(tried, 6)

    def test_the_queue_that_conan_brings_is_taken_and_not_the_systems(self):
        brought = types.SimpleNamespace(cpp_info=types.SimpleNamespace(includedirs=["/brought/include"]))
        recipe = self.made(dependencies={"concurrentqueue": brought})
        self.assertEqual(recipe.toolchain.cache_variables["concurrentqueue_INCLUDE_DIR"], "/brought/include")
        self.assertIn("find_path(concurrentqueue_INCLUDE_DIR ", (ROOT / "cmake/Findconcurrentqueue.cmake").read_text())
        self.assertNotIn("concurrentqueue_INCLUDE_DIR", self.made().toolchain.cache_variables)

    def test_what_cannot_be_built_is_refused_in_a_sentence(self):
        for system, options in (("Windows", {}), ("Linux", {"program": True, "adapters": False})):
            with self.assertRaisesRegex(Refused, r"\.$"):
                self.made(system, **options)

    def test_its_components_are_the_targets_of_an_installed_copy(self):
        least = self.made(adapters=False, static=False, program=False).cpp_info.components
        self.assertEqual(set(least), {"ringmain", "c"})
        most = self.made(adapters=True, static=True, program=True).cpp_info.components
        for name, component in most.items():
            self.assertEqual(component.properties["cmake_target_name"], f"ringmain::{name}")
            self.assertLessEqual(set(component.requires), set(most))
        for name in ("ringmain", "c"):
            self.assertTrue((ROOT / f"cmake/{most[name].properties['pkg_config_name']}.pc.in").exists())
        if BUILD is None:
            self.skipTest("RINGMAIN_BUILD names no build, whose targets these would be compared with")
        targets = exported()
        self.assertEqual(set(most), set(targets) - {"ringmain_headers"})
        for name, file in targets.items():
            if file:
                (library,) = most[name].libs
                self.assertTrue(file.startswith(library[1:] if library[0] == ":" else f"lib{library}."), (file, library))

    def test_it_exports_what_is_built_and_all_of_it_is_there(self):
        recipe = self.made()
        recipe.export_sources()
        for pattern in recipe.copied:
            self.assertTrue(list(ROOT.glob(pattern)), pattern)
        built = set(re.findall(r"^ *add_subdirectory\(([\w/]+)\)", TOP, re.M)) - UNPACKAGED
        self.assertEqual(built, {pattern.removesuffix("/*") for pattern in recipe.copied if "/" in pattern} - {"cmake"})

    def test_the_profile_of_a_system_gives_all_that_is_required(self):
        recipe = self.made(program=True)
        recipe.build_requirements()
        given = dict(re.findall(r"^(\w+)/([0-9.]+)$", (PACKAGING / "conan/debian12.profile").read_text(), re.M))
        self.assertEqual(set(given), set(recipe.required))
        self.assertEqual((recipe.required["cmake"], recipe.standard), (f"[>={CMAKE}]", 20))
        self.assertTrue(recipe.required["cli11"].startswith(f"[>={CLI11} "))


class Vcpkg(unittest.TestCase):
    def setUp(self):
        self.port = PACKAGING / "vcpkg/ringmain"
        self.manifest = json.loads((self.port / "vcpkg.json").read_text())
        self.portfile = (self.port / "portfile.cmake").read_text()

    def test_it_has_the_name_and_the_version_of_the_project(self):
        self.assertEqual((self.manifest["name"], self.manifest["version"]), (self.port.name, VERSION))

    def test_its_features_are_those_that_the_port_asks_for(self):
        asked = dict(re.findall(r"^ +(\w+) (RINGMAIN_\w+)$", self.portfile, re.M))
        self.assertEqual(set(asked), set(self.manifest["features"]))
        self.assertLessEqual(set(self.manifest["default-features"]), set(asked))
        self.assertFalse(set(asked.values()) & set(re.findall(r"-D(RINGMAIN_\w+)=", self.portfile)), "an option is passed twice")

    def test_it_builds_this_tree_and_finds_what_that_installs(self):
        up = re.search(r"CMAKE_CURRENT_LIST_DIR\}/([./]+)\"", self.portfile)[1]
        self.assertEqual((self.port / up).resolve(), ROOT)
        self.assertIn("CONFIG_PATH lib/cmake/ringmain)", self.portfile)
        for name in re.findall(r"\$\{SOURCE_PATH\}/(\w+)\"", self.portfile):
            self.assertTrue((ROOT / name).exists(), name)


class Spack(unittest.TestCase):
    def setUp(self):
        tree = ast.parse((SPACK / "packages/ringmain/package.py").read_text())
        self.calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]

    def called(self, name):
        """The words of each call of that name."""
        return [[word.value for word in [*call.args, *(keyword.value for keyword in call.keywords)] if isinstance(word, ast.Constant)]
                for call in self.calls if getattr(call.func, "id", getattr(call.func, "attr", None)) == name]

    def test_it_has_the_version_of_the_project(self):
        self.assertEqual(self.called("version"), [[VERSION]])

    def test_the_variants_that_it_asks_for_are_declared(self):
        declared = {words[0] for words in self.called("variant")}
        asked = {words[1] for words in self.called("define_from_variant")}
        for name in ("depends_on", "requires", "satisfies"):
            asked |= {word[1:] for words in self.called(name) for word in words if isinstance(word, str) and word[0] in "+~"}
        self.assertEqual(asked, declared)

    def test_it_wants_what_the_build_wants(self):
        wanted = {words[0] for words in self.called("depends_on")}
        self.assertLessEqual({f"cmake@{CMAKE}:", f"cli11@{CLI11}:"}, wanted)
        (queue,) = [one for one in wanted if one.startswith("concurrentqueue@")]
        text = (SPACK / "packages/concurrentqueue/package.py").read_text()
        versions = [call.args[0].value for call in ast.walk(ast.parse(text))
                    if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "version"]
        least = queue.partition("@")[2].rstrip(":")
        self.assertTrue(versions and all(tuple(map(int, one.split("."))) >= tuple(map(int, least.split("."))) for one in versions))

    def test_its_repository_has_the_name_of_its_folder(self):
        self.assertIn(f"namespace: {SPACK.name}\n", (SPACK / "repo.yaml").read_text())


class Texts(unittest.TestCase):
    def test_every_option_that_they_name_is_one_of_the_build(self):
        named = {(path, name) for path in TEXTS for name in re.findall(r"\bRINGMAIN_[A-Z_]*[A-Z]\b", path.read_text())}
        self.assertGreater(len(named), 15)
        known = set(all_options()) | searched()
        self.assertEqual({one for one in named if one[1] not in (OPTIONS if one[0].is_relative_to(PACKAGING) else known)}, set())

    def test_the_page_has_every_option_of_the_build_and_what_it_is_without_words(self):
        section = (ROOT / "docs/packages.md").read_text().partition("\n## Options of CMake\n")[2].partition("\n## ")[0]
        self.assertEqual(dict(re.findall(r"^\| `(RINGMAIN_\w+)` \| ([^|]+) \| ", section, re.M)), all_options())

    def test_every_target_that_they_name_is_exported(self):
        if BUILD is None:
            self.skipTest("RINGMAIN_BUILD names no build, whose targets these would be compared with")
        named = {(path, name) for path in TEXTS for name in re.findall(r"\bringmain::(\w+)", path.read_text())}
        self.assertGreater(len(named), 10)
        targets = exported()
        self.assertEqual({one for one in named if one[1] not in targets}, set())

    def test_the_page_tells_of_each(self):
        page = (ROOT / "docs/packages.md").read_text()
        for path in ("packaging/conan", "packaging/vcpkg", "packaging/spack/spack_repo/ringmain"):
            self.assertTrue((ROOT / path).is_dir())
            self.assertIn(path, page)
        versions = re.findall(r"ringmain[/@]([0-9.]+[0-9])", page)
        self.assertEqual(set(versions), {VERSION})


if __name__ == "__main__":
    unittest.main()
