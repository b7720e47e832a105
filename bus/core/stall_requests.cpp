#include "bus/core/stall_requests.hpp"

#include <utility>

#include "bus/core/request_list.hpp"

namespace ringmain::detail {
namespace {

/// Never destroyed: sources end after static objects do.
RequestList<StallFn>& requests() {
  static RequestList<StallFn>& them = *new RequestList<StallFn>;
  return them;
}

}  // namespace

StallRequest::StallRequest(StallFn tell) : tell_(requests().add(std::move(tell))) {}

bool tell_stalls(formats::JsonText& json) {
  bool any = false;
  requests().for_each([&](const StallFn& tell) { any |= tell(json); });
  return any;
}

}  // namespace ringmain::detail
