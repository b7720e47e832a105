// Peers: a callback registry as most are, functions in a vector that a mutex protects; and the same
// with a shared_mutex.
#include <algorithm>
#include <functional>
#include <mutex>
#include <shared_mutex>
#include <utility>
#include <vector>

#include "bench/peers/sync_peer.hpp"

namespace ringmain::bench {
namespace {

template <class Mutex, template <class> class Read>
class Registry {
 public:
  class Subscribed {
   public:
    Subscribed(Registry& registry, std::uint64_t id) : registry_(&registry), id_(id) {}
    Subscribed(Subscribed&& other) noexcept
        : registry_(std::exchange(other.registry_, nullptr)), id_(other.id_) {}
    Subscribed& operator=(Subscribed&&) = delete;
    ~Subscribed() {
      if (registry_ != nullptr) registry_->remove(id_);
    }

   private:
    Registry* registry_;
    std::uint64_t id_;
  };

  template <class F>
  Subscribed subscribe(F call) {
    const std::lock_guard lock(mutex_);
    callbacks_.emplace_back(++last_, std::move(call));
    return {*this, last_};
  }
  void publish(const Payload& event) {
    const Read<Mutex> lock(mutex_);
    for (const auto& [id, call] : callbacks_) call(event);
  }

 private:
  void remove(std::uint64_t id) {
    const std::lock_guard lock(mutex_);
    std::erase_if(callbacks_, [id](const auto& one) { return one.first == id; });
  }
  Mutex mutex_;
  std::uint64_t last_ = 0;
  std::vector<std::pair<std::uint64_t, std::function<void(const Payload&)>>> callbacks_;
};

[[maybe_unused]] const bool kAdded[] = {
    add_sync_peer<Registry<std::mutex, std::lock_guard>>("mutex_registry"),
    add_sync_peer<Registry<std::shared_mutex, std::shared_lock>>("shared_mutex_registry")};

}  // namespace
}  // namespace ringmain::bench
