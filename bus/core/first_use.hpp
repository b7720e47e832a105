// Who is told that the process's bus is about to be used for the first time? Code that opens its
// sinks only then.
#pragma once

namespace ringmain::detail {

/// From now on Bus::process() calls `tell` before it returns, in every thread, until this is called
/// with nullptr. False where the bus exists already: it may have been used before.
bool before_first_use(void (*tell)() noexcept) noexcept;

/// The bus's half: says that the bus exists. Then, at each use, which function is to be called;
/// nullptr: none.
void say_process_bus_is_made() noexcept;
[[nodiscard]] auto told_of_first_use() noexcept -> void (*)() noexcept;

}  // namespace ringmain::detail
