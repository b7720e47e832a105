// What must the bus have done, if the journal says what was asked of it? The promises of
// docs/guarantees.md, written down once more, as plainly as they can be.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "tests/fuzz/journal.hpp"
#include "tests/fuzz/operations.hpp"

namespace ringmain::fuzz {

/// What the oracle is told of a channel at rest.
struct ChannelAtRest {
  bool made = false;
  ChannelOptions options;
  ChannelStats stats;
};
struct SubscriberAtRest {
  SubscriberStats stats;
  bool held = false;     // its handle is there, so its figures are
  bool emptied = false;  // a mailbox: nothing is left to take
};

class Oracle {
 public:
  Oracle(Journal& journal, Drive drive)
      : journal_(journal), faults_(journal.faults()), drive_(drive) {}

  /// Everything was delivered, and nothing is going on.
  void judge(const std::array<ChannelAtRest, kTypes>& channels,
             const std::vector<SubscriberAtRest>& subscribers);
  /// stop() is called: from here on publishes may be closed.
  void stopping() { stopping_ = journal_.step(); }
  /// stop() has discarded what was queued: from now on only promises that hold for any loss are
  /// checked.
  void discarded() { stopped_ = true; }

 private:
  enum class Sure : std::uint8_t { no, maybe, yes };
  /// Is it attached while that is said?
  [[nodiscard]] static Sure listens(const SubscriberRecord& subscriber, const Published& said);
  /// It hears what the bus says of itself, whenever that is.
  [[nodiscard]] bool hears_the_bus(const SubscriberRecord& subscriber) const {
    return subscriber.channels.all() && drive_ != Drive::manual;
  }
  [[nodiscard]] static std::string name(const SubscriberRecord& subscriber);
  [[nodiscard]] static std::string name(const Published& said);

  void judge_codes(std::size_t channel, PublisherRecord& publisher);
  void judge_code(const PublisherRecord& publisher, const Published& said, Sure heard, Sure vetoed,
                  Name why);
  /// Inline subscribers, one after another: which must have seen the event, and which refused it?
  void judge_inline(std::size_t channel, const Published& said, Sure& vetoed, Name& why);
  void judge_figures(std::size_t channel, const ChannelAtRest& is);
  void read(SubscriberRecord& subscriber, const std::array<ChannelAtRest, kTypes>& channels);
  void read_one(SubscriberRecord& subscriber, const Heard& heard,
                const std::array<ChannelAtRest, kTypes>& channels);
  void judge_subscriber(SubscriberRecord& subscriber, const SubscriberAtRest& is,
                        const std::array<ChannelAtRest, kTypes>& channels);
  void judge_latest(const SubscriberRecord& subscriber);
  void judge_stats(const SubscriberRecord& subscriber, const SubscriberAtRest& is, bool lossless,
                   std::uint64_t evictable);

  struct Counts {
    std::uint64_t offered = 0, accepted = 0, vetoed = 0, closed = 0, may_be_evicted = 0;
  };
  Journal& journal_;
  Faults& faults_;
  const Drive drive_;
  std::uint64_t stopping_ = ~std::uint64_t{0};
  bool stopped_ = false;
  std::array<Counts, kTypes> counts_{};
  std::array<std::vector<SubscriberRecord*>, kTypes> inline_;  // by priority
};

}  // namespace ringmain::fuzz
