// Do hooks of C come and go as those of C++, and is a group given up as there?
#include <atomic>
#include <future>
#include <thread>
#include <vector>

#include "events/collective.hpp"

#include "adapters/sources/collective/communicator.hpp"

#include "tests/adapters/collective/collective_c_support.hpp"
#include "tests/adapters/collective/heard.hpp"
#include "tests/engine/eventually.hpp"

namespace ringmain::tests {
namespace {

using collective::Failed;
using collective::How;

/// What hooks of all kinds see, and what they do about it.
struct Hooks {
  std::atomic<int> pre{0}, post{0}, completion{0}, abort{0}, destroyed{0}, gave_up{0};
  std::uint32_t refuse = 0;
  std::uint64_t asked_id = 0, told_id = 0;
  ringmain_post_hook_args last_post{};
  ringmain_completion_hook_args last_completion{};
  ringmain_abort_hook_args last_abort{};
  ringmain_communicator* kept = nullptr;
  std::uint32_t part_name = 0;
  std::string order;
  char letter = '?';

  static Hooks& of(void* user) { return *static_cast<Hooks*>(user); }
  static void destroy(void* user) { ++of(user).destroyed; }
  static std::uint32_t ask(void* user, const ringmain_pre_hook_args* args) {
    ++of(user).pre;
    of(user).asked_id = args->op_id;
    EXPECT_EQ(args->bytes, sizeof *args);
    return of(user).refuse;
  }
  static void tell(void* user, const ringmain_post_hook_args* args) {
    ++of(user).post;
    of(user).told_id = args->op_id;
    of(user).last_post = *args;
    if (args->part != nullptr) {
      ringmain_communicator_state state{};
      state.bytes = sizeof state;
      expect_ok(ringmain_communicator_read(args->part, &state));
      of(user).part_name = state.name;
    }
  }
  static void end(void* user, const ringmain_completion_hook_args* args) {
    ++of(user).completion;
    of(user).last_completion = *args;
  }
  static void give_up(void* user, const ringmain_abort_hook_args* args) {
    of(user).last_abort = *args;
    ++of(user).abort;
  }
};

class CHooksTest : public CCollectiveTest {
 protected:
  ringmain_hook* pre(ringmain_pre_hook_fn see, void* user,
                     const ringmain_hook_options* options = nullptr) {
    ringmain_hook* hook = nullptr;
    expect_ok(ringmain_pre_hook(world_, see, user, Hooks::destroy, options, &hook));
    return hook;
  }
  Hooks hooks_;
};

TEST_F(CHooksTest, HooksOfAllKindsAreTold) {
  Hooks& h = hooks_;
  ringmain_hook *pre = nullptr, *post = nullptr, *completion = nullptr;
  expect_ok(ringmain_pre_hook(world_, Hooks::ask, &h, Hooks::destroy, nullptr, &pre));
  expect_ok(ringmain_post_hook(world_, Hooks::tell, &h, Hooks::destroy, nullptr, &post));
  expect_ok(ringmain_completion_hook(world_, Hooks::end, &h, Hooks::destroy, nullptr, &completion));
  const ringmain_arguments arguments = c_barrier();
  ringmain_operation* operation = nullptr;
  expect_ok(ringmain_issue(world_, &arguments, &operation));
  int work = 0;
  expect_ok(ringmain_operation_returned(operation, &work));
  EXPECT_EQ(h.pre + h.post, 2);
  EXPECT_EQ(h.asked_id, ringmain_operation_id(operation));
  EXPECT_EQ(h.told_id, ringmain_operation_id(operation));
  EXPECT_EQ(h.last_post.work, &work);
  EXPECT_EQ(h.last_post.op, std::uint32_t{RINGMAIN_OP_BARRIER});
  EXPECT_EQ(c_text(h.last_post.word), "barrier");
  EXPECT_EQ(h.last_post.outcome, std::uint32_t{RINGMAIN_OUTCOME_ISSUED});
  EXPECT_EQ(h.last_post.part, nullptr);
  EXPECT_EQ(h.completion, 0);
  expect_ok(ringmain_operation_completed(operation));
  EXPECT_EQ(h.completion, 1);
  EXPECT_EQ(h.last_completion.completed, 1u);
  EXPECT_EQ(h.last_completion.op_id, h.told_id);
  EXPECT_EQ(h.last_completion.sequence, 1u);
  EXPECT_EQ(c_text(h.last_completion.group), "world");
  EXPECT_EQ(c_text(h.last_completion.word), "barrier");
  ringmain_operation_free(operation);

  expect_ok(ringmain_issue(world_, &arguments, &operation));
  expect_ok(ringmain_operation_threw(operation, "no route"));
  EXPECT_EQ(h.last_post.outcome, std::uint32_t{RINGMAIN_OUTCOME_THREW});
  EXPECT_EQ(c_text(h.last_post.reason), "no route");
  EXPECT_EQ(h.completion, 2);
  EXPECT_EQ(h.last_completion.completed, 0u);
  EXPECT_EQ(h.last_completion.how, std::uint32_t{RINGMAIN_FAILED_ERROR});
  EXPECT_EQ(c_text(h.last_completion.reason), "no route");
  ringmain_operation_free(operation);
  for (ringmain_hook* hook : {pre, post, completion}) {
    expect_ok(ringmain_hook_remove(hook, -1));
    expect_error(ringmain_hook_remove(hook, -1), RINGMAIN_NOT_ATTACHED, "removed before");
    ringmain_hook_free(hook);
  }
  EXPECT_EQ(h.destroyed, 3);
}

TEST_F(CHooksTest, ARefusalIsACodeAndItsReasonAndIsPaired) {
  Heard<Failed> failed(cpp());
  hooks_.refuse = c_name("not at night");
  ringmain_hook* const pre_hook = pre(Hooks::ask, &hooks_);
  ringmain_hook* post = nullptr;
  expect_ok(ringmain_post_hook(world_, Hooks::tell, &hooks_, nullptr, nullptr, &post));
  expect_error(run(c_barrier()), RINGMAIN_VETOED, "not at night");
  EXPECT_EQ(hooks_.last_post.outcome, std::uint32_t{RINGMAIN_OUTCOME_REFUSED});
  EXPECT_EQ(c_text(hooks_.last_post.reason), "not at night");
  const auto said = failed.all();
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(said[0].how, How::vetoed);
  EXPECT_EQ(said[0].reason.view(), "not at night");
  EXPECT_EQ(said[0].op_id, hooks_.told_id);
  std::uint64_t here = 1;
  expect_ok(ringmain_operation_here(bus_, &here));
  EXPECT_EQ(here, 0u);
  ringmain_hook_free(pre_hook);
  ringmain_hook_free(post);
}

TEST_F(CHooksTest, ASplitsPostHookIsShownThePart) {
  ringmain_hook* post = nullptr;
  expect_ok(ringmain_post_hook(world_, Hooks::tell, &hooks_, nullptr, nullptr, &post));
  ringmain_arguments split = RINGMAIN_ARGUMENTS;
  split.op = RINGMAIN_OP_SPLIT;
  ringmain_operation* operation = nullptr;
  expect_ok(ringmain_issue(world_, &split, &operation));
  ringmain_communicator_options options = c_world();
  options.name = "half";
  ringmain_communicator* part = nullptr;
  expect_ok(ringmain_communicator_part(world_, &options, &part));
  expect_ok(ringmain_operation_returned_part(operation, part));
  EXPECT_EQ(c_text(hooks_.part_name), "half");
  ringmain_operation_free(operation);
  ringmain_communicator_free(part);
  ringmain_hook_free(post);
}

TEST_F(CHooksTest, HooksAreCalledByPriorityThenInOrder) {
  static std::string order;
  order.clear();
  const auto letter = [](void* user, const ringmain_pre_hook_args*) {
    order += Hooks::of(user).letter;
    return std::uint32_t{0};
  };
  Hooks a, b, c;
  a.letter = 'a', b.letter = 'b', c.letter = 'c';
  ringmain_hook_options first{};
  first.bytes = sizeof first;
  first.priority = 5;
  first.name = "first";
  std::vector<ringmain_hook*> all{pre(letter, &a), pre(letter, &b), pre(letter, &c, &first)};
  expect_ok(run(c_barrier()));
  EXPECT_EQ(order, "cab");
  for (ringmain_hook* hook : all) ringmain_hook_free(hook);
  EXPECT_EQ(a.destroyed + b.destroyed + c.destroyed, 3);
}

TEST_F(CHooksTest, OneThatRemovesItselfIsDeferredAndCalledNoMore) {
  struct Self {
    ringmain_hook* hook = nullptr;
    std::int32_t code = -1;
    int calls = 0, destroyed = 0;
  } self;
  const auto see = [](void* user, const ringmain_pre_hook_args*) {
    auto& me = *static_cast<Self*>(user);
    ++me.calls;
    me.code = ringmain_hook_remove(me.hook, -1);
    EXPECT_EQ(me.destroyed, 0) << "while it is called";
    return std::uint32_t{0};
  };
  expect_ok(ringmain_pre_hook(
      world_, see, &self, [](void* user) { ++static_cast<Self*>(user)->destroyed; }, nullptr,
      &self.hook));
  expect_ok(run(c_barrier()));
  EXPECT_EQ(self.code, RINGMAIN_DEFERRED);
  expect_ok(run(c_barrier()));
  EXPECT_EQ(self.calls, 1);
  expect_ok(ringmain_hook_remove(self.hook, -1));  // waits for what was deferred
  expect_error(ringmain_hook_remove(self.hook, -1), RINGMAIN_NOT_ATTACHED, "removed before");
  ringmain_hook_free(self.hook);
  ringmain_communicator_free(std::exchange(world_, nullptr));
  expect_ok(ringmain_flush(bus_, -1));
  EXPECT_TRUE(eventually([&] { return self.destroyed == 1; }));
}

TEST_F(CHooksTest, OneThatIsCalledIsWaitedForUntilTheLimit) {
  struct Stuck {
    std::promise<void> entered, leave;
  } stuck;
  const auto see = [](void* user, const ringmain_pre_hook_args*) {
    static_cast<Stuck*>(user)->entered.set_value();
    static_cast<Stuck*>(user)->leave.get_future().wait();
    return std::uint32_t{0};
  };
  ringmain_hook* hook = nullptr;
  expect_ok(ringmain_pre_hook(world_, see, &stuck, nullptr, nullptr, &hook));
  std::thread calls([&] { expect_ok(run(c_barrier())); });
  stuck.entered.get_future().wait();
  expect_error(ringmain_hook_remove(hook, 0), RINGMAIN_TIMEOUT, "still running");
  stuck.leave.set_value();
  expect_ok(ringmain_hook_remove(hook, -1));
  ringmain_hook_free(hook);
  calls.join();
}

TEST_F(CHooksTest, OneWhoseHandleIsReleasedStaysForTheCommunicatorsLife) {
  ringmain_hook_release(pre(Hooks::ask, &hooks_));
  ringmain_hook_release(nullptr);
  expect_ok(run(c_barrier()));
  EXPECT_EQ(hooks_.pre, 1);
  ringmain_communicator_free(std::exchange(world_, nullptr));
  EXPECT_TRUE(eventually([&] { return hooks_.destroyed == 1; }));
}

TEST_F(CHooksTest, AHookKeepsTheCommunicatorThatItIsShown) {
  ringmain_hook* const hook = pre(
      [](void* user, const ringmain_pre_hook_args* args) {
        expect_ok(ringmain_communicator_retain(args->communicator, &Hooks::of(user).kept));
        return std::uint32_t{0};
      },
      &hooks_);
  expect_ok(run(c_barrier()));
  EXPECT_EQ(ringmain_communicator_same(hooks_.kept, world_), 1);
  ringmain_communicator_free(hooks_.kept);
  ringmain_hook_free(hook);
}

TEST_F(CHooksTest, WhatIsNoHookIsRefusedAndItsUserDestroyed) {
  ringmain_hook* hook = nullptr;
  int expected = 0;
  const auto refused = [&](std::int32_t code, const char* part) {
    expect_error(code, RINGMAIN_REFUSED, part);
    EXPECT_EQ(hook, nullptr);
    EXPECT_EQ(hooks_.destroyed, ++expected);
  };
  void* const user = &hooks_;
  refused(ringmain_pre_hook(nullptr, Hooks::ask, user, Hooks::destroy, nullptr, &hook),
          "communicator is NULL");
  refused(ringmain_pre_hook(world_, nullptr, user, Hooks::destroy, nullptr, &hook), "see is NULL");
  refused(ringmain_pre_hook(world_, Hooks::ask, user, Hooks::destroy, nullptr, nullptr),
          "hook is NULL");
  ringmain_hook_options options{};
  refused(ringmain_post_hook(world_, Hooks::tell, user, Hooks::destroy, &options, &hook),
          "bytes is 0");
  refused(ringmain_post_hook(world_, nullptr, user, Hooks::destroy, nullptr, &hook), "see is NULL");
  refused(ringmain_completion_hook(world_, nullptr, user, Hooks::destroy, nullptr, &hook), "see");
  refused(ringmain_abort_hook(world_, nullptr, user, Hooks::destroy, nullptr, &hook), "see");
  ringmain_communicator_end(world_);
  refused(ringmain_completion_hook(world_, Hooks::end, user, Hooks::destroy, nullptr, &hook),
          "has ended");
  expect_error(ringmain_hook_remove(nullptr, -1), RINGMAIN_NOT_ATTACHED, "hook is NULL");
  ringmain_hook_free(nullptr);
}

/// One whose backend can give up.
ringmain_communicator* abortable(ringmain_bus* bus, Hooks& hooks) {
  ringmain_communicator_options options = c_world();
  options.name = "abortable";
  options.abort = [](void* user, std::uint32_t reason) {
    EXPECT_EQ(c_text(reason), "a rank is gone");
    ++Hooks::of(user).gave_up;
  };
  options.user = &hooks;
  options.destroy = Hooks::destroy;
  ringmain_communicator* made = nullptr;
  expect_ok(ringmain_communicator_make(bus, &options, &made));
  return made;
}

TEST_F(CHooksTest, AnAbortCallsItsHooksAndTheBackendAndSaysWhatItCameTo) {
  ringmain_communicator* const comm = abortable(bus_, hooks_);
  ringmain_hook *hook = nullptr, *completion = nullptr;
  expect_ok(ringmain_abort_hook(comm, Hooks::give_up, &hooks_, nullptr, nullptr, &hook));
  expect_ok(ringmain_completion_hook(comm, Hooks::end, &hooks_, nullptr, nullptr, &completion));
  const ringmain_arguments arguments = c_barrier();
  ringmain_operation* operation = nullptr;
  expect_ok(ringmain_issue(comm, &arguments, &operation));
  expect_ok(ringmain_operation_returned(operation, nullptr));
  ringmain_aborted result{};
  result.bytes = sizeof result;
  expect_ok(ringmain_abort(comm, "a rank is gone", "watchdog", -1, &result));
  EXPECT_EQ(result.how, std::uint32_t{RINGMAIN_ABORT_DONE});
  EXPECT_EQ(result.hooks, 1u);
  EXPECT_EQ(result.operations, 1u);
  EXPECT_EQ(result.stuck, 0u);
  EXPECT_EQ(hooks_.abort, 1);
  EXPECT_EQ(hooks_.gave_up, 1);
  EXPECT_EQ(hooks_.last_abort.incident, result.incident);
  EXPECT_EQ(c_text(hooks_.last_abort.reason), "a rank is gone");
  EXPECT_EQ(c_text(hooks_.last_abort.asked_by), "watchdog");
  EXPECT_EQ(hooks_.last_completion.how, std::uint32_t{RINGMAIN_FAILED_ABORTED});
  expect_error(ringmain_abort(comm, "a rank is gone", nullptr, -1, &result), RINGMAIN_CLOSED,
               "before");
  EXPECT_EQ(result.how, std::uint32_t{RINGMAIN_ABORT_ENDED});
  expect_error(ringmain_issue(comm, &arguments, &operation), RINGMAIN_CLOSED, "was aborted");
  ringmain_operation_free(operation);
  ringmain_hook_free(hook);
  ringmain_hook_free(completion);
  ringmain_communicator_free(comm);
  EXPECT_TRUE(eventually([&] { return hooks_.destroyed == 1; }));
}

TEST_F(CHooksTest, AStuckAbortHookIsNamedAndLeft) {
  struct Stuck {
    std::promise<void> leave;
    std::atomic<bool> left{false};
  } stuck;
  ringmain_hook_options options{};
  options.bytes = sizeof options;
  options.name = "the stuck one";
  ringmain_hook* hook = nullptr;
  expect_ok(ringmain_abort_hook(
      world_,
      [](void* user, const ringmain_abort_hook_args*) {
        static_cast<Stuck*>(user)->leave.get_future().wait();
        static_cast<Stuck*>(user)->left = true;
      },
      &stuck, nullptr, &options, &hook));
  struct {
    ringmain_aborted result{};
    std::uint32_t after = 77;
  } told;
  told.result.bytes = offsetof(ringmain_aborted, stuck_names) + 4;
  told.result.stuck_names[1] = 77;
  expect_ok(ringmain_run_abort_hooks(world_, "slow", nullptr, 0, &told.result));
  EXPECT_EQ(told.result.stuck, 1u);
  EXPECT_EQ(c_text(told.result.stuck_names[0]), "the stuck one");
  EXPECT_EQ(told.result.stuck_names[1], 77u) << "written beyond what the caller knows";
  stuck.leave.set_value();
  EXPECT_TRUE(eventually([&] { return stuck.left.load(); }));
  expect_ok(ringmain_hook_remove(hook, -1));
  ringmain_hook_free(hook);
}

TEST_F(CHooksTest, AnAbortThatCannotBeIsRefused) {
  ringmain_aborted result{};
  expect_error(ringmain_abort(world_, "x", nullptr, 0, &result), RINGMAIN_REFUSED, "bytes is 0");
  result.bytes = sizeof result;
  expect_error(ringmain_abort(world_, "x", nullptr, 0, &result), RINGMAIN_REFUSED, "options.abort");
  EXPECT_EQ(result.how, std::uint32_t{RINGMAIN_ABORT_UNSUPPORTED});
  expect_error(ringmain_abort(world_, nullptr, nullptr, 0, nullptr), RINGMAIN_REFUSED, "reason");
  expect_error(ringmain_abort(nullptr, "x", nullptr, 0, nullptr), RINGMAIN_REFUSED, "communicator");
  expect_error(ringmain_run_abort_hooks(nullptr, "x", nullptr, 0, nullptr), RINGMAIN_REFUSED,
               "communicator");
  expect_ok(ringmain_run_abort_hooks(world_, "x", nullptr, INT64_MAX, nullptr));
}

TEST_F(CHooksTest, HooksComeAndGoWhileOthersIssue) {
  std::atomic<bool> over{false};
  std::vector<std::thread> issuing;
  for (int i = 0; i < 2; ++i) {
    issuing.emplace_back([&] {
      while (!over) expect_ok(run(c_barrier()));
    });
  }
  for (int i = 0; i < 300; ++i) {
    ringmain_hook* one = pre(
        [](void* user, const ringmain_pre_hook_args*) {
          ++Hooks::of(user).pre;
          return std::uint32_t{0};
        },
        &hooks_);
    ringmain_hook* other = nullptr;
    expect_ok(ringmain_completion_hook(
        world_,
        [](void* user, const ringmain_completion_hook_args*) { ++Hooks::of(user).completion; },
        &hooks_, Hooks::destroy, nullptr, &other));
    expect_ok(ringmain_hook_remove(one, -1));
    EXPECT_EQ(hooks_.destroyed, 2 * i + 1);
    ringmain_hook_free(one);
    ringmain_hook_free(other);
    EXPECT_EQ(hooks_.destroyed, 2 * i + 2);
  }
  over = true;
  for (std::thread& one : issuing) one.join();
}

}  // namespace
}  // namespace ringmain::tests
