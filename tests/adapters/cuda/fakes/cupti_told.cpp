// How does a test tell the fake CUPTI to be unkind, and what may it ask? What concerns answers is
// in cupti.cpp.
#include <algorithm>
#include <mutex>
#include <string_view>

#include "tests/adapters/cuda/fakes/cupti_subscribers.hpp"

namespace ringmain::fake {
namespace {
struct Middle {
  std::mutex mutex;
  std::string_view function;  // empty: of none
  void (*call)(void*) = nullptr;
  void* with = nullptr;
} the_middle;

struct Script {
  std::mutex mutex;
  int (*at)(const char*, void*) = nullptr;
  void* with = nullptr;
} the_script;
}  // namespace

int scripted(const char* function) {
  std::unique_lock lock(the_script.mutex);
  const auto at = the_script.at;
  void* const with = the_script.with;
  lock.unlock();
  return at == nullptr ? 0 : at(function, with);
}

void in_the_middle(std::string_view function) {
  std::unique_lock lock(the_middle.mutex);
  if (function != the_middle.function) return;
  the_middle.function = {};
  lock.unlock();
  the_middle.call(the_middle.with);
}
}  // namespace ringmain::fake

using namespace ringmain::fake;  // NOLINT: the functions below are at C's level

extern "C" {

void fake_cupti_hostile(unsigned modes) {
  cupti().hostile = modes;
}
void fake_cupti_hold_own_lock(int holds) {
  cupti().locks = holds != 0;
}
void fake_cupti_during(const char* function, void (*middle)(void*), void* with) {
  const std::lock_guard lock(the_middle.mutex);
  the_middle.function = function;
  the_middle.call = middle;
  the_middle.with = with;
}
void fake_cupti_script(int (*at)(const char*, void*), void* with) {
  const std::lock_guard lock(the_script.mutex);
  the_script.at = at;
  the_script.with = with;
}
void fake_cupti_deliver_late(unsigned times) {
  cupti().late = static_cast<int>(times);
}
void fake_cupti_lose(int site, unsigned times) {
  cupti().lose[site == 0 ? 0 : 1] = static_cast<int>(times);
}

std::uint64_t fake_cupti_asked() {
  return cupti().asked;
}
std::uint64_t fake_cupti_delivered() {
  return cupti().delivered;
}
std::uint64_t fake_cupti_overlaps() {
  return cupti().overlaps;
}
std::uint64_t fake_cupti_dead_handles() {
  return cupti().dead_handles;
}
std::uint64_t fake_cupti_disabled() {
  return cupti().disabled;
}
unsigned fake_cupti_subscribers() {
  return static_cast<unsigned>(std::count_if(cupti().places.begin(), cupti().places.end(),
                                             [](const auto& p) { return p != nullptr; }));
}

int fake_cupti_enabled(int domain, std::uint32_t cbid) {
  return std::any_of(cupti().places.begin(), cupti().places.end(), [&](const auto& place) {
    const Subscriber* s = place;
    return s != nullptr && domain > 0 && domain < kDomains && s->hears(domain, cbid);
  });
}

unsigned fake_cupti_enabled_count() {
  unsigned count = 0;
  for (int domain = 1; domain < kDomains; ++domain) {
    for (std::uint32_t cbid = 0; cbid < kNumbers; ++cbid) {
      if (fake_cupti_enabled(domain, cbid) != 0) ++count;
    }
  }
  return count;
}

}  // extern "C"
