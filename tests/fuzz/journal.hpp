// What was published and heard, by whom, and when? The oracle's only source: it never asks the bus
// how it works, and the journal takes no lock while events move, so it orders nothing for the bus.
//
// Times are steps of one clock: if a call returned before another one began, its step is smaller.
#pragma once
#include <array>
#include <atomic>
#include <bitset>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "bus/bus.hpp"

#include "tests/fuzz/events.hpp"

namespace ringmain::fuzz {

/// What went wrong; the first few in words.
class Faults {
 public:
  void add(const std::string& what) {
    const std::lock_guard lock(mutex_);
    ++count_;
    if (words_.size() < 6) words_.push_back(what);
  }
  void expect(bool holds, const std::string& what) {
    if (!holds) add(what);
  }
  void expect_equal(std::uint64_t is, std::uint64_t ought, const std::string& what) {
    if (is != ought) add(what + " is " + std::to_string(is) + ", not " + std::to_string(ought));
  }
  [[nodiscard]] bool any() const { return count_ != 0; }
  [[nodiscard]] std::string words() const {
    const std::lock_guard lock(mutex_);
    std::string all;
    for (const auto& w : words_) all += "  " + w + "\n";
    return all;
  }

 private:
  std::atomic<std::uint64_t> count_{0};
  mutable std::mutex mutex_;
  std::vector<std::string> words_;
};

enum : std::size_t {
  kPublishersMax = 2048,
  kSaidMax = 1024,
  kSubscribersMax = 512,
  kHeardMax = 1u << 15
};

/// One event as its publisher knows it.
struct Published {
  Mark mark;
  std::uint64_t begun = 0;
  std::uint64_t done = 0;      // 0: still being said
  std::uint64_t sequence = 0;  // that it must be stamped with; 0: not known
  std::int64_t time_ns = 0;    // that it must be stamped with; 0: not known
  PublishCode code = PublishCode::accepted;
  Name why;
  bool certain = true;  // false: one of a batch of which some were refused
  bool placed = true;   // false: others were said in the middle of its batch
  bool in_callback = false;
  std::uint32_t inside = 0;  // so many inline callbacks of this thread
};

/// A lane as its user sees it: a publisher, or a thread's own one of a channel.
struct PublisherRecord {
  std::uint16_t id = 0;
  std::size_t channel = 0;
  PublisherOptions options;
  bool threads_own = false;
  bool numbered = true;  // its sequence numbers can be told
  bool in_batch = false;
  std::unique_ptr<Published[]> said{new Published[kSaidMax]};
  std::atomic<std::uint32_t> count{0};
  std::uint64_t offered = 0;     // its owner's
  std::uint64_t closed = 0;      // of those: whether they are counted nobody promises
  std::uint64_t since_rest = 0;  // accepted since all was delivered: so many may be in flight
  // The oracle's:
  std::uint32_t judged = 0;
  std::bitset<kSaidMax> heard, missed;  // by shared subscribers that had to hear it
};

enum class Form : std::uint8_t {
  each,
  stamped,
  batch,
  filtered,
  owned,
  isolated,
  own_thread,
  latest,
  parted,
  pattern,
  ordered,
  judging,
  judging_once_made,  // inline
  box,
  box_latest,
  box_pattern
};
[[nodiscard]] const char* to_string(Form form) noexcept;

enum class Outcome : std::uint8_t { returned, threw, filtered };
struct Heard {
  Mark mark;
  std::uint64_t at;
  std::uint64_t sequence;  // 0: heard without a stamp
  std::int64_t time_ns;
  Outcome outcome;
  bool whole;
  bool known_time;  // publisher's or source's
};

/// A subscriber of any kind.
struct SubscriberRecord {
  std::uint16_t id = 0;
  Form form = Form::each;
  std::bitset<kTypes> channels;
  std::uint32_t habit = 0;  // what it does when it hears
  SubscribeOptions options;
  Name why;  // of its vetoes
  bool stamps = false;

  std::atomic<std::uint64_t> attaching{0}, attached{0}, closing{0}, closed{0},
      quiet{0};  // steps; 0: not yet. Quiet: reset() has said that no call is running
  std::atomic<std::uint64_t> ailing{
      0};  // since then it may be skipped: thrown out, barred, ownerless
  std::atomic<std::uint32_t> throws{0};
  std::atomic<std::uint32_t> others{0};  // what the bus itself said to it: ">" hears bus.* as well
  std::atomic<std::uint32_t> acts_left{6};  // what it says and does in callbacks is bounded
  std::atomic<int> captures{0};
  mutable std::atomic<int> inside{0};

  std::unique_ptr<Heard[]> heard{new Heard[kHeardMax]};
  std::atomic<std::uint32_t> heard_count{0};
  // The oracle's:
  bool place_known = true;  // among inline subscribers of its priority
  struct Of {
    std::bitset<kSaidMax> seen;
    std::uint64_t last = 0;  // when that was done
    std::array<std::uint64_t, 8> last_of_key{};
    std::uint32_t judged = 0;
    bool begun = false;  // to be judged
  };
  std::map<std::uint16_t, Of> of;  // publisher → what it heard of it
  std::uint32_t read = 0;          // of `heard`
  std::uint64_t newest_begun = 0;  // in order: of all it heard
  std::array<std::uint64_t, 3> outcomes{};
  std::uint64_t due_min = 0, due_max = 0, evictable = 0;
  bool lossy = false;  // its queue may have overflowed

  [[nodiscard]] bool judges() const noexcept {
    return form == Form::judging || form == Form::judging_once_made;
  }
  [[nodiscard]] bool pulled() const noexcept { return form >= Form::box; }
  [[nodiscard]] bool queued() const noexcept {
    return pulled() || (form >= Form::isolated && form <= Form::ordered);
  }
  [[nodiscard]] bool latest() const noexcept {
    return form == Form::latest || form == Form::box_latest;
  }
  [[nodiscard]] bool throws_at(const Mark& m) const noexcept {
    return (habit & 1) != 0 && m.act() == 1;
  }
  [[nodiscard]] bool vetoes(const Mark& m) const noexcept {
    return judges() && (habit & 2) != 0 && m.act() == (habit >> 8 & 15) && !throws_at(m);
  }
  [[nodiscard]] bool wants(const Mark& m) const noexcept { return m.key() % 3 != (habit >> 8) % 3; }
};

class Journal {
 public:
  explicit Journal(Faults& faults) : faults_(faults) {}

  [[nodiscard]] std::uint64_t step() noexcept {
    return clock_.fetch_add(1, std::memory_order_relaxed) + 1;  // relaxed: it must order nothing
  }
  /// nullptr: no more.
  PublisherRecord* publisher(std::size_t channel, const PublisherOptions& options,
                             bool threads_own);
  SubscriberRecord* subscriber(Form form);
  Published* begin(PublisherRecord& publisher, std::uint32_t what) noexcept;
  void end(PublisherRecord& publisher, Published& said, PublishResult result) noexcept;

  /// Writes it down; the index says the outcome later. Threads: any.
  std::uint32_t hear(SubscriberRecord& subscriber, const Mark& mark, bool whole,
                     const Stamp* stamp) noexcept;

  [[nodiscard]] std::size_t publishers() const noexcept { return publisher_count_.load(); }
  [[nodiscard]] std::size_t subscribers() const noexcept { return subscriber_count_.load(); }
  [[nodiscard]] PublisherRecord& publisher_at(std::size_t i) const noexcept {
    return *publishers_[i];
  }
  [[nodiscard]] SubscriberRecord& subscriber_at(std::size_t i) const noexcept {
    return *subscribers_[i];
  }
  [[nodiscard]] std::uint64_t said() const noexcept { return said_.load(); }
  [[nodiscard]] std::uint64_t ended() const noexcept { return ended_.load(); }
  [[nodiscard]] Faults& faults() const noexcept { return faults_; }

 private:
  Faults& faults_;
  std::atomic<std::uint64_t> clock_{0};
  std::atomic<std::uint64_t> said_{0};
  std::atomic<std::uint64_t> ended_{0};
  std::mutex mutex_;
  std::atomic<std::size_t> publisher_count_{0}, subscriber_count_{0};
  std::array<std::unique_ptr<PublisherRecord>, kPublishersMax> publishers_;
  std::array<std::unique_ptr<SubscriberRecord>, kSubscribersMax> subscribers_;
};

}  // namespace ringmain::fuzz
