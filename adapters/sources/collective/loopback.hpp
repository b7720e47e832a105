// How are programs of several ranks tried out in one process? Ranks are threads, their data really
// moves, and all of it is reported through communicators.
//
// Ranks meet by the n-th collective that each calls for, senders and receivers by the n-th of their
// pair. Who comes last moves the data, and decides one outcome for all. Hooks, vetoes, time-outs,
// aborts and ranks that leave are as in a job; speed is not: each copy passes a buffer.
//
//   auto world = loopback::World::make(bus, {.ranks = 4}).value();
//   world.run([](loopback::Rank& rank) {
//     std::vector<float> gradients(1000, 1);
//     const loopback::Values values(gradients);
//     const loopback::Work work = rank.all_reduce({.tensor = values});
//     if (!work) std::puts(work.reason().c_str());
//   });
//
// Library: ringmain::loopback (find_package(ringmain COMPONENTS loopback)).
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "../../../bus/bus.hpp"
#include "../../../bus/result.hpp"

#include "../../../events/collective.hpp"

#include "collective_arguments.hpp"
#include "communicator.hpp"

namespace ringmain::collective::loopback {

namespace detail {
class End;
struct Pending;
struct WindowState;
template <class T>
constexpr std::string_view dtype_of() noexcept {
  if constexpr (std::is_same_v<T, bool>) return "bool";
  if constexpr (std::is_same_v<T, float>) return "float32";
  if constexpr (std::is_same_v<T, double>) return "float64";
  if constexpr (std::is_same_v<T, long double>) return "long double";  // moved, never reduced
  constexpr std::array<std::string_view, 4> kSigned{"int8", "int16", "int32", "int64"};
  constexpr std::array<std::string_view, 4> kUnsigned{"uint8", "uint16", "uint32", "uint64"};
  constexpr std::size_t kAt = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
  return std::is_signed_v<T> ? kSigned[kAt] : kUnsigned[kAt];
}
}  // namespace detail

/// The caller's elements as a tensor of one dimension, which points to this and to them.
class Values {
 public:
  template <std::ranges::contiguous_range R>
  requires std::is_arithmetic_v<std::ranges::range_value_t<R>> && std::ranges::sized_range<R>
  explicit Values(R& elements) noexcept
      : data_(std::ranges::data(elements)),
        sizes_{static_cast<std::int64_t>(std::ranges::size(elements))},
        dtype_(detail::dtype_of<std::ranges::range_value_t<R>>()),
        bytes_(std::ranges::size(elements) * sizeof(std::ranges::range_value_t<R>)) {}
  Values(const Values&) = delete;
  Values& operator=(const Values&) = delete;
  operator Tensor() const noexcept {  // NOLINT(google-explicit-constructor): it is one
    return {.data = data_, .sizes = sizes_, .dtype = dtype_, .bytes = bytes_};
  }

 private:
  const void* data_;
  std::array<std::int64_t, 1> sizes_;
  Name dtype_;
  std::uint64_t bytes_;
};

enum class State : std::uint8_t { under_way, completed, failed };

/// What becomes of an operation. Copies are the same; an empty one has failed. It may outlive its
/// rank. Threads: any.
class Work {
 public:
  Work() noexcept = default;
  explicit Work(std::shared_ptr<detail::Pending> of) noexcept : of_(std::move(of)) {}
  /// Returns when it is over, and its end was said on the bus. In a hook that this rank's own
  /// thread calls for the end of another asynchronous operation nothing would end meanwhile: there
  /// it does not wait, and may return under_way. Progress: blocking.
  State wait() const { return wait_for(nanoseconds(-1)); }
  /// Gives up waiting, and not the operation; negative: never.
  State wait_for(nanoseconds limit) const;
  [[nodiscard]] State state() const;
  [[nodiscard]] bool done() const { return state() != State::under_way; }
  /// It has completed.
  explicit operator bool() const { return state() == State::completed; }
  /// Of one that failed: how, and why in a sentence.
  [[nodiscard]] How how() const;
  [[nodiscard]] std::string reason() const;

 private:
  std::shared_ptr<detail::Pending> of_;
};

/// Memory of each rank that the others write to, and signals between them. Copies are the same
/// window of the same rank, whose memory is others' to write until close(), or its last copy's end.
/// Threads: any.
class Window {
 public:
  Window() noexcept = default;
  /// Writes into the memory of `peer`, from its element `offset` on; done when it returns. Hooks
  /// see an operation `put`.
  Work put(const Tensor& tensor, std::int32_t peer, std::uint64_t offset = 0) const;
  /// What was put before is there when its wait_signal() has returned. Hooks see `signal`.
  Work signal(std::int32_t peer) const;
  /// Waits for one signal of `peer`, each of which counts once; not longer than the rank's
  /// time-out. Hooks see `wait_signal`.
  Work wait_signal(std::int32_t peer) const;
  /// Nothing is written to this rank's memory from here on.
  void close() const noexcept;
  explicit operator bool() const noexcept { return of_ != nullptr; }

 private:
  friend class detail::End;
  struct Held;
  explicit Window(std::shared_ptr<Held> of) noexcept : of_(std::move(of)) {}
  std::shared_ptr<Held> of_;
};

using OneToOne = std::variant<Send, Recv>;

/// One rank's end of a group. Copies are the same; the last of them leaves the group, so that what
/// needs this rank fails on the others.
///
/// Memory of tensors is the backend's until the operation is over; what is an output is written,
/// although Tensor::data is const. Lists and sizes may go when the call has returned. An input may
/// also be an output, as a whole or in part. `async_op`: it returns when this rank's part is handed
/// over, or, where it comes last, when the data has moved; its end is said by a thread of this
/// rank. A call that waits does not wait for asynchronous ones before it. Called in that thread, in
/// a completion hook, it is refused, as nothing of this rank would end meanwhile; no number is
/// taken then, and nothing is said on the bus.
///
/// A hook that refuses leaves the others waiting, as in a job, until a time-out, which says so, or
/// an abort. The operation has had its number: the next one of this rank meets their next.
///
/// Types: float16, bfloat16, float32, float64, int8 to int64, uint8 to uint64, bool; of any other
/// an operation that does not reduce moves the bytes. Reduced is in the order of ranks, the two
/// short floats in float32, integers modulo 2^bits; a NaN is the least and the greatest. Refused:
/// `avg` of integers; `sum`, `avg` and `product` of bool; bit operations of floats; premul_sum, for
/// which arguments have no factor; other.
///
/// Each call throws std::bad_alloc at most. Threads: any; each counts in the order of its calls.
/// Progress: blocking.
class Rank {
 public:
  Rank() noexcept = default;
  /// Of hooks, its group and its rank. Its abort() calls this rank's abort hooks and gives the
  /// group up for all ranks, whose operations fail as aborted; parts of a split go on.
  [[nodiscard]] const Communicator& comm() const noexcept;
  [[nodiscard]] std::int32_t rank() const noexcept { return comm().rank(); }
  [[nodiscard]] std::int32_t size() const noexcept { return comm().size(); }
  explicit operator bool() const noexcept { return end_ != nullptr; }
  /// How long the operations that this rank calls for from here on wait for the others; 0: for
  /// ever. One that runs out fails as timed_out on all ranks, also those that come later.
  void set_timeout(nanoseconds limit) const noexcept;

  Work send(const Send& what) const { return call(what); }
  /// As send(), from `peer`. No aggregate, since it is a Send: `recv({tensor, peer})`, or
  /// `recv(Recv{{.tensor = tensor, .peer = peer}})`; the same of the `_v` operations.
  Work recv(const Recv& what) const { return call(what); }
  Work broadcast(const Broadcast& what) const { return call(what); }
  Work all_reduce(const AllReduce& what) const { return call(what); }
  Work reduce(const Reduce& what) const { return call(what); }
  Work all_gather(const AllGather& what) const { return call(what); }
  Work all_gather_v(const AllGatherV& what) const { return call(what); }
  Work all_gather_single(const AllGatherSingle& what) const { return call(what); }
  Work reduce_scatter(const ReduceScatter& what) const { return call(what); }
  Work reduce_scatter_v(const ReduceScatterV& what) const { return call(what); }
  Work reduce_scatter_single(const ReduceScatterSingle& what) const { return call(what); }
  Work all_to_all(const AllToAll& what) const { return call(what); }
  Work all_to_all_single(const AllToAllSingle& what) const { return call(what); }
  /// Split sizes are rows: of the first dimension.
  Work all_to_all_v_single(const AllToAllVSingle& what) const { return call(what); }
  Work barrier(const Barrier& what = {}) const { return call(what); }
  Work scatter(const Scatter& what) const { return call(what); }
  Work gather(const Gather& what) const { return call(what); }
  Work gather_single(const GatherSingle& what) const { return call(what); }
  /// Sends and receives that wait for each other only as a whole. If one fails, so does the rest of
  /// what has not met yet, on the other side too.
  Work batch_op_issue(std::span<const OneToOne> parts, bool async_op = false) const;
  /// All ranks call it, each with the ranks of its own part in their order, or with none. Empty:
  /// this rank is in none.
  [[nodiscard]] Result<Rank> split(const Split& what) const;
  /// All ranks call it, each with the memory that others may write to.
  [[nodiscard]] Result<Window> new_window(const Tensor& memory) const;
  /// Leaves the group: what needs this rank and is not decided fails for all. May be called again.
  Work finalize() const;

 private:
  friend class World;
  friend class detail::End;
  explicit Rank(std::shared_ptr<detail::End> end) noexcept : end_(std::move(end)) {}
  Work call(const Arguments& arguments) const;
  std::shared_ptr<detail::End> end_;
};

struct Options {
  std::string_view name = "world";       // of the group
  std::int32_t ranks = 2;                // from 1
  nanoseconds timeout{0};                // Rank::set_timeout() of all ranks
  std::string_view source = "loopback";  // whose word its events are
};

/// All ranks of a group. Move-only; without it ranks go on as long as somebody has them.
class World {
 public:
  /// Refusals: as Communicator::make().
  [[nodiscard]] static Result<World> make(Bus& bus, const Options& options = {});
  [[nodiscard]] std::int32_t size() const noexcept {
    return static_cast<std::int32_t>(ranks_.size());
  }
  /// From 0 to below size(): else empty.
  [[nodiscard]] Rank rank(std::int32_t rank) const;
  /// Calls `program` in a thread for each rank, and waits for all of them. If one throws, the group
  /// is given up, and what the first threw is thrown here.
  void run(const std::function<void(Rank& rank)>& program) const;

 private:
  std::vector<Rank> ranks_;
};

}  // namespace ringmain::collective::loopback
