#include "adapters/sources/mpi/mpi_publish.hpp"

#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "engine/system/clock.hpp"

#include "events/collective.hpp"

#include "adapters/launch/tid.hpp"

namespace ringmain::mpi {
namespace {

using collective::Completed;
using collective::Failed;
using collective::Issued;
using engine::now_ns;

struct Channels {
  std::atomic<ringmain_channel*> issued{nullptr};
  std::atomic<ringmain_channel*> completed{nullptr};
  std::atomic<ringmain_channel*> failed{nullptr};
};
constinit Channels channels;
constinit std::atomic<std::uint32_t> backend{0};

/// A field as C knows it: the numbers of types and units are the same on both sides.
template <auto Member>
ringmain_field field_of(const Field<Member>& field) noexcept {
  using Type = typename Field<Member>::Type;
  return {field.name.data(),
          field.enumerators.empty() ? nullptr : field.enumerators.data(),
          static_cast<std::uint32_t>(detail::kind_of<Type>()),
          static_cast<std::uint32_t>(field.unit),
          Field<Member>::offset(),
          sizeof(Type)};
}
static_assert(static_cast<int>(Kind::text) == RINGMAIN_TEXT &&
              static_cast<int>(Kind::name) == RINGMAIN_NAME);
static_assert(static_cast<int>(Unit::id) == RINGMAIN_UNIT_ID);

template <class E>
bool define(ringmain_bus* bus, std::atomic<ringmain_channel*>& channel) noexcept {
  static constexpr auto kDescribed = describe(EventOf<E>{});
  const auto fields = std::apply(
      [](const auto&... f) { return std::array<ringmain_field, sizeof...(f)>{field_of(f)...}; },
      kDescribed.fields);
  const ringmain_event_type type{sizeof type,
                                 sizeof(E),
                                 kDescribed.name.data(),
                                 fields.data(),
                                 static_cast<std::uint32_t>(fields.size()),
                                 sizeof(ringmain_field)};
  ringmain_channel* found = nullptr;
  if (ringmain_define(bus, &type, &found) != RINGMAIN_OK) return false;
  channel = found;
  return true;
}

template <class E>
void publish(const std::atomic<ringmain_channel*>& channel, const E& event) noexcept {
  (void)ringmain_publish(channel, &event, sizeof event);  // its ledger knows
}

Name name(std::uint32_t id) noexcept {
  return std::bit_cast<Name>(id);
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
  said.op = name(operation.name);
  said.group = name(operation.group);
  said.backend = name(backend);
  said.rank = operation.rank;
  said.group_size = operation.group_size;
  return said;
}

}  // namespace

bool publish_on(ringmain_bus* bus) noexcept {
  backend = name_of("mpi");
  return define<Issued>(bus, channels.issued) && define<Completed>(bus, channels.completed) &&
         define<Failed>(bus, channels.failed);
}

bool opened() noexcept {
  return channels.failed != nullptr;
}

bool heard() noexcept {
  return ringmain_wanted(channels.issued) != 0 || ringmain_wanted(channels.completed) != 0 ||
         ringmain_wanted(channels.failed) != 0;
}

void issued(Operation& operation, bool asynchronous) noexcept {
  operation.op_id = ringmain_new_op_id();
  operation.issued_ns = now_ns();
  Issued said = about<Issued>(operation);
  said.in_elements = operation.in_elements;
  said.out_elements = operation.out_elements;
  said.dtype = name(operation.dtype);
  said.peer = operation.peer;
  said.thread = this_thread();
  said.asynchronous = asynchronous;
  publish(channels.issued, said);
}

void completed(const Operation& operation, std::uint64_t bytes) noexcept {
  Completed said = about<Completed>(operation);
  said.bytes = bytes;
  said.duration_ns = now_ns() - operation.issued_ns;
  said.dtype = name(operation.dtype);
  said.thread = this_thread();
  publish(channels.completed, said);
}

void failed(const Operation& operation, std::uint32_t reason, std::int32_t code) noexcept {
  Failed said = about<Failed>(operation);
  said.elapsed_ns = now_ns() - operation.issued_ns;
  said.reason = name(reason);
  said.peer = operation.peer;
  said.result = code;
  said.thread = this_thread();
  publish(channels.failed, said);
}

std::uint32_t name_of(const char* text) noexcept {
  return ringmain_name(text, std::strlen(text));
}

}  // namespace ringmain::mpi
