// How do the callbacks behave that ours improve on? A model of torch._dynamo.callback's handler, as
// it acts and not as it is written, so that a test can show each defect before it shows ours
// without it.
//
// What would hang for ever throws WouldHang here: a lock that its own thread wants again, or that
// another thread holds in a callback.
#pragma once
#include <atomic>
#include <cstddef>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace ringmain::compile::original {

struct WouldHang : std::logic_error {
  using std::logic_error::logic_error;
};
struct ValueError : std::logic_error {
  using std::logic_error::logic_error;
};
struct AssertionError : std::logic_error {
  using std::logic_error::logic_error;
};

/// All that a callback is given.
struct CallbackArgs {
  int callback_trigger = 0;
  std::string compile_id;
};

/// A function with a name by which equal ones are found.
struct Callback {
  std::string name;
  std::function<void(const CallbackArgs&)> call;
};

/// A list that is changed while it is walked: by position, so a removal skips the next one.
class CallbackList {
 public:
  void append(Callback callback) { all_.push_back(std::move(callback)); }
  void remove(const std::string& name) {
    for (std::size_t i = 0; i < all_.size(); ++i) {
      if (all_[i].name != name) continue;
      all_.erase(all_.begin() + static_cast<std::ptrdiff_t>(i));
      return;
    }
    throw ValueError("list.remove(x): x not in list");
  }
  void run(const CallbackArgs& args) {
    for (std::size_t i = 0; i < all_.size(); ++i) {
      const auto call = all_[i].call;
      call(args);
    }
  }
  void clear() { all_.clear(); }
  [[nodiscard]] std::size_t size() const { return all_.size(); }

 private:
  std::vector<Callback> all_;
};

class Lock {
 public:
  void lock() {
    if (owner_ == std::this_thread::get_id()) throw WouldHang("by the thread that holds it");
    if (!mutex_.try_lock()) throw WouldHang("while another thread is in a callback");
    owner_ = std::this_thread::get_id();
  }
  void unlock() {
    owner_ = std::thread::id();
    mutex_.unlock();
  }

 private:
  std::mutex mutex_;
  std::atomic<std::thread::id> owner_{};
};

class Handler {
 public:
  CallbackList start_callbacks;
  CallbackList end_callbacks;

  /// The body runs between the callbacks of the outermost compile.
  void install_callbacks(const CallbackArgs& args, const std::function<void()>& body) {
    try {
      {
        const std::lock_guard lock(lock_);
        ++pending_;
        if (pending_ == 1) start_callbacks.run(args);
      }
      body();
    } catch (...) {
      leave(args);  // what it throws replaces the exception that is being thrown
      throw;
    }
    leave(args);
  }
  /// As torch._dynamo.reset() does it.
  void clear() {
    const std::lock_guard lock(lock_);
    start_callbacks.clear();
    end_callbacks.clear();
    if (pending_ != 0) throw AssertionError("pending callbacks");
  }
  [[nodiscard]] int pending() const { return pending_; }

 private:
  void leave(const CallbackArgs& args) {
    const std::lock_guard lock(lock_);
    if (pending_ <= 0) throw AssertionError("Pending callbacks counter cannot become negative.");
    if (pending_ == 1) end_callbacks.run(args);
    --pending_;
  }

  Lock lock_;
  int pending_ = 0;
};

/// Of its four triggers it fires three: the autotuner's call was commented out, "due to spam".
inline bool fires(int trigger) {
  return trigger != 3;
}

}  // namespace ringmain::compile::original
