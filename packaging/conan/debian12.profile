# What Debian 12 has already, Conan need not bring:
#   apt install cmake libconcurrentqueue-dev libsimdjson-dev zlib1g-dev libcli11-dev
#   conan create packaging/conan -pr:a packaging/conan/debian12.profile
include(default)
[settings]
build_type=Release
compiler.cppstd=20
[platform_requires]
concurrentqueue/1.0.3
simdjson/3.0.1
zlib/1.2.13
cli11/2.1.2
[platform_tool_requires]
cmake/3.25.1
