// Which providers come with ringmain? Each is a line here, and makes itself beside its source or
// sink.
#include "adapters/registry.hpp"
#include "adapters/sinks/json_lines.hpp"
#include "adapters/sinks/summary.hpp"
#include "adapters/sources/compile/waits/waits_provider.hpp"
#include "adapters/sources/cuda/cuda_alarms_sink.hpp"
#include "adapters/sources/cuda/cuda_provider.hpp"
#include "adapters/sources/heartbeat/heartbeat_provider.hpp"
#include "adapters/sources/mpi/mpi_provider.hpp"
#include "adapters/sources/nccl/nccl_calls_provider.hpp"
#include "adapters/sources/nccl/nccl_provider.hpp"
#include "adapters/sources/nvtx/nvtx_provider.hpp"
#include "adapters/sources/torch/torch_provider.hpp"

namespace ringmain::registry {

void add_builtin_providers(Registry& registry) {
  for (Provider (*const provider)() : {
           &sinks::JsonLines::provider,
           &sinks::Summary::provider,
           &compile::waits_provider,
           &cuda::alarms_provider,
           &cuda::provider,
           &heartbeat::provider,
           &mpi::provider,
           &nccl::calls_provider,
           &nccl::provider,
           &nvtx::provider,
           &torch::provider,
       }) {
    (void)registry.add(provider());  // a name that is taken stays whose it was
  }
}

}  // namespace ringmain::registry
