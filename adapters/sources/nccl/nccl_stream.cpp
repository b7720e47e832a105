// What happens around an operation on a stream? The communicator's hooks are asked, NCCL is called
// with the thread's current operation set, and what it accepted waits for the end of its group, or
// for NCCL to be no longer in progress. Then it is on its stream, where its end can be armed.
#include <cerrno>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "events/terms/collective_names.hpp"

#include "adapters/sources/collective/collective_current.hpp"
#include "adapters/sources/nccl/nccl_calls_attachment.hpp"
#include "adapters/sources/nccl/nccl_shapes.hpp"

namespace ringmain::nccl::detail {
namespace {

/// A configuration with the operation's id in it. Of what a caller gives, all is copied that it
/// has.
class Tagged {
 public:
  enum : std::size_t { kBytesMax = 512 };

  /// `given`: the caller's, or nullptr. `id` 0: nothing is tagged.
  Tagged(const void* given, std::uint64_t id) noexcept {
    if (id == 0) return;
    ConfigStart start;
    if (given != nullptr) {
      std::memcpy(&start.size, given, sizeof start.size);
      std::memcpy(&start.magic, static_cast<const char*>(given) + sizeof start.size,
                  sizeof start.magic);
      if (start.magic != ConfigStart{}.magic || start.size < sizeof start || start.size > kBytesMax)
        return;  // NCCL judges it
      std::memcpy(bytes_, given, start.size);
      std::memcpy(static_cast<void*>(&start), given, sizeof start);
      if (start.tag != 0) return;  // the program's own
    }
    start.tag = id;
    std::memcpy(bytes_, &start, sizeof start);
    is_made_ = true;
  }
  [[nodiscard]] const void* get() const noexcept { return is_made_ ? bytes_ : nullptr; }

 private:
  /// The part that each NCCL since 2.31 knows.
  struct ConfigStart {
    std::size_t size = sizeof(ConfigStart);
    unsigned magic = 0xcafebeef;
    unsigned version = 23102;
    void* ext = nullptr;
    int undefined[4] = {kNccl, kNccl, kNccl, kNccl};
    const char* algorithms = nullptr;
    int force_algorithms = 1;
    int policy = kNccl;
    std::uint64_t tag = 0;
  };
  static constexpr int kNccl = -2147483647 - 1;  // NCCL_CONFIG_UNDEF_INT
  static_assert(sizeof(ConfigStart) == 64);

  alignas(8) unsigned char bytes_[kBytesMax];
  bool is_made_ = false;
};

/// One call, of which somebody is to be told.
struct Operating {
  Function which, twin;
  const StreamCall& asked;
  void* stream;
  const void* config;
  Make* make;
  void* frame;
  AnyFunction* function;

  int plain() const noexcept {
    const InNccl inside;
    return make(function, frame, nullptr);
  }
  int tagged(const CallsOptions& options, std::uint64_t id) const noexcept {
    const Tagged with(config, options.tags && twin != Function::kCount ? id : 0);
    AnyFunction* const carrier = with.get() == nullptr ? nullptr : function_of(twin);
    const InNccl inside;
    return carrier != nullptr ? make(carrier, frame, with.get()) : make(function, frame, nullptr);
  }
};

/// Its end will be looked for, perhaps when the outer source's call has returned.
bool promised_to_outer(std::uint64_t id) noexcept {
  return collective::current_operation() == id && collective::promise_end();
}

/// It is on its stream. Who will say its end?
void launched(Attachment& to, const collective::Operation& operation, void* stream, bool ours,
              bool promised) noexcept {
  const bool armed = to.options.completions && to.ends.arm(stream, operation.id());
  if (!armed && !promised && ours) operation.forget();
}

/// Keeps what a group, or NCCL, has not put on its stream yet. False: there is no room.
bool keep(Told told, int result) {
  if (thread_state.depth != 0) {
    ThreadCalls* const mine = thread_calls();
    if (mine == nullptr || mine->operations.size() == Attachment::kGroupMax) return false;
    mine->operations.push_back(std::move(told));
    ++thread_state.waiting;
    return true;
  }
  Known& on = *told.on;
  const std::lock_guard lock(on.mutex);
  if (result != kInProgress || on.retired() || on.in_progress.size() == Attachment::kGroupMax)
    return false;
  on.in_progress.push_back(std::move(told));
  return true;
}

void accepted(Told told, int result) noexcept {
  if (thread_state.depth == 0 && result != kInProgress) return settle(told, result);
  const collective::Operation operation = told.operation;
  bool kept = false;
  try {
    kept = keep(std::move(told), result);
  } catch (const std::bad_alloc&) {
  }
  if (kept) return;
  collective::Failed said;
  said.how = collective::How::unknown;
  said.reason = Name("a group has more operations than the 4096 that are followed");
  (void)operation.failed(said);
}

int told_call(const Operating& call, const std::shared_ptr<Known>& known) noexcept {
  Attachment& to = *known->to;
  thread_state.refused_on = nullptr;
  bool ours = to.ledger->mark() == 0;
  Shape shape(call.which, call.asked, known->comm, known->device);
  const bool shown = known->comm.shows_arguments();
  if (shown) shape.describe_tensors();
  const collective::Issued said = shape.issued(call.stream);
  // A part of an outer one ends for itself, and says nothing of the whole.
  const bool whole = ours || to.ledger->marked_as(said.op) != 0;
  collective::Issuing issuing = known->comm.issue(shape.arguments(), said, {.shown = shown});
  if (!issuing) {
    if (known->let_go(issuing)) return call.plain();
    ++to.refused;
    remember_refusal(known->handle, call.which, known->comm.name().view(), issuing);
    return kInvalidUsage;
  }
  const std::uint64_t id = issuing.operation().id();
  int result = kSuccess;
  bool promised = false;
  {
    const collective::CurrentOperation current(id);
    result = call.tagged(to.options, id);
    promised = current.end_is_promised();
  }
  if (result != kSuccess && result != kInProgress) {
    issuing.threw(failure(result));
    return result;
  }
  issuing.returned();
  if (id == 0) return result;
  if (!ours && whole && !promised && to.options.completions) ours = promised_to_outer(id);
  if (thread_state.depth == 0 && result == kSuccess) {
    launched(to, issuing.operation(), call.stream, ours, promised);
  } else {
    accepted({issuing.operation(), known, call.stream, ours, promised}, result);
  }
  return result;
}

}  // namespace

collective::Failed failure(int result) noexcept {
  collective::Failed said;
  said.result = result;
  said.how = result == kTimeout ? collective::How::timed_out : collective::How::error;
  using Words = const char*(int);
  AnyFunction* const words = function_of(Function::GetErrorString);
  const InNccl quiet;
  const char* const text = words == nullptr ? nullptr : reinterpret_cast<Words*>(words)(result);
  said.reason = Name(text == nullptr ? "NCCL refused it" : text);
  return said;
}

void settle(Told& told, int result, collective::How how) noexcept {
  if (how == collective::How::cancelled) {
    collective::Failed said;
    said.how = how;
    said.reason = Name("it was never put on its stream");
    (void)told.operation.failed(said);
  } else if (result != kSuccess) {
    (void)told.operation.failed(failure(result));
  } else {
    launched(*told.on->to, told.operation, told.stream, told.ours, told.promised);
  }
}

int stream_call(Function which, Function twin, const StreamCall& asked, const void* comm,
                const void* stream, const void* config, Make* make, void* frame) noexcept {
  const int kept = errno;
  Operating call{which,  twin, asked, const_cast<void*>(stream),
                 config, make, frame, function_of(which)};
  errno = kept;
  if (thread_state.in_nccl != 0 || call.function == nullptr || comm == nullptr || !heard_here())
    return call.plain();
  std::shared_ptr<Known> known = take_known(comm);
  if (known == nullptr) {
    if (const auto to = attached()) ++to->untold;
    errno = kept;
    return call.plain();
  }
  const int result = known->given_up ? static_cast<int>(kInvalidUsage) : told_call(call, known);
  give_back(std::move(known));
  return result;
}

void end_group(int result, bool simulated) noexcept {
  thread_state.waiting = 0;
  ThreadCalls* const mine = static_cast<ThreadCalls*>(thread_state.calls);
  if (mine == nullptr) return;
  auto operations = std::move(mine->operations);
  auto makings = std::move(mine->makings);
  mine->operations.clear();
  mine->makings.clear();
  if (!heard_here()) return;
  const int kept = errno;
  for (Told& one : operations) {
    if (simulated) {
      settle(one, result, collective::How::cancelled);
    } else if (result != kInProgress) {
      settle(one, result);
    } else {
      accepted(std::move(one), result);
    }
  }
  if (simulated) makings.clear();
  for (const Making& one : makings) {
    try {
      if (const auto to = attached()) to->made(one, result);
    } catch (const std::bad_alloc&) {  // its operations are on a communicator that is found later
    }
  }
  errno = kept;
}

}  // namespace ringmain::nccl::detail
