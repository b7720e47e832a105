#include "adapters/sources/mpi/mpi_publish.hpp"

#include <atomic>
#include <cstdio>

#include "engine/system/clock.hpp"

#include "bus/origin.hpp"

#include "events/terms/collective_names.hpp"
#include "events/terms/collective_ranks.hpp"

#include "adapters/launch/channel_of.hpp"
#include "adapters/launch/tid.hpp"

namespace ringmain::mpi {
namespace {

using collective::Abort;
using collective::Completed;
using collective::Failed;
using collective::GroupChange;
using collective::Issued;
using collective::Wait;
using engine::now_ns;

struct Channels {
  std::atomic<Channel<Issued>*> issued{nullptr};
  std::atomic<Channel<Completed>*> completed{nullptr};
  std::atomic<Channel<collective::Group>*> group{nullptr};
  std::atomic<Channel<Wait>*> wait{nullptr};
  std::atomic<Channel<Abort>*> abort{nullptr};
  std::atomic<Channel<Failed>*> failed{nullptr};  // last: then all are there
};
constinit Channels channels;
std::atomic<Name> mpi{};  // as backend and as source

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
  said.backend = mpi;
  said.source = mpi;
  said.rank = operation.rank;
  said.group_size = operation.group_size;
  return said;
}

/// What is known of it, to say that it changed.
collective::Group about(const Group& group, GroupChange change) noexcept {
  collective::Group said;
  said.group = group.name;
  said.backend = mpi;
  said.source = mpi;
  said.rank = group.rank;
  said.group_size = group.size;
  said.thread = this_thread();
  said.change = change;
  return said;
}

}  // namespace

Result<bool> publish_on(Bus& bus) {
  mpi = Name(collective::kMpi);
  Result<bool> all = true;
  const auto open = [&]<class E>(std::atomic<Channel<E>*>& channel) {
    if (!all) return;
    const auto found = run::channel_of<E>(bus);
    if (!found) {
      all = found.error();
    } else {
      channel = found.value();
    }
  };
  open(channels.issued);
  open(channels.completed);
  open(channels.group);
  open(channels.wait);
  open(channels.abort);
  open(channels.failed);
  return all;
}

bool opened() noexcept {
  return channels.failed != nullptr;
}

bool heard() noexcept {
  return wanted(channels.issued.load()) || wanted(channels.completed.load()) ||
         wanted(channels.failed.load()) || wanted(channels.group.load());
}
bool waits_are_heard() noexcept {
  return wanted(channels.wait.load());
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

void failed(const Operation& operation, collective::How how, Name reason,
            std::int32_t code) noexcept {
  Failed said = about<Failed>(operation);
  said.elapsed_ns = now_ns() - operation.issued_ns;
  said.reason = reason;
  said.peer = operation.peer;
  said.result = code;
  said.how = how;
  said.thread = this_thread();
  publish(channels.failed.load(), said);
}

void group_made(const Group& group, std::span<const int> world) noexcept {
  collective::Group said = about(group, GroupChange::made);
  collective::write_ranks(said.ranks, world);
  publish(channels.group.load(), said);
}

void group_ended(const Group& group) noexcept {
  collective::Group said = about(group, GroupChange::ended);
  said.operations = group.collectives;
  publish(channels.group.load(), said);
}

void waits(collective::Edge edge, const Operation* operation, std::uint32_t operations,
           std::int64_t waited_ns) noexcept {
  Wait said;
  if (operation != nullptr) {
    said.op_id = operation->op_id;
    said.op = operation->name;
    said.group = operation->group;
    said.rank = operation->rank;
  }
  said.operations = operations;
  said.duration_ns = waited_ns;
  said.source = mpi;
  said.thread = this_thread();
  said.edge = edge;
  publish(channels.wait.load(), said);
}

void aborts(const Group& group, int code) noexcept {
  static std::atomic<std::uint64_t> incidents{0};
  Abort said;
  said.incident = ++incidents;
  said.group = group.name;
  said.asked_by = Name("application");
  char text[48] = {};
  (void)std::snprintf(text, sizeof text, "MPI_Abort with error code %d", code);
  said.reason = Name(text);
  said.source = mpi;
  said.rank = group.rank;
  said.thread = this_thread();
  publish(channels.abort.load(), said);
}

}  // namespace ringmain::mpi
