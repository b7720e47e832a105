// What happens when NCCL calls? Each of these is called by the front (nccl_front.hpp) with a
// descriptor of the newest form, in a thread of NCCL's or the program's, with that thread inside
// (Inside). No lock, no allocation but a thread's first lanes, no system call; nothing fails.
#pragma once
#include <cstdint>

#include "adapters/sources/nccl/nccl_core.hpp"
#include "adapters/sources/nccl/nccl_profiler_abi.hpp"

namespace ringmain::nccl {

/// startEvent. Its handle; nullptr: it is not followed, which was counted.
[[nodiscard]] void* begin(const Inside& in, int version, void* context,
                          const abi::DescriptorV7& what) noexcept;
/// stopEvent of what its handle names, if it names anything. True: it was open, and is stopped from
/// here on.
bool end(const Inside& in, Pin span) noexcept;
/// recordEventState of the same; `args` may be nullptr.
void record(const Inside& in, const Pin& span, abi::State state,
            const abi::StateArgs* args) noexcept;
/// What is still open in a communicator that was finalized is published as aborted.
void sweep(const Inside& in, Communicator& of, std::uint64_t id) noexcept;
/// The same of what belongs to no open communicator and began before then: another process's, of
/// no parent, or of a communicator that was finalized before.
void sweep_rest(const Inside& in, std::int64_t before_ns) noexcept;

/// Of each operation that is still to end, and of each whose end was promised, it is said that
/// nobody will see it: the source is detached.
void end_all(const Inside& in) noexcept;

// What plugins behind ringmain's alone want (nccl_pass.cpp).

/// startEvent, in the form of its version: they are told, and no event is made of it. Its handle;
/// nullptr: none of them follows it. Threads: NCCL's; nobody waits for one that is inside.
template <class D>
[[nodiscard]] void* pass_on(void* context, D& what) noexcept;
/// stopEvent and recordEventState of such a handle.
void pass_stop(Core& core, engine::Token which) noexcept;
void pass_record(engine::Token which, abi::State state, abi::StateArgs* args) noexcept;
/// A communicator is finalized: what is open in it is stopped no more.
void forget_passed(Core& core, engine::Token communicator) noexcept;
/// The same of what belongs to no open communicator, and began when no more than `openings` had
/// been opened.
void forget_passed_rest(Core& core, std::uint64_t openings) noexcept;
/// What a plugin of the chain gave for a handle of ringmain's that may be over, of either table.
[[nodiscard]] void* handle_for(Core& core, const void* handle, std::size_t plugin) noexcept;

/// How many that are kept a call of NCCL's lets go where there is less room for them than before.
enum : int { kMostAtOnce = 8 };
/// The operation of a call has not come, and is not waited for any longer: `over`, as its
/// communicator is gone. Where its end was promised it is said.
void break_calls_promise(const Inside& in, OpenSpan& call, bool over) noexcept;
/// The same, and nothing of the call is kept.
void let_call_go(const Inside& in, Pin call, bool over) noexcept;

/// A step leaves the state in which it was: how long it was there.
void count_step_wait(ProxyStepPart& part, std::int64_t until_ns) noexcept;

// What shows how far an operation is (nccl_evidence.cpp).

/// The operation begins to be enqueued: from now on its end is waited for.
void wait_for_end(const Inside& in, OpenSpan& span, engine::Token token) noexcept;
void on_kernel_begun(const Inside& in, Pin& operation, std::uint8_t nccl_channel,
                     std::int64_t now_ns) noexcept;
void on_kernel_ended(const Inside& in, Pin& operation, std::uint8_t nccl_channel,
                     std::int64_t now_ns) noexcept;
void on_proxy_begun(const Inside& in, Pin& operation, std::uint8_t nccl_channel,
                    std::int64_t now_ns) noexcept;
void on_proxy_ended(const Inside& in, Pin& operation, std::int64_t now_ns) noexcept;
/// Data has moved: `begun` where that shows that the kernel runs.
void on_progress(const Inside& in, Pin& operation, bool begun, std::int64_t now_ns) noexcept;
/// NCCL has enqueued it. From here on its end may be known.
void on_enqueued(const Inside& in, Pin& operation) noexcept;
/// The end is known: said once, whoever knows it first.
void end_operation(const Inside& in, Pin& operation, EvidenceKind how, std::int64_t at_ns) noexcept;

// What is said (nccl_publish.cpp).

void publish_api(const Attachment& to, Core& core, const OpenSpan& span, engine::Token token,
                 Ending ending) noexcept;
void publish_operation(const Attachment& to, Core& core, const OpenSpan& span, engine::Token token,
                       Ending ending) noexcept;

}  // namespace ringmain::nccl
