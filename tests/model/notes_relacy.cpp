// Question: are the memory orders of engine/system/token_notes.hpp enough under the C++ memory
// model?
//
// The real TokenNotes with one place, compiled with relacy_atomics.hpp, three threads. Both words
// of a tenant are its number. Tokens are passed on by a relaxed word, so that the table alone must
// see to it that what is read is whole. Scenes:
//   1 passed on   a thread opens, ends and opens again | two read what it shows
//   2 ended       a thread opens, once more where that was ended | two end what it shows
//   3 by others   two threads open, end and open again | one reads and ends
// Checked: what is read of a tenant, and what it is ended with, are its words; it is ended once.
// Mutants: see relacy_search.hpp. That of take() is not among them: what acquiring there prevents,
// that a tenant's word ends up before the last one's in the order of all stores to it, Relacy
// cannot show, as it has that order from the schedule.
#define RINGMAIN_ATOMICS_HEADER "tests/model/relacy_atomics.hpp"
#include "tests/model/relacy_atomics.hpp"
//
#include <array>
#include <cstdlib>
#include <memory>
#include <new>

namespace std {
// Relacy's atomics want their constructors: the table's memory is made of nothing else.
using NotesCell = ringmain::engine::Atomic<std::uint64_t>;
inline std::size_t cells = 0;
inline void* cells_of_zero(std::size_t many, std::size_t bytes) {
  cells = many * bytes / sizeof(NotesCell);
  auto* const made = static_cast<NotesCell*>(::operator new(many* bytes));
  for (std::size_t i = 0; i < cells; ++i) ::new (static_cast<void*>(made + i)) NotesCell();
  return made;
}
inline void free_cells(void* memory) {
  std::destroy_n(static_cast<NotesCell*>(memory), cells);
  ::operator delete(memory);
}
}  // namespace std
#define calloc cells_of_zero
#define free free_cells
#include "engine/system/token_notes.hpp"

using ringmain::engine::Token;
using Notes = ringmain::engine::TokenNotes<2>;

struct Test : rl::test_suite<Test, 3> {
  static constexpr int kScenes = 3;
  enum : std::uint32_t { kTenants = 8 };
  Notes notes{1, 77};
  rl::atomic<std::uint64_t> shown;
  int ended[kTenants] = {};  // the test's, outside the memory model

  void before() { shown($).store(0, rl::mo_relaxed); }

  Token open() {
    std::uint32_t seed = 0;
    const Token made = notes.take(seed, 1);
    if (made.bits() == 0) return made;
    notes.write(made, 0, made.tenant());
    notes.write(made, 1, made.tenant());
    notes.publish(made);
    shown($).store(made.bits(), rl::mo_relaxed);
    return made;
  }
  void end(Token which) {
    Notes::Words words{};
    if (!notes.end(which, words)) return;
    RL_ASSERT(words[0] == which.tenant() && words[1] == which.tenant());
    RL_ASSERT(++ended[which.tenant()] == 1);
  }
  void look() {
    const Token which(shown($).load(rl::mo_relaxed));
    for (const std::size_t one : {0, 1}) {
      std::uint64_t word = 0;
      if (notes.read(which, one, word)) RL_ASSERT(word == which.tenant());
    }
  }
  void open_and_end() {
    end(open());
    (void)open();
  }
  void thread(unsigned i) {
    if (i == 0 || (scene == 3 && i == 1)) return open_and_end();
    for (int turn = 0; turn < 2; ++turn) {
      if (scene != 2) look();
      if (scene != 1) end(Token(shown($).load(rl::mo_relaxed)));
    }
  }
};

int main(int argc, char** argv) {
  return search_scenes<Test>(argc, argv);
}
