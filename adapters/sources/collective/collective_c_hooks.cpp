// How does C put a hook on a communicator, and give the group up?
#include <algorithm>
#include <utility>

#include "adapters/sources/collective/collective_c.hpp"

using namespace ringmain::collective::c;  // NOLINT(google-build-using-namespace): it is its face
using ringmain::Detached;
using ringmain::Name;
using ringmain::Result;
using ringmain::Verdict;
using ringmain::c::same;
using ringmain::collective::Aborted;
using ringmain::collective::AbortHookArgs;
using ringmain::collective::CompletionHookArgs;
using ringmain::collective::Hook;
using ringmain::collective::HookOptions;
using ringmain::collective::How;
using ringmain::collective::Outcome;
using ringmain::collective::PostHookArgs;
using ringmain::collective::PreHookArgs;

namespace {

static_assert(same(RINGMAIN_OUTCOME_ISSUED, Outcome::issued) &&
              same(RINGMAIN_OUTCOME_REFUSED, Outcome::refused) &&
              same(RINGMAIN_OUTCOME_THREW, Outcome::threw));
static_assert(same(RINGMAIN_ABORT_DONE, Aborted::How::done) &&
              same(RINGMAIN_ABORT_JOINED, Aborted::How::joined) &&
              same(RINGMAIN_ABORT_UNSUPPORTED, Aborted::How::unsupported) &&
              same(RINGMAIN_ABORT_ENDED, Aborted::How::ended));

Verdict call(ringmain_pre_hook_fn see, void* user, const PreHookArgs& args) {
  const ringmain_communicator of{*args.communicator};
  const ArgumentsShown arguments(*args.arguments);
  const ringmain_pre_hook_args shown{sizeof shown,    number_of(args.name),    args.op_id,
                                     args.op.id(),    args.async_op ? 1u : 0u, &of,
                                     &arguments.shown};
  const std::uint32_t why = see(user, &shown);
  return why == 0 ? Verdict::allow() : Verdict::veto(name_of(why));
}

void call(ringmain_post_hook_fn see, void* user, const PostHookArgs& args) {
  const ringmain_communicator of{*args.communicator};
  ringmain_communicator part;
  if (args.new_comm != nullptr) part.held = *args.new_comm;
  const ringmain_post_hook_args shown{sizeof shown,
                                      number_of(args.name),
                                      args.op_id,
                                      args.op.id(),
                                      static_cast<std::uint32_t>(args.outcome),
                                      args.reason.id(),
                                      0,
                                      args.work,
                                      &of,
                                      args.new_comm == nullptr ? nullptr : &part};
  see(user, &shown);
}

void call(ringmain_completion_hook_fn see, void* user, const CompletionHookArgs& args) {
  ringmain_completion_hook_args shown{};
  shown.bytes = sizeof shown;
  shown.op_id = args.op_id;
  if (const auto* const done = args.completed) {
    shown.completed = 1;
    shown.sequence = done->sequence;
    shown.duration_ns = done->duration_ns;
    shown.word = done->op.id();
    shown.group = done->group.id();
  } else if (const auto* const failed = args.failed) {
    shown.sequence = failed->sequence;
    shown.duration_ns = failed->elapsed_ns;
    shown.word = failed->op.id();
    shown.group = failed->group.id();
    shown.how = static_cast<std::uint32_t>(failed->how);
    shown.reason = failed->reason.id();
    shown.result = failed->result;
  }
  see(user, &shown);
}

void call(ringmain_abort_hook_fn see, void* user, const AbortHookArgs& args) {
  const ringmain_abort_hook_args shown{sizeof shown, args.reason.id(), args.incident,
                                       args.asked_by.id(), 0};
  see(user, &shown);
}

/// What all four kinds share; `add` is the communicator's function for the kind.
template <class Args, class See, class Add>
ringmain_code hook_on(const ringmain_communicator* comm, See see, void* user,
                      ringmain_collective_destroy_fn destroy, const ringmain_hook_options* given,
                      ringmain_hook** hook, Add add) {
  User owned(user, destroy);
  return guarded([&]() -> ringmain_code {
    if (comm == nullptr) return no_communicator();
    if (see == nullptr) return fail(RINGMAIN_REFUSED, "see is NULL; give a function to call");
    if (hook == nullptr) return fail(RINGMAIN_REFUSED, "hook is NULL; give a place for it");
    ringmain_hook_options o;
    if (const auto code = read_struct(given, "ringmain_hook_options", o)) return code;
    HookOptions options;
    options.priority = o.priority;
    if (o.name != nullptr) options.name = o.name;
    auto room = std::make_unique<ringmain_hook>();
    auto kept = std::make_shared<const User>(std::move(owned));
    Result<Hook> made = (comm->held.*add)(
        [see, kept = std::move(kept)](const Args& args) { return call(see, kept->get(), args); },
        std::move(options));
    if (!made) return fail(made.error());
    room->held = made.value().keep();
    *hook = room.release();
    return RINGMAIN_OK;
  });
}

/// As long as a clock can be added to it, for who has no limit.
std::int64_t within(std::int64_t limit_ns) noexcept {
  constexpr std::int64_t kYearNs = 365LL * 24 * 3600 * 1'000'000'000;
  return limit_ns < 0 ? kYearNs : std::min(limit_ns, kYearNs);
}

ringmain_code told(const Aborted& came, ringmain_aborted* result) {
  if (result != nullptr) {
    ringmain_aborted all{};
    all.how = static_cast<std::uint32_t>(came.how);
    all.incident = came.incident;
    all.hooks = came.hooks;
    all.operations = came.operations;
    all.stuck = static_cast<std::uint32_t>(came.stuck.size());
    for (std::size_t i = 0; i < std::size(all.stuck_names) && i < came.stuck.size(); ++i)
      all.stuck_names[i] = came.stuck[i].id();
    (void)write_struct(all, "ringmain_aborted", result);  // looked at before
  }
  switch (came.how) {
    case Aborted::How::done:
    case Aborted::How::joined:
      return RINGMAIN_OK;
    case Aborted::How::unsupported:
      return fail(
          RINGMAIN_REFUSED,
          "the communicator's backend cannot give the group up; make it with options.abort, "
          "or call ringmain_run_abort_hooks()");
    case Aborted::How::ended:
      break;
  }
  return fail(RINGMAIN_CLOSED, "the communicator has ended, or was aborted before");
}

template <class Abort>
ringmain_code abort_by(const ringmain_communicator* comm, const char* reason,
                       ringmain_aborted* result, Abort abort) {
  return guarded([&]() -> ringmain_code {
    if (comm == nullptr) return no_communicator();
    if (reason == nullptr) return fail(RINGMAIN_REFUSED, "reason is NULL; say why in a sentence");
    if (result != nullptr) {
      if (const auto code =
              ringmain::c::check_bytes(result->bytes, sizeof result->bytes, "ringmain_aborted"))
        return code;
    }
    return told(abort(), result);
  });
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

int32_t ringmain_pre_hook(const ringmain_communicator* communicator, ringmain_pre_hook_fn see,
                          void* user, ringmain_collective_destroy_fn destroy,
                          const ringmain_hook_options* options, ringmain_hook** hook) {
  return hook_on<PreHookArgs>(communicator, see, user, destroy, options, hook,
                              &ringmain::collective::Communicator::pre_hook);
}
int32_t ringmain_post_hook(const ringmain_communicator* communicator, ringmain_post_hook_fn see,
                           void* user, ringmain_collective_destroy_fn destroy,
                           const ringmain_hook_options* options, ringmain_hook** hook) {
  return hook_on<PostHookArgs>(communicator, see, user, destroy, options, hook,
                               &ringmain::collective::Communicator::post_hook);
}
int32_t ringmain_completion_hook(const ringmain_communicator* communicator,
                                 ringmain_completion_hook_fn see, void* user,
                                 ringmain_collective_destroy_fn destroy,
                                 const ringmain_hook_options* options, ringmain_hook** hook) {
  return hook_on<CompletionHookArgs>(communicator, see, user, destroy, options, hook,
                                     &ringmain::collective::Communicator::completion_hook);
}
int32_t ringmain_abort_hook(const ringmain_communicator* communicator, ringmain_abort_hook_fn see,
                            void* user, ringmain_collective_destroy_fn destroy,
                            const ringmain_hook_options* options, ringmain_hook** hook) {
  return hook_on<AbortHookArgs>(communicator, see, user, destroy, options, hook,
                                &ringmain::collective::Communicator::abort_hook);
}

int32_t ringmain_hook_remove(ringmain_hook* hook, int64_t limit_ns) {
  return guarded([&]() -> ringmain_code {
    if (hook == nullptr) return fail(RINGMAIN_NOT_ATTACHED, "hook is NULL: none was registered");
    switch (hook->held.remove_for(ringmain::c::limit_of(limit_ns))) {
      case Detached::done:
        return RINGMAIN_OK;
      case Detached::deferred:
        return fail(RINGMAIN_DEFERRED,
                    "removed; inside a callback nothing is waited for, and a call may be running");
      case Detached::timeout:
        return fail(RINGMAIN_TIMEOUT, "removed, but a call is still running; call it again later");
      case Detached::was_not_attached:
        break;
    }
    return fail(RINGMAIN_NOT_ATTACHED, "the hook was removed before, or its communicator is gone");
  });
}
void ringmain_hook_free(ringmain_hook* hook) {
  if (hook == nullptr) return;
  (void)hook->held.remove();
  delete hook;
}
void ringmain_hook_release(ringmain_hook* hook) {
  delete hook;
}

int32_t ringmain_abort(const ringmain_communicator* communicator, const char* reason,
                       const char* asked_by, int64_t within_ns, ringmain_aborted* result) {
  return abort_by(communicator, reason, result, [&] {
    return communicator->held.abort(reason, asked_by == nullptr ? "application" : asked_by,
                                    ringmain::nanoseconds(within(within_ns)));
  });
}
int32_t ringmain_run_abort_hooks(const ringmain_communicator* communicator, const char* reason,
                                 const char* asked_by, int64_t within_ns,
                                 ringmain_aborted* result) {
  return abort_by(communicator, reason, result, [&] {
    return communicator->held.run_abort_hooks(reason, asked_by == nullptr ? "backend" : asked_by,
                                              ringmain::nanoseconds(within(within_ns)));
  });
}

}  // extern "C"
