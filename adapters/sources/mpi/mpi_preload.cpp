// Which of a program's calls to MPI come through here? All of mpi_calls.hpp. This small library is
// preloaded into every process of the command, and needs no header of any MPI.
//
// Open MPI's handles are pointers and MPICH's are integers, so the library that watches them is
// compiled for each. Which one is needed is known only at the first call: a Python program loads
// its MPI long after its start. So each symbol here jumps to the place that the first call found,
// and a process that never calls MPI pays for mapping a few pages.
//
// The parameters are passed on as words. Handles, pointers and ints have a register, or eight bytes
// of stack, of their own on every 64-bit Linux, so it need not be known which of them a word is.
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <pthread.h>

#include "adapters/launch/say.hpp"
#include "adapters/sources/mpi/mpi_calls.hpp"
#include "adapters/sources/mpi/mpi_find.hpp"

namespace ringmain::mpi {
namespace {

using Word = std::uintptr_t;
static_assert(sizeof(Word) == 8, "32-bit systems pass handles and ints in other ways");

enum Layer : unsigned { kC, kMpifh, kF08, kLayers };

constinit std::atomic<Function> targets[kLayers][kCalls] = {};

void resolve_all() noexcept {
  static constinit Targets found{};
  find(found);
  for (unsigned call = 0; call < kCalls; ++call) {
    targets[kC][call] = found.c[call];
    targets[kMpifh][call] = found.mpifh[call];
    targets[kF08][call] = found.f08[call];
  }
}

[[gnu::noinline, gnu::cold]] Function resolve(Layer layer, Call call) noexcept {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  ::pthread_once(&once, resolve_all);
  const Function target = targets[layer][call];
  if (target == nullptr) {  // the program has the call, so its MPI has it, but hides the other name
    run::say({"this MPI has no profiling interface (PMPI)"});
    std::abort();
  }
  return target;
}

template <class... W>
int pass_on(Layer layer, Call call, W... words) noexcept {
  Function target = targets[layer][call];
  if (target == nullptr) [[unlikely]]
    target = resolve(layer, call);
  return reinterpret_cast<int (*)(W...)>(target)(words...);
}

}  // namespace
}  // namespace ringmain::mpi

using ringmain::mpi::pass_on;
using ringmain::mpi::Word;

// How many words, and their names.
#define RINGMAIN_MPI_COUNT(...) \
  RINGMAIN_MPI_COUNTED(__VA_ARGS__, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define RINGMAIN_MPI_COUNTED(a, b, c, d, e, f, g, h, i, j, k, l, n, ...) n
#define RINGMAIN_MPI_JOIN(a, b) RINGMAIN_MPI_JOIN_NOW(a, b)
#define RINGMAIN_MPI_JOIN_NOW(a, b) a##b
#define RINGMAIN_MPI_NEXT(n) RINGMAIN_MPI_JOIN(RINGMAIN_MPI_NEXT_, n)
#define RINGMAIN_MPI_NEXT_1 2
#define RINGMAIN_MPI_NEXT_2 3
#define RINGMAIN_MPI_NEXT_3 4
#define RINGMAIN_MPI_NEXT_4 5
#define RINGMAIN_MPI_NEXT_5 6
#define RINGMAIN_MPI_NEXT_6 7
#define RINGMAIN_MPI_NEXT_7 8
#define RINGMAIN_MPI_NEXT_8 9
#define RINGMAIN_MPI_NEXT_9 10
#define RINGMAIN_MPI_NEXT_10 11
#define RINGMAIN_MPI_NEXT_11 12
#define RINGMAIN_MPI_NEXT_12 13
#define RINGMAIN_MPI_WORDS_0
#define RINGMAIN_MPI_WORDS_1 Word a
#define RINGMAIN_MPI_WORDS_2 RINGMAIN_MPI_WORDS_1, Word b
#define RINGMAIN_MPI_WORDS_3 RINGMAIN_MPI_WORDS_2, Word c
#define RINGMAIN_MPI_WORDS_4 RINGMAIN_MPI_WORDS_3, Word d
#define RINGMAIN_MPI_WORDS_5 RINGMAIN_MPI_WORDS_4, Word e
#define RINGMAIN_MPI_WORDS_6 RINGMAIN_MPI_WORDS_5, Word f
#define RINGMAIN_MPI_WORDS_7 RINGMAIN_MPI_WORDS_6, Word g
#define RINGMAIN_MPI_WORDS_8 RINGMAIN_MPI_WORDS_7, Word h
#define RINGMAIN_MPI_WORDS_9 RINGMAIN_MPI_WORDS_8, Word i
#define RINGMAIN_MPI_WORDS_10 RINGMAIN_MPI_WORDS_9, Word j
#define RINGMAIN_MPI_WORDS_11 RINGMAIN_MPI_WORDS_10, Word k
#define RINGMAIN_MPI_WORDS_12 RINGMAIN_MPI_WORDS_11, Word l
#define RINGMAIN_MPI_WORDS_13 RINGMAIN_MPI_WORDS_12, Word m
#define RINGMAIN_MPI_PASS_0
#define RINGMAIN_MPI_PASS_1 , a
#define RINGMAIN_MPI_PASS_2 RINGMAIN_MPI_PASS_1, b
#define RINGMAIN_MPI_PASS_3 RINGMAIN_MPI_PASS_2, c
#define RINGMAIN_MPI_PASS_4 RINGMAIN_MPI_PASS_3, d
#define RINGMAIN_MPI_PASS_5 RINGMAIN_MPI_PASS_4, e
#define RINGMAIN_MPI_PASS_6 RINGMAIN_MPI_PASS_5, f
#define RINGMAIN_MPI_PASS_7 RINGMAIN_MPI_PASS_6, g
#define RINGMAIN_MPI_PASS_8 RINGMAIN_MPI_PASS_7, h
#define RINGMAIN_MPI_PASS_9 RINGMAIN_MPI_PASS_8, i
#define RINGMAIN_MPI_PASS_10 RINGMAIN_MPI_PASS_9, j
#define RINGMAIN_MPI_PASS_11 RINGMAIN_MPI_PASS_10, k
#define RINGMAIN_MPI_PASS_12 RINGMAIN_MPI_PASS_11, l
#define RINGMAIN_MPI_PASS_13 RINGMAIN_MPI_PASS_12, m

#define RINGMAIN_MPI_SYMBOL(symbol, layer, call, n)                               \
  extern "C" __attribute__((visibility("default"))) int symbol(                   \
      RINGMAIN_MPI_JOIN(RINGMAIN_MPI_WORDS_, n)) {                                \
    return pass_on(ringmain::mpi::layer,                                          \
                   ringmain::mpi::call RINGMAIN_MPI_JOIN(RINGMAIN_MPI_PASS_, n)); \
  }
#define RINGMAIN_MPI_SYMBOLS(name, small, call, in_c, in_fortran) \
  RINGMAIN_MPI_SYMBOL(name, kC, call, in_c)                       \
  RINGMAIN_MPI_SYMBOL(mpi_##small##_, kMpifh, call, in_fortran)   \
  RINGMAIN_MPI_SYMBOL(mpi_##small##_f08_, kF08, call, in_fortran)

#define RINGMAIN_MPI_OF(name, small, shape, kinds)                           \
  RINGMAIN_MPI_SYMBOLS(MPI_##name, small, k##name, RINGMAIN_MPI_COUNT kinds, \
                       RINGMAIN_MPI_NEXT(RINGMAIN_MPI_COUNT kinds))
#define RINGMAIN_MPI_OF_REQUEST(name, small, shape, kinds)                                      \
  RINGMAIN_MPI_SYMBOLS(MPI_##name, small, k##name, RINGMAIN_MPI_NEXT(RINGMAIN_MPI_COUNT kinds), \
                       RINGMAIN_MPI_NEXT(RINGMAIN_MPI_NEXT(RINGMAIN_MPI_COUNT kinds)))
#define RINGMAIN_MPI_OF_I(name, small, shape, kinds) \
  RINGMAIN_MPI_OF_REQUEST(I##small, i##small, shape, kinds)
#define RINGMAIN_MPI_OF_OTHER(name, small, in_c, in_fortran) \
  RINGMAIN_MPI_SYMBOLS(MPI_##name, small, k##name, in_c, in_fortran)

RINGMAIN_MPI_COLLECTIVES(RINGMAIN_MPI_OF)
RINGMAIN_MPI_COLLECTIVES(RINGMAIN_MPI_OF_I)
RINGMAIN_MPI_BLOCKING(RINGMAIN_MPI_OF)
RINGMAIN_MPI_NONBLOCKING(RINGMAIN_MPI_OF_REQUEST)
RINGMAIN_MPI_PERSISTENT(RINGMAIN_MPI_OF_REQUEST)
RINGMAIN_MPI_OTHERS(RINGMAIN_MPI_OF_OTHER)
