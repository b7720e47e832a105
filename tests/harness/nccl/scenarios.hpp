// The scenarios, by what they show; scenario_list.cpp has their names and sentences.
#pragma once
#include "tests/harness/nccl/stage.hpp"

namespace ringmain::nccl_conformance {

void all_reduce_on_two_nodes(Stage& stage);
void kernels_on_one_node(Stage& stage);
void lapped_kernels(Stage& stage);
void transfers_in_a_group(Stage& stage);
void two_communicators_in_a_group(Stage& stage);
void replayed_graph(Stage& stage);
void non_blocking_communicator(Stage& stage);
void shared_proxy(Stage& stage);

void communicator_names(Stage& stage);
void inits_at_once(Stage& stage);
void loading_again(Stage& stage);
void loading_again_without_unmapping(Stage& stage);
void aborted_operations(Stage& stage);
void changed_masks(Stage& stage);
void other_processes(Stage& stage);
void other_transports(Stage& stage);
void too_many_open(Stage& stage);
void copy_engines(Stage& stage);
void network_requests(Stage& stage);
void kernel_phases(Stage& stage);
void dead_and_missing(Stage& stage);
void unknown_words(Stage& stage);
void random_streams(Stage& stage);

}  // namespace ringmain::nccl_conformance
