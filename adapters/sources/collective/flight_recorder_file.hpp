// Into which file does a flight recorder's dump go, and how does it come there?
//
// Nothing of this allocates: whoever dumps may do so because there is no memory.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits.h>
#include <string_view>

#include "adapters/flight/byte_sink.hpp"
#include "adapters/flight/fixed_text.hpp"
#include "adapters/sources/collective/flight_recorder_hook.hpp"

namespace ringmain::collective::detail {

using FlightPath = flight::FixedText<PATH_MAX - 1>;
/// One sentence, or "".
using FlightFault = flight::FixedText<PATH_MAX + 512>;

/// How many operations the environment says that a ring holds.
[[nodiscard]] std::size_t flight_entries(FlightVariables variables);
/// Where this rank's file is to be. A fault: neither a variable nor a home says it, or it is too
/// long for a path.
void flight_path(FlightVariables variables, std::int64_t rank, FlightPath& path,
                 FlightFault& fault) noexcept;
/// The file has all that `write` tells, which may be asked several times, or is what it was. Its
/// folder is made. Who may read it, the process's umask says. What processes of this user that are
/// dead left in that folder of theirs is removed.
void write_flight_file(FlightPath& path, const std::function<void(flight::ByteSink&)>& write,
                       FlightFault& fault) noexcept;
/// Where that dump's process has Python that lends its stacks: writes them to stacks-RANK.txt in
/// the same folder, below a line that begins with `process`. PyTorch's analyzer takes what has the
/// dumps' prefix anywhere in its name, so that one has no part of it. Without room for it there is
/// no such file.
void write_stacks_beside(const FlightPath& path, std::int64_t rank, const char* process) noexcept;

}  // namespace ringmain::collective::detail
