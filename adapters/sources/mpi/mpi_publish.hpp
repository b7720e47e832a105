// As what are MPI's operations published? As collective.issued, .completed and .failed.
#pragma once
#include <cstdint>

#include "bus/bus.hpp"

#include "adapters/sources/mpi/mpi_requests.hpp"

namespace ringmain::mpi {

/// From now on publishes on that bus. Threads: one. Throws std::bad_alloc.
Result<bool> publish_on(Bus& bus);
/// Did publish_on() succeed?
[[nodiscard]] bool opened() noexcept;
/// Is anybody listening? Progress: wait-free.
[[nodiscard]] bool heard() noexcept;

/// Gives the operation its id and its time, and publishes that it was issued. Progress: as
/// publishing; the first call of a thread asks the system for its number.
void issued(Operation& operation, bool asynchronous) noexcept;
/// `bytes`: what came, which may be less than what was asked for.
void completed(const Operation& operation, std::uint64_t bytes) noexcept;
/// `code`: MPI's error class.
void failed(const Operation& operation, Name reason, std::int32_t code) noexcept;

}  // namespace ringmain::mpi
