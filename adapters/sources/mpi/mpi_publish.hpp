// How is published what MPI does? As collective.issued, .completed and .failed, through the C
// interface: the libraries for the kinds of MPI are separate ones, built against what does not
// change.
#pragma once
#include <cstdint>

#include "bindings/c/ringmain.h"

#include "adapters/sources/mpi/mpi_requests.hpp"

namespace ringmain::mpi {

/// Defines the channels on the bus; false: `ringmain_last_error()` says why not. Threads: one.
bool publish_on(ringmain_bus* bus) noexcept;
/// Did publish_on() succeed?
[[nodiscard]] bool opened() noexcept;
/// Is anybody listening? Progress: loads.
[[nodiscard]] bool heard() noexcept;

/// Gives the operation its id and its time, and says that it was asked for.
/// Progress: as publishing; the first call of a thread asks the system for its number.
void issued(Operation& operation, bool asynchronous) noexcept;
/// `bytes`: what came, where that is known better than when it was asked for.
void completed(const Operation& operation, std::uint64_t bytes) noexcept;
/// `reason` is a ringmain_name(), `code` MPI's error class.
void failed(const Operation& operation, std::uint32_t reason, std::int32_t code) noexcept;

[[nodiscard]] std::uint32_t name_of(const char* text) noexcept;

}  // namespace ringmain::mpi
