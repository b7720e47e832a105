// Where do sentences of a run go? To the standard error that the process began with: a program may
// have closed it by now, or have another file at its number.
#pragma once
#include <string_view>

namespace ringmain::run {

/// From now on sentences go to the file that is standard error now, or nowhere. Only the first call
/// counts.
void remember_standard_error() noexcept;
/// False where another file has that number now. True before it is remembered.
[[nodiscard]] bool is_standard_error(int fd) noexcept;
/// For a thread that shares the program's descriptors: keeps a second one, at a number that
/// programs seldom close.
void keep_one_more_standard_error() noexcept;

/// One write to it, if it is still open; raises no SIGPIPE in the caller.
void write_sentence(std::string_view sentence) noexcept;
/// Says that nothing is heard from this program, and why. Allocates nothing.
void tell_unheard(const char* why) noexcept;

}  // namespace ringmain::run
