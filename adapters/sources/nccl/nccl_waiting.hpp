// For whom does an operation wait? What is open of its proxies and steps, found in one look through
// the table for many operations at once.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "events/nccl_source.hpp"

#include "adapters/sources/nccl/nccl_core.hpp"

namespace ringmain::nccl {

/// The step of an operation that has been open for longest, and how many are.
struct OpenSteps {
  std::uint16_t count = 0;
  std::int64_t since_ns = 0;
  std::int32_t step = -1, peer = kNoRank, nccl_channel = -1;
  StepState last = StepState::begun;

  void add(const ProxyStepPart& part) noexcept {
    const std::int64_t since = part.since_ns.get();
    if (count++ != 0 && since >= since_ns) return;
    since_ns = since;
    step = part.step;
    peer = part.peer;
    nccl_channel = part.nccl_channel;
    last = part.last.get();
  }
};

/// The proxies of an operation that are not done: the first few, and how many there are.
struct OpenProxies {
  struct One {
    std::int32_t peer;
    std::uint8_t nccl_channel;
    bool send;
  };
  std::uint32_t count = 0;
  std::array<One, 8> first;

  void add(const ProxyOpPart& part) noexcept {
    if (count < first.size()) first[count] = {part.peer, part.nccl_channel, part.send.get() != 0};
    ++count;
  }
};

/// An operation that is to be said.
struct Waiting {
  Pin operation{};
  std::int64_t last_ns = 0;
  OpenSteps steps{};
  OpenProxies proxies{};
};

/// When anything of it was heard last.
[[nodiscard]] inline std::int64_t last_heard_ns(const OpenSpan& operation) noexcept {
  const std::int64_t last = operation.part.operation.last_ns.get();
  return last != 0 ? last : operation.began_ns;
}
/// Its proxies have been done for a while: there was not one for each NCCL channel.
[[nodiscard]] bool is_quiet(const OperationPart& part, std::int64_t last_ns,
                            std::int64_t now_ns) noexcept;
[[nodiscard]] Stalled stalled_of(const Core& core, const Waiting& waits, bool asked,
                                 std::int64_t now_ns) noexcept;

/// Operations that are to be said, by rising place: one look through the table finds what is open
/// of so many. `Say{}(waiting)`. It lives inside.
template <class Say>
class Waiters {
 public:
  enum : std::size_t { kAtOnce = 256 };
  Waiters(Core& core, Say say) noexcept : core_(core), say_(std::move(say)) {}
  Waiters(const Waiters&) = delete;
  Waiters& operator=(const Waiters&) = delete;
  ~Waiters() = default;

  void add(Pin operation, std::int64_t last_ns) noexcept {
    Waiting& one = all_[count_++];
    one.operation = std::move(operation);
    one.last_ns = last_ns;
    one.steps = {};
    one.proxies = {};
    if (count_ == all_.size()) say_all();
  }
  void say_all() noexcept {
    if (count_ == 0) return;
    core_.for_each_span([this](Pin& one) noexcept {
      if (one->kind() == abi::kProxyStep) {
        const ProxyStepPart& part = one->part.proxy_step;
        if (Waiting* const of = find(engine::Token(part.operation))) of->steps.add(part);
      } else if (one->kind() == abi::kProxyOp) {
        if (Waiting* const of = find(engine::Token(one->parent)))
          of->proxies.add(one->part.proxy_op);
      }
    });
    for (std::size_t i = 0; i < count_; ++i) {
      say_(std::as_const(all_[i]));
      all_[i].operation.reset();
    }
    count_ = 0;
  }

 private:
  Waiting* find(engine::Token operation) noexcept {
    Waiting* const end = all_.data() + count_;
    Waiting* const at = std::lower_bound(all_.data(), end, operation.place(),
                                         [](const Waiting& one, std::size_t place) {
                                           return one.operation.token().place() < place;
                                         });
    return at != end && at->operation.token() == operation ? at : nullptr;
  }

  Core& core_;
  Say say_;
  std::size_t count_ = 0;
  std::array<Waiting, kAtOnce> all_;
};

}  // namespace ringmain::nccl
