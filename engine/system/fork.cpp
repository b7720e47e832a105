#include "engine/system/fork.hpp"

#include <new>
#include <pthread.h>

namespace ringmain::engine {

constinit Atomic<std::uint32_t> forks{0};

/// All witnesses by rank, under one lock that is held while the process forks.
struct ForkWitnesses {
  static void add(ForkWitness& w) {
    const std::lock_guard lock(mutex);
    if (!watching && ::pthread_atfork(&before, &after, &child) != 0) throw std::bad_alloc();
    watching = true;
    ForkWitness** at = &first;
    for (; *at != nullptr && (*at)->rank_ < w.rank_; at = &(*at)->next_) w.before_ = *at;
    w.next_ = *at;
    if (*at != nullptr) (*at)->before_ = &w;
    *at = &w;
  }
  static void remove(ForkWitness& w) {
    const std::lock_guard lock(mutex);
    (w.before_ == nullptr ? first : w.before_->next_) = w.next_;
    if (w.next_ != nullptr) w.next_->before_ = w.before_;
  }

  static void before() {
    mutex.lock();
    for (ForkWitness* w = first; w != nullptr; w = w->next_) w->before_fork();
  }
  static void after() {
    for (ForkWitness* w = last(); w != nullptr; w = w->before_) w->after_fork();
    mutex.unlock();
  }
  static void child() {
    // Relaxed: there is no other thread; later ones are started after this.
    forks.store(forks.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    register_barrier_again();
    for (ForkWitness* w = last(); w != nullptr; w = w->before_) w->in_child();
    mutex.unlock();
  }
  static ForkWitness* last() {
    ForkWitness* w = first;
    while (w != nullptr && w->next_ != nullptr) w = w->next_;
    return w;
  }

  static std::mutex mutex;
  static ForkWitness* first;
  static bool watching;
};
constinit std::mutex ForkWitnesses::mutex;
constinit ForkWitness* ForkWitnesses::first = nullptr;
constinit bool ForkWitnesses::watching = false;

void ForkWitness::begin_watching() {
  ForkWitnesses::add(*this);
}
void ForkWitness::end_watching() noexcept {
  ForkWitnesses::remove(*this);
}

void keep_from_before_fork(const void* object) noexcept {
  struct Kept {
    const void* object;
    Kept* next;
  };
  static Atomic<Kept*> kept{nullptr};
  auto* mine = new (std::nothrow) Kept{object, nullptr};
  if (mine == nullptr) return;
  mine->next = kept.load(std::memory_order_relaxed);  // relaxed: nobody walks the list
  while (!kept.compare_exchange_weak(mine->next, mine, std::memory_order_relaxed)) {  // relaxed
  }
}

}  // namespace ringmain::engine
