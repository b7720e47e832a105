#include "bindings/python/native/inline_subscribe.hpp"

#include <nanobind/stl/string.h>
#include <new>
#include <stdexcept>
#include <utility>

#include "bus/channel.hpp"

#include "bindings/python/native/batch.hpp"
#include "bindings/python/native/stable_abi.hpp"

namespace ringmain::python {
namespace {

struct Judge {
  PyObject* callback;
  std::shared_ptr<InlineSubscriber> subscriber;
  const engine::ChannelCore* channel;

  Judge(PyObject* by, std::shared_ptr<InlineSubscriber> of, const engine::ChannelCore* on) noexcept
      : callback(by), subscriber(std::move(of)), channel(on) {}
  Judge(Judge&& other) noexcept
      : callback(std::exchange(other.callback, nullptr)),
        subscriber(std::move(other.subscriber)),
        channel(other.channel) {}
  Judge& operator=(Judge&&) = delete;
  ~Judge() { retire(callback); }  // on whichever thread destroys it
};

/// What Python raised, as an exception that is counted like any that a subscriber throws.
struct Raised : std::runtime_error {
  using std::runtime_error::runtime_error;
};

Record copied(const engine::ChannelCore& channel, const std::byte* event) {
  const Layout& layout = Layout::of(*static_cast<const Schema*>(channel.options().schema));
  Record record;
  record.layout = &layout;
  record.own.assign(event, event + layout.schema().bytes);
  record.event = record.own.data();
  record.channel = channel.options().name;
  return record;
}

engine::Judgement verdict_of(const nb::object& answer, const InlineSubscriber& subscriber) {
  if (answer.is_none() || answer.ptr() == Py_True) return {};
  if (answer.ptr() == Py_False)
    return {.veto = true, .why = Name("vetoed by " + subscriber.name).id()};
  if (PyUnicode_Check(answer.ptr())) {
    nb::object held;
    return {.veto = true, .why = Name(utf8_of(answer.ptr(), held)).id()};
  }
  PyErr_Format(PyExc_TypeError,
               "an inline subscriber answers None or True (let it go on), False or a str (veto), "
               "and not %R",
               answer.ptr());
  throw nb::python_error();
}

/// Throws Raised after a log line.
engine::Judgement ask(const Judge& by, const std::byte* at) {
  const Taken gil;
  ++by.subscriber->gil_taken;
  std::string words;
  try {
    const nb::object record = nb::cast(copied(*by.channel, at), nb::rv_policy::move);
    const nb::object answer = nb::steal(call_with(by.callback, record.ptr()));
    if (!answer.is_valid()) throw nb::python_error();
    return verdict_of(answer, *by.subscriber);
  } catch (nb::python_error& error) {
    words = error.what();
    if (by.subscriber->raised++ == 0) {
      error.restore();
      log_raised(by.subscriber->name);
    }
  }
  throw Raised(words);
}

engine::Judgement judge(engine::Subscriber& self, const std::byte* at) noexcept {
  const Judge& by = *std::launder(static_cast<const Judge*>(self.captures()));
  try {
    return exiting() ? engine::Judgement{} : ask(by, at);
  } catch (...) {
    return engine::inline_threw(self);
  }
}

}  // namespace

std::shared_ptr<InlineSubscriber> subscribe_inline_callback(engine::ChannelCore& channel,
                                                            nb::object callback,
                                                            SubscribeOptions options) {
  auto made = std::make_shared<InlineSubscriber>();
  made->name = options.name;
  engine::Subscriber* subscriber =
      ringmain::detail::hold_captures(Judge(callback.release().ptr(), made, &channel));
  subscriber->judge = &judge;
  made->held = ringmain::detail::attach(channel, subscriber, std::move(options));
  return made;
}

Detached remove(InlineSubscriber& subscriber, Seconds limit) {
  Detached ended = Detached::timeout;
  (void)wait_in_slices(limit, [&](std::chrono::nanoseconds slice) {
    ended = subscriber.held.reset_for(slice);
    return ended != Detached::timeout;
  });
  return ended;
}

void log_raised(const std::string& name) noexcept {
  try {
    const nb::python_error error;  // takes it
    nb::module_::import_("ringmain._raised").attr("log")(nb::cast(name), error.value());
  } catch (nb::python_error& error) {
    error.restore();
    PyErr_WriteUnraisable(nullptr);
  } catch (const std::bad_alloc&) {
  }
}

}  // namespace ringmain::python
