#include "adapters/sources/collective/torchcomms_calls.hpp"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <new>
#include <unistd.h>
#include <utility>
#include <vector>

#include "engine/system/thread_exit.hpp"

namespace ringmain::collective::torchcomms {
namespace {

/// What this thread's hooks are called with. Lives while they are.
class Passing {
 public:
  Passing(const Arguments* arguments, std::uint64_t op_id, Given given) noexcept
      : arguments_(arguments),
        op_id_(op_id),
        given_(given),
        outer_(std::exchange(innermost, this)) {}
  Passing(const Passing&) = delete;
  Passing& operator=(const Passing&) = delete;
  ~Passing() { innermost = outer_; }

  /// nullptr: this thread's hook is called for something else.
  static const void* find(const Arguments* arguments, std::uint64_t op_id,
                          const std::type_info& type) noexcept {
    const Passing* const one = innermost;
    if (one == nullptr || one->arguments_ != arguments || one->op_id_ != op_id) return nullptr;
    return one->given_.type != nullptr && *one->given_.type == type ? one->given_.object : nullptr;
  }

 private:
  static constinit thread_local const Passing* innermost;
  const Arguments* arguments_;  // of a pre hook; of a post hook: nullptr
  std::uint64_t op_id_;         // of a post hook; of a pre hook: 0
  Given given_;
  const Passing* outer_;
};
constinit thread_local const Passing* Passing::innermost = nullptr;

const Name no_post(
    "torchcomms called no post hook: its backend threw, or a hook of its own refused");

/// A call whose post hook has not come.
struct Open {
  Open(const Calls* calls, std::size_t id, const Arguments& arguments, Given given, bool inside)
      : of(calls), op_id(id), reports(calls->communicator()) {
    // Inside a call of another communicator, or after one that had no post hook: nobody can tell.
    if (inside) outside.emplace();
    const Passing passing(&arguments, 0, given);
    struct Issue {
      const Communicator& by;
      const Arguments& with;
      operator Issuing() const { return by.issue(with); }  // NOLINT: made in place, it marks
    };
    issuing.emplace(Issue{reports, arguments});
    is_split = std::holds_alternative<Split>(arguments);
  }
  void had_no_post() noexcept {
    if (!is_split) return issuing->threw(no_post.view());
    reports.no_part();
    issuing->returned_part(nullptr);
  }

  const Calls* of;
  std::size_t op_id;
  Communicator reports;
  std::optional<Ledger::Outside> outside{};  // ends after `issuing`
  std::optional<Issuing> issuing{};
  bool is_split = false;
};

/// The calls that this thread is inside of, the innermost last. Made when the first has been
/// issued, and ended with the thread; the main thread's with the process.
class OpenHere {
 public:
  /// nullptr: there is none.
  static OpenHere* get() noexcept { return here; }
  /// Throws std::bad_alloc, also where the system has no key left.
  static void add(std::unique_ptr<Open> call) {
    if (over) return;  // the thread ends: it is said to have returned
    if (here == nullptr) {
      auto made = std::make_unique<OpenHere>();
      if (!at_thread_exit.ask(made.get())) throw std::bad_alloc();
      here = made.release();
      if (::gettid() == ::getpid()) (void)std::atexit([] { end(here); });
    }
    here->all.push_back(std::move(call));
  }

  /// From the one at `at` on they had no post hook.
  void leave(std::size_t at) noexcept {
    while (all.size() > at) {
      const auto last = std::move(all.back());  // its hooks may call for operations
      all.pop_back();
      last->had_no_post();
    }
  }
  std::vector<std::unique_ptr<Open>> all;

 private:
  static void end(void* its) noexcept {
    const std::unique_ptr<OpenHere> mine(static_cast<OpenHere*>(its));
    if (mine) mine->leave(0);
    here = nullptr;
    over = true;
  }
  static constinit thread_local OpenHere* here;
  static constinit thread_local bool over;
  // Not a thread_local object with a destructor, for which the C library ends the process where
  // there is no memory.
  static constinit engine::ThreadExit at_thread_exit;
};
constinit thread_local OpenHere* OpenHere::here = nullptr;
constinit thread_local bool OpenHere::over = false;
constinit engine::ThreadExit OpenHere::at_thread_exit{&OpenHere::end};

/// The call that is over; those inside of it are, too.
std::unique_ptr<Open> take(const Calls* calls, std::size_t op_id) {
  OpenHere* const here = OpenHere::get();
  if (here == nullptr) return nullptr;
  auto& all = here->all;
  const auto found = std::find_if(all.rbegin(), all.rend(), [&](const auto& one) {
    return one->of == calls && one->op_id == op_id;
  });
  if (found == all.rend()) return nullptr;
  here->leave(static_cast<std::size_t>(all.rend() - found));
  auto taken = std::move(all.back());
  all.pop_back();
  return taken;
}

}  // namespace

Name Calls::before(std::size_t op_id, const Arguments& arguments, Given given) const {
  bool inside = false;
  if (OpenHere* const here = OpenHere::get()) {
    auto& all = here->all;
    const auto mine =
        std::find_if(all.begin(), all.end(), [this](const auto& one) { return one->of == this; });
    here->leave(static_cast<std::size_t>(mine - all.begin()));
    inside = !all.empty();
  }
  auto made = std::make_unique<Open>(this, op_id, arguments, given, inside);
  if (!*made->issuing) {
    const bool over = reports_.ended() || reports_.aborted();
    return over ? Name() : made->issuing->reason();
  }
  if (made->issuing->operation().id() != 0) OpenHere::add(std::move(made));
  return {};
}

std::optional<Operation> Calls::after(std::size_t op_id, const void* work, Given given) const {
  const auto call = take(this, op_id);
  if (call == nullptr) return std::nullopt;
  const Operation operation = call->issuing->operation();
  const Passing passing(nullptr, operation.id(), given);
  call->issuing->returned(work);
  return operation;
}

std::optional<Operation> Calls::after_split(std::size_t op_id, const Communicator* part,
                                            Given given) const {
  const auto call = take(this, op_id);
  if (call == nullptr) return std::nullopt;
  const Operation operation = call->issuing->operation();
  const Passing passing(nullptr, operation.id(), given);
  call->issuing->returned_part(part);
  return operation;
}

const void* given_for(const PreHookArgs& args, const std::type_info& type) noexcept {
  return Passing::find(args.arguments, 0, type);
}
const void* given_for(const PostHookArgs& args, const std::type_info& type) noexcept {
  return Passing::find(nullptr, args.op_id, type);
}

void say_end(const Operation& operation, End end) noexcept {
  if (end == End::completed) return void(operation.completed());
  Failed what;
  switch (end) {
    case End::timed_out:
      what.how = How::timed_out;
      what.reason = Name("torchcomms: the work has timed out");
      break;
    case End::error:
      what.how = How::error;
      what.reason = Name("torchcomms: the work has failed");
      break;
    default:
      what.how = How::unknown;
      what.reason = Name("torchcomms does not say its end");
  }
  (void)operation.failed(what);
}

Name dtype_of(std::string_view theirs) noexcept {
  // As c10::toString() writes them.
  static constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"Float", "float32"},
      {"Double", "float64"},
      {"Half", "float16"},
      {"BFloat16", "bfloat16"},
      {"Long", "int64"},
      {"Int", "int32"},
      {"Short", "int16"},
      {"Char", "int8"},
      {"Byte", "uint8"},
      {"Bool", "bool"},
      {"UInt16", "uint16"},
      {"UInt32", "uint32"},
      {"UInt64", "uint64"},
      {"ComplexHalf", "complex32"},
      {"ComplexFloat", "complex64"},
      {"ComplexDouble", "complex128"},
      {"Float8_e5m2", "float8_e5m2"},
      {"Float8_e4m3fn", "float8_e4m3fn"}};
  const auto at = std::find_if(std::begin(kWords), std::end(kWords),
                               [&](const auto& one) { return one.first == theirs; });
  return Name(at == std::end(kWords) ? theirs : at->second);
}

}  // namespace ringmain::collective::torchcomms
