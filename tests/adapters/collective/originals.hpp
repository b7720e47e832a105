// How do the hooks of torchcomms and of PyTorch's process groups (c10d) behave? Written-out models,
// for programs that show a fault there and none here.
//
// They follow torchcomms 0.3 and c10d of PyTorch 2.14 and 2.15, as far as hooks go: where hooks are
// kept, who calls them, in which order, and what an exception does. They are code of this project.
// What is undefined there is not done here: it is noted, and put off until it is harmless.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ringmain::tests::originals {

/// What a hook is told, in words that all registries have.
struct Told {
  std::uint64_t op_id = 0;
  std::uint64_t work = 0;  // by which an end is said; 0: not known here
  bool failed = false;     // of an end
};
using Hook = std::function<void(const Told&)>;
/// What the backend does for an operation; it may say the end, `ok` or not, before it returns.
using End = std::function<void(bool ok)>;
using Backend = std::function<void(const End&)>;
inline void takes_it(const End&) {}
/// What the caller of an operation is left with.
struct Called {
  bool result = false;
};

/// What a program saw: whether the fault is there, and how often hooks were called at all.
struct Saw {
  bool fault = false;
  int calls = 0;
};

/// Hooks in a map without a lock, iterated in place. Its own lock is the watcher's: it keeps the
/// model defined, and orders nothing that the program could see.
template <template <class...> class Map>
class Unlocked {
 public:
  using Key = std::int64_t;
  void put(Key key, Hook hook) {
    // A std::map stays in order where one is put while its own thread iterates.
    constexpr bool in_place = requires(Map<Key, Hook> map) {
      map.lower_bound(0);
    };
    change(in_place, [key, hook = std::move(hook)](auto& map) { map[key] = hook; });
  }
  /// An unknown key is passed over in silence.
  void erase(Key key) {
    change(false, [key](auto& map) { map.erase(key); });
  }
  void call(const Told& told) {
    std::unique_lock lock(watch_);
    ++iterating_;
    iterates_ = std::this_thread::get_id();
    const Over over{this, lock};
    for (auto at = hooks_.begin(); at != hooks_.end(); ++at) {
      lock.unlock();
      const Relock relock{lock};
      at->second(told);
    }
  }
  /// Was it changed while it was iterated?
  [[nodiscard]] bool undefined() const { return undefined_; }

 private:
  struct Relock {
    std::unique_lock<std::mutex>& lock;
    ~Relock() { lock.lock(); }
  };
  struct Over {
    Unlocked* of;
    std::unique_lock<std::mutex>& lock;
    ~Over() {
      if (--of->iterating_ != 0) return;
      for (const auto& one : of->put_off_) one(of->hooks_);
      of->put_off_.clear();
    }
  };
  template <class F>
  void change(bool may_iterate, F apply) {
    const std::lock_guard lock(watch_);
    if (iterating_ == 0 || (may_iterate && iterates_ == std::this_thread::get_id()))
      return apply(hooks_);
    undefined_ = true;
    put_off_.push_back(std::move(apply));
  }

  std::mutex watch_;
  Map<Key, Hook> hooks_;
  int iterating_ = 0;
  std::thread::id iterates_;
  std::vector<std::function<void(Map<Key, Hook>&)>> put_off_;
  std::atomic<bool> undefined_{false};
};

/// torchcomms' handle: its end leaves the hook where it is.
class RemovableHandle {
 public:
  explicit RemovableHandle(std::function<void()> take_away) : take_away_(std::move(take_away)) {}
  RemovableHandle(RemovableHandle&& other) noexcept = default;
  RemovableHandle& operator=(RemovableHandle&&) = delete;
  ~RemovableHandle() = default;
  /// Once; nobody learns whether there was anything to take away.
  bool remove() {
    std::call_once(*once_, take_away_);
    return true;
  }

 private:
  std::function<void()> take_away_;
  std::unique_ptr<std::once_flag> once_ = std::make_unique<std::once_flag>();
};

/// The work of one operation: its end hooks are a vector without a lock, and whoever sets its
/// status calls them.
class TorchWork {
 public:
  void end_hook(Hook hook) {
    if (ending_) undefined_ = true;  // put off for ever: it is lost
    if (!ending_) end_hooks_.push_back(std::move(hook));
  }
  void set_status(const Told& told) {
    ending_ = true;
    for (const Hook& one : end_hooks_) one(told);
    ending_ = false;
  }
  [[nodiscard]] bool undefined() const { return undefined_; }

 private:
  std::vector<Hook> end_hooks_;
  std::atomic<bool> ending_{false}, undefined_{false};
};

/// TorchComm of torchcomms, with the abort hooks of its backend.
class Torchcomms {
 public:
  static constexpr bool kRemovalWaits = false;
  /// The numbers of operations are the process's, and anybody may set them back.
  static void another_recorder() { next_op_id = 0; }

  /// A hook has no number of the caller's: it gets the next one of a plain counter.
  RemovableHandle pre(Hook hook, std::int64_t = 0) { return kept(hooks_->pre, std::move(hook)); }
  RemovableHandle post(Hook hook, std::int64_t = 0) { return kept(hooks_->post, std::move(hook)); }
  RemovableHandle abort(Hook hook) { return kept(hooks_->abort, std::move(hook)); }
  RemovableHandle scoped_pre(Hook hook) { return pre(std::move(hook)); }
  /// "Post-hook: after the operation completes", says its page.
  RemovableHandle end(Hook hook) { return post(std::move(hook)); }
  /// The real end is said by each work to hooks of its own.
  RemovableHandle end_of_last(Hook hook) {
    work_->end_hook(std::move(hook));
    return RemovableHandle([] {});
  }

  Called all_reduce(const Backend& backend = takes_it) { return operation(next_op_id++, backend); }
  /// No hook is called for it.
  Called window_put() { return {true}; }
  void complete() { work_->set_status({}); }
  /// nullptr: this rank is in no part, and no post hook is called.
  std::unique_ptr<Torchcomms> split(bool mine) {
    const std::uint64_t op_id = next_op_id++;
    hooks_->pre.call({.op_id = op_id});
    if (!mine) return nullptr;
    auto part = std::make_unique<Torchcomms>();
    hooks_->post.call({.op_id = op_id});
    return part;
  }
  void finalize() { (void)operation(std::numeric_limits<std::size_t>::max(), takes_it); }
  /// The watchdog finds it, and then the next collective does.
  void fail() {
    std::thread([this] { run_abort_hooks(); }).join();
    run_abort_hooks();
  }
  void fail_once() { run_abort_hooks(); }
  [[nodiscard]] bool undefined() const {
    return hooks_->pre.undefined() || hooks_->post.undefined() || work_->undefined() || undefined_;
  }

 private:
  using Hooks = Unlocked<std::unordered_map>;
  struct All {
    Hooks pre, post, abort;
  };
  RemovableHandle kept(Hooks& in, Hook hook) {
    const std::int64_t id = next_hook_id_++;
    in.put(id, std::move(hook));
    return RemovableHandle([held = std::weak_ptr<All>(hooks_), &in, id] {
      if (const auto alive = held.lock()) in.erase(id);
    });
  }
  Called operation(std::uint64_t op_id, const Backend& backend) try {
    hooks_->pre.call({.op_id = op_id});
    backend([](bool) {});
    undefined_ |= work_->undefined();
    work_ = std::make_unique<TorchWork>();
    hooks_->post.call({.op_id = op_id});
    return {true};
  } catch (const std::exception&) {  // whatever threw: the caller gets an exception and no work
    return {false};
  }
  /// Each is called, one after another, in this thread; what it throws is logged.
  void run_abort_hooks() { hooks_->abort.call({}); }

  static inline std::uint64_t next_op_id = 0;
  std::shared_ptr<All> hooks_ = std::make_shared<All>();
  std::int64_t next_hook_id_ = 0;
  std::unique_ptr<TorchWork> work_ = std::make_unique<TorchWork>();  // of the last operation
  bool undefined_ = false;                                           // of those before
};

/// ProcessGroup of c10d. 2.14 keeps its hooks in a std::unordered_map, 2.15 in a std::map.
template <template <class...> class Map>
class C10d {
 public:
  static constexpr bool kRemovalWaits = false;
  static void another_recorder() {}
  /// A hook is known by a number that its caller has chosen.
  class Number {
   public:
    Number(C10d* of, Unlocked<Map> C10d::*in, std::int64_t id) : of_(of), in_(in), id_(id) {}
    /// Nobody learns whether there was one.
    bool remove() {
      (of_->*in_).erase(id_);
      return true;
    }

   private:
    C10d* of_;
    Unlocked<Map> C10d::*in_;
    std::int64_t id_;
  };

  Number pre(Hook hook, std::int64_t id = 0) { return kept(&C10d::pre_, std::move(hook), id); }
  Number post(Hook hook, std::int64_t id = 0) { return kept(&C10d::post_, std::move(hook), id); }
  Number end(Hook hook) { return kept(&C10d::end_, std::move(hook), 0); }
  Number abort(Hook hook) { return kept(&C10d::abort_, std::move(hook), 0); }
  Number scoped_pre(Hook hook) { return pre(std::move(hook)); }

  /// Its number counts what this group issues.
  Called all_reduce(const Backend& backend = takes_it) try {
    const std::uint64_t op_id = ++last_op_id_, work = next_work++;
    pre_.call({.op_id = op_id});
    backend([this, work](bool ok) {
      if (ok) end_.call({.work = work});  // of what failed nothing is said
    });
    post_.call({.op_id = op_id, .work = work});
    return {true};
  } catch (const std::exception&) {  // a RuntimeError of the caller's
    return {false};
  }
  /// A group that is made later has no hooks.
  std::unique_ptr<C10d> split(bool mine) { return mine ? std::make_unique<C10d>() : nullptr; }
  void fail() {
    std::thread([this] { abort_.call({}); }).join();
    abort_.call({});
  }
  void fail_once() { abort_.call({}); }
  [[nodiscard]] bool undefined() const { return pre_.undefined() || post_.undefined(); }

 private:
  /// The same number again takes the place of the first one's.
  Number kept(Unlocked<Map> C10d::*in, Hook hook, std::int64_t id) {
    if (id == 0) id = ++last_id_;
    (this->*in).put(id, std::move(hook));
    return {this, in, id};
  }
  static inline std::uint64_t next_work = 1u << 20;
  Unlocked<Map> pre_, post_, end_, abort_;
  std::int64_t last_id_ = 0;
  std::uint64_t last_op_id_ = 0;
};
using C10d214 = C10d<std::unordered_map>;
using C10d215 = C10d<std::map>;

}  // namespace ringmain::tests::originals
