// A source above MPI, for outer.c, which loads it: it issues an operation, marks the thread, and
// says its end or leaves that to MPI.
#include <memory>
#include <optional>

#include "bus/bus.hpp"

#include "adapters/sources/collective/collective_ledger.hpp"

namespace {

using namespace ringmain;
using collective::Ledger;

std::shared_ptr<Ledger>& ledger() {
  static std::shared_ptr<Ledger> of_process = Ledger::of(Bus::process()).value();
  return of_process;
}
std::optional<Ledger::Inside> inside;

}  // namespace

/// Its id.
extern "C" unsigned long long outer_begin(const char* op, unsigned long long bytes) {
  collective::Issued what;
  what.op = Name(op);
  what.group = Name("outer group");
  what.source = Name("outer");
  what.bytes = bytes;
  const std::uint64_t id = ledger()->issue(what);
  inside.emplace(*ledger(), id);
  return id;
}
extern "C" void outer_leave() {
  inside.reset();
}
extern "C" int outer_completed(unsigned long long id) {
  collective::Completed said;
  said.source = Name("outer");
  return ledger()->completed(id, said);
}
extern "C" unsigned long long outer_late() {
  return ledger()->figures().late;
}
