// How does C publish which training step it is, and find the step of an event? By scopes on a
// stack, as a training loop nests them, and by a log of their edges.
#include <array>
#include <bit>
#include <optional>

#include "events/steps/log.hpp"
#include "events/steps/source.hpp"

#include "bindings/c/handles.hpp"

using namespace ringmain::c;  // NOLINT(google-build-using-namespace): this is its face

struct ringmain_steps {
  using Source = ringmain::step::Source;
  enum : std::size_t { kDeepest = 32 };

  explicit ringmain_steps(Source made) : source(std::move(made)) {}
  ~ringmain_steps() {
    while (depth > 0) scopes[--depth].reset();  // from the inside out, as scopes end
  }
  template <class Begin>
  ringmain_code begin(Begin begin_one) {
    if (depth == kDeepest)
      return fail(RINGMAIN_TOO_DEEP, "32 scopes are open; end those that are over");
    scopes[depth].emplace(begin_one(source));
    ++depth;
    return RINGMAIN_OK;
  }

  Source source;
  std::array<std::optional<Source::Scope>, kDeepest> scopes;
  std::size_t depth = 0;
};

struct ringmain_step_follow {
  explicit ringmain_step_follow(ringmain::Bus& bus) : follow(bus) {}
  ringmain::step::Follow follow;
};

namespace {
constexpr const char* kNoSteps = "steps is NULL; open them first";
}

extern "C" {

ringmain_code ringmain_steps_open(ringmain_bus* bus, ringmain_steps** steps) {
  return guarded([&] {
    if (bus == nullptr) return fail(RINGMAIN_REFUSED, "bus is NULL; open one");
    if (steps == nullptr) return fail(RINGMAIN_REFUSED, "steps is NULL; give a place for them");
    if (ringmain::detail::Erased::core(*bus->bus).forked())
      return published({ringmain::PublishCode::forked, {}});
    // Checked first: Channel<E> would end the process if C had described another train.step.
    auto channel =
        ringmain::detail::Erased::channel(*bus->bus, ringmain::schema<ringmain::step::Step>());
    if (!channel) return fail(channel.error());
    auto source = ringmain::step::Source::attach(*bus->bus);
    if (!source) return fail(source.error());
    *steps = std::make_unique<ringmain_steps>(std::move(source).value()).release();
    return ringmain_code{RINGMAIN_OK};
  });
}

ringmain_code ringmain_step_begin(ringmain_steps* steps, uint64_t number) {
  if (steps == nullptr) return fail(RINGMAIN_REFUSED, kNoSteps);
  return steps->begin([number](auto& source) { return source.step(number); });
}

ringmain_code ringmain_phase_begin(ringmain_steps* steps, uint32_t name) {
  if (steps == nullptr) return fail(RINGMAIN_REFUSED, kNoSteps);
  return steps->begin(
      [name](auto& source) { return source.phase(std::bit_cast<ringmain::Name>(name)); });
}

ringmain_code ringmain_micro_batch_begin(ringmain_steps* steps, uint32_t number) {
  if (steps == nullptr) return fail(RINGMAIN_REFUSED, kNoSteps);
  return steps->begin([number](auto& source) { return source.micro_batch(number); });
}

ringmain_code ringmain_step_end(ringmain_steps* steps) {
  if (steps == nullptr) return fail(RINGMAIN_REFUSED, kNoSteps);
  if (steps->depth == 0)
    return fail(RINGMAIN_REFUSED, "no scope is open; end one for each that was begun");
  steps->scopes[--steps->depth].reset();
  return RINGMAIN_OK;
}

void ringmain_steps_close(ringmain_steps* steps) {
  delete steps;
}

ringmain_code ringmain_step_follow_open(ringmain_bus* bus, ringmain_step_follow** follow) {
  return guarded([&] {
    if (bus == nullptr) return fail(RINGMAIN_REFUSED, "bus is NULL; open one");
    if (follow == nullptr) return fail(RINGMAIN_REFUSED, "follow is NULL; give a place for it");
    if (ringmain::detail::Erased::core(*bus->bus).forked())
      return published({ringmain::PublishCode::forked, {}});
    *follow = std::make_unique<ringmain_step_follow>(*bus->bus).release();
    return ringmain_code{RINGMAIN_OK};
  });
}

ringmain_code ringmain_step_of(const ringmain_step_follow* follow, const ringmain_event* event,
                               ringmain_step_place* place) {
  if (follow == nullptr) return fail(RINGMAIN_REFUSED, "follow is NULL; open one first");
  if (event == nullptr) return fail(RINGMAIN_REFUSED, "event is NULL; give one that is heard");
  if (place == nullptr) return fail(RINGMAIN_REFUSED, "place is NULL; give a place for it");
  if (event->time_from != RINGMAIN_TIME_OF_PUBLISHER) {
    return fail(RINGMAIN_NOT_FOUND,
                "the event's time is not its publisher's, so its step is not known; subscribe with "
                "`stamped`");
  }
  const ringmain::Stamp stamp{event->time_ns, event->sequence, event->publisher,
                              ringmain::TimeFrom::publisher};
  const ringmain::step::Place in = follow->follow.at(stamp);
  if (!in.inside)
    return fail(RINGMAIN_NOT_FOUND, "the event was said in no step that was followed");
  const ringmain_step_place found{sizeof found, in.phase.id(), in.step, in.micro_batch, 0};
  return write_struct(found, "ringmain_step_place", place);
}

void ringmain_step_follow_close(ringmain_step_follow* follow) {
  delete follow;
}

}  // extern "C"
