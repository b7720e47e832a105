// How do communicators come and go? Each call that makes one, or several, is remembered until NCCL
// has made them: until it returns, the group ends, or NCCL is not in progress with it any more.
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "adapters/sources/nccl/nccl_calls_attachment.hpp"

namespace ringmain::nccl::detail {
namespace {

enum : int { kNoColor = -1, kShrinkAborts = 1 };

struct Living {
  Function which;
  const LifeCall& asked;
  Make* make;
  void* frame;
  AnyFunction* function;

  int plain() const noexcept {
    const InNccl inside;
    return make(function, frame, nullptr);
  }
};

/// The name that the program gave the communicator; "": none.
std::string name_in(const void* config) {
  struct Start {  // the part of ncclConfig_t since 2.27
    std::size_t size;
    unsigned magic, version;
    int settings[4];
    const char* net_name;
    int more[2];
    const char* name;
  };
  static_assert(offsetof(Start, name) == 48);
  if (config == nullptr) return {};
  Start start{};
  std::memcpy(&start, config, offsetof(Start, version));
  if (start.magic != 0xcafebeef || start.size < sizeof start) return {};
  std::memcpy(&start, config, sizeof start);
  return start.name == nullptr ? std::string() : std::string(start.name);
}

/// The same on each rank: a hash of the id that they share (FNV-1a).
std::string name_of_id(const void* id) {
  constexpr std::size_t kBytes = 128;
  std::uint64_t hash = 0xcbf29ce484222325;
  const auto* const bytes = static_cast<const unsigned char*>(id);
  for (std::size_t i = 0; i < kBytes; ++i) hash = (hash ^ bytes[i]) * 0x100000001b3;
  std::array<char, 32> text{};
  (void)std::snprintf(text.data(), text.size(), "nccl-%016llx",
                      static_cast<unsigned long long>(hash));
  return text.data();
}

/// Ranks make parts of a communicator in the same order, so the number agrees.
std::string name_of_part(Known& of, const char* how, const char* color) {
  return std::string(of.comm.name().view()) + "/" + how + std::to_string(++of.parts) + color;
}

Making making_of(const Living& call, const std::shared_ptr<Known>& parent) {
  const LifeCall& asked = call.asked;
  Making making;
  making.which = call.which;
  making.out = static_cast<void**>(asked.made);
  making.rank = asked.rank;
  making.ranks = asked.ranks;
  making.parent = parent;
  if (call.which == Function::CommInitAll) making.count = asked.ranks;
  std::string part;
  if (parent != nullptr) {
    const std::string color =
        call.which == Function::CommSplit ? "." + std::to_string(asked.word) : std::string();
    const char* const how = call.which == Function::CommSplit    ? "split"
                            : call.which == Function::CommShrink ? "shrink"
                                                                 : "grow";
    part = name_of_part(*parent, how, color.c_str());
  }
  making.name = name_in(asked.config);
  if (!making.name.empty()) return making;
  if (!part.empty()) {
    making.name = part;
  } else if (asked.ids != nullptr) {
    making.name = name_of_id(asked.ids);
  } else {
    static std::atomic<unsigned> all{0};
    making.name = "nccl-all-" + std::to_string(++all);
  }
  return making;
}

/// They were made, or will have been at the end of the thread's group. NCCL was called: where there
/// is no memory, a communicator is found when it has its first operation.
void keep(Making&& making, int result) noexcept try {
  if (result != kSuccess && result != kInProgress) {
    if (const auto to = attached()) to->not_made(making, result);
    return;
  }
  if (making.out == nullptr) return;
  if (thread_state.depth == 0) {
    if (const auto to = attached()) to->made(making, result);
    return;
  }
  ThreadCalls* const mine = thread_calls();
  if (mine == nullptr || mine->makings.size() == Attachment::kGroupMax) return;
  mine->makings.push_back(std::move(making));
  ++thread_state.waiting;
} catch (const std::bad_alloc&) {
}

/// A split is an operation, too: all ranks of the whole meet in it.
int split(const Living& call, const std::shared_ptr<Known>& whole) {
  Making making = making_of(call, whole);
  const std::string name = making.name;
  collective::Issuing issuing = whole->comm.issue(collective::Split{{}, name});
  if (!issuing) {
    if (whole->let_go(issuing)) return call.plain();
    ++whole->to->refused;
    remember_refusal(call.asked.comm, call.which, whole->comm.name().view(), issuing);
    return kInvalidUsage;
  }
  const int result = call.plain();
  if (result != kSuccess && result != kInProgress) {
    issuing.threw(failure(result));
    return result;
  }
  const bool is_here = thread_state.depth == 0 && result == kSuccess;
  void** const out = making.out;
  keep(std::move(making), result);
  if (!is_here || out == nullptr) {
    issuing.returned();
    return result;
  }
  const auto part = *out == nullptr ? nullptr : whole->to->find_made(*out);
  if (part == nullptr && call.asked.word == kNoColor) whole->comm.no_part();
  issuing.returned_part(part == nullptr ? nullptr : &part->comm);
  return result;
}

int make_of(const Living& call, const std::shared_ptr<Known>& parent) {
  Making making = making_of(call, parent);
  const bool aborts = call.which == Function::CommShrink && parent != nullptr &&
                      (call.asked.word & kShrinkAborts) != 0;
  if (aborts) {
    (void)parent->comm.run_abort_hooks("ncclCommShrink with NCCL_SHRINK_ABORT", "application",
                                       parent->to->options.abort_hooks_within);
    if (parent->to->options.before_abort) parent->to->options.before_abort();
  }
  const int result = call.plain();
  if (aborts && (result == kSuccess || result == kInProgress))
    (void)parent->comm.fail_open("ncclCommShrink with NCCL_SHRINK_ABORT", collective::How::aborted);
  keep(std::move(making), result);
  return result;
}

int finalize(const Living& call, const std::shared_ptr<Known>& known) {
  collective::Issuing issuing = known->comm.issue(collective::Finalize{});
  if (!issuing) {
    if (known->let_go(issuing)) return call.plain();
    ++known->to->refused;
    remember_refusal(call.asked.comm, call.which, known->comm.name().view(), issuing);
    return kInvalidUsage;
  }
  const int result = call.plain();
  if (result == kSuccess || result == kInProgress) {
    issuing.returned();
  } else {
    issuing.threw(failure(result));
  }
  return result;
}

/// A subscriber has aborted it, which the program cannot know: its own end of it is no error.
int after_abort(const Living& call, const std::shared_ptr<Known>& known) {
  if (call.which != Function::CommAbort && call.which != Function::CommDestroy &&
      call.which != Function::CommFinalize)
    return kInvalidUsage;
  if (call.which != Function::CommFinalize) known->to->forget(known, true);
  return kSuccess;
}

int destroy(const Living& call, const std::shared_ptr<Known>& known) {
  if (!known->claim_end()) return after_abort(call, known);
  const int result = call.plain();
  if (result == kSuccess || result == kInProgress) {
    // What is on its stream goes on, and whoever sees its end says it.
    known->to->forget(known, false);
  } else {
    known->unclaim_end();
  }
  return result;
}

int revoke(const Living& call, const std::shared_ptr<Known>& known) {
  (void)known->comm.run_abort_hooks("ncclCommRevoke", "application",
                                    known->to->options.abort_hooks_within);
  if (known->to->options.before_abort) known->to->options.before_abort();
  const int result = call.plain();
  if (result == kSuccess || result == kInProgress)
    (void)known->comm.fail_open("ncclCommRevoke", collective::How::aborted);
  return result;
}

/// The program's own abort, while its thread is in the communicator's.
struct ProgramsAbort {
  const Living* call = nullptr;
  const Known* of = nullptr;
  int result = kSuccess;
  bool is_done = false;
};
constinit thread_local ProgramsAbort* programs_abort = nullptr;

int abort(const Living& call, const std::shared_ptr<Known>& known) {
  ProgramsAbort mine{&call, known.get()};
  ProgramsAbort* const before = std::exchange(programs_abort, &mine);
  try {
    (void)known->comm.abort("ncclCommAbort", "application", known->to->options.abort_hooks_within);
  } catch (const std::bad_alloc&) {  // NCCL's abort needs none of ours
  }
  programs_abort = before;
  // Where another thread has had NCCL free the handle meanwhile, that was it.
  if (!mine.is_done && known->claim_end()) mine.result = call.plain();
  known->to->forget(known, true);
  return mine.result;
}

int ask_for_error(const Living& call) {
  const int result = call.plain();
  if (result != kSuccess || call.asked.error == nullptr) return result;
  int now = kSuccess;
  std::memcpy(&now, call.asked.error, sizeof now);
  if (now == kInProgress) return result;
  try {
    if (const auto to = attached()) to->settled(call.asked.comm, now);
  } catch (const std::bad_alloc&) {  // found when it has its first operation
  }
  return result;
}

int told_call(const Living& call) {
  const auto to = attached();
  if (to == nullptr) return call.plain();
  thread_state.refused_on = nullptr;
  const bool has_one = call.asked.comm != nullptr;
  const auto known = has_one ? to->find_made(call.asked.comm) : nullptr;
  if (known != nullptr && known->given_up) return after_abort(call, known);
  switch (call.which) {
    case Function::CommInitRank:
    case Function::CommInitRankConfig:
    case Function::CommInitRankScalable:
    case Function::CommInitAll:
    case Function::CommShrink:
    case Function::CommGrow:
      return make_of(call, known);
    case Function::CommGetAsyncError:
      return ask_for_error(call);
    default:
      break;
  }
  if (known == nullptr) {
    const bool ends = call.which == Function::CommDestroy || call.which == Function::CommAbort;
    if (ends) to->unmake(call.asked.comm);
    return call.plain();
  }
  switch (call.which) {
    case Function::CommSplit:
      return split(call, known);
    case Function::CommFinalize:
      return finalize(call, known);
    case Function::CommDestroy:
      return destroy(call, known);
    case Function::CommAbort:
      return abort(call, known);
    default:
      return revoke(call, known);
  }
}

}  // namespace

void give_up(Known& known, const void* handle) noexcept {
  if (known.to->options.before_abort) known.to->options.before_abort();
  if (!known.claim_end()) return;  // the program has ended it meanwhile
  if (programs_abort != nullptr && programs_abort->of == &known) {
    programs_abort->result = programs_abort->call->plain();
    programs_abort->is_done = true;
    return;
  }
  known.given_up = true;  // first: nobody is to use the handle while NCCL frees it
  (void)ask(Function::CommAbort, handle);
}

int life_call(Function which, const LifeCall& asked, Make* make, void* frame) noexcept {
  const int kept = errno;
  const Living call{which, asked, make, frame, function_of(which)};
  errno = kept;
  if (thread_state.in_nccl != 0 || call.function == nullptr || !heard_here()) return call.plain();
  try {
    return told_call(call);
  } catch (const std::bad_alloc&) {
    // Before NCCL was called: what comes after that throws nothing.
    return call.plain();
  }
}

}  // namespace ringmain::nccl::detail
