#include "bindings/python/native/communicator.hpp"

#include <nanobind/operators.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>
#include <new>
#include <optional>
#include <utility>

#include "bindings/python/native/bus.hpp"
#include "bindings/python/native/communicator_arguments.hpp"
#include "bindings/python/native/communicator_hooks.hpp"
#include "bindings/python/native/refuse.hpp"

namespace ringmain::python {
namespace {

using collective::Communicator;

/// CommunicatorOptions hold views; these hold what they are of.
struct Described {
  std::string name, backend, description, source;
  std::vector<int> ranks;
  std::int32_t rank = 0, size = 1, device = collective::kNoDevice;
  nb::object abort;

  [[nodiscard]] collective::CommunicatorOptions options() const {
    collective::CommunicatorOptions made;
    made.name = name;
    made.backend = backend;
    made.description = description;
    made.source = source;
    made.rank = rank;
    made.size = size;
    made.device = device;
    made.ranks = ranks;
    made.abort = abort_function(abort);
    return made;
  }
};

Communicator given(std::optional<Result<Communicator>> made) {
  if (*made) return std::move(*made).value();
  if (made->error().code == Error::Code::no_memory) throw std::bad_alloc();
  throw nb::value_error(made->error().message.c_str());
}

/// `f` without the GIL.
template <class F>
auto without_gil(F f) {
  const Released released;
  return f();
}

Communicator make(const NativeBus& bus, const Described& what) {
  const auto options = what.options();
  Bus& on = bus.bus();
  std::optional<Result<Communicator>> made;
  without_gil([&] { made.emplace(Communicator::make(on, options)); });
  return given(std::move(made));
}

Communicator part_of(const Communicator& of, const Described& what) {
  const auto options = what.options();
  std::optional<Result<Communicator>> made;
  without_gil([&] { made.emplace(of.part(options)); });
  return given(std::move(made));
}

nb::object find(const NativeBus& bus, const std::string& name, std::int32_t rank) {
  Bus& on = bus.bus();
  Communicator found = without_gil([&] { return Communicator::find(on, name, rank); });
  return found ? nb::cast(std::move(found)) : nb::object(nb::none());
}

PythonIssuing* issue(const Communicator& by, std::string op, nb::object inputs, nb::object outputs,
                     std::int32_t peer, std::string reduce, bool async_op, bool point_to_point,
                     std::vector<std::uint64_t> input_split_sizes,
                     std::vector<std::uint64_t> output_split_sizes, std::uint64_t num_ops,
                     std::vector<int> ranks, std::string group, nb::object parts, double timeout) {
  const PythonArguments arguments(
      std::move(op), {std::move(inputs), std::move(outputs), peer, std::move(reduce), async_op,
                      point_to_point, std::move(input_split_sizes), std::move(output_split_sizes),
                      num_ops, std::move(ranks), std::move(group), std::move(parts)});
  return std::make_unique<PythonIssuing>(by, arguments.arguments(), counted(timeout)).release();
}

HookKind kind_of(const std::string& word) {
  if (word == "pre") return HookKind::pre;
  if (word == "post") return HookKind::post;
  if (word == "completion") return HookKind::completion;
  if (word == "abort") return HookKind::abort;
  throw nb::value_error(
      ("'" + word + "' is no kind of hook; use pre, post, completion or abort").c_str());
}

CommunicatorHook* hook(const Communicator& on, const std::string& kind, nb::object callback,
                       int priority, std::string name) {
  return std::make_unique<CommunicatorHook>(on, kind_of(kind), std::move(callback), priority,
                                            std::move(name))
      .release();
}

nb::object text(Name name) {
  return nb::steal(python_text(name.view()));
}

nb::dict dict_of(const collective::Aborted& told) {
  constexpr const char* kHow[] = {"done", "joined", "unsupported", "ended"};
  nb::dict d;
  d["how"] = kHow[static_cast<std::size_t>(told.how)];
  d["incident"] = told.incident;
  d["hooks"] = told.hooks;
  d["operations"] = told.operations;
  nb::list stuck;
  for (const Name one : told.stuck) stuck.append(text(one));
  d["stuck"] = stuck;
  return d;
}

nb::dict abort(const Communicator& c, const std::string& reason, const std::string& asked_by,
               double within) {
  // A hook that waited for the incident that it is a part of would wait for itself.
  if (in_abort_hook() && c.aborted()) return dict_of({.how = collective::Aborted::How::joined});
  return dict_of(without_gil([&] { return c.abort(reason, asked_by, counted(within)); }));
}
nb::dict run_abort_hooks(const Communicator& c, const std::string& reason,
                         const std::string& asked_by, double within) {
  return dict_of(without_gil([&] { return c.run_abort_hooks(reason, asked_by, counted(within)); }));
}

void bind_hooks(nb::module_& m) {
  nb::class_<TensorView>(m, "TensorView")
      .def("__init__", refusing<TensorView>("a TensorView is what a hook gets; make a tensor"))
      .def_prop_ro("shape", [](const TensorView& t) { return nb::tuple(nb::cast(t.shape)); })
      .def_ro("dtype", &TensorView::dtype)
      .def_ro("nbytes", &TensorView::nbytes)
      .def_ro("data", &TensorView::data)
      .def_ro("device", &TensorView::device);
  nb::class_<CommunicatorHook>(m, "CommunicatorHook")
      .def("__init__", refusing<CommunicatorHook>("a hook is made by communicator.hook(…)"))
      .def_prop_ro("name", [](const CommunicatorHook& h) { return h.callback().name; })
      .def_prop_ro("attached", &CommunicatorHook::attached)
      .def_prop_ro("raised", [](const CommunicatorHook& h) { return h.callback().raised.load(); })
      .def_prop_ro("gil_taken",
                   [](const CommunicatorHook& h) { return h.callback().gil_taken.load(); })
      .def(
          "remove", [](CommunicatorHook& h, Seconds limit) { return to_string(h.remove(limit)); },
          nb::arg("timeout").none());
}

}  // namespace

void bind_communicator(nb::module_& m) {
  m.def("_begin_abort_hook", &begin_abort_hook);
  bind_issuing(m);
  bind_hooks(m);
  nb::class_<Described>(m, "CommunicatorOptions")
      .def(
          "__init__",
          [](Described* self, std::string name, std::int32_t rank, std::int32_t size,
             std::vector<int> ranks, std::string backend, std::string description,
             std::string source, std::int32_t device, nb::object abort) {
            new (self) Described{std::move(name),
                                 std::move(backend),
                                 std::move(description),
                                 std::move(source),
                                 std::move(ranks),
                                 rank,
                                 size,
                                 device,
                                 std::move(abort)};
          },
          nb::arg("name"), nb::arg("rank"), nb::arg("size"), nb::arg("ranks") = nb::make_tuple(),
          nb::arg("backend") = "", nb::arg("description") = "", nb::arg("source") = "python",
          nb::arg("device") = -1, nb::arg("abort").none() = nb::none());
  nb::class_<Communicator>(m, "Communicator")
      .def("__init__", refusing<Communicator>("a communicator is made by Communicator.make(…)"))
      .def_static("make", &make, nb::arg("bus"), nb::arg("options"))
      .def_static("find", &find, nb::arg("bus"), nb::arg("name"), nb::arg("rank") = -1)
      .def_prop_ro("name", [](const Communicator& c) { return text(c.name()); })
      .def_prop_ro("backend", [](const Communicator& c) { return text(c.backend()); })
      .def_prop_ro("rank", &Communicator::rank)
      .def_prop_ro("size", &Communicator::size)
      .def_prop_ro(
          "timeout",
          [](const Communicator& c) { return static_cast<double>(c.timeout().count()) / 1e9; })
      .def(
          "set_timeout",
          [](const Communicator& c, double seconds) { c.set_timeout(counted(seconds)); },
          nb::arg("seconds"))
      .def_prop_ro("ended", &Communicator::ended)
      .def_prop_ro("aborted", &Communicator::aborted)
      .def_prop_ro("supports_abort", &Communicator::supports_abort)
      .def("issue", &issue, nb::arg("op"), nb::arg("inputs") = nb::make_tuple(),
           nb::arg("outputs") = nb::make_tuple(), nb::arg("peer") = -1, nb::arg("reduce") = "sum",
           nb::arg("async_op") = false, nb::arg("point_to_point") = false,
           nb::arg("input_split_sizes") = nb::make_tuple(),
           nb::arg("output_split_sizes") = nb::make_tuple(), nb::arg("num_ops") = 0,
           nb::arg("ranks") = nb::make_tuple(), nb::arg("group") = "",
           nb::arg("parts") = nb::make_tuple(), nb::arg("timeout") = 0.0,
           nb::rv_policy::take_ownership)
      .def("hook", &hook, nb::arg("kind"), nb::arg("callback"), nb::arg("priority") = 0,
           nb::arg("name") = "", nb::rv_policy::take_ownership)
      .def("part", &part_of, nb::arg("options"))
      .def("no_part", [](const Communicator& c) { without_gil([&] { c.no_part(); }); })
      .def("abort", &abort, nb::arg("reason"), nb::arg("asked_by") = "application",
           nb::arg("within") = 5.0)
      .def("run_abort_hooks", &run_abort_hooks, nb::arg("reason"), nb::arg("asked_by") = "backend",
           nb::arg("within") = 5.0)
      .def("end", [](const Communicator& c) { without_gil([&] { c.end(); }); })
      .def(
          "__eq__",
          [](const Communicator& c, nb::handle other) {
            return nb::isinstance<Communicator>(other) && nb::cast<const Communicator&>(other) == c;
          },
          nb::arg("other").none())
      .def("__hash__", [](const Communicator& c) {
        return std::hash<std::string_view>()(c.name().view()) + static_cast<std::size_t>(c.rank());
      });
}

}  // namespace ringmain::python
