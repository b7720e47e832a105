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

Voice* Journal::voice(std::size_t channel, const PublisherOptions& options, bool threads_own) {
  const std::lock_guard lock(mutex_);
  const std::size_t i = voice_count_.load();
  if (i == kVoicesMax) return nullptr;
  auto made = std::make_unique<Voice>();
  made->id = static_cast<std::uint16_t>(i);
  made->channel = channel;
  made->options = options;
  made->threads_own = threads_own;
  voices_[i] = std::move(made);
  voice_count_.store(i + 1);
  return voices_[i].get();
}

Ear* Journal::ear(Form form) {
  const std::lock_guard lock(mutex_);
  const std::size_t i = ear_count_.load();
  if (i == kEarsMax) return nullptr;
  auto made = std::make_unique<Ear>();
  made->id = static_cast<std::uint16_t>(i);
  made->form = form;
  made->attaching = step();
  ears_[i] = std::move(made);
  ear_count_.store(i + 1);
  return ears_[i].get();
}

Spoken* Journal::begin(Voice& voice, std::uint32_t what) noexcept {
  const std::uint32_t n = voice.count.load(std::memory_order_relaxed);  // relaxed: its owner's
  if (n == kSaidMax) return nullptr;
  Spoken& said = voice.said[n];
  said.mark = {voice.id, static_cast<std::uint16_t>(n), what};
  said.begun = step();
  voice.count.store(n + 1, std::memory_order_relaxed);
  said_.fetch_add(1, std::memory_order_relaxed);
  return &said;
}

void Journal::end(Voice& voice, Spoken& said, PublishResult result) noexcept {
  said.code = result.code;
  said.why = result.why;
  if (result != PublishCode::unheard) said.sequence = ++voice.offered;
  if (!voice.numbered || voice.in_batch) said.sequence = 0;
  if (result == PublishCode::closed) ++voice.closed;
  if (result == PublishCode::accepted) ++voice.since_rest;
  said.done = step();
  ++ended_;
}

std::uint32_t Journal::hear(Ear& ear, const Mark& mark, bool whole, const Stamp* stamp) noexcept {
  const std::uint32_t i = ear.heard_count.fetch_add(1, std::memory_order_relaxed);
  if (i >= kHeardMax) return kHeardMax;  // the oracle says so
  Heard& h = ear.heard[i];
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
