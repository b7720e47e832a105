// Who has subscribed to the fake CUPTI, and what has each enabled? They are never freed: a delivery
// may come after an unsubscription, as in the real one.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "tests/adapters/cuda/fakes/served.hpp"

namespace ringmain::fake {

constexpr int kDomains = 7;
constexpr std::uint32_t kNumbers = 1024;

struct Subscriber {
  CUpti_CallbackFunc callback = nullptr;
  void* user_data = nullptr;
  std::string name;
  bool several = false;  // it may have others beside it
  std::size_t place = 0;
  std::atomic<bool> there{true};
  std::atomic<bool> dead{false};  // cuptiFinalize ended it
  std::atomic<int> inside{0};     // threads in enable or state: it has to see to one at a time
  std::array<std::array<std::atomic<bool>, kNumbers>, kDomains> enabled{};

  [[nodiscard]] bool hears(int domain, std::uint32_t cbid) const {
    return cbid < kNumbers && enabled[static_cast<std::size_t>(domain)][cbid];
  }
};

/// All of CUPTI's fake's state that deliveries look at.
struct Cupti {
  std::array<std::atomic<Subscriber*>, kSubscribersMax> places{};
  std::atomic<Subscriber*> left{nullptr};  // the last that unsubscribed
  std::atomic<bool> finalized{false};
  std::atomic<unsigned> hostile{0};
  std::atomic<int> late{0};                // deliveries to `left` that are still to come
  std::array<std::atomic<int>, 2> lose{};  // by site
  std::atomic<std::uint64_t> asked{0}, delivered{0}, overlaps{0}, dead_handles{0}, disabled{0};
  std::recursive_mutex own_lock;
  std::atomic<bool> locks{false};
};
Cupti& cupti();

/// Holds CUPTI's own lock where the test asked for one: in its functions, and while it calls back.
class OwnLock {
 public:
  OwnLock() : lock_(cupti().own_lock, std::defer_lock) {
    if (cupti().locks) lock_.lock();
  }

 private:
  std::unique_lock<std::recursive_mutex> lock_;
};

/// Takes one of `left` if there is one.
bool take(std::atomic<int>& left);

/// Does what a test has said by fake_cupti_during().
void in_the_middle(std::string_view function);

/// Asks what a test has given by fake_cupti_script(). 0: the function goes on.
int scripted(const char* function);

extern const Onlooker kOnlooker;
/// A notice of the domain of states.
void deliver_state(std::uint32_t cbid, int result, const char* message);

}  // namespace ringmain::fake
