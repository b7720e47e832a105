// How does C make communicators and report operations?
#include "adapters/sources/collective/collective_c.hpp"

#include <string>
#include <utility>

#include "bus/bus.hpp"

#include "adapters/launch/tid.hpp"

using namespace ringmain::collective::c;  // NOLINT(google-build-using-namespace): it is its face
using ringmain::Bus;
using ringmain::Name;
using ringmain::Result;
using ringmain::c::same;
using ringmain::collective::Communicator;
using ringmain::collective::CommunicatorOptions;
using ringmain::collective::Completed;
using ringmain::collective::Failed;
using ringmain::collective::How;
using ringmain::collective::Ledger;

namespace {

static_assert(same(RINGMAIN_FAILED_ERROR, How::error) &&
              same(RINGMAIN_FAILED_TIMED_OUT, How::timed_out) &&
              same(RINGMAIN_FAILED_ABORTED, How::aborted) &&
              same(RINGMAIN_FAILED_VETOED, How::vetoed) &&
              same(RINGMAIN_FAILED_CANCELLED, How::cancelled) &&
              same(RINGMAIN_FAILED_UNKNOWN, How::unknown));
static_assert(RINGMAIN_NO_RANK == ringmain::collective::kNoRank &&
              RINGMAIN_NO_DEVICE == ringmain::collective::kNoDevice);

/// The innermost operation whose backend's call this thread is in.
constinit thread_local ringmain_operation* innermost = nullptr;

Bus& bus_of(ringmain_bus* bus) {
  return bus == nullptr ? Bus::process() : *bus->bus;
}
std::string_view text_of(const char* text) noexcept {
  return text == nullptr ? "" : text;
}

ringmain_code options_of(const ringmain_communicator_options& o, CommunicatorOptions& to,
                         User&& owned) {
  to.name = text_of(o.name);
  to.description = text_of(o.description);
  to.backend = text_of(o.backend);
  to.source = text_of(o.source);
  to.rank = o.rank;
  to.size = o.size;
  to.device = o.device;
  if (o.device < RINGMAIN_NO_DEVICE) {
    return fail(RINGMAIN_REFUSED, "ringmain_communicator_options.device is " +
                                      std::to_string(o.device) +
                                      "; give the device's number, or RINGMAIN_NO_DEVICE");
  }
  if (o.ranks != nullptr && o.size > 0) to.ranks = {o.ranks, static_cast<std::size_t>(o.size)};
  if (o.abort != nullptr) {
    to.abort = [abort = o.abort, user = std::make_shared<const User>(std::move(owned))](Name why) {
      abort(user->get(), why.id());
    };
  }
  return RINGMAIN_OK;
}

/// What make() and part() share.
template <class Make>
ringmain_code made_by(const ringmain_communicator_options* given, ringmain_communicator** to,
                      Make make) {
  if (given == nullptr) return fail(RINGMAIN_REFUSED, "options is NULL; name the group at least");
  ringmain_communicator_options o;
  if (const auto code = read_struct(given, "ringmain_communicator_options", o)) return code;
  User owned(o.user, o.destroy);
  if (to == nullptr)
    return fail(RINGMAIN_REFUSED, "there is no place for the communicator; give one");
  auto room = std::make_unique<ringmain_communicator>();
  CommunicatorOptions options;
  if (const auto code = options_of(o, options, std::move(owned))) return code;
  Result<Communicator> made = make(options);
  if (!made) return fail(made.error());
  room->held = std::move(made).value();
  *to = room.release();
  return RINGMAIN_OK;
}

void one_word_less(ringmain_operation* operation) noexcept {
  if (--operation->words_to_come == 0) delete operation;
}

/// The backend's call is over: `say` tells the hooks how.
template <class Say>
ringmain_code is_over(ringmain_operation* operation, Say say) {
  if (operation == nullptr) return RINGMAIN_OK;
  if (operation != innermost) {
    return fail(RINGMAIN_REFUSED,
                "this is not the operation that this thread issued last and that has still to "
                "return; say how a call went once, in its own thread, the innermost one first");
  }
  innermost = operation->outer;
  say(*operation->issuing);
  operation->issuing.reset();
  one_word_less(operation);
  return RINGMAIN_OK;
}

ringmain_code heard(const ringmain_operation* operation, bool believed) noexcept {
  if (believed) return RINGMAIN_OK;
  if (operation->operation.id() == 0) return RINGMAIN_UNHEARD;
  return fail(RINGMAIN_NOT_ATTACHED,
              "the operation is over or had begun before, nobody listened when it was issued, or "
              "it is a part of another source's");
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

int32_t ringmain_communicator_make(struct ringmain_bus* bus,
                                   const ringmain_communicator_options* options,
                                   ringmain_communicator** communicator) {
  return guarded([&] {
    return made_by(options, communicator, [&](const CommunicatorOptions& with) {
      return Communicator::make(bus_of(bus), with);
    });
  });
}

int32_t ringmain_communicator_find(struct ringmain_bus* bus, const char* group, int32_t rank,
                                   ringmain_communicator** communicator) {
  return guarded([&]() -> ringmain_code {
    if (group == nullptr) return fail(RINGMAIN_REFUSED, "group is NULL; give its name");
    if (communicator == nullptr)
      return fail(RINGMAIN_REFUSED, "there is no place for the communicator; give one");
    auto room = std::make_unique<ringmain_communicator>();
    room->held = Communicator::find(bus_of(bus), group, rank);
    if (!room->held) {
      return fail(RINGMAIN_NOT_FOUND,
                  "there is no communicator '" + std::string(group) +
                      "' of that rank on this bus, "
                      "or it has ended; collective.group says when one is made");
    }
    *communicator = room.release();
    return RINGMAIN_OK;
  });
}

int32_t ringmain_communicator_retain(const ringmain_communicator* communicator,
                                     ringmain_communicator** kept) {
  return guarded([&]() -> ringmain_code {
    if (communicator == nullptr) return no_communicator();
    if (kept == nullptr)
      return fail(RINGMAIN_REFUSED, "there is no place for the communicator; give one");
    *kept = std::make_unique<ringmain_communicator>(*communicator).release();
    return RINGMAIN_OK;
  });
}
void ringmain_communicator_free(ringmain_communicator* communicator) {
  delete communicator;
}
void ringmain_communicator_end(const ringmain_communicator* communicator) {
  if (communicator != nullptr) communicator->held.end();
}
int ringmain_communicator_same(const ringmain_communicator* one,
                               const ringmain_communicator* other) {
  return one != nullptr && other != nullptr && one->held == other->held ? 1 : 0;
}

int32_t ringmain_communicator_read(const ringmain_communicator* communicator,
                                   ringmain_communicator_state* state) {
  return guarded([&]() -> ringmain_code {
    if (communicator == nullptr) return no_communicator();
    if (state == nullptr) return fail(RINGMAIN_REFUSED, "state is NULL; give a place for it");
    const Communicator& of = communicator->held;
    const ringmain_communicator_state now{sizeof now,
                                          of.rank(),
                                          of.size(),
                                          of.name().id(),
                                          of.backend().id(),
                                          of.ended() ? 1u : 0u,
                                          of.aborted() ? 1u : 0u,
                                          of.supports_abort() ? 1u : 0u};
    return write_struct(now, "ringmain_communicator_state", state);
  });
}

int32_t ringmain_communicator_part(const ringmain_communicator* communicator,
                                   const ringmain_communicator_options* options,
                                   ringmain_communicator** part) {
  return guarded([&] {
    return made_by(options, part, [&](const CommunicatorOptions& with) -> Result<Communicator> {
      return communicator == nullptr ? Communicator().part(with) : communicator->held.part(with);
    });
  });
}
void ringmain_communicator_no_part(const ringmain_communicator* communicator) {
  if (communicator != nullptr) communicator->held.no_part();
}

int32_t ringmain_issue(const ringmain_communicator* communicator,
                       const ringmain_arguments* arguments, ringmain_operation** operation) {
  return guarded([&]() -> ringmain_code {
    if (communicator == nullptr) return no_communicator();
    if (operation == nullptr)
      return fail(RINGMAIN_REFUSED, "operation is NULL; give a place for it");
    ArgumentsOf read;
    if (const auto code = read.read(arguments)) return code;
    auto room = std::make_unique<ringmain_operation>();  // all memory first
    // Made in place: it marks the thread.
    struct Issue {
      const Communicator& by;
      const ringmain::collective::Arguments& with;
      operator ringmain::collective::Issuing() const { return by.issue(with); }  // NOLINT
    };
    room->issuing.emplace(Issue{communicator->held, read.arguments});
    if (!*room->issuing) {
      const bool over = communicator->held.ended() || communicator->held.aborted();
      return fail(over ? RINGMAIN_CLOSED : RINGMAIN_VETOED, room->issuing->reason().view());
    }
    if (room->issuing->operation().id() == 0) {
      *operation = nullptr;
      return RINGMAIN_OK;
    }
    room->operation = room->issuing->operation();
    room->outer = std::exchange(innermost, room.get());
    *operation = room.release();
    return RINGMAIN_OK;
  });
}

int32_t ringmain_operation_returned(ringmain_operation* operation, const void* work) {
  return guarded([&] { return is_over(operation, [&](auto& one) { one.returned(work); }); });
}
int32_t ringmain_operation_returned_part(ringmain_operation* operation,
                                         const ringmain_communicator* part) {
  return guarded([&] {
    return is_over(operation,
                   [&](auto& one) { one.returned_part(part == nullptr ? nullptr : &part->held); });
  });
}
int32_t ringmain_operation_threw(ringmain_operation* operation, const char* what) {
  return guarded([&] {
    return is_over(operation, [&](auto& one) {
      one.threw(what == nullptr ? "the backend's call failed" : what);
    });
  });
}

int32_t ringmain_operation_started(const ringmain_operation* operation) {
  if (operation == nullptr) return RINGMAIN_UNHEARD;
  return heard(operation, operation->operation.started());
}
int32_t ringmain_operation_completed(const ringmain_operation* operation) {
  if (operation == nullptr) return RINGMAIN_UNHEARD;
  return heard(operation, operation->operation.completed());
}
int32_t ringmain_operation_failed(const ringmain_operation* operation, uint32_t how,
                                  const char* reason, int32_t result) {
  return guarded([&]() -> ringmain_code {
    if (how > RINGMAIN_FAILED_UNKNOWN) {
      return fail(RINGMAIN_REFUSED, "how is " + std::to_string(how) +
                                        "; use RINGMAIN_FAILED_ERROR … RINGMAIN_FAILED_UNKNOWN");
    }
    if (operation == nullptr) return RINGMAIN_UNHEARD;
    Failed what;
    what.how = static_cast<How>(how);
    what.reason = Name(text_of(reason));
    what.result = result;
    what.thread = static_cast<std::int32_t>(ringmain::run::this_tid());
    return heard(operation, operation->operation.failed(what));
  });
}

uint64_t ringmain_operation_id(const ringmain_operation* operation) {
  return operation == nullptr ? 0 : operation->operation.id();
}
int64_t ringmain_operation_wait_begin(const ringmain_operation* operation) {
  return operation == nullptr ? 0 : operation->operation.begin_wait();
}
void ringmain_operation_wait_end(const ringmain_operation* operation, int64_t begun) {
  if (operation != nullptr) operation->operation.end_wait(begun);
}
void ringmain_operation_free(ringmain_operation* operation) {
  if (operation != nullptr) one_word_less(operation);
}

int32_t ringmain_operation_here(struct ringmain_bus* bus, uint64_t* op_id) {
  return guarded([&]() -> ringmain_code {
    if (op_id == nullptr) return fail(RINGMAIN_REFUSED, "op_id is NULL; give a place for it");
    const auto ledger = Ledger::of(bus_of(bus));
    if (!ledger) return fail(ledger.error());
    *op_id = ledger.value()->mark();
    return RINGMAIN_OK;
  });
}

}  // extern "C"
