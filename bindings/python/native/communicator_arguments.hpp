// With which arguments does Python call for an operation, and how do its hooks get them?
//
// A tensor is what says data_ptr(), shape and dtype (PyTorch's), a buffer (NumPy's), or a list of
// numbers. The object itself goes along, borrowed, so that a hook gets the very same; what C++
// calls for has no such object, and is shown as a TensorView.
#pragma once
#include <cstdint>
#include <nanobind/nanobind.h>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/sources/collective/collective_arguments.hpp"

namespace ringmain::python {
namespace nb = nanobind;

/// As Python gives them; an operation reads those that it has.
struct GivenArguments {
  nb::object inputs, outputs;  // sequences of tensors
  std::int32_t peer = collective::kNoRank;
  std::string reduce = "sum";
  bool async_op = false;
  bool point_to_point = false;
  std::vector<std::uint64_t> input_split_sizes, output_split_sizes;
  std::uint64_t num_ops = 0;
  std::vector<int> ranks;
  std::string group;
  nb::object parts;  // of a batch: a sequence of (tensor, peer, sends); none: not known
};

class PythonArguments {
 public:
  /// Throws nanobind::python_error, nanobind::type_error, nanobind::value_error: one sentence.
  /// `other`: as an operation that has no struct of its own, whatever it is called.
  PythonArguments(std::string op, GivenArguments given, bool other = false);
  PythonArguments(const PythonArguments&) = delete;
  PythonArguments& operator=(const PythonArguments&) = delete;
  [[nodiscard]] const collective::Arguments& arguments() const noexcept { return arguments_; }

 private:
  void read(nb::handle tensors, std::vector<collective::Tensor>& into);
  void read_parts();
  void read_one(nb::handle object, collective::Tensor& into);
  bool read_torch(nb::handle object, collective::Tensor& into);
  bool read_buffer(nb::handle object, collective::Tensor& into);
  [[nodiscard]] const collective::Tensor& one(const std::vector<collective::Tensor>& of,
                                              const char* what) const;
  [[nodiscard]] collective::Arguments made() const;

  const std::string op_;
  const GivenArguments given_;
  const bool other_;
  std::vector<nb::object> kept_;  // the sequences
  std::vector<std::vector<std::int64_t>> sizes_;
  std::vector<collective::Tensor> inputs_, outputs_;
  std::vector<collective::BatchPart> parts_;
  collective::Arguments arguments_;
};

/// A tensor that has no object in Python.
struct TensorView {
  std::vector<std::int64_t> shape;
  std::string dtype;
  std::uint64_t nbytes = 0;
  std::uintptr_t data = 0;
  std::int32_t device = collective::kNoDevice;
};

/// While it lives, what this thread shows to hooks under that address is Python's: the arguments of
/// an operation with their objects, or a work. With the GIL.
class OfPython {
 public:
  OfPython(const void* shown, std::uint64_t op_id, bool async_op) noexcept;
  OfPython(const OfPython&) = delete;
  OfPython& operator=(const OfPython&) = delete;
  ~OfPython();
  /// Of this thread; nullptr: it is somebody else's.
  [[nodiscard]] static OfPython* showing(const void* what) noexcept;
  [[nodiscard]] static const OfPython* issuing(std::uint64_t op_id) noexcept;
  nb::object raised;        // by a pre hook
  std::uint64_t op_id = 0;  // once it is known
  const bool async_op;

 private:
  const void* shown_;
  OfPython* before_;
};

/// A list of their objects.
[[nodiscard]] nb::list objects_of(collective::Tensors tensors, bool of_python);
/// What an operation has beyond tensors, peer and reduction: split sizes, ranks and name, num_ops.
[[nodiscard]] nb::object extra_of(const collective::Arguments& arguments);
[[nodiscard]] collective::ReduceOp reduce_op_of(std::string_view word);

}  // namespace ringmain::python
