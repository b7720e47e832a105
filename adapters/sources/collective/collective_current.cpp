#include "adapters/sources/collective/collective_current.hpp"

#include "engine/system/fork.hpp"

namespace ringmain::collective {
namespace {

/// The thread that forks goes on in the child with its memory, but the operation is the parent's.
struct Current {
  std::uint64_t op_id = 0;
  std::uint32_t forks = 0;  // how many there had been when it was set
  bool promised = false;
};
// In the library's own part of a thread's memory, where it is found without a call.
constinit thread_local Current current __attribute__((tls_model("initial-exec"))){};

bool is_set() noexcept {
  return current.op_id != 0 && current.forks == engine::forks;
}

}  // namespace

std::uint64_t current_operation() noexcept {
  return is_set() ? current.op_id : detail::marked_operation();
}

bool promise_end() noexcept {
  if (!is_set()) return false;
  return current.promised = true;
}

CurrentOperation::CurrentOperation(std::uint64_t op_id) noexcept
    : before_(current.op_id),
      born_before_(current.forks),
      set_(op_id != 0),
      promised_before_(current.promised) {
  if (set_) current = {op_id, engine::forks, false};
}
CurrentOperation::~CurrentOperation() {
  // What was promised of the same operation was promised to whoever is outside of this, too.
  const bool same = is_set() && current.promised && current.op_id == before_;
  if (set_) current = {before_, born_before_, promised_before_ || same};
}
bool CurrentOperation::end_is_promised() const noexcept {
  return set_ && is_set() && current.promised;
}

std::uint64_t detail::exchange_current(std::uint64_t op_id) noexcept {
  const std::uint64_t before = is_set() ? current.op_id : 0;
  current.op_id = op_id;
  current.forks = engine::forks;
  return before;
}

}  // namespace ringmain::collective
