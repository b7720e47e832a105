// How is published what MPI does? As collective.issued, .completed and .failed.
#pragma once
#include <cstdint>

#include "bus/bus.hpp"

#include "adapters/sources/mpi/mpi_requests.hpp"

namespace ringmain::mpi {

/// Where it is published from now on. Threads: one. Throws std::bad_alloc.
Result<bool> publish_on(Bus& bus);
/// Did publish_on() succeed?
[[nodiscard]] bool opened() noexcept;
/// Is anybody listening? Progress: loads.
[[nodiscard]] bool heard() noexcept;

/// Gives the operation its id and its time, and says that it was asked for.
/// Progress: as publishing; the first call of a thread asks the system for its number.
void issued(Operation& operation, bool asynchronous) noexcept;
/// `bytes`: what came, where that is known better than when it was asked for.
void completed(const Operation& operation, std::uint64_t bytes) noexcept;
/// `code`: MPI's error class.
void failed(const Operation& operation, Name reason, std::int32_t code) noexcept;

}  // namespace ringmain::mpi
