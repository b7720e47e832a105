// What is published of a call to NVTX? A mark, or a begin or end of a range.
//
// While nobody listens a call costs a load, a branch and the bookkeeping of the stack; else one
// publish, and for ranges a look at the clock. No lock, and no system call but at a thread's first
// call.
#pragma once
#include "bus/bus.hpp"

#include "adapters/sources/nvtx/nvtx_abi.hpp"

namespace ringmain::nvtx {

struct Domain;

/// What a call was given: attributes, or text alone. They need to live for the call only.
struct Words {
  Words(const abi::EventAttributes* given) noexcept : attributes(given) {}  // NOLINT
  Words(const char* text) noexcept : ascii(text) {}                         // NOLINT
  Words(const wchar_t* text) noexcept : wide(text) {}                       // NOLINT
  const abi::EventAttributes* attributes = nullptr;
  const char* ascii = nullptr;
  const wchar_t* wide = nullptr;
};

/// From now on publishes on that bus. Throws std::bad_alloc.
Result<bool> publish_on(Bus& bus);

void mark(const Domain& domain, const Words& words) noexcept;
/// Both return the depth of the range in its thread and domain; pop() returns -1 if there is none.
int push(const Domain& domain, const Words& words) noexcept;
int pop(const Domain& domain) noexcept;
/// `theirs`: the id that the chained tool gave, or 0. Returns the id that the program gets.
abi::RangeId start(const Domain& domain, const Words& words, abi::RangeId theirs) noexcept;
void end(const Domain& domain, abi::RangeId id) noexcept;

}  // namespace ringmain::nvtx
