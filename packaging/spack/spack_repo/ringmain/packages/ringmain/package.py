"""How does Spack build this tree? By `spack dev-build`, or by `spack develop` in an environment: docs/packages.md says more."""

from spack_repo.builtin.build_systems.cmake import CMakePackage

from spack.package import *


class Ringmain(CMakePackage):
    """The event plane of a GPU training process: one hook slot in, many safe subscribers out."""

    license("Apache-2.0")

    # Nothing is fetched: dev-build and develop name the folder that is built.
    version("0.1.0")

    variant("adapters", default=True, description="Sources, sinks, and the libraries of CUDA, NCCL and collective operations")
    variant("static", default=True, description="libringmain.a beside the shared library")
    variant("program", default=True, description="The program, and what 'ringmain run' loads into others")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("concurrentqueue@1.0.3:", type="build")
    depends_on("simdjson@2:", when="+adapters")
    depends_on("zlib-api", when="+adapters")
    depends_on("cli11@2.1:", when="+program", type="build")

    requires("+adapters", when="+program", msg="the program needs the adapters")
    conflicts("platform=darwin", msg="ringmain runs on Linux")
    conflicts("platform=windows", msg="ringmain runs on Linux")

    def cmake_args(self):
        return [
            self.define_from_variant("RINGMAIN_BUILD_ADAPTERS", "adapters"),
            self.define_from_variant("RINGMAIN_BUILD_STATIC", "static"),
            self.define_from_variant("RINGMAIN_BUILD_CLI", "program"),
            self.define("RINGMAIN_LIBRARY_ONLY", self.spec.satisfies("~program")),
            self.define("RINGMAIN_BUILD_EXAMPLES", False),
            self.define("RINGMAIN_BUILD_TESTS", False),
            self.define("RINGMAIN_INSTALL", True),
        ]
