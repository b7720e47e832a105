// Which events does ringmain describe in C++? Python knows their fields before anybody has said
// one.
#include <cstring>
#include <type_traits>
#include <utility>

#include "ringmain/bus/bus_events.hpp"

#include "ringmain/adapters/sources/collective/events.hpp"
#include "ringmain/adapters/sources/compile/events.hpp"
#include "ringmain/adapters/sources/cuda/events.hpp"
#include "ringmain/adapters/sources/nvtx/events.hpp"
#include "ringmain/adapters/sources/replay/events.hpp"
#include "ringmain/adapters/sources/step/events.hpp"

#include "ringmain/python/native/channel.hpp"

namespace ringmain::python {
namespace {

/// A field that a Python caller leaves out reads as in C++: not every default is 0.
template <Described... E>
void add(std::vector<const Schema*>& to) {
  const auto one = [&to](const auto& event) {
    using Type = std::remove_cvref_t<decltype(event)>;
    const Schema& schema = ringmain::schema<Type>();
    std::vector<std::byte> bytes(sizeof event);
    std::memcpy(bytes.data(), &event, sizeof event);
    Layout::of(schema).set_initial(std::move(bytes));
    to.push_back(&schema);
  };
  (one(E{}), ...);
}

}  // namespace

std::vector<const Schema*> described_events() {
  std::vector<const Schema*> all;
  add<step::Step>(all);
  add<collective::Issued, collective::Started, collective::Completed, collective::Failed>(all);
  add<compile::Start, compile::End, compile::Graph, compile::GraphBreak, compile::Guard,
      compile::Recompile, compile::DynamicShape, compile::Cache, compile::Backend, compile::Phase,
      compile::Limit, compile::Reset, compile::Metrics, compile::StackFrame,
      compile::InstalledGuard, compile::Code, compile::Wait>(all);
  add<cuda::EventCreation, cuda::EventDeletion, cuda::EventRecord, cuda::EventWait,
      cuda::MemoryAllocation, cuda::MemoryDeallocation, cuda::StreamCreation,
      cuda::DeviceSynchronization, cuda::StreamSynchronization, cuda::EventSynchronization>(all);
  add<nvtx::Range, nvtx::Mark>(all);
  add<replay::Slice, replay::Instant, replay::Counter, replay::Flow, replay::Metadata>(all);
  add<LossNotice, SlowSubscriber, Threw, Quarantined, WaitingRemoval>(all);
  return all;
}

}  // namespace ringmain::python
