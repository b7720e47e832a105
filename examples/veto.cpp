// Refuse before it happens: an inline subscriber keeps a budget, in the thread that allocates.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string_view>

#include <ringmain/bus/bus.hpp>

struct Allocation {
  std::uint64_t bytes;
};
constexpr auto describe(ringmain::EventOf<Allocation>) {
  return ringmain::event("example.allocation",
                         ringmain::field<&Allocation::bytes>("bytes", ringmain::Unit::bytes));
}

int main() {
  constexpr std::uint64_t kBudget = 1000;
  const ringmain::Name over{"over budget"};  // made beforehand: a new Name takes a lock
  ringmain::Bus bus;
  auto& allocations = bus.channel<Allocation>();

  std::atomic<std::uint64_t> used{0};  // atomic: as many threads call at once as allocate
  auto budget = allocations.subscribe_inline(
      [&](const Allocation& a) {
        if (used.fetch_add(a.bytes) + a.bytes <= kBudget) return ringmain::Verdict::allow();
        used.fetch_sub(a.bytes);
        return ringmain::Verdict::veto(over);
      },
      {.name = "budget", .on_throw = ringmain::OnThrow::veto});
  auto seen = allocations.subscribe([](const Allocation& a) {  // on a worker, of those allowed
    std::printf("allocated %llu bytes\n", static_cast<unsigned long long>(a.bytes));
  });

  unsigned refused = 0;
  for (const std::uint64_t bytes : {600u, 300u, 500u, 100u}) {
    const ringmain::PublishResult result = allocations.publish({bytes});
    if (result != ringmain::PublishCode::vetoed) continue;
    const std::string_view why = result.why.view();
    std::printf("refused %llu bytes: %.*s\n", static_cast<unsigned long long>(bytes),
                static_cast<int>(why.size()), why.data());
    ++refused;
  }
  if (!bus.flush(std::chrono::seconds(5))) return 1;
  return refused == 1 && used == kBudget ? 0 : 1;
}
