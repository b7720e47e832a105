#include "tests/harness/nccl/scenarios.hpp"

namespace ringmain::nccl_conformance {

const Scenario kScenarios[] = {
    {"H1", "all-reduces of 8 ranks on 2 nodes, over 1 to 64 NCCL channels", all_reduce_on_two_nodes,
     true},
    {"H2", "all-reduces on one node, whose kernels are followed; ends without begins",
     kernels_on_one_node, true},
    {"laps", "kernels that lap the host, whose stamps are a later lap's", lapped_kernels, true},
    {"H3", "a send and a receive, then an all-to-all, in groups and several plans",
     transfers_in_a_group, true},
    {"H4", "a group with two communicators of the process", two_communicators_in_a_group, true},
    {"H5", "a captured all-reduce, replayed 1,000 times by CUDA's thread", replayed_graph, true},
    {"H6", "a non-blocking communicator: the group stops first", non_blocking_communicator, true},
    {"H7", "a shared proxy, which keeps the context of a finalized communicator", shared_proxy,
     true},
    {"names", "communicators with a passing name, and without one", communicator_names, true},
    {"inits", "8 communicators at once, 25 times", inits_at_once, true},
    {"again", "100 times loaded and unloaded", loading_again, true},
    {"again_mapped", "the same, held by another, so that it stays mapped",
     loading_again_without_unmapping, false},
    {"abort", "operations, steps and kernels that never end", aborted_operations, true},
    {"masks", "masks that change between a begin and its end, and in a group", changed_masks, true},
    {"processes", "proxy operations that another process asked for (PXN)", other_processes, true},
    {"transports", "sends over another transport than the network's, said to receive (CollNet)",
     other_transports, true},
    {"full", "25,600 events open at once", too_many_open, true},
    {"copies", "copy engines, with and without a call above them", copy_engines, true},
    {"network", "requests of the network's plugin, by its threads", network_requests, true},
    {"phases", "phases of a kernel", kernel_phases, false},
    {"dead", "ended handles, missing parents and repeated states, for each type", dead_and_missing,
     false},
    {"unknown", "types and states that no version has", unknown_words, false},
    {"random", "anything, by several threads; --seed repeats it", random_streams, true},
    {nullptr, nullptr, nullptr, false}};

}  // namespace ringmain::nccl_conformance
