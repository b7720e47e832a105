"""What does Conan 2 build of this tree, and what does it tell those who require it?

`conan create packaging/conan`; docs/packages.md says more. The shared library is always built: each option adds to it.
"""

import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain
from conan.tools.files import copy, load

# The rooms that are compiled or installed; tests/harness/nccl is the program ringmain-nccl-conformance.
SOURCES = ("CMakeLists.txt", "LICENSE", "adapters/*", "bindings/c/*", "bus/*", "cli/*", "cmake/*", "engine/*", "events/*",
           "tests/harness/nccl/*")


class Ringmain(ConanFile):
    name = "ringmain"
    license = "Apache-2.0"
    description = "The event plane of a GPU training process: one hook slot in, many safe subscribers out"
    topics = ("events", "lock-free", "cuda", "nccl", "training")
    package_type = "shared-library"
    settings = "os", "arch", "compiler", "build_type"
    options = {
        "adapters": [True, False],  # sources, sinks, and the libraries of CUDA, NCCL and collective operations
        "static": [True, False],  # libringmain.a, too
        "program": [True, False],  # ringmain, and what `ringmain run` loads into others; needs the adapters
    }
    default_options = {"adapters": True, "static": True, "program": False}

    @property
    def _root(self):
        return os.path.join(self.recipe_folder, "..", "..")

    def set_version(self):
        found = re.search(r"project\(ringmain VERSION ([0-9.]+)", load(self, os.path.join(self._root, "CMakeLists.txt")))
        self.version = found[1]

    def export_sources(self):
        for pattern in SOURCES:
            copy(self, pattern, self._root, self.export_sources_folder)

    def layout(self):
        self.folders.root = os.path.join("..", "..")
        self.folders.source = "."
        self.folders.build = os.path.join("build", "conan")
        self.folders.generators = os.path.join("build", "conan", "generators")

    def validate(self):
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration(f"ringmain runs on Linux, not on {self.settings.os}.")
        if self.options.program and not self.options.adapters:
            raise ConanInvalidConfiguration("the program needs the adapters: leave -o ringmain/*:adapters at True, or program at False.")
        check_min_cppstd(self, 20)

    def requirements(self):
        # Headers that ringmain is compiled with; its own include none of them.
        self.requires("concurrentqueue/[>=1.0.3 <2]", headers=True, libs=False, run=False, visible=False)
        if self.options.adapters:
            self.requires("simdjson/[>=2.0 <4]", visible=False)
            self.requires("zlib/[>=1.2.11 <2]", visible=False)
        if self.options.program:
            self.requires("cli11/[>=2.1 <3]", headers=True, libs=False, run=False, visible=False)

    def build_requirements(self):
        self.tool_requires("cmake/[>=3.25]")

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        toolchain.user_presets_path = False  # nothing is left beside the files of the tree
        toolchain.cache_variables.update({
            "CMAKE_CXX_FLAGS_RELEASE": "-O2 -DNDEBUG",  # as the release preset builds it
            "RINGMAIN_BUILD_ADAPTERS": bool(self.options.adapters),
            "RINGMAIN_BUILD_CLI": bool(self.options.program),
            "RINGMAIN_BUILD_EXAMPLES": False,
            "RINGMAIN_BUILD_STATIC": bool(self.options.static),
            "RINGMAIN_BUILD_TESTS": False,
            "RINGMAIN_INSTALL": True,
            "RINGMAIN_LIBRARY_ONLY": not self.options.program,
        })
        if "concurrentqueue" in self.dependencies:  # and not one that the system has, too
            toolchain.cache_variables["concurrentqueue_INCLUDE_DIR"] = self.dependencies["concurrentqueue"].cpp_info.includedirs[0]
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        CMake(self).install()

    def package_info(self):
        # find_package(ringmain) finds the package's own file, which knows ringmain_add_plugin(), too; the names below are for
        # the generators of other build systems, and for packages that require this one.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.set_property("cmake_file_name", "ringmain")
        self._component("ringmain", ["ringmain"], pkg_config="ringmain")
        self.cpp_info.components["ringmain"].builddirs = [os.path.join("lib", "cmake", "ringmain")]
        self._component("c", ["ringmain"], pkg_config="ringmain-c")
        if self.options.static:
            self._component("static", [":libringmain.a"], system=["dl"])
        if self.options.program:
            self._component("run", ["ringmain_run"], requires=["ringmain"])
        if self.options.adapters:
            for name, needs in (("registry", "ringmain"), ("collective", "ringmain"), ("loopback", "collective"), ("compile", "ringmain"),
                                ("cuda", "ringmain"), ("nccl", "collective")):
                self._component(name, [f"ringmain_{name}"], requires=[needs])

    def _component(self, name, libs, requires=(), system=(), pkg_config=None):
        component = self.cpp_info.components[name]
        component.libs, component.requires = list(libs), list(requires)
        component.system_libs = ["pthread", *system]
        component.set_property("cmake_target_name", f"ringmain::{name}")
        component.set_property("pkg_config_name", pkg_config or f"ringmain-{name}")
