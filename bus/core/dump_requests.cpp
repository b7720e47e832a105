#include "bus/core/dump_requests.hpp"

#include <exception>
#include <utility>

#include "bus/core/request_list.hpp"

namespace ringmain::detail {
namespace {

/// Never destroyed: recorders end after static objects do.
RequestList<DumpFn>& requests() {
  static RequestList<DumpFn>& them = *new RequestList<DumpFn>;
  return them;
}

}  // namespace

DumpRequest::DumpRequest(DumpFn dump) : dump_(requests().add(std::move(dump))) {}

void dump_all(std::vector<Dumped>& written) noexcept {
  requests().for_each([&written](const DumpFn& dump) noexcept {
    try {
      dump(written);
    } catch (const std::exception&) {  // it had no memory to say what it wrote
    }
  });
}

}  // namespace ringmain::detail
