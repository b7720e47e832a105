// How do communicators come and go? What NCCL's init and finalize do, several at once perhaps.
#include <algorithm>
#include <new>

#include "engine/system/clock.hpp"

#include "bus/core/door_core.hpp"

#include "adapters/sources/nccl/nccl_callbacks.hpp"
#include "adapters/sources/nccl/nccl_chain.hpp"
#include "adapters/sources/nccl/nccl_control.hpp"

namespace ringmain::nccl {

/// There is room for one more.
void Control::hold_mask(int* mask, std::int32_t abi) noexcept {
  if (mask == nullptr) return;
  const auto found = std::find_if(masks_.begin(), masks_.end(),
                                  [mask](const Mask& one) { return one.at == mask; });
  Mask& here = found != masks_.end() ? *found : masks_.emplace_back();
  here.at = mask;
  here.abi = abi;
  ++here.uses;
  here.written = here.told = static_cast<int>(asked_ & abi::all_types(abi));
  __atomic_store_n(mask, here.written, __ATOMIC_RELAXED);  // the last who writes it is heard
}
/// NCCL may be gone once its last communicator is.
void Control::let_go_of_mask(const int* mask) noexcept {
  const auto found = std::find_if(masks_.begin(), masks_.end(),
                                  [mask](const Mask& one) { return one.at == mask; });
  if (found != masks_.end() && --found->uses == 0) masks_.erase(found);
}

/// Under `asking_`. What may fail comes first: a communicator that has a place is known by all.
engine::Token Control::enter(const Identity& who, int* mask) {
  masks_.reserve(masks_.size() + 1);
  const engine::Token token = Core::instance().communicators.open(who, mask);
  if (token.bits() == 0) return token;
  hold_mask(mask, who.abi);
  ++open_;
  return token;
}

void* Control::open(Identity who, const Opened& told) noexcept {
  if (forked()) return nullptr;
  who.group = Name(told.name == nullptr ? "" : told.name);
  sweep_owed();
  if (ringmain::detail::has_door()) serve();  // which may have been opened since the last look
  engine::Token token;
  Held to;
  bool no_memory = false;
  {
    const std::lock_guard asking(asking_);
    to = current_;
    try {
      token = enter(who, told.mask);
    } catch (const std::bad_alloc&) {
      no_memory = true;
    }
  }
  if (no_memory) {
    switchboard.counts.no_context.add();
    if (to && !to->ended)
      say(*to, PluginState::limited, "a communicator is not heard, as there is no memory", &who);
    return nullptr;
  }
  Core& core = *switchboard.core.load();
  if (token.bits() == 0) {
    core.counts.no_context.add();
    if (to && !to->ended) {
      say(*to, PluginState::limited, "a communicator is not heard, as 512 are open: finalize some",
          &who);
    }
    return nullptr;
  }
  if (Chain* const chain = core.chain.load()) {
    auto limited = [&](std::string_view what) { say(*to, PluginState::limited, what, &who); };
    chain->open(*core.communicators.find(token).place, who, told.name, told.log,
                to && !to->ended ? Sentence(limited) : Sentence());
    serve();  // with the masks that they asked for
  }
  if (to && !to->ended) say(*to, PluginState::opened, "", &who);
  return handle_of(token);
}

/// What a communicator left open whose last thread there was no memory for.
void Control::sweep_owed() noexcept {
  if (!owes_.load()) return;
  const Inside in;
  if (!in) return;
  owes_ = false;  // first: one that comes meanwhile is owed again
  in.core().communicators.for_each_place([&](Communicator& place) {
    if ((place.word.load() & 3) != Communicator::kFinalized || !place.unswept) return;
    sweep(in, place, place.id.load());
    place.unswept = false;
  });
}

void Control::close(void* context) noexcept {
  Core* const its = forked() ? nullptr : switchboard.core.load();
  if (its == nullptr) return;
  Core& core = *its;
  const engine::Token token = token_of(context);
  const Communicators::Found found = core.communicators.find(token);
  if (found.place == nullptr || !found.open) return;
  {
    const Inside in;
    if (in) {
      sweep(in, *found.place, found.who.id);
    } else {
      found.place->unswept = true;
    }
  }
  forget_passed(core, token);
  Held to;
  {
    const std::lock_guard asking(asking_);
    to = current_;
  }
  if (Chain* const chain = core.chain.load()) {
    auto limited = [&](std::string_view what) { say(*to, PluginState::limited, what, &found.who); };
    chain->close(*found.place, to && !to->ended ? Sentence(limited) : Sentence());
  }
  const std::int64_t now_ns = engine::now_ns();
  bool was_last = false;
  std::uint64_t openings = 0;
  {
    const std::lock_guard asking(asking_);
    if (core.communicators.close(token) == nullptr) return;
    let_go_of_mask(found.place->mask);
    was_last = --open_ == 0;
    openings = core.communicators.openings();
    if (found.place->unswept) owes_ = true;  // from here on it is found
    to = current_;                           // as it is by now
  }
  if (was_last) {  // its threads are gone, and NCCL unloads its plugin
    const Inside in;
    if (in) sweep_rest(in, now_ns);
    forget_passed_rest(core, openings);
  }
  if (to && !to->ended) say(*to, PluginState::closed, "", &found.who);
}

}  // namespace ringmain::nccl
