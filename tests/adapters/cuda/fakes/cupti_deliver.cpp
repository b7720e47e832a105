// How does the fake CUPTI call its subscribers? In the thread that calls CUDA, and as unkindly as
// it was told to be.
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <sys/mman.h>

#include "adapters/sources/cuda/cupti_abi.hpp"

#include "tests/adapters/cuda/fakes/cupti_subscribers.hpp"

namespace ringmain::fake {
namespace abi = ringmain::cuda::abi;
namespace {

thread_local int in_callback = 0;
thread_local int callback_domain = 0;

/// Memory that cannot be read while nobody is called with it.
class Vault {
 public:
  static constexpr std::size_t kPages = 8192, kPageBytes = 4096;
  /// One page; the caller gives it back by close(). They are taken in turn, so one that is closed
  /// stays closed for thousands of deliveries.
  std::byte* open() {
    for (;;) {
      const std::size_t i = next_++ % kPages;
      if (busy_[i].exchange(true)) continue;
      std::byte* page = pages_ + i * kPageBytes;
      ::mprotect(page, kPageBytes, PROT_READ | PROT_WRITE);
      return page;
    }
  }
  void close(std::byte* page) {
    std::memset(page, 0xA5, kPageBytes);
    ::mprotect(page, kPageBytes, PROT_NONE);
    busy_[static_cast<std::size_t>(page - pages_) / kPageBytes] = false;
  }
  bool has(const void* address) const {
    return address >= pages_ && address < pages_ + kPages * kPageBytes;
  }

 private:
  std::byte* pages_ = static_cast<std::byte*>(::mmap(
      nullptr, kPages* kPageBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  std::atomic<std::size_t> next_{0};
  std::array<std::atomic<bool>, kPages> busy_{};
};

Vault& vault() {
  static auto* const vault = new Vault;
  return *vault;
}

bool is(unsigned mode) {
  return (cupti().hostile & mode) != 0;
}

/// Tells of a whole call inside one that was entered: its number is new, its slot its own.
void call_unknown(const Subscriber& to, int domain, std::uint32_t cbid, abi::CallData call) {
  if (call.site != abi::kEnter) return;
  std::uint64_t slot = 0;
  const std::int32_t result = 0;
  call.correlation_data = &slot;
  to.callback(to.user_data, static_cast<CUpti_CallbackDomain>(domain), 60000 + cbid, &call);
  call.site = abi::kExit;
  call.result = &result;
  to.callback(to.user_data, static_cast<CUpti_CallbackDomain>(domain), 60000 + cbid, &call);
}

void call_back(const Subscriber& to, int domain, std::uint32_t cbid, const void* what) {
  struct Inside {
    explicit Inside(int domain) : before(callback_domain) {
      ++in_callback;
      callback_domain = domain;
    }
    ~Inside() {
      --in_callback;
      callback_domain = before;
    }
    int before;
  } const inside(domain);
  const OwnLock own;
  ++cupti().delivered;
  to.callback(to.user_data, static_cast<CUpti_CallbackDomain>(domain), cbid, what);
  if (is(FAKE_UNKNOWN_NUMBERS) && domain <= 2) {
    call_unknown(to, domain, cbid, *static_cast<const abi::CallData*>(what));
  }
}

/// Calls with a copy of `what` that is gone when the callback returns.
template <class What>
void call_with_gone(const Subscriber& to, const Call& call, What what) {
  std::byte* page = vault().open();
  auto* shown = new (page) What(what);
  if (what.params != nullptr) {
    auto* params = page + sizeof(What);
    std::memcpy(params, what.params, call.params_bytes);
    shown->params = params;
  }
  std::int32_t* result = nullptr;
  if (what.result != nullptr) {
    result = reinterpret_cast<std::int32_t*>(page + Vault::kPageBytes - 8);
    std::memcpy(result, what.result, sizeof *result);
    shown->result = result;
  }
  call_back(to, call.row.domain, call.row.cbid, shown);
  vault().close(page);
}

/// The place where a subscriber keeps what it stores at the entry, until the exit.
std::uint64_t* slot_of(Call& call, std::size_t place, bool poison) {
  if (call.slots_shown[place] == nullptr) {
    call.slots_shown[place] = poison ? new (vault().open()) std::uint64_t(0) : &call.slots[place];
  }
  return call.slots_shown[place];
}

void deliver_to(const Subscriber& to, Call& call, int site, const int* result) {
  const bool poison = is(FAKE_POISON);
  abi::CallData what{};
  what.site = site;
  what.function = call.row.function;
  what.params = is(FAKE_NULL_PARAMS) ? nullptr : call.params;
  what.result = site == abi::kExit ? result : nullptr;
  what.context = call.context;
  what.context_uid = call.context_uid;
  what.correlation_data = slot_of(call, to.place, poison);
  what.correlation_id = static_cast<std::uint32_t>(call.correlation);
  if (poison) {
    call_with_gone(to, call, what);
  } else {
    call_back(to, call.row.domain, call.row.cbid, &what);
  }
}

void deliver(Call& call, int site, const int* result) {
  Cupti& c = cupti();
  if (c.finalized) return;
  const auto lose = [&] { return take(c.lose[static_cast<std::size_t>(site)]); };
  for (auto& place : c.places) {
    const Subscriber* to = place;
    if (to == nullptr || !to->hears(call.row.domain, call.row.cbid) || lose()) continue;
    deliver_to(*to, call, site, result);
  }
  const Subscriber* left = c.left;
  if (left != nullptr && take(c.late)) deliver_to(*left, call, site, result);
}

void enter(Call& call) {
  deliver(call, abi::kEnter, nullptr);
}

void leave(Call& call, int result) {
  deliver(call, abi::kExit, &result);
  for (std::uint64_t* slot : call.slots_shown) {
    if (slot != nullptr && vault().has(slot)) vault().close(reinterpret_cast<std::byte*>(slot));
  }
}

void notice(int domain, std::uint32_t cbid, const void* what) {
  if (cupti().finalized) return;
  for (auto& place : cupti().places) {
    const Subscriber* to = place;
    if (to != nullptr && to->hears(domain, cbid)) call_back(*to, domain, cbid, what);
  }
}

/// CUpti_SynchronizeData is how the data of resources begins.
void notice_of(int domain, std::uint32_t cbid, void* context, void* stream) {
  const abi::ResourceData what{context, stream, nullptr};
  notice(domain, cbid, &what);
}

bool is_in_callback() {
  return in_callback > 0;
}
bool is_in_callback_of_calls() {
  return in_callback > 0 && callback_domain <= 2;
}

}  // namespace

const Onlooker kOnlooker{&enter, &leave, &notice_of, &is_in_callback, &is_in_callback_of_calls};

void deliver_state(std::uint32_t cbid, int result, const char* message) {
  const abi::StateData what{result, message};
  notice(abi::kState, cbid, &what);
}

bool take(std::atomic<int>& left) {
  int now = left;
  while (now > 0) {
    if (left.compare_exchange_weak(now, now - 1)) return true;
  }
  return false;
}

}  // namespace ringmain::fake
