// How does a replay report its result? As a table for people, or as one JSON object.
#pragma once
#include <cstdio>

#include "cli/replay_run.hpp"

namespace ringmain::cli {

void print_replay_text(std::FILE* to, const ReplayCall& call, const ReplayResult& result);
void print_replay_json(std::FILE* to, const ReplayCall& call, const ReplayResult& result);

}  // namespace ringmain::cli
