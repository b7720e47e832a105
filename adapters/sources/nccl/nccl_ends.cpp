#include "adapters/sources/nccl/nccl_ends.hpp"

#include <dlfcn.h>
#include <new>
#include <utility>

#include "adapters/launch/channel_of.hpp"
#include "adapters/launch/original.hpp"

namespace ringmain::nccl::detail {
namespace {

/// What is asked of the driver, if the program has loaded one.
struct Driver {
  using GetCurrent = int(void** context);
  using IsCapturing = int(void* stream, int* status);
  Driver() noexcept {
    void* const library = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    get_current = run::found_in<GetCurrent>(library, "cuCtxGetCurrent");
    is_capturing = run::found_in<IsCapturing>(library, "cuStreamIsCapturing");
  }
  [[nodiscard]] void* context() const noexcept {
    void* now = nullptr;
    return get_current != nullptr && get_current(&now) == 0 ? now : nullptr;
  }
  [[nodiscard]] bool captures(void* stream) const noexcept {
    int status = 0;
    return is_capturing == nullptr || is_capturing(stream, &status) != 0 || status != 0;
  }
  GetCurrent* get_current = nullptr;
  IsCapturing* is_capturing = nullptr;
};

constexpr std::uint64_t kIdMask = (std::uint64_t{1} << Ends::kMarkShift) - 1;

void say_end(collective::Ledger& ledger, const cuda::Completion& end) noexcept {
  if (end.tag >> Ends::kMarkShift != Ends::kMark) return;
  const std::uint64_t op_id = end.tag & kIdMask;
  if (end.outcome == cuda::Outcome::completed) {
    (void)ledger.completed(op_id);
    return;
  }
  collective::Failed said;
  const bool failed = end.outcome == cuda::Outcome::failed;
  said.how = failed ? collective::How::error : collective::How::unknown;
  said.result = failed ? end.result : 0;
  said.reason = failed ? Name("its stream's context has met an error, or is gone")
                       : Name("whoever watched its stream has ended");
  (void)ledger.failed(op_id, said);
}

}  // namespace

Result<bool> Ends::begin(Bus& bus, BusUse& use, std::shared_ptr<collective::Ledger> ledger) {
  auto channel = run::channel_of<cuda::Completion>(bus);
  if (!channel) return channel.error();
  bus_ = &bus;
  use_ = &use;
  subscription_ = channel.value()->subscribe_inline(
      [ledger = std::move(ledger)](const cuda::Completion& end) { say_end(*ledger, end); });
  return true;
}

bool Ends::arm_here(void* stream, std::uint64_t tag) noexcept {
  const std::size_t made = made_;
  for (std::size_t i = 0; i < made; ++i) {
    const cuda::Armed answer = all_[i].arm(stream, tag);
    if (answer) return true;
    if (answer.code != cuda::ArmCode::other_context) return false;
  }
  return false;
}

/// CUDA is called without a lock: of two threads that come at once one has made it for nothing.
void Ends::prepare() noexcept try {
  if (bus_ == nullptr || failures_ >= kContextsMax) return;
  void* const context = Driver().context();
  if (context == nullptr) return;
  for (std::size_t i = 0, made = made_; i < made; ++i) {
    if (contexts_[i] == context) return;
  }
  const BusUse::In in(*use_);
  if (!in) return;
  auto made = cuda::Completions::make(*bus_);
  if (!made) {
    failures_ += made.error().code == Error::Code::not_found ? std::uint32_t{kContextsMax} : 1U;
    return;
  }
  const std::lock_guard lock(mutex_);
  const std::size_t at = made_;
  for (std::size_t i = 0; i < at; ++i) {
    if (contexts_[i] == context) return;
  }
  if (at == kContextsMax || over_) return;
  all_[at] = std::move(made).value();
  contexts_[at] = context;
  made_ = at + 1;
} catch (const std::bad_alloc&) {
}

bool Ends::arm(void* stream, std::uint64_t op_id) noexcept {
  if (bus_ == nullptr || op_id == 0 || op_id > kIdMask) return false;
  const std::uint64_t tag = std::uint64_t{kMark} << kMarkShift | op_id;
  bool done = arm_here(stream, tag);
  // A context that no communicator was made in. Nothing is made while a graph is recorded.
  if (!done && !Driver().captures(stream)) {
    prepare();
    done = arm_here(stream, tag);
  }
  ++(done ? armed : unarmed);
  return done;
}

void Ends::end() noexcept {
  std::size_t made = 0;
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
    made = made_;
  }
  for (std::size_t i = 0; i < made; ++i) (void)all_[i].end(cuda::CompletionsOptions{}.end_ns);
  subscription_.reset();
}

}  // namespace ringmain::nccl::detail
