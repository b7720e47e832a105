// Who attaches, detaches, and writes NCCL's masks? One object for the process, never destroyed, as
// NCCL may call while the process ends.
//
// Two locks. `turn_` is held through a whole attach() or detach(), also while that waits for
// callbacks. `asking_` is held while masks are written, which the bus's housekeeper does when
// interest changes and NCCL's init and finalize do; nothing is published and no plugin is called
// under it. startEvent, stopEvent and recordEventState take neither.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/system/fork.hpp"

#include "bus/bus.hpp"
#include "bus/json_text.hpp"

#include "adapters/sources/nccl/nccl_core.hpp"
#include "adapters/sources/nccl/nccl_options.hpp"

namespace ringmain::nccl {

class Control final : public engine::Born {
 public:
  using Held = std::shared_ptr<Attachment>;

  /// In a forked child the parent's, which is inert. Throws std::bad_alloc.
  static Control& instance();
  /// The same; nullptr: there is no memory for it.
  static Control* here() noexcept;

  // As the calls of Source.
  Result<Held> attach(Bus& bus, const Options& options);
  Detached detach(const Held& which) noexcept;
  Detached leave(const Held& which, nanoseconds limit) noexcept;

  /// What NCCL's init is told beside its identity, for chained plugins.
  struct Opened {
    int* mask = nullptr;
    const char* name = nullptr;
    void (*log)(int, unsigned long, const char*, int, const char*, ...) = nullptr;
  };
  /// The context; nullptr: there is no room, or no memory, which was said. `who` has no name yet.
  void* open(Identity who, const Opened& told) noexcept;
  void close(void* context) noexcept;

 private:
  /// One of NCCL's masks, while communicators that were given it are open.
  struct Mask {
    int* at = nullptr;
    std::uint32_t uses = 0;
    std::int32_t abi = 0;
    int written = 0;
    int told = 0;  // of another's value: that was said
  };
  std::optional<Error> refusal() const;
  void serve() noexcept;
  void write_masks(Types needed, Types followed) noexcept;
  engine::Token enter(const Identity& who, int* mask);
  void hold_mask(int* mask, std::int32_t abi) noexcept;
  void let_go_of_mask(const int* mask) noexcept;
  void sweep_owed() noexcept;
  /// Another has written: to what, if that is news.
  std::optional<int> overwritten() noexcept;
  void look_at_shared_memory(Attachment& to) noexcept;
  void look(const Held& which) noexcept;
  bool follow_no_more(const Held& which) noexcept;
  void let_go(const Held& which) noexcept;
  void follow_interest(const Held& which);
  void say(const Attachment& to, PluginState state, std::string_view reason,
           const Identity* who = nullptr) noexcept;

  std::atomic<bool> owes_{false};  // a place is unswept
  std::mutex turn_;
  std::mutex asking_;  // of what is below
  Held current_;
  std::vector<Mask> masks_;
  std::uint32_t open_ = 0;  // communicators
  Types asked_ = 0;
  Subscription interest_, collectives_, looks_;
};

/// What hangs, said on `nccl.stalled`: what is news, or, `asked`, all that is open. How many.
/// Operations whose proxies are quiet are ended, too (nccl_watch.cpp).
std::uint32_t watch(const Inside& in, bool asked) noexcept;

/// The same for who asks at the process's door, as one JSON object. False: nothing is published.
/// Takes no lock, and looks through the table twice. Throws std::bad_alloc (nccl_stalled.cpp).
bool tell_stalls(formats::JsonText& json);

}  // namespace ringmain::nccl
