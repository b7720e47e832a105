// Who is told that the process's bus is about to be used for the first time? Whoever opens what
// hears it only then.
#pragma once

namespace ringmain::detail {

/// From now on Bus::process() calls `tell` before it returns, in every thread, until this is called
/// with nullptr. False where the bus is there already: then its users may have passed.
bool before_first_use(void (*tell)() noexcept) noexcept;

/// The bus's half: it is there now; then, at each use, who is to be told (nullptr: nobody).
void say_process_bus_is_made() noexcept;
[[nodiscard]] auto told_of_first_use() noexcept -> void (*)() noexcept;

}  // namespace ringmain::detail
