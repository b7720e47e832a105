#include "engine/channel/channel_table.hpp"

#include "engine/system/assert.hpp"

namespace ringmain::engine {

ChannelTable::ChannelTable() {
  // So that taking and giving an index back never fails. Untouched until used.
  free_.reserve(kChannelsMax);
  disposed_.reserve(kChannelsMax);
}

bool ChannelTable::add(ChannelCore& channel, const ChannelHost& host,
                       ReadyChannels& ready) noexcept {
  const std::lock_guard lock(mutex_);
  if (closing_) channel.close_line();
  if (host.stopped()) return true;
  std::uint32_t index = next_;
  if (!free_.empty()) {
    index = free_.back();
    free_.pop_back();
  } else if (next_ == kChannelsMax) {
    return false;
  } else {
    ++next_;
  }
  RINGMAIN_ASSERT(table_[index].load(std::memory_order_relaxed) ==
                  nullptr);  // relaxed: written under our lock
  channel.set_index(index);
  channel.hold();
  // Without threads no worker sleeps, so none is to be signalled.
  if (host.manual() && !channel.options().pulled)
    channel.line.leased.store(1, std::memory_order_release);  // e.leased
  table_[index].store(&channel, std::memory_order_release);   // e.listed
  ready.use(next_);
  return true;
}

void ChannelTable::clear() noexcept {
  const std::lock_guard lock(mutex_);
  for (std::uint32_t i = 0; i < next_; ++i) {
    if (ChannelCore* c = table_[i].exchange(nullptr, std::memory_order_acq_rel))
      c->release();  // e.listed
  }
  for (ChannelCore* c : disposed_) c->release();
  disposed_.clear();
}

void ChannelTable::become_forked() noexcept {
  for (auto& entry : table_) {
    if (ChannelCore* c = entry.load(std::memory_order_acquire)) c->become_forked();  // e.listed
  }
}

std::vector<Ref<ChannelCore>> ChannelTable::channels() const {
  const std::lock_guard lock(mutex_);
  std::vector<Ref<ChannelCore>> all;
  for (std::uint32_t i = 0; i < next_; ++i) {
    if (ChannelCore* c = table_[i].load(std::memory_order_relaxed))
      all.emplace_back(c);  // relaxed: under our lock
  }
  return all;
}

Ref<ChannelCore> ChannelTable::next_channel(std::uint32_t& index) const noexcept {
  const std::lock_guard lock(mutex_);
  while (index < next_) {
    if (ChannelCore* c = table_[index++].load(std::memory_order_relaxed))
      return c;  // relaxed: under our lock
  }
  return {};
}

}  // namespace ringmain::engine
