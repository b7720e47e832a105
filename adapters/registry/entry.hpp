// What does the registry keep of one provider? Not for users of the registry.
#pragma once
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "adapters/registry.hpp"

namespace ringmain::registry {

[[nodiscard]] inline std::string in_quotes(std::string_view word) {
  return "'" + std::string(word) + "'";
}

/// One provider and its factory, which is loaded once however many threads ask for it.
class Entry {
 public:
  using Loads = Result<std::shared_ptr<const Factory>>;

  explicit Entry(Provider provider) : provider_(std::move(provider)) {}

  [[nodiscard]] const Provider& provider() const noexcept { return provider_; }
  [[nodiscard]] std::string title() const {
    return std::string(to_string(provider_.kind)) + " " + in_quotes(provider_.name);
  }
  [[nodiscard]] ProviderInfo info() const {
    const std::lock_guard lock(mutex_);
    ProviderInfo made{provider_.kind,
                      provider_.name,
                      provider_.tags,
                      provider_.summary,
                      provider_.argument,
                      provider_.from,
                      ProviderInfo::State::not_loaded,
                      "",
                      opened_,
                      provider_.run};
    if (factory_ != nullptr) made.state = ProviderInfo::State::loaded;
    if (failed_) {
      made.state = ProviderInfo::State::failed;
      made.fault = failed_->message;
    }
    return made;
  }

  /// `took` is set for the one caller that loaded it, also where that failed.
  Loads factory(std::optional<std::chrono::nanoseconds>& took) {
    std::unique_lock lock(mutex_);
    bool waited = false;
    while (loading_) {
      if (by_ == std::this_thread::get_id()) {
        return Error{Error::Code::refused,
                     title() + " asks for itself while it is loaded; let it do so later"};
      }
      waited = true;
      changed_.wait(lock);
    }
    if (factory_ != nullptr) return factory_;
    if (waited && failed_) return *failed_;  // the load that this call waited for
    loading_ = true;
    by_ = std::this_thread::get_id();
    lock.unlock();
    const auto begin = std::chrono::steady_clock::now();
    Result<Factory> loaded = call_loader();
    took = std::chrono::steady_clock::now() - begin;
    lock.lock();
    loading_ = false;
    changed_.notify_all();
    if (!loaded) {
      failed_ = loaded.error();
      return *failed_;
    }
    failed_.reset();
    factory_ = std::make_shared<const Factory>(std::move(loaded).value());
    return factory_;
  }

  /// Keeps the plugin loaded. Held during a factory's call, and while the object that it made
  /// lives.
  void opening() {
    const std::lock_guard lock(mutex_);
    ++opened_;
    inside_.push_back(std::this_thread::get_id());
  }
  void opening_over() {
    const std::lock_guard lock(mutex_);
    inside_.erase(std::find(inside_.begin(), inside_.end(), std::this_thread::get_id()));
    changed_.notify_all();
  }
  void closed() noexcept {
    const std::lock_guard lock(mutex_);
    --opened_;
  }

  /// Waits until no loader and no factory is running in another thread.
  void wait_idle() {
    std::unique_lock lock(mutex_);
    const auto me = std::this_thread::get_id();
    changed_.wait(lock, [&] {
      const bool others = std::any_of(inside_.begin(), inside_.end(),
                                      [me](const std::thread::id id) { return id != me; });
      return !others && (!loading_ || by_ == me);
    });
  }

  /// For unloading several entries at once.
  [[nodiscard]] std::unique_lock<std::mutex> lock() const { return std::unique_lock(mutex_); }
  [[nodiscard]] std::uint32_t in_use_locked() const noexcept {
    return opened_ + (loading_ ? 1u : 0u);
  }
  [[nodiscard]] std::shared_ptr<const Factory> take_factory_locked() noexcept {
    return std::exchange(factory_, nullptr);
  }

 private:
  Result<Factory> call_loader() const {
    try {
      Result<Factory> loaded = provider_.load();
      if (!loaded) return loaded;
      const bool right = loaded.value().index() == static_cast<std::size_t>(provider_.kind);
      const bool there =
          std::visit([](const auto& f) { return static_cast<bool>(f); }, loaded.value());
      if (right && there) return loaded;
      return Error{Error::Code::refused, title() + " gave " +
                                             (right ? "no factory" : "a factory of another kind") +
                                             "; mend its loader"};
    } catch (const std::exception& thrown) {
      return Error{Error::Code::refused, title() + " could not be loaded: " + thrown.what()};
    } catch (...) {
      return Error{Error::Code::refused,
                   title() + " could not be loaded: it threw what is no std::exception"};
    }
  }

  const Provider provider_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool loading_ = false;
  std::thread::id by_;
  std::vector<std::thread::id> inside_;
  std::shared_ptr<const Factory> factory_;
  std::optional<Error> failed_;
  std::uint32_t opened_ = 0;
};

}  // namespace ringmain::registry
