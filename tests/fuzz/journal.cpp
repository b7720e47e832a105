#include "tests/fuzz/journal.hpp"

namespace ringmain::fuzz {

const char* to_string(Form form) noexcept {
  constexpr std::array kAll{"each",
                            "stamped",
                            "batch",
                            "filtered",
                            "owned",
                            "isolated",
                            "own thread",
                            "latest",
                            "parted",
                            "pattern",
                            "ordered",
                            "inline",
                            "inline once made",
                            "mailbox",
                            "latest mailbox",
                            "pattern mailbox"};
  return kAll[static_cast<std::size_t>(form)];
}

PublisherRecord* Journal::publisher(std::size_t channel, const PublisherOptions& options,
                                    bool threads_own) {
  const std::lock_guard lock(mutex_);
  const std::size_t i = publisher_count_.load();
  if (i == kPublishersMax) return nullptr;
  auto made = std::make_unique<PublisherRecord>();
  made->id = static_cast<std::uint16_t>(i);
  made->channel = channel;
  made->options = options;
  made->threads_own = threads_own;
  publishers_[i] = std::move(made);
  publisher_count_.store(i + 1);
  return publishers_[i].get();
}

SubscriberRecord* Journal::subscriber(Form form) {
  const std::lock_guard lock(mutex_);
  const std::size_t i = subscriber_count_.load();
  if (i == kSubscribersMax) return nullptr;
  auto made = std::make_unique<SubscriberRecord>();
  made->id = static_cast<std::uint16_t>(i);
  made->form = form;
  made->attaching = step();
  subscribers_[i] = std::move(made);
  subscriber_count_.store(i + 1);
  return subscribers_[i].get();
}

Published* Journal::begin(PublisherRecord& publisher, std::uint32_t what) noexcept {
  const std::uint32_t n = publisher.count.load(std::memory_order_relaxed);  // relaxed: its owner's
  if (n == kSaidMax) return nullptr;
  Published& said = publisher.said[n];
  said.mark = {publisher.id, static_cast<std::uint16_t>(n), what};
  said.begun = step();
  publisher.count.store(n + 1, std::memory_order_relaxed);
  said_.fetch_add(1, std::memory_order_relaxed);
  return &said;
}

void Journal::end(PublisherRecord& publisher, Published& said, PublishResult result) noexcept {
  said.code = result.code;
  said.why = result.why;
  if (result != PublishCode::unheard) said.sequence = ++publisher.offered;
  if (!publisher.numbered || publisher.in_batch) said.sequence = 0;
  if (result == PublishCode::closed) ++publisher.closed;
  if (result == PublishCode::accepted) ++publisher.since_rest;
  said.done = step();
  ++ended_;
}

std::uint32_t Journal::hear(SubscriberRecord& subscriber, const Mark& mark, bool whole,
                            const Stamp* stamp) noexcept {
  const std::uint32_t i = subscriber.heard_count.fetch_add(1, std::memory_order_relaxed);
  if (i >= kHeardMax) return kHeardMax;  // the oracle says so
  Heard& h = subscriber.heard[i];
  h = {mark,
       step(),
       stamp == nullptr ? 0 : stamp->sequence,
       stamp == nullptr ? 0 : stamp->time_ns,
       Outcome::returned,
       whole,
       stamp != nullptr && stamp->time_from != TimeFrom::worker};
  return i;
}

}  // namespace ringmain::fuzz
