// A span of which nobody makes an event, because only plugins behind ringmain's want it: they are
// called, and what they gave is noted under a token. No clock is read, nothing is published, and
// nobody waits for a thread that is here: it uses only what is never freed.
#include <array>
#include <bit>

#include "adapters/sources/nccl/nccl_callbacks.hpp"
#include "adapters/sources/nccl/nccl_chain.hpp"
#include "adapters/sources/nccl/nccl_chained_plugin.hpp"
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
  if (core.passed.read(token, kPassedOf, of)) return of;
  const Pin span = core.spans.pin(token);
  return span && span->of != nullptr ? core.communicators.token_of_place(*span->of) : 0;
}

/// Where a span belongs. Two words, which are handed back in registers.
struct Belonging {
  enum : std::uint64_t { kNowhere = 0, kForeign = 1, kUntold = 2 };  // no communicator's tokens
  std::uint64_t token = kNowhere;
  const Communicator* place = nullptr;
  [[nodiscard]] bool is_told() const noexcept { return token != kUntold; }
  [[nodiscard]] bool is_foreign() const noexcept { return token == kForeign; }
};
/// Of what another process may have asked for, and of what is in no communicator. Of a proxy
/// operation that another process asked for nothing is looked at. One of a process with our number
/// in another namespace cannot be told from our own by those behind.
template <class D>
[[gnu::noinline]] Belonging belonging_elsewhere(Core& core, const void* context,
                                                const D& what) noexcept {
  Belonging found;
  if (what.type == abi::kProxyStep || what.type == abi::kNetPlugin) {
    found.token = communicator_of(core, what.parent);
    found.place = core.communicators.place_of(engine::Token(found.token));
    return found;
  }
  const bool proxy_op = what.type == abi::kProxyOp;
  if (!proxy_op || what.proxy_op.pid == core.process) {
    found.token = token_of(context).bits();
    found.place = core.communicators.place_of(token_of(context));
    if (found.place != nullptr) return found;
    found.token = Belonging::kUntold;
    if (!proxy_op) {
      core.counts.no_context.add();
      return found;
    }
    core.counts.filtered.add();
  } else {
    found.token = Belonging::kForeign;
  }
  core.counts.detached.add();
  return found;
}
template <class D>
[[gnu::always_inline]] inline Belonging belonging(Core& core, const void* context,
                                                  const D& what) noexcept {
  constexpr std::uint64_t kOfOthers = abi::kProxyOp | abi::kProxyStep | abi::kNetPlugin;
  Belonging found;
  found.token = token_of(context).bits();
  if ((what.type & kOfOthers) == 0) [[likely]]
    found.place = core.communicators.place_of(token_of(context));
  if (found.place == nullptr) [[unlikely]]
    found = belonging_elsewhere(core, context, what);
  return found;
}

void* context_of(const Belonging& in, std::size_t plugin) noexcept {
  return in.place == nullptr ? nullptr : in.place->chained[plugin].load();
}
[[gnu::noinline]] void* of_followed(Core& core, engine::Token token, std::size_t plugin) noexcept {
  const Pin span = core.spans.pin(token);
  return span ? span->chained[plugin] : nullptr;
}
/// What a plugin gave for a span that may be over.
[[gnu::always_inline]] inline void* theirs_of(Core& core, engine::Token token,
                                              std::size_t plugin) noexcept {
  std::uint64_t theirs = 0;
  if (core.passed.read(token, plugin, theirs)) [[likely]]
    return std::bit_cast<void*>(theirs);
  return of_followed(core, token, plugin);
}
/// What they know as the parent, and as the plan of an operation, which is named at `at`.
template <class D>
void* parent_for(Core& core, const Belonging& in, const D& what, std::size_t plugin) noexcept {
  return what.parent == nullptr || in.is_foreign() ? nullptr
                                                   : theirs_of(core, token_of(what.parent), plugin);
}
template <class D>
void** plan_at(D& what) noexcept {
  return has_plan(what.type) ? &plan_of(what) : nullptr;
}
void* plan_for(Core& core, void* const* at, std::size_t plugin) noexcept {
  return at == nullptr || *at == nullptr ? nullptr : theirs_of(core, token_of(*at), plugin);
}
/// What they gave stays under that handle.
[[gnu::always_inline]] inline void* note(Core& core, const Belonging& in,
                                         engine::Token token) noexcept {
  core.passed.write(token, kPassedOf,
                    in.place == nullptr ? core.communicators.openings() : in.token);
  core.counts.started.add();
  core.passed.publish(token);
  return handle_of(token);
}
[[gnu::noinline]] void* nobody_follows(Core& core, engine::Token token) noexcept {
  core.passed.give_back(token);
  core.counts.filtered.add();
  return nullptr;
}

/// Each has a descriptor of its own: what one writes there is not told to the next.
template <class D>
[[gnu::noinline]] void* pass_copies(Core& core, Chain& chain, const Belonging& in,
                                    D& what) noexcept {
  const engine::Token token = core.passed.take(threads_seed(), Core::kTries);
  if (token.bits() == 0) {
    core.counts.no_room.add();
    return nullptr;
  }
  const bool timed = Chain::is_timed(token);
  bool any = false;
  for (std::size_t i = 0; i < chain.size(); ++i) {
    void* const handle =
        chain.at(i).start_copy(context_of(in, i), what, parent_for(core, in, what, i),
                               plan_for(core, plan_at(what), i), timed);
    core.passed.write(token, i, std::bit_cast<std::uint64_t>(handle));
    any |= handle != nullptr;
  }
  if (!any) return nobody_follows(core, token);
  return note(core, in, token);
}

}  // namespace

void* handle_for(Core& core, const void* handle, std::size_t plugin) noexcept {
  return handle == nullptr ? nullptr : theirs_of(core, token_of(handle), plugin);
}

template <class D>
void* pass_on(void* context, D& what) noexcept {
  Core* const core = here();
  if (core == nullptr) return nullptr;
  const std::uint64_t type = what.type;
  if ((type & (type - 1)) != 0 || (type & abi::all_types(version_of<D>())) == 0) {
    core->counts.unknown_types.add();
    return nullptr;
  }
  Chain* const chain = core->chain.load();
  if (chain == nullptr) {  // listeners have just left
    core->counts.filtered.add();
    return nullptr;
  }
  const Belonging in = belonging(*core, context, what);
  if (!in.is_told()) return nullptr;
  ChainedPlugin* const only = chain->only();
  if (only == nullptr || only->version() != version_of<D>())
    return pass_copies(*core, *chain, in, what);
  // It is alone, and is given NCCL's own descriptor.
  void* const its = context_of(in, 0);
  if (!only->wants(its, type)) {
    core->counts.filtered.add();
    return nullptr;
  }
  void** const names_plan = plan_at(what);
  void* const parent = parent_for(*core, in, what, 0);
  void* const plan = plan_for(*core, names_plan, 0);
  const engine::Token token = core->passed.take(threads_seed(), Core::kTries);
  if (token.bits() == 0) {
    core->counts.no_room.add();
    return nullptr;
  }
  void* handle = nullptr;
  {
    const WithParents<D> theirs(what, parent, names_plan, plan);
    handle = only->start_with<D>(only->start_of<D>(), its, what, Chain::is_timed(token));
  }
  if (handle == nullptr) return nobody_follows(*core, token);
  core->passed.write(token, 0, std::bit_cast<std::uint64_t>(handle));
  return note(*core, in, token);
}
template void* pass_on(void*, abi::DescriptorV4&) noexcept;
template void* pass_on(void*, abi::DescriptorV5&) noexcept;
template void* pass_on(void*, abi::DescriptorV6&) noexcept;
template void* pass_on(void*, abi::DescriptorV7&) noexcept;

namespace {

[[gnu::noinline]] void stop_several(Core& core, Chain& chain, engine::Token which) noexcept {
  Passed::Words handles;
  if (!core.passed.end(which, handles.data(), chain.size())) return core.counts.stale_stops.add();
  core.counts.stopped.add();
  for (std::size_t i = 0; i < chain.size(); ++i)
    chain.stop(i, std::bit_cast<void*>(handles[i]), Chain::is_timed(which));
}

}  // namespace

void pass_stop(Core& core, engine::Token which) noexcept {
  if (core.forked()) return;
  Chain& chain = *core.chain.load();
  ChainedPlugin* const only = chain.only();
  if (only == nullptr) return stop_several(core, chain, which);
  std::uint64_t handle = 0;
  if (!core.passed.end(which, &handle, 1)) return core.counts.stale_stops.add();
  core.counts.stopped.add();
  only->stop_with(only->stop_of(), std::bit_cast<void*>(handle), Chain::is_timed(which));
}

void pass_record(engine::Token which, abi::State state, abi::StateArgs* args) noexcept {
  Core* const core = here();
  if (core == nullptr) return;
  if (!core->passed.is_open(which)) return core->counts.stale_states.add();
  Chain& chain = *core->chain.load();
  const bool timed = Chain::is_timed(which);
  for (std::size_t i = 0; i < chain.size(); ++i) {
    std::uint64_t handle = 0;
    if (core->passed.read(which, i, handle))
      chain.record(i, std::bit_cast<void*>(handle), state, args, timed);
  }
}

void forget_passed(Core& core, engine::Token communicator) noexcept {
  core.passed.for_each_open([&](engine::Token which) noexcept {
    Passed::Words words;
    std::uint64_t of = 0;
    if (!core.passed.read(which, kPassedOf, of) || of != communicator.bits()) return;
    if (core.passed.end(which, words)) core.counts.aborted.add();
  });
}

void forget_passed_rest(Core& core, std::uint64_t openings) noexcept {
  core.passed.for_each_open([&](engine::Token which) noexcept {
    Passed::Words words;
    std::uint64_t of = 0;
    if (!core.passed.read(which, kPassedOf, of)) return;
    const engine::Token communicator(of);
    const bool in_none = communicator.cookie() == 0;
    if (in_none ? of > openings : core.communicators.is_open(communicator)) return;
    if (core.passed.end(which, words)) core.counts.aborted.add();
  });
}

}  // namespace ringmain::nccl
