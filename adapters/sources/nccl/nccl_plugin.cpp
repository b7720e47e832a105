// The library that NCCL loads as its profiler plugin, for `ringmain run --source nccl` or where
// NCCL_PROFILER_PLUGIN names it.
//
// NCCL calls init() for each communicator, several at once perhaps. The first loads the plugins
// that were to be there anyway, and joins the run; the others wait for that. In a program that has
// attached a source itself there is no run to join, and what is told here goes to its bus.
#include <cerrno>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <utility>

#include "adapters/launch/say.hpp"
#include "adapters/run.hpp"
#include "adapters/sources/nccl/nccl_front.hpp"
#include "adapters/sources/nccl/nccl_options.hpp"
#include "adapters/sources/nccl/nccl_source.hpp"

namespace ringmain::nccl {
namespace {

void attach() {
  Bus* const bus = run::join("nccl");
  if (bus == nullptr) return;
  const auto options = Options::read(run::argument_of("nccl"));
  if (!options) return run::could_not_attach("nccl", options.error().message);
  auto attached = Source::attach(*bus, options.value());
  if (!attached) return run::could_not_attach("nccl", attached.error().message);
  // Never destroyed: NCCL calls until the process is gone.
  static Source* const kept = new Source(std::move(attached).value());
  run::at_end([](nanoseconds limit) { (void)kept->leave(limit); });
}

void join(int version) noexcept {
  static std::once_flag once;
  const int saved = errno;
  try {
    std::call_once(once, [version] {
      chain_plugins(::secure_getenv("RINGMAIN_NCCL_CHAIN"), version,
                    [](const char* sentence) { run::say({sentence}); });
      attach();
    });
  } catch (const std::exception& thrown) {
    run::could_not_attach("nccl", thrown.what());
  }
  errno = saved;
}

abi::Result first_v4(void** context, int* mask, const char* comm_name, std::uint64_t comm_hash,
                     int n_nodes, int n_ranks, int rank, abi::Logger log) noexcept {
  join(4);
  return init_v4(context, mask, comm_name, comm_hash, n_nodes, n_ranks, rank, log);
}
template <int kVersion, auto* kInit>
abi::Result first(void** context, std::uint64_t comm_id, int* mask, const char* comm_name,
                  int n_nodes, int n_ranks, int rank, abi::Logger log) noexcept {
  join(kVersion);
  return kInit(context, comm_id, mask, comm_name, n_nodes, n_ranks, rank, log);
}

constexpr const char* kName = "ringmain";

}  // namespace
}  // namespace ringmain::nccl

// NCCL takes the newest that it knows.
extern "C" {
using namespace ringmain::nccl;
[[gnu::visibility("default")]] extern abi::TableV4 ncclProfiler_v4;
[[gnu::visibility("default")]] extern abi::TableV5 ncclProfiler_v5;
[[gnu::visibility("default")]] extern abi::TableV6 ncclProfiler_v6;
[[gnu::visibility("default")]] extern abi::TableV7 ncclProfiler_v7;
abi::TableV4 ncclProfiler_v4{kName, &first_v4, &start_v4, &stop, &record_state, &finalize};
abi::TableV5 ncclProfiler_v5{kName, &first<5, &init_v5>, &start_v5,
                             &stop, &record_state,       &finalize};
abi::TableV6 ncclProfiler_v6{kName, &first<6, &init_v6>, &start_v6,
                             &stop, &record_state,       &finalize};
abi::TableV7 ncclProfiler_v7{kName, &first<7, &init_v7>, &start_v7,
                             &stop, &record_state,       &finalize};
}
