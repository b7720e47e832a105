// What does NCCL keep for each thread that calls its API?
#pragma once

namespace ringmain::nccl_conformance {

struct ApiThread {
  enum class State { none, started, start_stopped };
  int depth = 0;
  int profiled_depth = 0;  // 0: no GroupApi event is open
  bool group_of_user = false;
  int mask = 0;
  State state = State::none;
  void* group_api = nullptr;
  void* p2p_api = nullptr;
  void* coll_api = nullptr;  // never cleared
};

ApiThread& this_api_thread() noexcept;

}  // namespace ringmain::nccl_conformance
