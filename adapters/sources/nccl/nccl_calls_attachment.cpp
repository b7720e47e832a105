#include "adapters/sources/nccl/nccl_calls_attachment.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <new>
#include <optional>
#include <utility>

#include "engine/system/thread_exit.hpp"

#include "events/terms/collective_names.hpp"

namespace ringmain::nccl {
namespace detail {

void set_gates() noexcept;

namespace {

constinit KnownComm nobody;

struct Attached {
  std::mutex mutex;
  std::shared_ptr<Attachment> here;
};
/// Never destroyed: programs call NCCL until they are gone.
Attached& the_attached() {
  static auto* const one = new Attached;
  return *one;
}
/// How many forks lay before the process that is attached, and 1; 0: none is.
constinit std::atomic<std::uint64_t> attached_in{0};

// What is called later at the thread's end may call NCCL.
constinit thread_local bool thread_over = false;

/// Lets go of what the thread holds when it ends.
void end_thread(void* its) {
  const std::unique_ptr<ThreadCalls> calls(static_cast<ThreadCalls*>(its));
  thread_state.known = &nobody;
  thread_state.calls = nullptr;
  thread_state.waiting = 0;
  thread_over = true;
}
// Not a thread_local object with a destructor, for which the C library ends the process where there
// is no memory.
constinit engine::ThreadExit at_thread_exit{&end_thread};

}  // namespace

constinit thread_local ThreadState thread_state
    __attribute__((tls_model("initial-exec"))){&nobody, nullptr, 0, 0, 0, nullptr};

ThreadCalls* thread_calls() {
  if (thread_state.calls == nullptr) {
    if (thread_over) return nullptr;
    auto made = std::make_unique<ThreadCalls>();
    if (!at_thread_exit.ask(made.get())) throw std::bad_alloc();
    thread_state.calls = made.release();
  }
  return static_cast<ThreadCalls*>(thread_state.calls);
}

bool heard_here() noexcept {
  return attached_in == std::uint64_t{engine::forks} + 1;
}

std::shared_ptr<Attachment> attached() noexcept {
  Attached& all = the_attached();
  const std::lock_guard lock(all.mutex);
  return all.here;
}

std::shared_ptr<Known> take_known(const void* handle) noexcept try {
  ThreadCalls* const mine = thread_calls();
  if (mine != nullptr && mine->known != nullptr && mine->known->handle == handle)
    return std::move(mine->known);
  const auto to = attached();
  return to == nullptr ? nullptr : to->find(handle);
} catch (const std::bad_alloc&) {
  return nullptr;
}

void give_back(std::shared_ptr<Known> known) noexcept {
  auto* const mine = static_cast<ThreadCalls*>(thread_state.calls);
  if (mine == nullptr) return;  // the thread ends
  thread_state.known = known.get();
  const auto before = std::exchange(mine->known, std::move(known));
}

namespace {
constinit thread_local std::array<char, 320> refused_text{};
}  // namespace

/// The thread's last call that somebody was told of is this one, and a hook has refused it.
void remember_refusal(const void* comm, Function which, std::string_view group,
                      const collective::Issuing& refused) noexcept {
  const Name why = refused.reason();
  const char* const by =
      refused.vetoed() ? "a hook of ringmain's refused it" : "ringmain refused it";
  (void)std::snprintf(
      refused_text.data(), refused_text.size(), "%s on '%.*s': NCCL was not called, as %s: %.*s",
      kFunctionRows[static_cast<unsigned>(which)].symbol, static_cast<int>(group.size()),
      group.data(), by, static_cast<int>(why.view().size()), why.view().data());
  thread_state.refused_on = comm;
}

const char* refusal(const void* comm) noexcept {
  const bool is_it = comm == nullptr || comm == thread_state.refused_on;
  return is_it && heard_here() ? refused_text.data() : nullptr;
}

collective::Communicator communicator_of(const void* comm) noexcept try {
  const auto to = comm != nullptr && heard_here() ? attached() : nullptr;
  const auto known = to == nullptr ? nullptr : to->find(comm);
  return known == nullptr ? collective::Communicator{} : known->comm;
} catch (const std::bad_alloc&) {
  return {};
}

Attachment::Attachment(Bus& on, const CallsOptions& with, std::shared_ptr<collective::Ledger> by)
    : bus(on), options(with), ledger(std::move(by)) {}

std::uint64_t Attachment::communicators() noexcept {
  const std::lock_guard lock(mutex_);
  return known_.size();
}

std::shared_ptr<Known> Attachment::find_made(const void* handle) {
  const std::lock_guard lock(mutex_);
  const auto found = known_.find(handle);
  return found == known_.end() ? nullptr : found->second;
}

std::shared_ptr<Known> Attachment::find(const void* handle) {
  std::optional<Making> making;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = known_.find(handle); found != known_.end()) return found->second;
    if (const auto found = being_made_.find(handle); found != being_made_.end())
      making = found->second;
  }
  if (!making) return adopt(handle);
  // The program has not asked whether it is there, but calls for an operation.
  auto known = make_known(handle, *making, making->rank);
  const std::lock_guard lock(mutex_);
  if (known != nullptr) being_made_.erase(handle);
  return known;
}

std::shared_ptr<Known> Attachment::adopt(const void* handle) {
  Making unnamed;
  {
    const std::lock_guard lock(mutex_);
    unnamed.name = "nccl-" + std::to_string(++adopted_);
  }
  return make_known(handle, unnamed, -1);
}

/// nullptr: NCCL does not say what it is.
std::shared_ptr<Known> Attachment::make_known(const void* handle, const Making& making, int rank) {
  int size = making.ranks, device = collective::kNoDevice;
  if (const int result = ask(Function::CommCount, handle, &size);
      result != kSuccess && (result != kNoFunction || size == 0))
    return nullptr;
  if (ask(Function::CommUserRank, handle, &rank) != kSuccess && rank < 0) return nullptr;
  if (ask(Function::CommCuDevice, handle, &device) != kSuccess) device = collective::kNoDevice;

  const BusUse::In in(bus_use);  // not while NCCL is asked, which may hang
  if (!in) return nullptr;
  if (options.completions) ends.prepare();  // the thread's context is the communicator's by now
  auto known = std::make_shared<Known>(self_.lock(), device);
  collective::CommunicatorOptions how;
  how.name = making.name;
  how.backend = how.source = "nccl";
  how.rank = rank;
  how.size = size;
  how.device = device;
  how.abort = [weak = std::weak_ptr(known), handle](Name) {
    if (const auto one = weak.lock()) give_up(*one, handle);
  };
  auto comm = making.parent != nullptr ? making.parent->comm.part(how)
                                       : collective::Communicator::make(bus, how);
  if (!comm) return nullptr;
  known->comm = std::move(comm).value();
  known->handle = handle;
  std::shared_ptr<Known> before;  // NCCL gives a handle again
  {
    const std::lock_guard lock(mutex_);
    if (!over_) {
      before = std::exchange(known_[handle], known);
      if (before != nullptr) before->retire();
      return known;
    }
  }
  known->retire();
  known->comm.end({.reason = "the wrapper was detached"});
  return nullptr;
}

/// An operation of its own, which nobody could have seen before: it has failed.
void Attachment::not_made(const Making& making, int result) noexcept {
  collective::Issued asked;
  asked.op = Name("init");
  asked.group = Name(making.name);
  asked.backend = asked.source = Name("nccl");
  asked.rank = making.rank;
  asked.group_size = making.ranks;
  const std::uint64_t id = ledger->issue(asked);
  collective::Failed said = failure(result);
  said.source = asked.source;
  if (id != 0) (void)ledger->failed(id, said);
  ++failed_inits;
}

void Attachment::made(const Making& making, int result) {
  if (result != kSuccess && result != kInProgress) return not_made(making, result);
  for (int i = 0; i < making.count; ++i) {
    const void* const handle = making.out[i];
    if (handle == nullptr) continue;
    Making one = making;
    one.rank = making.which == Function::CommInitAll ? i : making.rank;
    if (result == kSuccess) {
      (void)make_known(handle, one, one.rank);
    } else if (result == kInProgress) {
      const std::lock_guard lock(mutex_);
      if (!over_) being_made_[handle] = std::move(one);
    }
  }
}

void Attachment::settled(const void* handle, int result) {
  std::optional<Making> making;
  std::shared_ptr<Known> known;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = being_made_.find(handle); found != being_made_.end()) {
      making = std::move(found->second);
      being_made_.erase(found);
    }
    if (const auto found = known_.find(handle); found != known_.end()) known = found->second;
  }
  if (making && result == kSuccess) known = make_known(handle, *making, making->rank);
  if (making && result != kSuccess) not_made(*making, result);
  if (known == nullptr) return;
  std::vector<Told> waited;
  {
    const std::lock_guard lock(known->mutex);
    waited.swap(known->in_progress);
  }
  for (Told& one : waited) settle(one, result);
  if (result == kSuccess || known->async_error.exchange(result) == result) return;
  const auto said = failure(result);
  (void)known->comm.fail_open(said.reason.view(), said.how);
}

void Attachment::forget(const std::shared_ptr<Known>& known, bool cancels) {
  const void* const handle = known->handle;
  {
    const std::lock_guard lock(mutex_);
    const auto found = known_.find(handle);
    if (found != known_.end() && found->second == known) known_.erase(found);
  }
  known->retire();
  std::vector<Told> waited;
  {
    const std::lock_guard lock(known->mutex);
    waited.swap(known->in_progress);
  }
  for (Told& one : waited) settle(one, kInProgress, collective::How::cancelled);
  known->comm.end({.cancels = cancels});
}

void Attachment::unmake(const void* handle) noexcept {
  const std::lock_guard lock(mutex_);
  being_made_.erase(handle);
}

void Attachment::end() noexcept {
  decltype(known_) all;
  decltype(being_made_) unmade;
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
    all.swap(known_);
    unmade.swap(being_made_);
  }
  bus_use.close();
  for (const auto& [handle, known] : all) {
    known->retire();
    known->comm.end({.reason = "the wrapper was detached"});
    std::vector<Told> waited;  // they hold what holds them
    const std::lock_guard lock(known->mutex);
    waited.swap(known->in_progress);
  }
  ends.end();
}

std::shared_ptr<Attachment> attach_to(Bus& bus, const CallsOptions& options,
                                      std::shared_ptr<collective::Ledger> ledger) {
  auto made = std::make_shared<Attachment>(bus, options, std::move(ledger));
  made->self_ = made;
  return made;
}

}  // namespace detail

Calls::Calls(Calls&& other) noexcept : attached_(std::move(other.attached_)) {}
Calls& Calls::operator=(Calls&& other) noexcept {
  if (this != &other) {
    detach();
    attached_ = std::move(other.attached_);
  }
  return *this;
}
Calls::~Calls() {
  detach();
}

namespace {
Error heard_already() {
  return {
      Error::Code::conflict,
      "this process's NCCL calls are heard already, on this bus or another: keep that attachment, "
      "or detach it first"};
}
}  // namespace

Result<Calls> Calls::attach(Bus& bus, const CallsOptions& options) {
  using namespace detail;
  if (attached_in != 0) {
    return heard_here()
               ? heard_already()
               : Error{Error::Code::refused,
                       "NCCL's calls were heard in the process that forked this one; attach in a "
                       "child that was made before, or exec"};
  }
  auto ledger = collective::Ledger::of(bus);
  if (!ledger) return ledger.error();
  auto made = attach_to(bus, options, ledger.value());
  if (options.completions) {
    if (auto begun = made->ends.begin(bus, made->bus_use, ledger.value()); !begun)
      return begun.error();
  }
  {
    Attached& all = the_attached();
    const std::lock_guard lock(all.mutex);
    std::uint64_t none = 0;
    if (!attached_in.compare_exchange_strong(none, std::uint64_t{engine::forks} + 1))
      return heard_already();
    all.here = made;
  }
  set_gates();
  Calls calls;
  calls.attached_ = std::move(made);
  return calls;
}

void Calls::detach() noexcept {
  const auto mine = std::move(attached_);
  if (mine == nullptr || mine->forked()) return;
  {
    detail::Attached& all = detail::the_attached();
    const std::lock_guard lock(all.mutex);
    if (all.here != mine) return;
    all.here.reset();
    detail::attached_in = 0;
  }
  detail::set_gates();
  mine->end();
}

CallsFigures Calls::figures() const noexcept {
  if (attached_ == nullptr || attached_->forked()) return {};
  return {attached_->communicators(), attached_->untold,       attached_->refused,
          attached_->ends.armed,      attached_->ends.unarmed, attached_->failed_inits};
}

}  // namespace ringmain::nccl
