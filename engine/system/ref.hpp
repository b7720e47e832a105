// What keeps an object alive? A count inside it. The last holder deletes it, but not in the child
// of a fork that came after the object was made.
#pragma once
#include <cstdint>
#include <utility>

#include "atomics.hpp"
#include "fork.hpp"

namespace ringmain::engine {

/// Base of objects that buses, handles and threads share. Starts with no holder.
class Counted : public Born {
 public:
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  void hold() const noexcept {
    holders_.fetch_add(1, std::memory_order_relaxed);
  }  // relaxed: it is held already
  void release() const noexcept {
    if (holders_.fetch_sub(1, std::memory_order_acq_rel) != 1)
      return;  // r.released: then all uses are over
    if (forked()) return keep_from_before_fork(this);
    delete this;
  }

 protected:
  Counted() = default;
  virtual ~Counted() = default;

 private:
  mutable Atomic<std::uint32_t> holders_{0};
};

template <class T>
class Ref {
 public:
  Ref() = default;
  Ref(T* object) noexcept
      : object_(object) {  // NOLINT(google-explicit-constructor): a holder of it
    if (object_ != nullptr) object_->hold();
  }
  Ref(const Ref& other) noexcept : Ref(other.object_) {}
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() {
    if (object_ != nullptr) object_->release();
  }
  [[nodiscard]] T* get() const noexcept { return object_; }
  T* operator->() const noexcept { return object_; }
  T& operator*() const noexcept { return *object_; }
  explicit operator bool() const noexcept { return object_ != nullptr; }
  friend bool operator==(const Ref& a, const Ref& b) noexcept { return a.object_ == b.object_; }

 private:
  T* object_ = nullptr;
};

}  // namespace ringmain::engine
