// Scenario: are words that are noted under a token those of its tenant, and is each tenant ended
// once, whoever comes back too late?
#include <array>
#include <cstddef>

#include "engine/system/token_notes.hpp"

#include "tests/interleave/rig.hpp"
#include "tests/interleave/scenarios.hpp"

namespace ringmain::interleave {
namespace {

enum : std::size_t { kTenants = 8, kSharers = 3 };
using Notes = engine::TokenNotes<2>;

/// Opens tenants in two places, which are soon others'; passes their tokens on; reads, and ends,
/// what others left. Both words of a tenant say which one it is.
struct Table {
  Notes notes{2, 77};
  Atomic<std::uint64_t> shown{0};
  Atomic<std::uint32_t> next{0}, opened{0};
  std::array<Atomic<std::uint32_t>, kTenants> ended{};

  void open(std::uint32_t& seed) {
    const std::uint32_t number = next.fetch_add(1);
    if (number >= kTenants) return;
    const engine::Token made = notes.take(seed, 2);
    if (made.bits() == 0) return;
    notes.write(made, 0, number);
    if (choose(4) == 0) return notes.give_back(made);
    notes.write(made, 1, number);
    opened.fetch_add(1);
    notes.publish(made);
    // Relaxed: the table itself must see to it that what is read is whole.
    shown.store(made.bits(), std::memory_order_relaxed);
    look_at(made, number);
  }
  /// `number`: which tenant it must be, or kTenants.
  void look_at(engine::Token token, std::uint64_t number) {
    std::uint64_t first = kTenants, second = kTenants;
    const bool is_there = notes.read(token, 0, first) && notes.read(token, 1, second);
    if (is_there) {
      expect(first == second && first < kTenants, "words of two tenants are read as one's");
      expect(number == kTenants || first == number, "a token leads to another tenant");
    }
    if (choose(2) == 0) return;
    Notes::Words words{};
    if (!notes.end(token, words)) return;
    expect(words[0] == words[1] && words[0] < kTenants, "a tenant is ended with another's words");
    expect(number == kTenants || words[0] == number, "a token ends another tenant");
    expect(ended[words[0]].fetch_add(1) == 0, "a tenant is ended twice");
  }
};

}  // namespace

void notes() {
  Table table;
  Threads threads;
  for (std::size_t i = 0; i < kSharers; ++i) {
    threads.start([&table, i] {
      auto seed = static_cast<std::uint32_t>(i);
      for (int turn = 0; turn < 2; ++turn) {
        table.open(seed);
        table.look_at(engine::Token(table.shown.load(std::memory_order_relaxed)), kTenants);
      }
    });
  }
  threads.join();
  std::uint32_t left = table.opened.load();
  for (const auto& one : table.ended) left -= one.load();
  table.notes.for_each_open([&](engine::Token which) {
    --left;
    std::uint64_t number = kTenants;
    expect(table.notes.read(which, 0, number), "one that is open cannot be read");
    expect(table.ended[number].load() == 0, "a tenant that ended is open");
  });
  expect(left == 0, "a tenant is gone that nobody ended");
}

}  // namespace ringmain::interleave
