// A span of which nobody makes an event, because only plugins behind ringmain's want it: they are
// called, and what they gave is noted under a token. No clock is read, nothing is published, and
// nobody waits for a thread that is here: it uses only what is never freed.
#include <array>
#include <bit>

#include "adapters/sources/nccl/nccl_callbacks.hpp"
#include "adapters/sources/nccl/nccl_chain.hpp"
#include "adapters/sources/nccl/nccl_descriptors.hpp"

namespace ringmain::nccl {
namespace {

/// Where this thread looks for a place next. Each thread begins in a window of its own.
std::uint32_t& threads_seed() noexcept {
  static constinit std::atomic<std::uint32_t> threads{0};
  static constinit thread_local std::uint32_t seed __attribute__((tls_model("initial-exec"))) =
      ~std::uint32_t{0};
  if (seed == ~std::uint32_t{0}) seed = (threads.fetch_add(Passed::kWindow)) & 0x7fffffff;
  return seed;
}

/// The process's, unless this is a forked child.
Core* here() noexcept {
  Core* const core = switchboard.core.load();
  return core == nullptr || core->forked() ? nullptr : core;
}

/// The token of the communicator that a parent belongs to; 0: of none, or not known.
std::uint64_t communicator_of(Core& core, const void* parent) noexcept {
  const engine::Token token = token_of(parent);
  std::uint64_t of = 0;
  if (core.passed.read(token, 0, of)) return of;
  const Pin span = core.spans.pin(token);
  return span && span->of != nullptr ? core.communicators.token_of_place(*span->of) : 0;
}

/// Where a span belongs. `told`: it is passed on.
struct Belonging {
  std::uint64_t token = 0;
  const Communicator* place = nullptr;
  bool told = true, foreign = false;
};
/// Of a proxy operation that another process asked for nothing is looked at. One of a process with
/// our number in another namespace cannot be told from our own by those behind.
template <class D>
[[gnu::always_inline]] inline Belonging belonging(Core& core, const void* context,
                                                  const D& what) noexcept {
  Belonging found;
  if (what.type == abi::kProxyStep || what.type == abi::kNetPlugin) {
    found.token = communicator_of(core, what.parent);
    found.place = core.communicators.place_of(engine::Token(found.token));
    return found;
  }
  const bool proxy_op = what.type == abi::kProxyOp;
  found.foreign = proxy_op && what.proxy_op.pid != core.process;
  if (!found.foreign) {
    found.token = token_of(context).bits();
    found.place = core.communicators.place_of(engine::Token(found.token));
    if (found.place != nullptr) [[likely]]
      return found;
    found.told = false;
    if (!proxy_op) {
      core.counts.no_context.add();
      return found;
    }
    core.counts.filtered.add();
  }
  core.counts.detached.add();
  return found;
}

}  // namespace

void* handle_for(Core& core, const void* handle, std::size_t plugin) noexcept {
  if (handle == nullptr) return nullptr;
  const engine::Token token = token_of(handle);
  std::uint64_t theirs = 0;
  if (core.passed.read(token, 1 + plugin, theirs)) return std::bit_cast<void*>(theirs);
  const Pin span = core.spans.pin(token);
  return span ? span->chained[plugin] : nullptr;
}

template <class D>
void* pass_on(int version, void* context, D& what) noexcept {
  Core* const core = here();
  if (core == nullptr) return nullptr;
  const std::uint64_t type = what.type;
  if ((type & (type - 1)) != 0 || (type & abi::all_types(version)) == 0) {
    core->counts.unknown_types.add();
    return nullptr;
  }
  Chain* const chain = core->chain.load();
  if (chain == nullptr) {  // listeners have just left
    core->counts.filtered.add();
    return nullptr;
  }
  const Belonging in = belonging(*core, context, what);
  if (!in.told) return nullptr;
  const engine::Token token = core->passed.take(threads_seed(), Core::kTries);
  if (token.bits() == 0) {
    core->counts.no_room.add();
    return nullptr;
  }
  const void* const parent = in.foreign ? nullptr : what.parent;
  const void* const plan = has_plan(type) ? plan_of(what) : nullptr;
  const bool timed = Chain::is_timed(token);
  bool any = false;
  for (std::size_t i = 0; i < chain->size(); ++i) {
    void* const handle = chain->pass(i, in.place, what, handle_for(*core, parent, i),
                                     handle_for(*core, plan, i), timed);
    core->passed.write(token, 1 + i, std::bit_cast<std::uint64_t>(handle));
    any |= handle != nullptr;
  }
  if (!any) {
    core->passed.give_back(token);
    core->counts.filtered.add();
    return nullptr;
  }
  core->passed.write(token, 0, in.place == nullptr ? core->communicators.openings() : in.token);
  core->counts.started.add();
  core->passed.publish(token);
  return handle_of(token);
}
template void* pass_on(int, void*, abi::DescriptorV4&) noexcept;
template void* pass_on(int, void*, abi::DescriptorV5&) noexcept;
template void* pass_on(int, void*, abi::DescriptorV6&) noexcept;
template void* pass_on(int, void*, abi::DescriptorV7&) noexcept;

void pass_stop(engine::Token which) noexcept {
  Core* const core = here();
  if (core == nullptr) return;
  Chain& chain = *core->chain.load();
  Passed::Words words;
  if (!core->passed.end(which, words, 1 + chain.size())) return core->counts.stale_stops.add();
  core->counts.stopped.add();
  const bool timed = Chain::is_timed(which);
  for (std::size_t i = 0; i < chain.size(); ++i)
    chain.stop(i, std::bit_cast<void*>(words[1 + i]), timed);
}

void pass_record(engine::Token which, abi::State state, abi::StateArgs* args) noexcept {
  Core* const core = here();
  if (core == nullptr) return;
  if (!core->passed.is_open(which)) return core->counts.stale_states.add();
  Chain& chain = *core->chain.load();
  const bool timed = Chain::is_timed(which);
  for (std::size_t i = 0; i < chain.size(); ++i) {
    std::uint64_t handle = 0;
    if (core->passed.read(which, 1 + i, handle))
      chain.record(i, std::bit_cast<void*>(handle), state, args, timed);
  }
}

void forget_passed(Core& core, engine::Token communicator) noexcept {
  core.passed.for_each_open([&](engine::Token which) noexcept {
    Passed::Words words;
    std::uint64_t of = 0;
    if (!core.passed.read(which, 0, of) || of != communicator.bits()) return;
    if (core.passed.end(which, words)) core.counts.aborted.add();
  });
}

void forget_passed_rest(Core& core, std::uint64_t openings) noexcept {
  core.passed.for_each_open([&](engine::Token which) noexcept {
    Passed::Words words;
    std::uint64_t of = 0;
    if (!core.passed.read(which, 0, of)) return;
    const engine::Token communicator(of);
    const bool in_none = communicator.cookie() == 0;
    if (in_none ? of > openings : core.communicators.is_open(communicator)) return;
    if (core.passed.end(which, words)) core.counts.aborted.add();
  });
}

}  // namespace ringmain::nccl
