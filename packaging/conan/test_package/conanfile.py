"""Can a project be built against the package, by its own CMake files, and do its programs run?"""

import os

from conan import ConanFile
from conan.tools.build import can_run
from conan.tools.cmake import CMake, CMakeToolchain


class RingmainTest(ConanFile):
    settings = "os", "arch", "compiler", "build_type"
    generators = "CMakeDeps", "VirtualRunEnv"
    test_type = "explicit"

    def requirements(self):
        self.requires(self.tested_reference_str)

    def layout(self):
        # Nothing is left beside the files of the tree.
        self.folders.root = os.path.join("..", "..", "..")
        self.folders.source = os.path.join("packaging", "conan", "test_package")
        self.folders.build = os.path.join("build", "conan-test")
        self.folders.generators = os.path.join("build", "conan-test", "generators")

    def generate(self):
        options = self.dependencies["ringmain"].options
        toolchain = CMakeToolchain(self)
        toolchain.user_presets_path = False
        toolchain.cache_variables["WITH_STATIC"] = bool(options.static)
        toolchain.cache_variables["WITH_ADAPTERS"] = bool(options.adapters)
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def test(self):
        if not can_run(self):
            return
        options = self.dependencies["ringmain"].options
        programs = ["shared", "from_c"]
        programs += ["static"] if options.static else []
        programs += ["trainer"] if options.adapters else []
        for program in programs:
            self.run(os.path.join(self.build_folder, program), env="conanrun")
        if options.program:
            self.run("ringmain --version", env="conanrun")
            self.run("ringmain run --summary -- true", env="conanrun")
