// One worker thread: takes channels whose turn it is, drains them, and sleeps where there is
// nothing. What it shares with the others is in workers.hpp.
#pragma once
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include "../channel/channel_core.hpp"
#include "../system/wait_strategy.hpp"
#include "drain.hpp"

namespace ringmain::engine {

class Workers;

/// One worker thread's state. Threads that wake it write the line of `key`.
struct Worker final : Drainer {
  /// Throws std::bad_alloc; from then on it allocates nothing.
  Worker(Workers& all, unsigned index, const WaitOptions& wait);
  void run() noexcept;
  void before_callbacks(ChannelCore& channel) noexcept override;

  alignas(kLineBytes) Atomic<std::uint32_t> key{0};
  /// The number of its last park: no two parks of any workers share one, and none is 0. 64 bits:
  /// with a park each microsecond they last for 18,000 years.
  Atomic<std::uint64_t> park_number{0};
  Atomic<const ChannelCore*> visiting{nullptr};  // about to ask for its lease: not to be freed
  Count parks, wakes, batches, events;
  std::thread thread;

 private:
  struct Held {
    ChannelCore* channel;
    std::uint32_t index;
  };

  void adopt() noexcept;
  void keep(ChannelCore& channel) noexcept;
  template <class F>
  bool visit(std::uint32_t index, F f) noexcept;
  bool ask_for_lease(std::uint32_t index) noexcept;
  ChannelCore& at(std::uint32_t index) noexcept;
  bool serve_alone() noexcept;
  bool serve_in_turn() noexcept;
  std::size_t serve_held(bool one) noexcept;
  std::size_t serve(ChannelCore& channel) noexcept;
  void let_go_of(ChannelCore& channel) noexcept;
  void worked(std::size_t events) noexcept;
  void sweep_ready() noexcept;
  void pass_all_but(const ChannelCore* kept) noexcept;
  void stop_searching() noexcept;
  bool reclaim_captures() noexcept;
  void sweep() noexcept;
  void give_up() noexcept;
  bool give_up_but_patient() noexcept;
  void recheck() noexcept;
  void park() noexcept;
  void sleep(std::uint32_t seen) noexcept;
  void rest(std::uint32_t seen) noexcept;
  void search() noexcept;

  Workers& all_;
  const unsigned index_;
  WaitStrategy wait_;
  std::vector<Held> held_;            // by index
  std::vector<std::uint32_t> given_;  // indices of channels whose leases were given up
  std::uint32_t last_served_ = 0;     // the index of the channel whose turn it was
  std::uint64_t woke_ = 0;            // as Lane::woke
  std::uint32_t rounds_ = 0;
  std::uint64_t events_before_ = 0;  // its last park
  std::int64_t realtime_wait_ns_ = 0;
  bool searching_ = false;
  bool was_parked_ = true;  // the housekeeper may not know yet that it is awake
};

}  // namespace ringmain::engine
