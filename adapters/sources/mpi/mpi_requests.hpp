// Which operation does a request mean?
//
// Another thread than the one that made a request may complete it, and MPI may give its handle to
// another operation as soon as it is complete. So a thread that completes requests first takes them
// out of sight (hold), then asks MPI, then drops those that are over and shows the rest again.
// MPICH gives the same handle to several small sends that are over already: each has a place of its
// own here, and which is found first does not matter. Includes no MPI header; no lock, no
// allocation.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "bus/text.hpp"

#include "adapters/sources/collective/collective_arguments.hpp"

namespace ringmain::mpi {

class Kept;

/// An operation that was issued. All zeros before, so that the table of those in flight takes only
/// the pages that are used.
struct Operation {
  std::uint64_t op_id = 0;         // inside another source's operation: that one's
  std::uint64_t reported = 0;      // whose end its end is; 0: nobody's
  std::uint64_t sequence = 0;      // of a collective
  std::uint64_t p2p_sequence = 0;  // of a send or receive
  std::uint64_t bytes = 0;
  std::uint64_t in_elements = 0;
  std::uint64_t out_elements = 0;
  Name name;
  Name group;
  Name dtype;
  std::int32_t peer = 0;
  std::int32_t rank = 0;
  std::int32_t group_size = 0;
  collective::OpName kind{};    // what its communicator's hooks are told of
  bool refused = false;         // by one of them: MPI was not called
  bool point_to_point = false;  // its status says whether it was cancelled
  bool receives = false;        // and how much came
  std::uint64_t gives_bytes = 0;
  std::uint64_t gets_bytes = 0;
  Kept* kept = nullptr;  // its communicator; nullptr: that has no name
};

struct Request {
  Operation operation;
  bool persistent = false;
  bool active = false;  // false: its end was told, or it waits to be started

 private:
  friend class Requests;
  std::uint64_t handle_ = 0;
  std::atomic<std::uint64_t> key_{0};
  std::atomic<std::size_t> farthest_{0};  // of those that should be in this place
};

class Requests {
 public:
  static constexpr std::size_t kInFlightMax = 65536;

  /// A place of its own; nullptr: the table is full. Threads: any. Progress: lock-free.
  [[nodiscard]] Request* take(std::uint64_t handle) noexcept {
    const std::size_t home = home_of(handle);
    for (std::size_t i = 0; i < kInFlightMax; ++i) {
      Request& place = places_[(home + i) % kInFlightMax];
      std::uint64_t seen = kFree;
      if (place.key_ != kFree || !place.key_.compare_exchange_strong(seen, kHeld)) continue;
      std::size_t farthest = places_[home].farthest_;
      while (farthest < i + 1 && !places_[home].farthest_.compare_exchange_weak(farthest, i + 1)) {
      }
      place.handle_ = handle;
      return &place;
    }
    return nullptr;
  }
  /// Finds a request by its handle and takes it out of sight; nullptr: it is not kept here.
  /// Threads: any, for different requests, as MPI demands. Progress: lock-free.
  [[nodiscard]] Request* hold(std::uint64_t handle) noexcept {
    const std::size_t home = home_of(handle);
    const std::size_t farthest = places_[home].farthest_;
    for (std::size_t i = 0; i < farthest; ++i) {
      Request& place = places_[(home + i) % kInFlightMax];
      std::uint64_t seen = handle;
      if (place.key_ == handle && place.key_.compare_exchange_strong(seen, kHeld)) return &place;
    }
    return nullptr;
  }
  /// Lets a request that was taken or held be found again.
  static void show(Request& request) noexcept { request.key_ = request.handle_; }
  static void drop(Request& request) noexcept { request.key_ = kFree; }

 private:
  enum : std::uint64_t { kFree = 0, kHeld = 1 };  // no handle of a request is one of these
  static std::size_t home_of(std::uint64_t handle) noexcept {
    return (handle * 0x9e3779b97f4a7c15u) >> 48;
  }

  std::array<Request, kInFlightMax> places_{};
};

}  // namespace ringmain::mpi
