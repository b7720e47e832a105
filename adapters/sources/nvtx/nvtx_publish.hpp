// What is published of a call to NVTX? A mark, or a begin or end of a range.
//
// Each of these costs a load and a branch, and the bookkeeping of the stack, while nobody listens;
// else one publish, and for ranges a look at the clock. No lock, no system call but the
// first of a thread.
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

/// Where it is published from now on. Throws std::bad_alloc.
Result<bool> publish_on(Bus& bus);

void mark(const Domain& domain, const Words& words) noexcept;
/// Both give the depth of the range in its thread and domain; pop() -1 if there is none.
int push(const Domain& domain, const Words& words) noexcept;
int pop(const Domain& domain) noexcept;
/// `theirs` is the id that the tool behind us gave, or 0; the id that the program gets is given.
abi::RangeId start(const Domain& domain, const Words& words, abi::RangeId theirs) noexcept;
void end(const Domain& domain, abi::RangeId id) noexcept;

}  // namespace ringmain::nvtx
