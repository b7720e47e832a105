// Scenario: does a table of tokens hand out, end, and take out each tenant once, whoever comes back
// too late?
#include <array>
#include <cstddef>

#include "engine/system/token_slab.hpp"

#include "tests/interleave/rig.hpp"
#include "tests/interleave/scenarios.hpp"

namespace ringmain::interleave {
namespace {

enum : std::size_t { kTenants = 8, kSharers = 3 };

/// What is known of each tenant, by its number.
struct Known {
  std::array<Atomic<std::uint32_t>, kTenants> ended{}, taken_out{};
};
Known* known = nullptr;

struct Tenant {
  Atomic<std::size_t> which{kTenants};
  Atomic<std::uint32_t> lookers{0};
  [[nodiscard]] std::size_t number() const { return which.load(std::memory_order_relaxed); }
};
struct Leaves {
  void operator()(Tenant& tenant, engine::Token, unsigned how) const noexcept {
    expect(how == tenant.number() % 4, "a tenant is taken out as it was not ended");
    expect(tenant.lookers.load() == 0, "a tenant is taken out while somebody looks at it");
    expect(known->taken_out[tenant.number()].fetch_add(1) == 0, "a tenant is taken out twice");
    expect(known->ended[tenant.number()].load() == 1, "a tenant is taken out that was not ended");
  }
};
using Slab = engine::TokenSlab<Tenant, Leaves>;

/// Opens tenants in two places, which are soon others'; passes their tokens on; looks at, and ends,
/// what others left.
struct Table {
  Slab slab{2, 77};
  Atomic<std::uint64_t> shown{0};
  Atomic<std::uint32_t> next{0};

  void open(std::uint32_t& seed) {
    const std::uint32_t number = next.fetch_add(1);
    if (number >= kTenants) return;
    const Slab::Opening made = slab.open(seed, 2);
    if (!made) return;
    made.thing->which.store(number, std::memory_order_relaxed);
    slab.publish(made);
    // Relaxed: the table itself must see to it that what is found is whole.
    shown.store(made.token.bits(), std::memory_order_relaxed);
    look_at(made.token, number);
  }
  /// `number`: which tenant it must be, or kTenants.
  void look_at(engine::Token token, std::size_t number) {
    Slab::Pin pin = slab.pin(token);
    if (!pin) return;
    pin->lookers.fetch_add(1);
    const std::size_t seen = pin->number();
    expect(seen < kTenants, "a tenant is found that is not whole");
    expect(number == kTenants || seen == number, "a token leads to another tenant");
    Slab::Pin again = slab.pin(token);
    if (again && choose(2) == 0) again.reset();
    expect(pin->number() == seen, "a tenant changes while it is pinned");
    const auto how = static_cast<unsigned>(seen % 4);
    if (choose(2) == 0 && pin.end(how))
      expect(known->ended[seen].fetch_add(1) == 0, "a tenant is ended twice");
    pin->lookers.fetch_sub(1);
  }
};

}  // namespace

void tokens() {
  Known all;
  known = &all;
  Table table;
  Threads threads;
  for (std::size_t i = 0; i < kSharers; ++i) {
    threads.start([&table, i] {
      auto seed = static_cast<std::uint32_t>(i);
      for (int turn = 0; turn < 2; ++turn) {
        table.open(seed);
        table.look_at(engine::Token(table.shown.load()), kTenants);
      }
    });
  }
  threads.join();
  for (std::size_t i = 0; i < kTenants; ++i)
    expect(all.ended[i].load() == all.taken_out[i].load(),
           "a tenant that ended stays in its place");
  table.slab.for_each([&all](Slab::Pin& pin) {
    expect(all.ended[pin->number()].load() == 0, "a tenant that ended is open");
  });
  known = nullptr;
}

}  // namespace ringmain::interleave
