// When has a stream done an operation? Completions of CUDA, armed behind it, say so to the ledger.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "bus/bus.hpp"

#include "adapters/sources/collective/collective_ledger.hpp"
#include "adapters/sources/cuda/completions.hpp"
#include "adapters/sources/nccl/nccl_bus_use.hpp"

namespace ringmain::nccl::detail {

/// Completions of each context that is met. Threads: any.
class Ends {
 public:
  /// Tags are the operations' ids, marked as this source's: a program has Completions of its own.
  enum : std::uint64_t { kMark = 0x4e43, kMarkShift = 48 };

  Ends() = default;
  Ends(const Ends&) = delete;
  Ends& operator=(const Ends&) = delete;
  ~Ends() { end(); }

  /// `use`: of the bus, as long as this lives. conflict: the bus has a channel of that name for
  /// another event. Throws std::bad_alloc.
  [[nodiscard]] Result<bool> begin(Bus& bus, BusUse& use,
                                   std::shared_ptr<collective::Ledger> ledger);
  /// Makes them of the thread's current context, if that has none. Not while this thread records a
  /// graph.
  void prepare() noexcept;
  /// False: nobody will say its end here.
  bool arm(void* stream, std::uint64_t op_id) noexcept;
  /// What is armed still ends, within the completions' own limit; nothing is armed from then on.
  /// Others may be inside of arm() or prepare().
  void end() noexcept;

  std::atomic<std::uint64_t> armed{0}, unarmed{0};

 private:
  enum : std::size_t { kContextsMax = 16 };
  bool arm_here(void* stream, std::uint64_t tag) noexcept;

  Bus* bus_ = nullptr;  // only to be used while in `use_`
  BusUse* use_ = nullptr;
  Subscription subscription_;
  std::mutex mutex_;
  bool over_ = false;                                // under `mutex_`
  std::array<cuda::Completions, kContextsMax> all_;  // each is written once, before it is made_
  std::array<void*, kContextsMax> contexts_{};       // CUcontext
  std::atomic<std::size_t> made_{0};
  std::atomic<std::uint32_t> failures_{0};
};

}  // namespace ringmain::nccl::detail
