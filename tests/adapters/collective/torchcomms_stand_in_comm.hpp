// The second half of the stand-in for torchcomms: post hooks, and the communicator.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "tests/adapters/collective/torchcomms_stand_in.hpp"

namespace ringmain::tests::stand_in {

template <class Work>
class BasicTorchComm;
class TorchCommWindow {};

/// The types that depend on what work can do.
template <class Work>
struct PostOf {
  struct Collective {
    explicit Collective(Weak<Work> of) : work(std::move(of)) {}
    Weak<Work> work;
  };
  // clang-format off
  struct SendPostHookArgs : Collective { using Collective::Collective; };
  struct RecvPostHookArgs : Collective { using Collective::Collective; };
  struct BroadcastPostHookArgs : Collective { using Collective::Collective; };
  struct AllReducePostHookArgs : Collective { using Collective::Collective; };
  struct ReducePostHookArgs : Collective { using Collective::Collective; };
  struct AllGatherPostHookArgs : Collective { using Collective::Collective; };
  struct AllGatherVPostHookArgs : Collective { using Collective::Collective; };
  struct AllGatherSinglePostHookArgs : Collective { using Collective::Collective; };
  struct ReduceScatterPostHookArgs : Collective { using Collective::Collective; };
  struct ReduceScatterVPostHookArgs : Collective { using Collective::Collective; };
  struct ReduceScatterSinglePostHookArgs : Collective { using Collective::Collective; };
  struct AllToAllSinglePostHookArgs : Collective { using Collective::Collective; };
  struct AllToAllVSinglePostHookArgs : Collective { using Collective::Collective; };
  struct AllToAllPostHookArgs : Collective { using Collective::Collective; };
  struct BarrierPostHookArgs : Collective { using Collective::Collective; };
  struct ScatterPostHookArgs : Collective { using Collective::Collective; };
  struct GatherPostHookArgs : Collective { using Collective::Collective; };
  struct GatherSinglePostHookArgs : Collective { using Collective::Collective; };
  struct BatchOpIssuePostHookArgs : Collective { using Collective::Collective; };
  struct WindowPutPostHookArgs : Collective { using Collective::Collective; };
  // clang-format on
  struct SplitPostHookArgs {
    std::weak_ptr<BasicTorchComm<Work>> new_comm;
  };
  struct NewWindowPostHookArgs {
    std::weak_ptr<TorchCommWindow> new_window;
  };
  struct FinalizePostHookArgs {};
  using Args =
      std::variant<SendPostHookArgs, RecvPostHookArgs, BroadcastPostHookArgs, AllReducePostHookArgs,
                   ReducePostHookArgs, AllGatherPostHookArgs, AllGatherVPostHookArgs,
                   AllGatherSinglePostHookArgs, ReduceScatterPostHookArgs,
                   ReduceScatterVPostHookArgs, ReduceScatterSinglePostHookArgs,
                   AllToAllSinglePostHookArgs, AllToAllVSinglePostHookArgs, AllToAllPostHookArgs,
                   BarrierPostHookArgs, ScatterPostHookArgs, GatherPostHookArgs,
                   GatherSinglePostHookArgs, SplitPostHookArgs, NewWindowPostHookArgs,
                   BatchOpIssuePostHookArgs, FinalizePostHookArgs, WindowPutPostHookArgs>;
};

template <class Work>
class BasicTorchComm : public std::enable_shared_from_this<BasicTorchComm<Work>> {
 public:
  using Post = PostOf<Work>;
  using PostHookArgs = typename Post::Args;
  using PreHook = std::function<void(std::size_t op_id, const PreHookArgs&)>;
  using PostHook = std::function<void(std::size_t op_id, const PostHookArgs&)>;
  using AbortHook = std::function<void()>;
  using Handle = std::unique_ptr<RemovableHandle>;

  explicit BasicTorchComm(std::string name, bool aborts = false)
      : name_(std::move(name)), aborts_(aborts) {}

  Handle registerPreHook(PreHook hook) { return kept(hooks_->pre, std::move(hook)); }
  Handle registerPostHook(PostHook hook) { return kept(hooks_->post, std::move(hook)); }
  Handle registerAbortHook(AbortHook hook) { return kept(hooks_->abort, std::move(hook)); }

  [[nodiscard]] int getRank() const { return 0; }
  [[nodiscard]] int getSize() const { return 1; }
  [[nodiscard]] std::vector<int> getRanks() const { return {7}; }
  [[nodiscard]] std::string_view getCommName() const { return name_; }
  [[nodiscard]] const std::string& getBackend() const { return backend_; }
  [[nodiscard]] bool isAbortSupported() const { return aborts_; }
  [[nodiscard]] bool isAborted() const { return aborted_; }
  /// Does nothing where it is not supported.
  void abort() {
    if (!aborts_ || std::exchange(aborted_, true)) return;
    fail();
  }
  /// The backend finds a failure.
  void fail() {
    for (const auto& [id, hook] : hooks_->abort) hook();
  }

  /// What the backend does for each operation; it may throw.
  std::function<void(Work&)> backend = [](Work&) {};

  /// Any operation: between its pre and its post hook the backend is called.
  template <class Pre>
  std::shared_ptr<Work> call(const Pre& args) {
    const std::size_t op_id = next_op_id++;
    before(op_id, args);
    const auto work = std::make_shared<Work>();
    backend(*work);
    after(op_id, PostHookArgs(std::in_place_index<place_of<Pre>()>, Weak<Work>(work)));
    return work;
  }
  std::shared_ptr<Work> all_reduce(Tensor& tensor, const ReduceOp& op, bool async_op) {
    return call(AllReducePreHookArgs{tensor, op, async_op});
  }
  std::shared_ptr<Work> broadcast(Tensor& tensor, int root, bool async_op) {
    return call(BroadcastPreHookArgs{tensor, root, async_op});
  }
  std::shared_ptr<Work> barrier(bool async_op) { return call(BarrierPreHookArgs{async_op}); }
  std::shared_ptr<Work> batch(std::size_t operations, bool async_op) {
    return call(BatchOpIssuePreHookArgs{operations, async_op});
  }
  /// nullptr: this rank, 0, is in no part.
  std::shared_ptr<BasicTorchComm> split(const std::vector<int>& ranks, const std::string& name) {
    const std::size_t op_id = next_op_id++;
    before(op_id, SplitPreHookArgs{ranks, name});
    if (ranks.empty()) return nullptr;
    auto part = std::make_shared<BasicTorchComm>(name, aborts_);
    after(op_id, typename Post::SplitPostHookArgs{part});
    return part;
  }
  std::shared_ptr<TorchCommWindow> new_window() {
    const std::size_t op_id = next_op_id++;
    before(op_id, NewWindowPreHookArgs{});
    auto window = std::make_shared<TorchCommWindow>();
    after(op_id, typename Post::NewWindowPostHookArgs{window});
    return window;
  }
  void finalize() {
    constexpr auto kSentinel = std::numeric_limits<std::size_t>::max();
    before(kSentinel, FinalizePreHookArgs{});
    after(kSentinel, typename Post::FinalizePostHookArgs{});
  }

 private:
  /// Of its struct in PreHookArgs, as of that in PostHookArgs.
  template <class Pre>
  static consteval std::size_t place_of() {
    return []<class... T>(std::type_identity<std::variant<T...>>) {
      std::size_t place = 0;
      (void)((std::is_same_v<T, Pre> || (++place, false)) || ...);
      return place;
    }(std::type_identity<PreHookArgs>());
  }
  template <class F>
  using Map = std::unordered_map<std::int64_t, F>;
  struct All {
    Map<PreHook> pre;
    Map<PostHook> post;
    Map<AbortHook> abort;
  };
  template <class F>
  Handle kept(Map<F>& in, F hook) {
    const std::int64_t id = next_hook_id_++;
    in.emplace(id, std::move(hook));
    return std::make_unique<RemovableHandle>([held = std::weak_ptr<All>(hooks_), &in, id] {
      if (const auto alive = held.lock()) in.erase(id);
    });
  }
  void before(std::size_t op_id, const PreHookArgs& args) {
    for (const auto& [id, hook] : hooks_->pre) hook(op_id, args);
  }
  void after(std::size_t op_id, const PostHookArgs& args) {
    for (const auto& [id, hook] : hooks_->post) hook(op_id, args);
  }

  static inline std::size_t next_op_id = 0;
  const std::string name_, backend_ = "gloo";
  const bool aborts_;
  bool aborted_ = false;
  std::shared_ptr<All> hooks_ = std::make_shared<All>();
  std::int64_t next_hook_id_ = 0;
};
using TorchComm = BasicTorchComm<TorchWork>;
using PostHookArgs = TorchComm::PostHookArgs;

}  // namespace ringmain::tests::stand_in
