// How does ringmain get into a program's copies of NVTX, and share them with another tool?
#pragma once
#include "bus/bus.hpp"

#include "adapters/sources/nvtx/nvtx_abi.hpp"

namespace ringmain::nvtx {

/// From now on publishes the calls of one copy of NVTX's headers on `bus`, and passes them on to
/// what `chained` puts into its table (nullptr: to none). One bus for the process: a later one gets
/// all calls. All copies are taken to have the same chained tool. An Error, with nothing done, if
/// there is no table of calls, or nvtx.range or nvtx.mark is another event in this program.
/// Threads: any, for different copies; no copy is in use while it is given here. Throws
/// std::bad_alloc.
Result<bool> attach(Bus& bus, abi::GetExportTable get, abi::Initialize chained);

/// ringmain's functions by their number in a module's table; nullptr: it has none there.
/// `forwards_only`: it only translates handles for the chained tool, and is left out where there is
/// none.
struct Ours {
  abi::Function function = nullptr;
  bool forwards_only = false;
};
[[nodiscard]] Ours our_function(abi::Module module, unsigned id) noexcept;

/// Sets the function that the chained tool wants to be called.
void set_next(abi::Module module, unsigned id, abi::Function next) noexcept;

}  // namespace ringmain::nvtx
