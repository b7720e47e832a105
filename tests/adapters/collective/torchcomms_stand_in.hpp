// What the documented surface of torchcomms 0.3 has of hooks: its argument structs, handle, work
// and TorchComm. A stand-in of our own: no line of it is torchcomms', and what holds on it has not
// been tried on that.
//
// Its backend is trivial: a group of one rank whose work ends when the test says so.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace ringmain::tests::stand_in {

// --- what torchcomms takes from ATen ---

enum class ScalarType { Float, Long, Float4 };
inline const char* toString(ScalarType type) {
  return type == ScalarType::Float ? "Float" : type == ScalarType::Long ? "Long" : "Float4";
}
class Tensor {
 public:
  struct Sizes {
    const std::int64_t* first;
    std::size_t count;
    [[nodiscard]] const std::int64_t* data() const { return first; }
    [[nodiscard]] std::size_t size() const { return count; }
  };
  explicit Tensor(std::vector<std::int64_t> sizes, ScalarType type = ScalarType::Float)
      : sizes_(std::move(sizes)), type_(type) {
    data_.resize(static_cast<std::size_t>(numel()));
  }
  [[nodiscard]] Sizes sizes() const { return {sizes_.data(), sizes_.size()}; }
  [[nodiscard]] std::int64_t numel() const {
    std::int64_t all = 1;
    for (const std::int64_t size : sizes_) all *= size;
    return all;
  }
  [[nodiscard]] ScalarType scalar_type() const { return type_; }
  [[nodiscard]] std::size_t nbytes() const { return data_.size() * sizeof(float); }
  [[nodiscard]] int get_device() const { return -1; }
  [[nodiscard]] const void* const_data_ptr() const {
    if (meta) throw std::runtime_error("a meta tensor has no memory");
    return data_.data();
  }
  bool meta = false;

 private:
  std::vector<std::int64_t> sizes_;
  ScalarType type_;
  std::vector<float> data_;
};
using Tensors = std::vector<Tensor>;

/// Of a pointer that is counted in what it points to: none is made of nothing, and none by chance.
template <class T>
class Weak {
 public:
  explicit Weak(const std::shared_ptr<T>& strong) : held_(strong) {}
  [[nodiscard]] std::shared_ptr<T> lock() const { return held_.lock(); }

 private:
  std::weak_ptr<T> held_;
};

// --- torchcomms ---

class ReduceOp {
 public:
  enum class RedOpType { SUM, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM, AVG };
  ReduceOp(RedOpType type) : type_(type) {}  // NOLINT: as there
  ReduceOp(const ReduceOp&) = default;
  ReduceOp& operator=(const ReduceOp&) = delete;
  [[nodiscard]] RedOpType type() const { return type_; }

 private:
  RedOpType type_;
};

class RemovableHandle {
 public:
  explicit RemovableHandle(std::function<void()>&& take_away) : take_away_(std::move(take_away)) {}
  RemovableHandle(const RemovableHandle&) = delete;
  RemovableHandle& operator=(const RemovableHandle&) = delete;
  ~RemovableHandle() = default;
  void remove() { std::call_once(once_, take_away_); }

 private:
  std::function<void()> take_away_;
  std::once_flag once_;
};

/// Before work had lifecycle hooks.
class PlainWork {
 public:
  enum class WorkStatus { NOT_STARTED, INPROGRESS, COMPLETED, TIMEDOUT, ERROR };
  [[nodiscard]] WorkStatus status() const { return status_; }
  void set_status(WorkStatus status) { status_ = status; }
  void wait() {}

 protected:
  std::atomic<WorkStatus> status_{WorkStatus::NOT_STARTED};
};

class TorchWork : public PlainWork {
 public:
  using Hook = std::function<void()>;
  /// At once, if it has begun.
  void registerWorkStartHook(Hook hook) {
    status_ == WorkStatus::NOT_STARTED ? start_.push_back(std::move(hook)) : hook();
  }
  /// At once, if it has ended.
  void registerWorkEndHook(Hook hook) {
    status_ > WorkStatus::INPROGRESS ? hook() : end_.push_back(std::move(hook));
  }
  void registerWorkWaitPreHook(Hook hook) { wait_pre_.push_back(std::move(hook)); }
  void registerWorkWaitPostHook(Hook hook) { wait_post_.push_back(std::move(hook)); }
  void set_status(WorkStatus status) {
    const bool had_ended = status_ > WorkStatus::INPROGRESS;
    if (status_.exchange(status) == WorkStatus::NOT_STARTED) call(start_);
    if (status > WorkStatus::INPROGRESS && !had_ended) call(end_);
  }
  void wait() {
    call(wait_pre_);
    call(wait_post_);
  }

 private:
  static void call(const std::vector<Hook>& hooks) {
    for (const Hook& one : hooks) one();
  }
  std::vector<Hook> start_, end_, wait_pre_, wait_post_;
};

// Before the backend: references that are good during the call.
struct SendPreHookArgs {
  const Tensor& tensor;
  int peer;
  bool async_op;
};
struct RecvPreHookArgs {
  Tensor& tensor;
  int peer;
  bool async_op;
};
struct BroadcastPreHookArgs {
  Tensor& tensor;
  int root;
  bool async_op;
};
struct AllReducePreHookArgs {
  Tensor& tensor;
  const ReduceOp& op;
  bool async_op;
};
struct ReducePreHookArgs {
  const Tensor& tensor;
  int root;
  const ReduceOp& op;
  bool async_op;
};
template <class Input, class Output>
struct FromTo {
  const Input& input;
  Output& output;
  bool async_op;
};
struct AllGatherPreHookArgs : FromTo<Tensor, const Tensors> {};
struct AllGatherVPreHookArgs : FromTo<Tensor, const Tensors> {};
struct AllGatherSinglePreHookArgs : FromTo<Tensor, Tensor> {};
template <class Input>
struct Reduced {
  const Input& input;
  Tensor& output;
  const ReduceOp& op;
  bool async_op;
};
struct ReduceScatterPreHookArgs : Reduced<Tensors> {};
struct ReduceScatterVPreHookArgs : Reduced<Tensors> {};
struct ReduceScatterSinglePreHookArgs : Reduced<Tensor> {};
struct AllToAllSinglePreHookArgs : FromTo<Tensor, Tensor> {};
struct AllToAllVSinglePreHookArgs {
  const Tensor& input;
  Tensor& output;
  const std::vector<std::uint64_t>& input_split_sizes;
  const std::vector<std::uint64_t>& output_split_sizes;
  bool async_op;
};
struct AllToAllPreHookArgs : FromTo<Tensors, const Tensors> {};
struct BarrierPreHookArgs {
  bool async_op;
};
struct ScatterPreHookArgs {
  Tensor& output;
  const Tensors& input;
  int root;
  bool async_op;
};
struct GatherPreHookArgs {
  const Tensor& input;
  const Tensors& output;
  int root;
  bool async_op;
};
struct GatherSinglePreHookArgs {
  const Tensor& input;
  Tensor& output;
  int root;
  bool async_op;
};
struct SplitPreHookArgs {
  const std::vector<int>& ranks;
  const std::string& name;
};
struct NewWindowPreHookArgs {};
struct BatchOpIssuePreHookArgs {
  std::size_t num_ops;
  bool async_op;
};
struct FinalizePreHookArgs {};
/// Of a revision to come.
struct WindowPutPreHookArgs {
  bool async_op;
};
using PreHookArgs = std::variant<
    SendPreHookArgs, RecvPreHookArgs, BroadcastPreHookArgs, AllReducePreHookArgs, ReducePreHookArgs,
    AllGatherPreHookArgs, AllGatherVPreHookArgs, AllGatherSinglePreHookArgs,
    ReduceScatterPreHookArgs, ReduceScatterVPreHookArgs, ReduceScatterSinglePreHookArgs,
    AllToAllSinglePreHookArgs, AllToAllVSinglePreHookArgs, AllToAllPreHookArgs, BarrierPreHookArgs,
    ScatterPreHookArgs, GatherPreHookArgs, GatherSinglePreHookArgs, SplitPreHookArgs,
    NewWindowPreHookArgs, BatchOpIssuePreHookArgs, FinalizePreHookArgs, WindowPutPreHookArgs>;

}  // namespace ringmain::tests::stand_in
