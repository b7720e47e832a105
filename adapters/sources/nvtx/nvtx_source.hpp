// How does ringmain get into a program's copies of NVTX, and share them with another tool?
#pragma once
#include "bus/bus.hpp"

#include "adapters/sources/nvtx/nvtx_abi.hpp"

namespace ringmain::nvtx {

/// Has the calls of one copy of NVTX's headers published on `bus` from now on, and afterwards
/// passed on to what `chained` put there (nullptr: nobody). One bus for the process: a later one
/// takes all. All copies are taken to have the same tool behind us. An Error, with nothing done, if
/// there is no table of calls, or nvtx.range or nvtx.mark is another event in this program.
/// Threads: any, for different copies; no copy is in use while it is given here. Throws
/// std::bad_alloc.
Result<bool> attach(Bus& bus, abi::GetExportTable get, abi::Initialize chained);

/// Our functions by their number in a module's table; nullptr: not ours. `forwards_only`: ours to
/// translate handles for the tool behind us, and left alone where there is none.
struct Ours {
  abi::Function function = nullptr;
  bool forwards_only = false;
};
[[nodiscard]] Ours our_function(abi::Module module, unsigned id) noexcept;

/// What the tool behind us wants to be called.
void set_next(abi::Module module, unsigned id, abi::Function next) noexcept;

}  // namespace ringmain::nvtx
