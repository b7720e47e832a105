// What a fuzz run does: a list of operations with numbers, made from a seed, printed as words, read
// back, and cut down. Every operation means something in every state, so any part of a list is one.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ringmain::fuzz {

enum class Do : std::uint8_t {
  configure,  // channel, kind, lanes, options
  publisher,  // channel, capacity, overflow, kind
  say,        // publisher, event, how many, how
  speak,      // channel, event, how many, how: by the thread's own lane
  leave,      // publisher, how: gives it back, or moves it about
  hear,       // channel, form, habit, options
  box,        // channel, form, habit, options
  take,       // box, how, how many
  reset,      // subscriber, how
  touch,      // subscriber, what: moved, readmitted, asked, its owner destroyed
  interest,   // channel
  rest,       // flush: the oracle looks at everything
  deliver,    // how many: where there are no workers
  time,       // by
  look,       // at figures
};
enum : std::size_t { kDoings = 15 };

struct Operation {
  Do what = Do::rest;
  std::array<std::uint32_t, 4> with{};
};

enum class Drive : std::uint8_t {
  manual,  // a TestBus: nothing happens but what is asked for
  one,     // workers, and one thread that drives
  several  // workers, and threads that drive beside each other
};

struct Case {
  Drive drive = Drive::manual;
  std::uint32_t workers = 1;
  std::uint32_t threads = 1;
  std::uint32_t ending = 0;  // how the bus ends
  std::vector<Operation> operations;
};

[[nodiscard]] Case make_case(std::uint64_t seed, std::size_t operations);
/// One operation per line, after a line that says how the bus is driven.
[[nodiscard]] std::string to_text(const Case& what);
/// Returns "", or one sentence that says what cannot be read.
[[nodiscard]] std::string from_text(std::string_view text, Case& what);

}  // namespace ringmain::fuzz
