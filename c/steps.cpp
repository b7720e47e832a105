// How does C say which training step it is? Scopes on a stack, as a training loop nests them.
#include <array>
#include <bit>
#include <optional>

#include "ringmain/adapters/sources/step/step.hpp"

#include "ringmain/c/handles.hpp"

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
    // Channel<E> ends the process where C described another train.step: so it is asked before.
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

}  // extern "C"
