// How does a process end whose main thread has ended before the others?
//
// Without ringmain it ends with its last thread: after pthread_exit() the C library calls exit(0)
// then; after a bare system call `exit` the kernel gives the main thread's status. ringmain's
// threads would keep the process alive for ever. So the main thread holds a robust mutex from its
// start on, and one of ringmain's threads waits for it: the kernel reports there that the owner is
// dead, however it ended. That takes no descriptor, no key of thread data, and no time at the end
// of the main thread.
#pragma once
#include <pthread.h>

namespace ringmain::run {

/// In the main thread, before main. Does nothing in any other.
void hold_main_thread() noexcept;
/// In a forked child, whose main thread holds nothing yet. If another thread calls it, the main one
/// is not watched.
void hold_main_thread_of_child() noexcept;
/// Call it when pthread_exit() of the main thread begins, or when it is cancelled.
/// Async-signal-safe.
void main_thread_leaves_in_order() noexcept;
/// Async-signal-safe.
[[nodiscard]] bool is_main_thread(pthread_t thread) noexcept;
/// Starts the thread that calls `left` once the main thread is gone: with its descriptors, as it
/// was started by one of the program's. `in_order`: as the C library ends a thread. Throws
/// std::system_error.
void watch_main_thread(void (*left)(bool in_order) noexcept);

}  // namespace ringmain::run
