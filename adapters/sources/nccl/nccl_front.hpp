// What NCCL calls: the functions of the tables, version by version. libnccl-profiler-ringmain.so
// exports the tables, and joins a run before the first of these.
#pragma once
#include "adapters/sources/nccl/nccl_profiler_abi.hpp"

namespace ringmain::nccl {

/// Says success always: NCCL 2.30 unloads a plugin under live communicators otherwise.
abi::Result init_v4(void** context, int* mask, const char* comm_name, std::uint64_t comm_hash,
                    int n_nodes, int n_ranks, int rank, abi::Logger log) noexcept;
abi::Result init_v5(void** context, std::uint64_t comm_id, int* mask, const char* comm_name,
                    int n_nodes, int n_ranks, int rank, abi::Logger log) noexcept;
abi::Result init_v6(void** context, std::uint64_t comm_id, int* mask, const char* comm_name,
                    int n_nodes, int n_ranks, int rank, abi::Logger log) noexcept;
abi::Result init_v7(void** context, std::uint64_t comm_id, int* mask, const char* comm_name,
                    int n_nodes, int n_ranks, int rank, abi::Logger log) noexcept;
abi::Result start_v4(void* context, void** handle, abi::DescriptorV4* what) noexcept;
abi::Result start_v5(void* context, void** handle, abi::DescriptorV5* what) noexcept;
abi::Result start_v6(void* context, void** handle, abi::DescriptorV6* what) noexcept;
abi::Result start_v7(void* context, void** handle, abi::DescriptorV7* what) noexcept;
abi::Result stop(void* handle) noexcept;
abi::Result record_state(void* handle, abi::State state, abi::StateArgs* args) noexcept;
abi::Result finalize(void* context) noexcept;

/// Is it a table of these functions, in whichever library?
[[nodiscard]] bool is_own_table(const void* table) noexcept;

/// Loads the plugins that come behind ringmain's: what NCCL's variable named before the run, or,
/// where `list` is nullptr, the one that NCCL loads unasked. Once in a process, before the first
/// communicator; what is wrong is said by `fault(sentence)`. Throws std::bad_alloc.
void chain_plugins(const char* list, int version, void (*fault)(const char* sentence));

}  // namespace ringmain::nccl
