#include "adapters/sources/mpi/mpi_publish.hpp"

#include <atomic>

#include "engine/system/clock.hpp"

#include "bus/origin.hpp"

#include "events/collective.hpp"
#include "events/terms/collective_names.hpp"

#include "adapters/launch/channel_of.hpp"
#include "adapters/launch/tid.hpp"

namespace ringmain::mpi {
namespace {

using collective::Completed;
using collective::Failed;
using collective::Issued;
using engine::now_ns;

struct Channels {
  std::atomic<Channel<Issued>*> issued{nullptr};
  std::atomic<Channel<Completed>*> completed{nullptr};
  std::atomic<Channel<Failed>*> failed{nullptr};
};
constinit Channels channels;
std::atomic<Name> backend{};

/// nullptr until the program's bus has it.
template <class E>
bool wanted(const Channel<E>* channel) noexcept {
  return channel != nullptr && channel->wanted();
}
template <class E>
void publish(Channel<E>* channel, const E& event) noexcept {
  if (channel != nullptr) channel->post(event);
}

std::int32_t this_thread() noexcept {
  return static_cast<std::int32_t>(run::this_tid());
}
template <class E>
E about(const Operation& operation) noexcept {
  E said;
  said.op_id = operation.op_id;
  said.sequence = operation.sequence;
  said.bytes = operation.bytes;
  said.op = operation.name;
  said.group = operation.group;
  said.backend = backend;
  said.rank = operation.rank;
  said.group_size = operation.group_size;
  return said;
}

}  // namespace

Result<bool> publish_on(Bus& bus) {
  const auto of_issued = run::channel_of<Issued>(bus);
  if (!of_issued) return of_issued.error();
  const auto of_completed = run::channel_of<Completed>(bus);
  if (!of_completed) return of_completed.error();
  const auto of_failed = run::channel_of<Failed>(bus);
  if (!of_failed) return of_failed.error();
  backend = Name(collective::kMpi);
  channels.issued = of_issued.value();
  channels.completed = of_completed.value();
  channels.failed = of_failed.value();
  return true;
}

bool opened() noexcept {
  return channels.failed != nullptr;
}

bool heard() noexcept {
  return wanted(channels.issued.load()) || wanted(channels.completed.load()) ||
         wanted(channels.failed.load());
}

void issued(Operation& operation, bool asynchronous) noexcept {
  operation.op_id = new_op_id();
  operation.issued_ns = now_ns();
  Issued said = about<Issued>(operation);
  said.in_elements = operation.in_elements;
  said.out_elements = operation.out_elements;
  said.dtype = operation.dtype;
  said.peer = operation.peer;
  said.thread = this_thread();
  said.asynchronous = asynchronous;
  publish(channels.issued.load(), said);
}

void completed(const Operation& operation, std::uint64_t bytes) noexcept {
  Completed said = about<Completed>(operation);
  said.bytes = bytes;
  said.duration_ns = now_ns() - operation.issued_ns;
  said.dtype = operation.dtype;
  said.thread = this_thread();
  publish(channels.completed.load(), said);
}

void failed(const Operation& operation, Name reason, std::int32_t code) noexcept {
  Failed said = about<Failed>(operation);
  said.elapsed_ns = now_ns() - operation.issued_ns;
  said.reason = reason;
  said.peer = operation.peer;
  said.result = code;
  said.thread = this_thread();
  publish(channels.failed.load(), said);
}

}  // namespace ringmain::mpi
