#include "adapters/sources/nccl/nccl_front.hpp"

#include <cerrno>
#include <string>
#include <strings.h>
#include <type_traits>
#include <utility>

#include "adapters/sources/nccl/nccl_callbacks.hpp"
#include "adapters/sources/nccl/nccl_chain.hpp"
#include "adapters/sources/nccl/nccl_control.hpp"
#include "adapters/sources/nccl/nccl_descriptors.hpp"

namespace ringmain::nccl {
namespace {

/// Keeps the caller's errno.
class Errno {
 public:
  Errno() noexcept = default;
  Errno(const Errno&) = delete;
  Errno& operator=(const Errno&) = delete;
  ~Errno() { place_ = kept_; }

 private:
  int& place_ = errno;
  const int kept_ = place_;
};

abi::Result init(int version, void** context, std::uint64_t id, int* mask, const char* name,
                 int nodes, int ranks, int rank, abi::Logger log) noexcept {
  if (context == nullptr) return abi::kSuccess;
  const Errno kept;
  Control* const control = Control::here();
  const Identity who{id, rank, ranks, nodes, version, Name{}};  // named where it is not forked
  *context = control == nullptr ? nullptr : control->open(who, {mask, name, log});
  if (control == nullptr) switchboard.counts.no_context.add();
  return abi::kSuccess;
}

/// What those behind ringmain's have for a span.
Chain::Handles chained_of(const Pin& span) noexcept {
  return span ? span->chained : Chain::Handles{};
}

/// A handle of what was passed on, and no more.
bool is_passed(const void* handle) noexcept {
  const Core* const core = switchboard.core.load();
  return core != nullptr && core->passed.is_ours(token_of(handle));
}

/// Not followed, and counted.
void pass_over(bool known) noexcept {
  Counters& counts = switchboard.counts;
  (known ? counts.filtered : counts.unknown_types).add();
}

template <class D>
[[gnu::noinline]] void* start_needed(int version, void* context, const D& what) noexcept {
  const Errno kept;
  const Inside in;
  if (!in) {
    if (!in.entered()) switchboard.counts.no_room.add();
    return nullptr;
  }
  const std::uint64_t type = what.type;
  if ((type & (type - 1)) != 0 || (type & abi::all_types(version)) == 0) {
    in.core().counts.unknown_types.add();
    return nullptr;
  }
  if constexpr (std::is_same_v<D, abi::DescriptorV7>) return begin(in, version, context, what);
  abi::DescriptorV7 widened;
  convert(widened, what, what.parent);
  // Up to v4 the plan is the parent.
  if (version == 4 && type == abi::kColl) widened.coll.parent_group = what.parent;
  if (version == 4 && type == abi::kP2p) widened.p2p.parent_group = what.parent;
  return begin(in, version, context, widened);
}

template <class D>
abi::Result start(int version, void* context, void** handle, D* what) noexcept {
  if (handle == nullptr || what == nullptr) return abi::kSuccess;
  *handle = nullptr;  // whatever NCCL left there
  if ((switchboard.needed.load() & what->type) == 0) [[likely]] {
    pass_over((what->type & abi::all_types(version)) != 0);
    return abi::kSuccess;
  }
  const bool followed = (switchboard.followed.load() & what->type) != 0;
  *handle = followed ? start_needed(version, context, *what) : pass_on(context, *what);
  return abi::kSuccess;
}

}  // namespace

abi::Result init_v4(void** context, int* mask, const char* comm_name, std::uint64_t comm_hash,
                    int n_nodes, int n_ranks, int rank, abi::Logger log) noexcept {
  return init(4, context, comm_hash, mask, comm_name, n_nodes, n_ranks, rank, log);
}
abi::Result init_v5(void** context, std::uint64_t comm_id, int* mask, const char* comm_name,
                    int n_nodes, int n_ranks, int rank, abi::Logger log) noexcept {
  return init(5, context, comm_id, mask, comm_name, n_nodes, n_ranks, rank, log);
}
abi::Result init_v6(void** context, std::uint64_t comm_id, int* mask, const char* comm_name,
                    int n_nodes, int n_ranks, int rank, abi::Logger log) noexcept {
  return init(6, context, comm_id, mask, comm_name, n_nodes, n_ranks, rank, log);
}
abi::Result init_v7(void** context, std::uint64_t comm_id, int* mask, const char* comm_name,
                    int n_nodes, int n_ranks, int rank, abi::Logger log) noexcept {
  return init(7, context, comm_id, mask, comm_name, n_nodes, n_ranks, rank, log);
}

abi::Result start_v4(void* context, void** handle, abi::DescriptorV4* what) noexcept {
  return start(4, context, handle, what);
}
abi::Result start_v5(void* context, void** handle, abi::DescriptorV5* what) noexcept {
  return start(5, context, handle, what);
}
abi::Result start_v6(void* context, void** handle, abi::DescriptorV6* what) noexcept {
  return start(6, context, handle, what);
}
abi::Result start_v7(void* context, void** handle, abi::DescriptorV7* what) noexcept {
  return start(7, context, handle, what);
}

namespace {

[[gnu::noinline]] abi::Result stop_span(void* handle) noexcept {
  const Errno kept;
  const Inside in;
  if (!in) {
    if (!in.entered()) switchboard.counts.stale_stops.add();  // its communicator's end is its end
    return abi::kSuccess;
  }
  Pin span = in.core().spans.pin(token_of(handle));
  Chain* const chain = in.core().chain.load();
  if (chain == nullptr) {
    (void)end(in, std::move(span));
    return abi::kSuccess;
  }
  const Chain::Handles handles = chained_of(span);
  if (end(in, std::move(span))) chain->stop(handles, Chain::is_timed(token_of(handle)));
  return abi::kSuccess;
}

}  // namespace

abi::Result stop(void* handle) noexcept {
  if (handle == nullptr) return abi::kSuccess;
  Core* const core = switchboard.core.load();
  if (core == nullptr || !core->passed.is_ours(token_of(handle))) return stop_span(handle);
  const Errno kept;
  pass_stop(*core, token_of(handle));
  return abi::kSuccess;
}

abi::Result record_state(void* handle, abi::State state, abi::StateArgs* args) noexcept {
  if (handle == nullptr) return abi::kSuccess;
  const Errno kept;
  if (is_passed(handle)) {
    pass_record(token_of(handle), state, args);
    return abi::kSuccess;
  }
  const Inside in;
  if (!in) {
    if (!in.entered()) switchboard.counts.stale_states.add();
    return abi::kSuccess;
  }
  const Pin span = in.core().spans.pin(token_of(handle));
  if (Chain* const chain = in.core().chain.load())
    chain->record(chained_of(span), state, args, Chain::is_timed(token_of(handle)));
  record(in, span, state, args);
  return abi::kSuccess;
}

abi::Result finalize(void* context) noexcept {
  const Errno kept;
  if (Control* const control = Control::here()) control->close(context);
  return abi::kSuccess;
}

bool is_own_table(const void* table) noexcept {
  return static_cast<const abi::TableV7*>(table)->stop_event == &stop;
}

void chain_plugins(const char* list, int version, void (*fault)(const char* sentence)) {
  Core& core = Core::instance();
  if (core.chain.load() != nullptr) return;
  // NCCL's own words for no plugin.
  if (list != nullptr && ::strcasecmp(list, "none") == 0) return;
  const std::string wanted = list == nullptr ? "libnccl-profiler.so" : list;
  auto made = Chain::load(wanted, version, [&](const std::string& sentence) {
    if (list != nullptr) fault(sentence.c_str());  // nobody has asked for the other
  });
  Chain* none = nullptr;
  if (made && core.chain.compare_exchange_strong(none, made.get())) (void)made.release();
}

}  // namespace ringmain::nccl
