// Into which file does a flight recorder's dump go?
#pragma once
#include <cstdint>
#include <string>

#include "bus/result.hpp"

#include "adapters/sources/collective/flight_recorder_hook.hpp"
#include "adapters/sources/collective/flight_recorder_ring.hpp"

namespace ringmain::collective::detail {

using flight::DumpFormat;
using flight::write_flight_dump;

/// How many operations the environment says that a ring holds.
[[nodiscard]] std::size_t flight_entries(FlightVariables variables);
/// Where this rank's file is to be. refused: neither a variable nor a home says it.
[[nodiscard]] Result<std::string> flight_path(FlightVariables variables, std::int64_t rank);
/// The file has all of `bytes`, or is what it was. Its folder is made. Who may read it, the
/// process's umask says. One sentence, or "".
[[nodiscard]] std::string write_flight_file(const std::string& path, const std::string& bytes);
/// Where that dump's process has Python that lends its stacks: writes them to stacks-RANK.txt in
/// the same folder. PyTorch's analyzer takes what has the dumps' prefix anywhere in its name, so
/// that one has no part of it. Without room for it there is no such file.
void write_stacks_beside(const std::string& path, std::int64_t rank);

}  // namespace ringmain::collective::detail
