// Where is each thread of a Python program, though none of them gives up the GIL? The interpreter's
// own walk over their stacks, which faulthandler uses, and which takes no lock.
#pragma once
#include <string>

#include "../../engine/system/descriptor.hpp"

namespace ringmain::detail {

/// Looks the interpreter's functions up, which takes the loader's lock: so before somebody may hang
/// with it.
void find_python() noexcept;

/// Is there an interpreter in this process? Throws nothing, and takes the loader's lock.
[[nodiscard]] bool has_python() noexcept;

/// "Process 4711 (python3), rank 3 of 8". Throws std::bad_alloc.
[[nodiscard]] std::string process_in_words();

constexpr char kNoFileInMemory[] = "the system gives no file in memory (memfd_create)";

/// A file in memory with what write_python_stacks() writes. Below 0: there are none, and `why` is
/// one sentence that lives for ever. Allocates nothing from the heap. Threads: any; they wait for
/// each other, and no fork for them.
[[nodiscard]] engine::Descriptor python_stacks_in_memory(const char* process,
                                                         const char*& why) noexcept;

/// Writes the Python stacks of all threads to `fd`, which must never block, below a line that
/// begins with `process`. nullptr, or one
/// sentence that lives for ever: why there are none. The walk reads what the threads write
/// meanwhile, so it runs in a child process that shares the memory: a crash of the walk ends that
/// child. Allocates nothing from the heap. Threads: one at a time.
[[nodiscard]] const char* write_python_stacks(int fd, const char* process) noexcept;

}  // namespace ringmain::detail
