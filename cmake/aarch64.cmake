# How is ringmain compiled for 64-bit Arm on another processor, and its tests run there?
#
# By Debian's cross compiler (g++-aarch64-linux-gnu), whose C library is below /usr/aarch64-linux-gnu, and QEMU's user mode (qemu-user).
# QEMU runs threads in whatever order the host's processor has: what passes there says nothing of Arm's order of memory.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L /usr/aarch64-linux-gnu)
# The host's headers that are of no processor, such as moodycamel's queue, are looked for where they are; its libraries are not.
set(CMAKE_FIND_ROOT_PATH /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
