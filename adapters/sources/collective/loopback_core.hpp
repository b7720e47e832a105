// Where do ranks meet? All that is shared by the ranks of a group, and by one rank's threads.
//
// One lock for a group. Whoever waits, waits on its condition variable, and is woken at each
// decision. While data moves the lock is free: the meeting is `moving`, and nobody gives it up.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <vector>

#include "adapters/sources/collective/loopback.hpp"
#include "adapters/sources/collective/loopback_plan.hpp"

namespace ringmain::collective::loopback::detail {

using Clock = std::chrono::steady_clock;
/// The end of that time; of one that the clock cannot tell, the last moment that it can.
[[nodiscard]] inline Clock::time_point after(nanoseconds limit) noexcept {
  const auto now = Clock::now();
  return limit < Clock::time_point::max() - now ? now + limit : Clock::time_point::max();
}
class Group;
class EndSayer;

/// How an operation has ended, for all ranks of its meeting. A copy needs no memory: who lacks it
/// must still be able to tell the others.
struct Ending {
  bool completed = true;
  How how = How::error;                      // of a failed one
  std::shared_ptr<const std::string> why{};  // and the sentence
  [[nodiscard]] const std::string& reason() const noexcept;
};
/// Throws std::bad_alloc.
[[nodiscard]] Ending failed_as(How how, std::string reason);
/// The same where there is no memory for the sentence.
[[nodiscard]] Ending failed_wordless(How how) noexcept;
/// `say()` is the sentence; if there is no memory for it, it is left out.
template <class Say>
[[nodiscard]] Ending failed_if_told(How how, const Say& say) noexcept {
  try {
    return failed_as(how, say());
  } catch (const std::bad_alloc&) {
    return failed_wordless(how);
  }
}
/// "50 ms"
[[nodiscard]] std::string text_of(nanoseconds limit);

/// Which meeting: the n-th collective of the group, or the n-th send from one rank to another.
struct Key {
  std::int32_t from = kNoRank, to = kNoRank;
  std::uint64_t number = 0;
  [[nodiscard]] bool one_to_one() const noexcept { return from != kNoRank; }
  friend auto operator<=>(const Key&, const Key&) = default;
};
/// And as whom: a rank; of a send and its receive 0 or 1.
struct Place {
  Key key;
  std::size_t at = 0;
};

/// One rank's operation, and what its Work says of it. What is not constant is read and written
/// with the lock of its group.
struct Pending {
  Pending(std::shared_ptr<Group> of, std::string called)
      : group(std::move(of)), what(std::move(called)) {}
  const std::shared_ptr<Group> group;
  const std::string what;          // "all_reduce of group 'world'"
  Operation operation{};           // set before its first meeting
  std::atomic<bool> begun{false};  // data of the first part moves
  EndSayer* said_by = nullptr;     // asynchronous: whose thread says the end
  std::vector<Place> places{};     // of its parts; a batch has several
  std::size_t left = 0;            // parts that are not decided
  nanoseconds limit{0};
  std::optional<Clock::time_point> deadline{};
  std::optional<Ending> failure{};  // of the first part that failed
  std::optional<Ending> ending{};   // all parts are decided
  bool over = false;                // and the end was said
  std::shared_ptr<Group> part{};    // of a split
  std::shared_ptr<WindowState> window{};
};

/// One rank, come to a meeting.
struct Come {
  std::shared_ptr<Pending> pending;
  Plan plan;
};

class Group {
 public:
  Group(std::string called, std::int32_t ranks);

  /// The number that this rank's next one has. Throws std::bad_alloc, and then it has none: the
  /// meeting is made here, so that nothing below needs memory. Whoever has a place says one of
  /// come(), refuse() and fail() of it.
  [[nodiscard]] Place next_collective(std::int32_t rank);
  [[nodiscard]] Place next_one_to_one(bool sends, std::int32_t rank, std::int32_t peer);

  /// Hands one rank's part over; whoever is the last moves the data. Progress: blocking, but it
  /// does not wait for other ranks.
  void come(const Place& place, Come come) noexcept;
  /// A hook has refused: this rank does not come.
  void refuse(const Place& place, std::string_view why) noexcept;
  /// Decides a meeting where this rank cannot take part.
  void fail(const Place& place, const Ending& ending) noexcept;
  /// All that is not decided fails, and so does what comes later.
  void abort(std::string_view why) noexcept;
  /// The same of what needs that rank.
  void leave(std::int32_t rank) noexcept;

  /// With the lock. Returns when `pending` has an ending, for which its deadline may see.
  void await(std::unique_lock<std::mutex>& lock, const std::shared_ptr<Pending>& pending) noexcept;
  /// With the lock: it has waited long enough. False: its data is moving.
  bool time_out(const std::shared_ptr<Pending>& pending) noexcept;
  /// With the lock: takes one signal from `count`, for which it waits no longer than `limit` (0:
  /// for ever), an abort, or the leaving of `from`.
  [[nodiscard]] Ending await_signal(std::unique_lock<std::mutex>& lock, std::int32_t from,
                                    nanoseconds limit, std::uint64_t& count);
  /// With the lock: may that rank be reached? Else why not.
  [[nodiscard]] std::optional<Ending> unreachable(std::int32_t rank) const noexcept;

  const std::string name;
  const std::int32_t size;
  std::mutex mutex;
  std::condition_variable changed;

 private:
  struct Meeting {
    enum class State : std::uint8_t { gathering, moving, decided };
    State state = State::gathering;
    std::vector<std::optional<Come>> here;  // by place
    std::vector<bool> accounted;            // by place: has come, or was refused
    std::string refused{};                  // who has refused, and why
    Ending ending{};
  };
  using Meetings = std::map<Key, Meeting>;
  using All = std::span<const std::optional<Come>>;  // who have all come

  /// Unless no meeting of that key can be held any more. Throws std::bad_alloc, and then has made
  /// nothing.
  void make(const Key& key);
  [[nodiscard]] Ending left(std::int32_t rank) const noexcept;
  /// Why no meeting of that key can be held any more.
  [[nodiscard]] std::optional<Ending> over_for(const Key& key) const noexcept;
  void decide(const Key& key, const Ending& ending) noexcept;
  void part_over(Pending& pending, const Ending& ending) noexcept;
  /// Once each rank has come, or was refused, nobody asks for it any more.
  void forget_if_accounted(Meetings::iterator at) noexcept;
  /// Those that are gathering and for which `is` holds fail.
  template <class Is>
  void decide_all(const Is& is, const Ending& ending) noexcept;
  [[nodiscard]] Ending hold(const Key& key, All all) const noexcept;
  void split(All all) const;
  void make_window(All all) const;
  [[nodiscard]] std::string missing_from(const Key& key, const Meeting& meeting) const;

  Meetings meetings_;
  std::vector<std::uint64_t> collectives_;  // counted, by rank
  std::map<std::tuple<bool, std::int32_t, std::int32_t>, std::uint64_t> one_to_one_;  // and by pair
  std::optional<Ending> aborted_;
  std::vector<bool> gone_;
};

struct WindowState {
  std::vector<Piece> memory;  // by rank; empty ones of ranks that have closed it
  std::vector<bool> closed;
  std::uint64_t element_bytes = 0;
  Name dtype{};
  std::vector<std::vector<std::uint64_t>> signals;  // by from, to
};

/// The thread that says the ends of one rank's asynchronous operations.
class EndSayer {
 public:
  explicit EndSayer(std::shared_ptr<Group> group) : group_(std::move(group)) {}
  /// Throws std::system_error: there is no thread to be had.
  static void start(const std::shared_ptr<EndSayer>& self);
  using Watched = std::list<std::shared_ptr<Pending>>;
  /// Takes the only one in `pending`. False: it stops, and will not say the end of this one.
  [[nodiscard]] bool watch(Watched& pending) noexcept;
  /// Returns when all is said, unless called in that very thread, which ends after its hooks then.
  void stop();
  /// Is the caller the thread of this one? It may have ended.
  [[nodiscard]] static bool is_here(const EndSayer* one) noexcept;

 private:
  void run();
  [[nodiscard]] std::shared_ptr<Pending> take_one_with_ending();
  void await_next(std::unique_lock<std::mutex>& lock);

  const std::shared_ptr<Group> group_;
  // With the lock of the group.
  Watched open_;
  bool stopping_ = false;
  std::thread thread_;
};

/// One rank's end of a group.
class End : public std::enable_shared_from_this<End> {
 public:
  End(std::shared_ptr<Group> of, std::int32_t as, std::vector<int> of_world, std::string_view word);
  End(const End&) = delete;
  End& operator=(const End&) = delete;
  ~End();

  /// `parts` of a batch; of any other operation itself.
  Work call(const Arguments& arguments, std::span<const Arguments> parts);
  [[nodiscard]] Result<Rank> split(const Split& what);
  [[nodiscard]] Result<Window> new_window(const Tensor& memory);
  Work finalize();
  /// An operation of a window, which `act` does with the lock.
  Work on_window(std::string_view op, Tensors input, std::int32_t peer,
                 const std::function<Ending(std::unique_lock<std::mutex>&)>& act);
  [[nodiscard]] CommunicatorOptions options(std::string_view name) const;

  const std::shared_ptr<Group> group;
  const std::int32_t rank;
  const std::vector<int> world;  // the group's ranks, in the world
  const std::string source;
  Communicator comm;
  std::atomic<std::int64_t> timeout_ns{0};

 private:
  [[nodiscard]] std::shared_ptr<Pending> pending(std::string_view op) const;
  /// It would wait in the thread that says the ends: then it is refused.
  [[nodiscard]] bool refused_here(Pending& pending) const;
  /// Throws std::bad_alloc, and then has taken none. All memory that a meeting needs is there when
  /// it returns.
  void take_places(Pending& pending, std::span<const Arguments> parts) const;
  void refuse(Pending& pending, Name reason) const noexcept;
  /// Goes to the meetings, or sees to it that they fail.
  void go(const std::shared_ptr<Pending>& pending, std::span<Planned> plans) const noexcept;
  /// Waits for its ending. False: it failed, and that is said.
  [[nodiscard]] bool await(const std::shared_ptr<Pending>& pending,
                           Issuing& issuing) const noexcept;
  /// What both have in common: all but what comes after a success.
  [[nodiscard]] bool meet(const std::shared_ptr<Pending>& pending, Planned plan,
                          Issuing& issuing) const noexcept;
  /// This rank's end of a part. Throws std::bad_alloc, and then has left the part.
  [[nodiscard]] Result<Rank> join(const std::shared_ptr<Group>& part,
                                  const std::vector<int>& members, std::string_view name,
                                  Issuing& issuing) const;

  const std::shared_ptr<EndSayer> sayer_;
};

/// Who waits for it may go on. Said on the bus it was before.
void set_over(Pending& pending);
[[nodiscard]] Failed failed_of(const Ending& ending);

}  // namespace ringmain::collective::loopback::detail
