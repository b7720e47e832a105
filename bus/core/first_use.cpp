#include "bus/core/first_use.hpp"

#include <atomic>

namespace ringmain::detail {
namespace {
// Each side writes its own word and then reads the other's, so at least one of the two sees the
// other.
constinit std::atomic<void (*)() noexcept> tell_first_use{nullptr};
constinit std::atomic<bool> process_bus_is_made{false};
}  // namespace

bool before_first_use(void (*tell)() noexcept) noexcept {
  tell_first_use = tell;
  return !process_bus_is_made;
}

void say_process_bus_is_made() noexcept {
  process_bus_is_made = true;
}

auto told_of_first_use() noexcept -> void (*)() noexcept {
  return tell_first_use.load();
}

}  // namespace ringmain::detail
