// A communicator of ours, in the words of the models in originals.hpp.
#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>

#include "adapters/sources/collective/communicator.hpp"

#include "tests/adapters/collective/communicator_parts.hpp"
#include "tests/adapters/collective/originals.hpp"

namespace ringmain::tests::originals {

class Ours {
 public:
  static constexpr bool kRemovalWaits = true;
  static void another_recorder() {
    Bus other;
    (void)collective::Communicator::make(other, world());
  }
  class Kept {
   public:
    explicit Kept(collective::RemovableHandle held) : held_(std::move(held)) {}
    /// Was there one?
    bool remove() { return held_.remove() != Detached::was_not_attached; }

   private:
    collective::RemovableHandle held_;
  };

  static auto asks(Hook hook) {
    return [hook = std::move(hook)](const collective::PreHookArgs& args) {
      hook({.op_id = args.op_id});
      return Verdict::allow();
    };
  }

  Ours() : Ours(std::make_shared<Bus>(), "world") {}
  Ours(std::shared_ptr<Bus> bus, std::string_view name)
      : bus_(std::move(bus)), comm_(collective::Communicator::make(*bus_, options(name)).value()) {}

  /// A number of the caller's is not needed.
  Kept pre(Hook hook, std::int64_t = 0) {
    return Kept(comm_.register_pre_hook(asks(std::move(hook))).value());
  }
  collective::Hook scoped_pre(Hook hook) {
    return std::move(comm_.pre_hook(asks(std::move(hook))).value());
  }
  Kept post(Hook hook, std::int64_t = 0) {
    const auto tells = [hook = std::move(hook)](const collective::PostHookArgs& args) {
      hook({.op_id = args.op_id, .work = args.op_id});
    };
    return Kept(comm_.register_post_hook(tells).value());
  }
  Kept end(Hook hook) {
    const auto tells = [hook = std::move(hook)](const collective::CompletionHookArgs& args) {
      hook({.op_id = args.op_id, .work = args.op_id, .failed = args.failed != nullptr});
    };
    return Kept(comm_.register_completion_hook(tells).value());
  }
  Kept end_of_last(Hook hook) { return end(std::move(hook)); }
  Kept abort(Hook hook) {
    const auto tells = [hook = std::move(hook)](const collective::AbortHookArgs&) { hook({}); };
    return Kept(comm_.register_abort_hook(tells).value());
  }

  Called all_reduce(const Backend& backend = takes_it) try {
    Called called;
    called.result = comm_.run(all_reduced(), [&](const collective::Operation& operation) {
      last_ = operation;
      backend(
          [&](bool ok) { EXPECT_TRUE(ok ? operation.completed() : operation.failed("no route")); });
    });
    return called;
  } catch (const std::exception&) {
    return {false};
  }
  Called window_put() {
    return {comm_.run(collective::Other{.op = "window_put"}, [](const collective::Operation&) {})};
  }
  void complete() { EXPECT_TRUE(last_.completed()); }
  std::unique_ptr<Ours> split(bool mine) {
    auto issuing = comm_.issue(collective::Split{});
    if (!mine) {
      comm_.no_part();
      issuing.returned_part(nullptr);
      return nullptr;
    }
    auto part = std::make_unique<Ours>(bus_, comm_.part(options("half")).value());
    issuing.returned_part(&part->comm_);
    return part;
  }
  void finalize() {
    EXPECT_TRUE(comm_.run(collective::Finalize{}, [](const collective::Operation&) {}));
    comm_.end();
  }
  void fail() {
    std::thread([this] { fail_once(); }).join();
    fail_once();
  }
  void fail_once() { (void)comm_.abort("rank 3 is lost", "watchdog", std::chrono::hours(1)); }
  /// What is undefined in the originals is allowed; the sanitizers look.
  [[nodiscard]] static bool undefined() { return false; }

  Ours(std::shared_ptr<Bus> bus, collective::Communicator comm)
      : bus_(std::move(bus)), comm_(std::move(comm)) {}

 private:
  static collective::CommunicatorOptions options(std::string_view name) {
    collective::CommunicatorOptions options = world();
    options.name = name;
    options.abort = [](Name) {};
    return options;
  }

  const std::shared_ptr<Bus> bus_;
  const collective::Communicator comm_;
  collective::Operation last_;
};

}  // namespace ringmain::tests::originals
