#include "bindings/python/native/communicator_arguments.hpp"

#include <array>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <optional>
#include <utility>

#include "bindings/python/native/layout.hpp"
#include "bindings/python/native/stable_abi.hpp"

namespace ringmain::python {
namespace {

using collective::Tensor;
using collective::Tensors;

constinit thread_local OfPython* shown_here = nullptr;

std::optional<collective::OpName> op_named(std::string_view word) noexcept {
  for (std::size_t i = 0; i < collective::kOpNames; ++i) {
    const auto op = static_cast<collective::OpName>(i);
    if (to_string(op) == word) return op;
  }
  return std::nullopt;
}

/// "torch.float32" and "float32" are one.
Name dtype_of(nb::handle dtype) {
  const nb::object text =
      nb::hasattr(dtype, "name") ? nb::object(dtype.attr("name")) : nb::object(nb::str(dtype));
  nb::object held;
  std::string_view word = utf8_of(text.ptr(), held);
  constexpr std::string_view kTorch = "torch.";
  if (word.starts_with(kTorch)) word.remove_prefix(kTorch.size());
  return Name(word);
}

std::int32_t device_of(nb::handle tensor) {
  const nb::object device = nb::getattr(tensor, "device", nb::none());
  const nb::object index = nb::getattr(device, "index", nb::none());
  return PyLong_Check(index.ptr()) ? nb::cast<std::int32_t>(index) : collective::kNoDevice;
}

[[noreturn]] void refuse_tensor(const std::string& op, nb::handle object) {
  PyErr_Format(PyExc_TypeError,
               "%s: a %s is no tensor; give a torch.Tensor, a NumPy array, a buffer or a list of "
               "numbers",
               op.c_str(), class_name(object.ptr()).c_str());
  throw nb::python_error();
}

}  // namespace

// --- from Python ---

PythonArguments::PythonArguments(std::string op, GivenArguments given, bool other)
    : op_(std::move(op)), given_(std::move(given)), other_(other) {
  read(given_.inputs, inputs_);
  read(given_.outputs, outputs_);
  read_parts();
  arguments_ = made();
}

void PythonArguments::read(nb::handle tensors, std::vector<Tensor>& into) {
  nb::object all = nb::steal(PySequence_Fast(tensors.ptr(), "tensors are given as a sequence"));
  if (!all.is_valid()) throw nb::python_error();
  const Py_ssize_t count = PySequence_Size(all.ptr());
  into.resize(static_cast<std::size_t>(count));
  for (Py_ssize_t i = 0; i < count; ++i) {
    const nb::object one = nb::steal(PySequence_GetItem(all.ptr(), i));
    if (!one.is_valid()) throw nb::python_error();
    read_one(one, into[static_cast<std::size_t>(i)]);
  }
  kept_.push_back(std::move(all));
}

void PythonArguments::read_parts() {
  if (!given_.parts.is_valid()) return;
  for (const nb::handle one : given_.parts) {
    const auto part = nb::cast<nb::tuple>(one);
    collective::BatchPart& made = parts_.emplace_back();
    read_one(part[0], made.tensor);
    made.peer = nb::cast<std::int32_t>(part[1]);
    made.sends = nb::cast<bool>(part[2]);
  }
}

void PythonArguments::read_one(nb::handle object, Tensor& into) {
  into.object = object.ptr();
  if (PyList_Check(object.ptr()) || PyTuple_Check(object.ptr())) {
    static const Name dtype("object");
    into.sizes = sizes_.emplace_back(1, PySequence_Size(object.ptr()));
    into.dtype = dtype;
    return;
  }
  if (!read_torch(object, into) && !read_buffer(object, into)) refuse_tensor(op_, object);
}

bool PythonArguments::read_torch(nb::handle object, Tensor& into) {
  if (!nb::hasattr(object, "data_ptr")) return false;
  if (!nb::hasattr(object, "shape") || !nb::hasattr(object, "dtype")) return false;
  into.sizes = sizes_.emplace_back(nb::cast<std::vector<std::int64_t>>(object.attr("shape")));
  into.dtype = dtype_of(object.attr("dtype"));
  into.bytes = nb::cast<std::uint64_t>(object.attr("nbytes"));
  into.device = device_of(object);
  try {  // a tensor of a subclass, or a sparse one, may have no memory of its own
    into.data = reinterpret_cast<const void*>(nb::cast<std::uintptr_t>(object.attr("data_ptr")()));
  } catch (nb::python_error& none) {
    if (!none.matches(PyExc_RuntimeError) && !none.matches(PyExc_NotImplementedError)) throw;
  }
  return true;
}

bool PythonArguments::read_buffer(nb::handle object, Tensor& into) {
  Py_buffer view;
  if (PyObject_CheckBuffer(object.ptr()) == 0) return false;
  if (PyObject_GetBuffer(object.ptr(), &view, PyBUF_FULL_RO) != 0) throw nb::python_error();
  struct Release {
    Py_buffer& of;
    ~Release() { PyBuffer_Release(&of); }  // the caller has the object during the whole call
  } const release{view};
  into.data = view.buf;
  into.bytes = static_cast<std::uint64_t>(view.len);
  into.sizes = sizes_.emplace_back(view.shape, view.shape + view.ndim);
  if (nb::hasattr(object, "dtype")) {
    into.dtype = dtype_of(object.attr("dtype"));
  } else {
    into.dtype = Name(view.format == nullptr ? "B" : view.format);
  }
  return true;
}

const Tensor& PythonArguments::one(const std::vector<Tensor>& of, const char* what) const {
  if (of.size() == 1) return of.front();
  throw nb::value_error((op_ + " has one tensor as its " + what + ", and " +
                         std::to_string(of.size()) + " were given")
                            .c_str());
}

collective::Arguments PythonArguments::made() const {
  using namespace collective;
  const GivenArguments& g = given_;
  const auto found = other_ ? std::nullopt : op_named(op_);
  const auto input = [this]() -> const Tensor& { return one(inputs_, "input"); };
  const auto output = [this]() -> const Tensor& { return one(outputs_, "output"); };
  if (!found)
    return Other{op_,       inputs_, outputs_, g.peer, reduce_op_of(g.reduce), g.point_to_point,
                 g.async_op};
  switch (*found) {
    case OpName::send:
      return Send{input(), g.peer, g.async_op};
    case OpName::recv:
      return Recv{{output(), g.peer, g.async_op}};
    case OpName::broadcast:
      return Broadcast{input(), g.peer, g.async_op};
    case OpName::all_reduce:
      return AllReduce{input(), reduce_op_of(g.reduce), g.async_op};
    case OpName::reduce:
      return Reduce{input(), g.peer, reduce_op_of(g.reduce), g.async_op};
    case OpName::all_gather:
      return AllGather{input(), outputs_, g.async_op};
    case OpName::all_gather_v:
      return AllGatherV{{input(), outputs_, g.async_op}};
    case OpName::all_gather_single:
      return AllGatherSingle{input(), output(), g.async_op};
    case OpName::reduce_scatter:
      return ReduceScatter{inputs_, output(), reduce_op_of(g.reduce), g.async_op};
    case OpName::reduce_scatter_v:
      return ReduceScatterV{{inputs_, output(), reduce_op_of(g.reduce), g.async_op}};
    case OpName::reduce_scatter_single:
      return ReduceScatterSingle{input(), output(), reduce_op_of(g.reduce), g.async_op};
    case OpName::all_to_all_single:
      return AllToAllSingle{input(), output(), g.async_op};
    case OpName::all_to_all_v_single:
      return AllToAllVSingle{input(), output(), g.input_split_sizes, g.output_split_sizes,
                             g.async_op};
    case OpName::all_to_all:
      return AllToAll{inputs_, outputs_, g.async_op};
    case OpName::barrier:
      return Barrier{g.async_op};
    case OpName::scatter:
      return Scatter{output(), inputs_, g.peer, g.async_op};
    case OpName::gather:
      return Gather{input(), outputs_, g.peer, g.async_op};
    case OpName::gather_single:
      return outputs_.empty() ? GatherSingle{input(), {}, g.peer, g.async_op}
                              : GatherSingle{input(), output(), g.peer, g.async_op};
    case OpName::split:
      return Split{g.ranks, g.group};
    case OpName::new_window:
      return NewWindow{};
    case OpName::batch_op_issue:
      return BatchOpIssue{g.num_ops, g.async_op, parts_};
    case OpName::finalize:
      return Finalize{};
    case OpName::other:
      break;
  }
  throw nb::value_error("'other' is no operation's name");
}

collective::ReduceOp reduce_op_of(std::string_view word) {
  using collective::ReduceOp;
  for (int i = 0; i <= static_cast<int>(ReduceOp::other); ++i) {
    const auto op = static_cast<ReduceOp>(i);
    if (to_string(op) == word) return op;
  }
  throw nb::value_error(("'" + std::string(word) +
                         "' is no reduction; use sum, avg, product, min, max, bit_and, bit_or, "
                         "bit_xor, premul_sum or other")
                            .c_str());
}

// --- to Python ---

OfPython::OfPython(const void* shown, std::uint64_t id, bool async) noexcept
    : op_id(id), async_op(async), shown_(shown), before_(std::exchange(shown_here, this)) {}
OfPython::~OfPython() {
  shown_here = before_;
}
OfPython* OfPython::showing(const void* what) noexcept {
  OfPython* const here = shown_here;
  return what != nullptr && here != nullptr && here->shown_ == what ? here : nullptr;
}
const OfPython* OfPython::issuing(std::uint64_t op_id) noexcept {
  const OfPython* const here = shown_here;
  return op_id != 0 && here != nullptr && here->op_id == op_id ? here : nullptr;
}

nb::list objects_of(Tensors tensors, bool of_python) {
  nb::list all;
  for (const Tensor& one : tensors) {
    if (of_python && one.object != nullptr) {
      all.append(nb::borrow(const_cast<PyObject*>(static_cast<const PyObject*>(one.object))));
    } else {
      all.append(TensorView{{one.sizes.begin(), one.sizes.end()},
                            std::string(one.dtype.view()),
                            one.bytes,
                            reinterpret_cast<std::uintptr_t>(one.data),
                            one.device});
    }
  }
  return all;
}

nb::object extra_of(const collective::Arguments& arguments) {
  const auto list_of = [](auto values) {
    nb::list all;
    for (const auto value : values) all.append(value);
    return all;
  };
  if (const auto* const v = std::get_if<collective::AllToAllVSingle>(&arguments))
    return nb::make_tuple(list_of(v->input_split_sizes), list_of(v->output_split_sizes));
  if (const auto* const v = std::get_if<collective::Split>(&arguments))
    return nb::make_tuple(list_of(v->ranks), nb::steal(python_text(v->name)));
  if (const auto* const v = std::get_if<collective::BatchOpIssue>(&arguments))
    return nb::cast(v->num_ops);
  return nb::none();
}

}  // namespace ringmain::python
