"""The header that ringmain is compiled with: Spack's own recipes have none of it."""

from spack_repo.builtin.build_systems.generic import Package

from spack.package import *


class Concurrentqueue(Package):
    """A fast multi-producer, multi-consumer lock-free concurrent queue for C++11."""

    homepage = "https://github.com/cameron314/concurrentqueue"
    url = "https://github.com/cameron314/concurrentqueue/archive/refs/tags/v1.0.4.tar.gz"

    license("BSD-2-Clause OR BSL-1.0")

    version("1.0.4", sha256="87fbc9884d60d0d4bf3462c18f4c0ee0a9311d0519341cac7cbd361c885e5281")

    def install(self, spec, prefix):
        mkdirp(prefix.include.concurrentqueue)
        for header in ("concurrentqueue.h", "blockingconcurrentqueue.h", "lightweightsemaphore.h"):
            install(header, prefix.include.concurrentqueue)
