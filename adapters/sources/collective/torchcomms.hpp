// How does code for torchcomms' hooks come here, and how do torchcomms' operations?
//
//   torchcomms::Hooks<TorchComm, decltype(make)> comm(ours, make);   // its registration calls
//   auto handle = comm->registerPreHook(f);       // as it was
//
//   auto source = torchcomms::attach(bus, theirs).value();   // its operations, on our bus
//   auto guard = source.communicator().pre_hook(…);
//
// Both are templates over torchcomms' TorchComm, for its hooks of 0.3, and need none of its
// headers. They are tested on a stand-in with its documented surface, and not on torchcomms itself.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "../../../bus/bus.hpp"
#include "../../../bus/result.hpp"

#include "communicator.hpp"
#include "torchcomms_arguments.hpp"
#include "torchcomms_calls.hpp"

namespace ringmain::collective::torchcomms {

/// A hook of ours refuses: thrown through torchcomms, whose caller gets it. Or torchcomms' program
/// registers a hook where none can be, which torchcomms has no code for.
struct Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

namespace detail {

/// The arguments of torchcomms' hooks: of std::function<void(size_t, const Args&)>.
template <class F>
struct ArgsOf {
  static_assert(
      !std::is_same_v<F, F>,
      "its hooks are not called with (size_t op_id, const Args&): torchcomms 0.3 is known");
};
template <class Args>
struct ArgsOf<std::function<void(std::size_t, const Args&)>> {
  using Type = Args;
};
template <class Comm>
using PreArgs = typename ArgsOf<typename Comm::PreHook>::Type;
template <class Comm>
using PostArgs = typename ArgsOf<typename Comm::PostHook>::Type;

/// The arguments of a post hook whose work, communicator or window is not torchcomms': empty.
template <class Theirs>
Theirs post_args() {
  if constexpr (requires(Theirs & a) { a.work.lock(); }) {
    using Weak = std::remove_cvref_t<decltype(std::declval<Theirs&>().work)>;
    return Theirs{Weak(decltype(std::declval<Weak&>().lock()){})};
  } else if constexpr (requires(Theirs & a) { a.new_comm; }) {
    return Theirs{decltype(std::declval<Theirs&>().new_comm){}};
  } else if constexpr (requires(Theirs & a) { a.new_window; }) {
    return Theirs{decltype(std::declval<Theirs&>().new_window){}};
  } else {
    return Theirs{};
  }
}

/// Calls `see` with such arguments, if torchcomms has the operation.
template <class Variant, class F>
void with_post_args(OpName name, F see) {
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    const auto one = [&]<std::size_t Ours>(std::integral_constant<std::size_t, Ours>) {
      constexpr std::size_t kAt = kTheirsFor<Variant, Ours, kPost>;
      if constexpr (kAt != kNone) {
        if (static_cast<std::size_t>(name) == Ours)
          see(Variant(post_args<std::variant_alternative_t<kAt, Variant>>()));
      }
    };
    (one(std::integral_constant<std::size_t, I>()), ...);
  }
  (std::make_index_sequence<kOpNames>());
}

}  // namespace detail

/// torchcomms' tensors cannot be made of ours.
struct NoTensors {};

/// torchcomms' registration calls, on a communicator of ours: code that registers hooks on a
/// TorchComm does it here with only the object changed, also where that is a pointer. Copies are
/// the same. Hooks come and go as communicator.hpp says, and see `op_id` of ours.
///
/// On a communicator of attach() below, hooks get torchcomms' own arguments. On any other they get
/// arguments made of ours: tensors by `make(const Tensor&)`, no work, window or new communicator.
/// A pre hook for which that cannot be done refuses the operation, as it may be a guard. An
/// operation that torchcomms does not have passes its hooks by.
/// Post hooks are called for each call of the pre hooks, refused ones and those that threw as well.
template <class Comm, class Make = NoTensors>
class Hooks {
 public:
  using PreHook = typename Comm::PreHook;
  using PostHook = typename Comm::PostHook;
  using AbortHook = typename Comm::AbortHook;
  using RemovableHandle =
      typename decltype(std::declval<Comm&>().registerPreHook(PreHook()))::element_type;

  explicit Hooks(Communicator on, Make make = {}) : on_(std::move(on)), make_(std::move(make)) {}

  /// As torchcomms': dropping the handle keeps the hook. Throws Refused where none can be
  /// registered (Communicator::pre_hook()).
  std::unique_ptr<RemovableHandle> registerPreHook(PreHook hook) const {
    return kept(
        on_.register_pre_hook([hook = std::move(hook), make = make_](const PreHookArgs& args) {
          return ask(hook, make, args);
        }));
  }
  std::unique_ptr<RemovableHandle> registerPostHook(PostHook hook) const {
    return kept(on_.register_post_hook(
        [hook = std::move(hook)](const PostHookArgs& args) { tell(hook, args); }));
  }
  /// Called in a thread of its own.
  std::unique_ptr<RemovableHandle> registerAbortHook(AbortHook hook) const {
    return kept(
        on_.register_abort_hook([hook = std::move(hook)](const AbortHookArgs&) { hook(); }));
  }
  const Hooks* operator->() const noexcept { return this; }
  [[nodiscard]] const Communicator& communicator() const noexcept { return on_; }

 private:
  using Pre = detail::PreArgs<Comm>;
  using Post = detail::PostArgs<Comm>;

  /// What it throws refuses.
  static Verdict ask(const PreHook& hook, const Make& make, const PreHookArgs& args) {
    const auto op_id = static_cast<std::size_t>(args.op_id);
    if (const void* const theirs = given_for(args, typeid(Pre))) {
      hook(op_id, *static_cast<const Pre*>(theirs));
    } else if constexpr (std::is_same_v<Make, NoTensors>) {
      throw Refused(
          "a hook for torchcomms' tensors is on a communicator without them; give Hooks a function "
          "that makes them");
    } else {
      const ShownAs<Pre, Make> made(*args.arguments, make);
      if (made.shown) hook(op_id, *made.shown);
    }
    return Verdict::allow();
  }
  static void tell(const PostHook& hook, const PostHookArgs& args) {
    const auto op_id = static_cast<std::size_t>(args.op_id);
    if (const void* const theirs = given_for(args, typeid(Post)))
      return hook(op_id, *static_cast<const Post*>(theirs));
    detail::with_post_args<Post>(args.name, [&](const Post& made) { hook(op_id, made); });
  }
  static std::unique_ptr<RemovableHandle> kept(Result<collective::RemovableHandle> made) {
    if (!made) throw Refused(made.error().message);
    return std::make_unique<RemovableHandle>([handle = made.value()] { (void)handle.remove(); });
  }

  Communicator on_;
  Make make_;
};

namespace detail {

/// The ends of one operation, as its work says them. Where the work goes without an end, nobody
/// will say it.
template <class Weak>
class Followed {
 public:
  Followed(Operation operation, Weak work)
      : operation_(std::move(operation)), work_(std::move(work)) {}
  Followed(const Followed&) = delete;
  Followed& operator=(const Followed&) = delete;
  ~Followed() {
    if (!over_) say_end(operation_, End::unknown);
  }
  void started() const noexcept { (void)operation_.started(); }
  void ended() noexcept {
    if (over_.exchange(true)) return;
    const auto work = work_.lock();
    say_end(operation_, work ? end_of(work->status()) : End::unknown);
  }
  void waits() noexcept { waiting_ = operation_.begin_wait(); }
  void has_waited() noexcept { operation_.end_wait(waiting_.exchange(0)); }

 private:
  template <class Status>
  static End end_of(Status status) noexcept {
    if (status == Status::COMPLETED) return End::completed;
    if (status == Status::TIMEDOUT) return End::timed_out;
    return status == Status::ERROR ? End::error : End::unknown;
  }
  const Operation operation_;
  const Weak work_;
  std::atomic<bool> over_{false};
  std::atomic<std::int64_t> waiting_{0};  // since when somebody does
};

/// Hears what becomes of it from the work's lifecycle hooks.
template <class Weak>
void follow(const Operation& operation, const Weak& weak) {
  const auto work = weak.lock();
  if (!work) return say_end(operation, End::unknown);
  if constexpr (requires { work->registerWorkEndHook(std::function<void()>()); }) {
    const auto followed = std::make_shared<Followed<Weak>>(operation, weak);
    work->registerWorkStartHook([followed] { followed->started(); });
    work->registerWorkEndHook([followed] { followed->ended(); });
    work->registerWorkWaitPreHook([followed] { followed->waits(); });
    work->registerWorkWaitPostHook([followed] { followed->has_waited(); });
  } else {
    say_end(operation, End::unknown);
  }
}

/// All communicators that came of one attach().
struct Family {
  std::atomic<bool> active{true};
  std::string source;
  std::mutex mutex;
  std::vector<Communicator> members;
};

/// What is registered on one communicator of torchcomms'. Its hooks hold it, for its life.
template <class Comm>
class Attached {
 public:
  Attached(Communicator ours, std::shared_ptr<Family> family)
      : calls_(std::move(ours)), family_(std::move(family)) {}
  Attached(const Attached&) = delete;
  Attached& operator=(const Attached&) = delete;
  ~Attached() { calls_.communicator().end(); }

  /// A communicator for `theirs`; a part of `whole`, if there is one. Throws std::bad_alloc.
  static Result<Communicator> attach(Bus* bus, const std::shared_ptr<Comm>& theirs,
                                     const Communicator& whole,
                                     const std::shared_ptr<Family>& family) {
    const std::string name(theirs->getCommName()), backend(theirs->getBackend());
    std::vector<int> ranks;
    if constexpr (requires { ranks = theirs->getRanks(); }) ranks = theirs->getRanks();
    CommunicatorOptions options;
    options.name = name;
    options.backend = backend;
    options.source = family->source;
    options.rank = theirs->getRank();
    options.size = theirs->getSize();
    options.ranks = ranks;
    options.abort = aborts(theirs);
    auto made = bus != nullptr ? Communicator::make(*bus, options) : whole.part(options);
    if (!made) return made.error();
    {
      const std::lock_guard lock(family->mutex);
      std::erase_if(family->members, [](const Communicator& one) { return one.ended(); });
      family->members.push_back(made.value());
    }
    const auto held = std::make_shared<Attached>(made.value(), family);
    (void)theirs->registerPreHook(
        [held](std::size_t op_id, const PreArgs<Comm>& args) { held->before(op_id, args); });
    (void)theirs->registerPostHook(
        [held](std::size_t op_id, const PostArgs<Comm>& args) { held->after(op_id, args); });
    if (theirs->isAbortSupported()) (void)theirs->registerAbortHook([held] { held->gives_up(); });
    return made;
  }

 private:
  static std::function<void(Name)> aborts(const std::shared_ptr<Comm>& theirs) {
    if (!theirs->isAbortSupported()) return nullptr;
    return [held = std::weak_ptr<Comm>(theirs)](Name) {
      if (const auto alive = held.lock()) alive->abort();
    };
  }
  void before(std::size_t op_id, const PreArgs<Comm>& args) {
    if (!family_->active) return;
    const ArgumentsOf ours(args);
    const Name why = calls_.before(op_id, ours.arguments, {&args, &typeid(args)});
    if (why != Name()) throw Refused(std::string(why.view()));
  }
  /// Nothing of ours may cost torchcomms' caller the work.
  void after(std::size_t op_id, const PostArgs<Comm>& args) noexcept try {
    const Given given{&args, &typeid(args)};
    std::visit(
        [&](const auto& one) {
          if constexpr (requires { one.work.lock(); }) {
            const auto work = one.work.lock();
            const auto operation = calls_.after(op_id, work ? &*work : nullptr, given);
            if (operation) follow(*operation, one.work);
          } else if constexpr (requires { one.new_comm; }) {
            after_split(op_id, one.new_comm.lock(), given);
          } else {
            (void)calls_.after(op_id, nullptr, given);
            if (kOursFor<std::remove_cvref_t<decltype(one)>, kPost> ==
                static_cast<std::size_t>(OpName::finalize))
              calls_.communicator().end();
          }
        },
        args);
  } catch (...) {
    // No memory: the operation stays open until its communicator ends.
  }
  void after_split(std::size_t op_id, const std::shared_ptr<Comm>& theirs, Given given) {
    Communicator part;
    if (theirs != nullptr && family_->active) {
      auto made = attach(nullptr, theirs, calls_.communicator(), family_);
      if (made) part = std::move(made).value();
    }
    (void)calls_.after_split(op_id, part ? &part : nullptr, given);
  }
  void gives_up() {
    if (family_->active)
      (void)calls_.communicator().run_abort_hooks("torchcomms gives the group up", "torchcomms");
  }

  const Calls calls_;
  const std::shared_ptr<Family> family_;
};

}  // namespace detail

/// What was attached. Its end detaches. Move-only.
class [[nodiscard]] Source {
 public:
  Source() noexcept = default;
  Source(Communicator ours, std::shared_ptr<detail::Family> family) noexcept
      : ours_(std::move(ours)), family_(std::move(family)) {}
  Source(Source&& other) noexcept = default;
  Source& operator=(Source&& other) noexcept {
    Source(std::move(other)).swap(*this);
    return *this;
  }
  ~Source() { detach(); }
  void swap(Source& other) noexcept {
    std::swap(ours_, other.ours_);
    family_.swap(other.family_);
  }
  [[nodiscard]] const Communicator& communicator() const noexcept { return ours_; }
  /// Nothing more is heard, and our communicators have ended. The pair of hooks stays with each of
  /// torchcomms', as torchcomms allows no removal while a collective runs; they do nothing.
  void detach() noexcept {
    if (family_ == nullptr) return;
    family_->active = false;
    std::vector<Communicator> members;  // their hooks are called when no lock is held
    {
      const std::lock_guard lock(family_->mutex);
      members.swap(family_->members);
    }
    for (const Communicator& one : members) one.end();
    family_.reset();
  }
  /// Leaves it attached for torchcomms' life.
  void release() noexcept { family_.reset(); }

 private:
  Communicator ours_;
  std::shared_ptr<detail::Family> family_;
};

/// Reports the operations of `theirs`, and of all that is split from it, on `bus`, and lets our
/// hooks on them: one pre, one post and one abort hook are registered on each, once. torchcomms
/// asks that no collective of `theirs` runs meanwhile.
///
/// A refusal is thrown through torchcomms, as Refused. Started, completed and failed come from the
/// lifecycle hooks of the work; a revision without them says no end: failed as `unknown`, when the
/// call has returned. Each time that torchcomms runs abort hooks is an incident of its own.
/// Refusals: as Communicator::make(). Throws std::bad_alloc.
template <class Comm>
[[nodiscard]] Result<Source> attach(Bus& bus, const std::shared_ptr<Comm>& theirs,
                                    std::string_view source = "torchcomms") {
  if (theirs == nullptr)
    return Error{Error::Code::refused, "there is no communicator of torchcomms; make it first"};
  auto family = std::make_shared<detail::Family>();
  family->source = source;
  auto ours = detail::Attached<Comm>::attach(&bus, theirs, {}, family);
  if (!ours) return ours.error();
  return Source(std::move(ours).value(), std::move(family));
}

}  // namespace ringmain::collective::torchcomms
