// Whose is the `user` that a C function comes with? Destroyed once, by its last holder.
#pragma once
#include <utility>

namespace ringmain::c {

class User {
 public:
  using Destroy = void (*)(void* user);  // nullptr: nothing is to be done

  User(void* user, Destroy destroy) noexcept : user_(user), destroy_(destroy) {}
  User(User&& other) noexcept
      : user_(other.user_), destroy_(std::exchange(other.destroy_, nullptr)) {}
  User& operator=(User&&) = delete;
  ~User() {
    if (destroy_ != nullptr) destroy_(user_);
  }
  [[nodiscard]] void* get() const noexcept { return user_; }

 private:
  void* user_;
  Destroy destroy_;
};

}  // namespace ringmain::c
