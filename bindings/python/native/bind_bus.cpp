// The bus's classes, as Python's own layer calls them.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include "bindings/python/native/bus.hpp"

namespace ringmain::python {
namespace {

nb::dict dict_of(const SubscriberStats& s) {
  nb::dict d;
  d["offered"] = s.offered;
  d["delivered"] = s.delivered;
  d["threw"] = s.threw;
  d["filtered"] = s.filtered;
  d["skipped"] = s.skipped;
  d["dropped"] = s.dropped;
  d["coalesced"] = s.coalesced;
  d["pending"] = s.pending;
  return d;
}

nb::dict dict_of(const ChannelStats& c) {
  nb::dict d;
  d["name"] = c.name;
  d["mailbox"] = c.mailbox;
  d["offered"] = c.offered;
  d["accepted"] = c.accepted;
  d["full"] = c.full;
  d["closed"] = c.closed;
  d["no_memory"] = c.no_memory;
  d["too_deep"] = c.too_deep;
  d["vetoed"] = c.vetoed;
  d["delivered"] = c.delivered;
  d["observed"] = c.observed;
  d["evicted"] = c.evicted;
  d["discarded"] = c.discarded;
  d["pending"] = c.pending;
  d["depth_max"] = c.depth_max;
  d["publishers"] = c.publishers;
  d["subscribers"] = c.subscribers;
  return d;
}

nb::dict dict_of(const Dispatcher* by) {
  nb::dict d;
  d["batches"] = by == nullptr ? 0 : by->counts.batches.load();
  d["events"] = by == nullptr ? 0 : by->counts.events.load();
  d["raised"] = by == nullptr ? 0 : by->counts.raised.load();
  d["gil_taken"] = by == nullptr ? 0 : by->counts.gil_taken.load();
  return d;
}

void bind_subscribers(nb::module_& m) {
  nb::class_<Dispatcher>(m, "Dispatcher");
  nb::class_<QueuedSubscriber>(m, "QueuedSubscriber")
      .def_ro("name", &QueuedSubscriber::name)
      .def_prop_ro("closed", [](const QueuedSubscriber& h) { return h.closed.load(); })
      .def_prop_ro("batches", [](const QueuedSubscriber& h) { return h.batches.load(); })
      .def_prop_ro("events", [](const QueuedSubscriber& h) { return h.events.load(); })
      .def_prop_ro("raised", [](const QueuedSubscriber& h) { return h.raised.load(); });
  nb::class_<InlineSubscriber>(m, "InlineSubscriber")
      .def_ro("name", &InlineSubscriber::name)
      .def_prop_ro("closed", [](const InlineSubscriber& h) { return !h.held.attached(); })
      .def_prop_ro("raised", [](const InlineSubscriber& h) { return h.raised.load(); })
      .def_prop_ro("gil_taken", [](const InlineSubscriber& h) { return h.gil_taken.load(); })
      .def("stats", [](const InlineSubscriber& h) { return dict_of(h.held.stats()); });
  nb::class_<Mailbox>(m, "Mailbox")
      .def("take", &Mailbox::take, nb::arg("events_max"))
      .def("wait", &Mailbox::wait, nb::arg("timeout").none())
      .def("fileno", &Mailbox::fd)
      .def("stats", [](const Mailbox& b) { return dict_of(b.stats()); })
      .def_prop_ro("closed", &Mailbox::closed)
      .def("close", &Mailbox::close);
}

/// Plain CPython, because this frame may be unwound when the interpreter ends during a callback.
PyObject* run_dispatcher(PyObject*, PyObject* capsule) {
  auto* held = static_cast<std::shared_ptr<Dispatcher>*>(PyCapsule_GetPointer(capsule, nullptr));
  if (held == nullptr) return nullptr;
  (*held)->run();
  Py_RETURN_NONE;
}

}  // namespace

nb::dict NativeBus::stats() const {
  const Stats all = bus().stats();
  nb::list channels;
  for (const ChannelStats& c : all.channels) channels.append(dict_of(c));
  nb::list subscriptions;
  for (const SubscriptionStats& s : all.subscriptions) {
    nb::dict d = dict_of(s.figures);
    d["name"] = s.name;
    d["channel"] = s.channel;
    d["inline"] = s.called_inline;
    subscriptions.append(d);
  }
  nb::dict d;
  d["channels"] = channels;
  d["subscriptions"] = subscriptions;
  d["python"] = dict_of(dispatcher_.get());
  return d;
}

void bind_bus(nb::module_& m) {
  bind_subscribers(m);
  nb::class_<Asked>(m, "Asked")
      .def(
          "__init__",
          [](Asked* self, std::string name, std::string overflow, std::uint32_t queue_events,
             int priority) {
            new (self) Asked{std::move(name), std::move(overflow), queue_events, priority};
          },
          nb::arg("name"), nb::arg("overflow"), nb::arg("queue_events"), nb::arg("priority"));
  nb::class_<NativeBus>(m, "NativeBus")
      .def(
          "__init__",
          [](NativeBus* self, const std::string& name, unsigned workers) {
            BusOptions options;
            options.name = name;
            options.workers = workers;
            new (self) NativeBus(options);
          },
          nb::arg("name"), nb::arg("workers"))
      .def_static(
          "process", [] { return new NativeBus(Bus::process()); }, nb::rv_policy::take_ownership)
      .def("channel", &NativeBus::channel, nb::arg("layout"))
      .def("find", &NativeBus::find, nb::arg("name"))
      .def("publish_function",
           [](nb::handle_t<NativeBus> self) { return bus_publish_function(self); })
      .def("channel_names", [](const NativeBus& b) { return b.bus().channel_names(); })
      .def("subscribe", &NativeBus::subscribe, nb::arg("what"), nb::arg("callback"),
           nb::arg("asked"), nb::arg("detach_on_raise"))
      .def("subscribe_inline", &NativeBus::subscribe_inline, nb::arg("channel"),
           nb::arg("callback"), nb::arg("asked"), nb::arg("on_raise"))
      .def("mailbox", &NativeBus::mailbox, nb::arg("what"), nb::arg("asked"))
      .def(
          "remove",
          [](NativeBus& b, const std::shared_ptr<QueuedSubscriber>& h, Seconds limit) {
            return to_string(b.remove(h, limit));
          },
          nb::arg("subscriber"), nb::arg("timeout").none())
      .def(
          "remove_inline",
          [](NativeBus& b, const std::shared_ptr<InlineSubscriber>& h, Seconds limit) {
            return to_string(b.remove_inline(h, limit));
          },
          nb::arg("subscriber"), nb::arg("timeout").none())
      .def(
          "subscriber_stats",
          [](const NativeBus& b, const QueuedSubscriber& h) {
            return dict_of(b.dispatcher() ? b.dispatcher()->stats(h) : SubscriberStats{});
          },
          nb::arg("subscriber"))
      .def("flush", &NativeBus::flush, nb::arg("timeout").none())
      .def("close", &NativeBus::close, nb::arg("timeout").none())
      .def("stats", &NativeBus::stats)
      .def_prop_rw("linger_ms", &NativeBus::linger_ms, &NativeBus::set_linger_ms)
      .def("same_bus", &NativeBus::same_bus, nb::arg("other"))
      .def_prop_ro(  // for libraries of ringmain's that are called by ctypes
          "address", [](const NativeBus& b) { return reinterpret_cast<std::uintptr_t>(&b.bus()); })
      .def_prop_ro("closed", &NativeBus::closed)
      .def_prop_ro("forked", &NativeBus::forked);
  m.def("in_subscriber", &in_subscriber);
  m.def("shut_down", &shut_down);
  m.def("expect_leaks", [] { nb::set_leak_warnings(false); });
  static PyMethodDef run = {"_run_dispatcher", &run_dispatcher, METH_O, nullptr};
  m.attr("_run_dispatcher") = nb::steal(PyCFunction_New(&run, nullptr));
  m.def("_capsule", [](const std::shared_ptr<Dispatcher>& by) {
    return nb::capsule(new std::shared_ptr<Dispatcher>(by), [](void* held) noexcept {
      delete static_cast<std::shared_ptr<Dispatcher>*>(held);
    });
  });
}

}  // namespace ringmain::python
