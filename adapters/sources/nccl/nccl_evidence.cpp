// When is an operation over? NCCL says when it has enqueued it, and nothing of its end. What shows
// the end: the kernel ended on each of its NCCL channels; or its proxies are done; or, where some
// of that was never told, a later plan of the same communicator ended. At last, nobody can know.
#include <bit>

#include "engine/system/clock.hpp"

#include "adapters/sources/nccl/nccl_callbacks.hpp"

namespace ringmain::nccl {
namespace {

using Part = OperationPart;

/// NCCL has 64 NCCL channels; others are not told apart.
std::uint64_t bit_of(std::uint8_t nccl_channel) noexcept {
  return nccl_channel < 64 ? std::uint64_t{1} << nccl_channel : 0;
}
bool all_of(std::uint64_t channels, const Part& part) noexcept {
  return part.nccl_channels != 0 && std::popcount(channels) >= part.nccl_channels;
}

std::uint64_t bytes_of(const Part& part, std::int32_t ranks) noexcept {
  const std::uint64_t given = part.count * Words::bytes_of(part.dtype);
  const std::string_view func = Words::text(part.func);
  // The larger of what a rank gives and gets.
  return func == "AllGather" || func == "ReduceScatter" ? given * static_cast<std::uint64_t>(ranks)
                                                        : given;
}

/// Nobody above has issued it: NCCL's is the first word of it.
void issue(const Attachment& to, Core& core, OpenSpan& span, std::int32_t ranks) noexcept {
  const Part& part = span.part.operation;
  collective::Issued what;
  what.sequence = part.sequence;
  what.bytes = bytes_of(part, ranks);
  what.in_elements = part.count;
  what.op = core.words.operation(part.func);
  what.group = span.group;
  what.dtype = core.words.name(part.dtype);
  what.backend = to.backend;
  what.source = to.source;
  what.peer = part.root_or_peer;
  what.rank = span.rank;
  what.group_size = ranks;
  what.asynchronous = true;
  span.op_id = to.ledger->issue(what);
}

void say_begun(const Inside& in, OpenSpan& span, std::int64_t now_ns) noexcept {
  Part& part = span.part.operation;
  part.first_ns.set_first(now_ns);
  if ((part.flags.set(Part::kBegun) & Part::kBegun) != 0 || !part.to_say || in.to() == nullptr)
    return;
  collective::Started said;
  said.source = in.to()->source;
  (void)in.to()->ledger->started(span.op_id, said);
}

/// Nobody else will say its end.
void break_promise(const Attachment& to, const OpenSpan& span, bool over) noexcept {
  collective::Failed failed;
  const bool left = to.ended != Attachment::kNotEnded;
  failed.how = over && !left ? collective::How::cancelled : collective::How::unknown;
  failed.reason = left ? to.detached : over ? to.cancelled : to.unknown;
  failed.source = to.source;
  (void)to.ledger->failed(span.op_id, failed);
}

void say_ended(const Attachment& to, Core& core, const OpenSpan& span, engine::Token token,
               EvidenceKind how, std::int64_t at_ns) noexcept {
  const Part& part = span.part.operation;
  to.publish<Evidence>(core.counts, [&]() noexcept {
    Evidence said;
    said.op_id = span.op_id;
    said.id = token.number();
    said.communicator = span.communicator;
    said.began_ns = part.first_ns.get();
    said.ended_ns = at_ns;
    said.group = span.group;
    said.func = core.words.name(part.func);
    said.rank = span.rank;
    said.nccl_channels = part.nccl_channels;
    said.ended_channels = static_cast<std::uint16_t>(std::popcount(part.kernels_ended.get()));
    said.kind = how;
    return said;
  });
  if (!part.to_say) return;
  if (how == EvidenceKind::none) {
    return break_promise(to, span, span.of == nullptr || at_ns == 0);
  }
  collective::Completed done;
  done.source = to.source;
  done.kernels = static_cast<std::uint32_t>(std::popcount(part.kernels_ended.get()));
  if (const std::int64_t began = part.first_ns.get(); began != 0 && at_ns > began)
    done.duration_ns = at_ns - began;
  (void)to.ledger->completed(span.op_id, done);
}

/// Many operations later it is let go, whatever became of it.
void give_up(const Inside& in, engine::Token token) noexcept {
  Pin oldest = in.core().spans.pin(token);
  if (!oldest) return;
  const Part& part = oldest->part.operation;
  if ((part.flags.get() & Part::kEnded) != 0) return;
  if (part.followed()) in.core().counts.unfollowed.add();
  end_operation(in, oldest, EvidenceKind::none, engine::now_ns());
}
void put_in_line(const Inside& in, OpenSpan& span, engine::Token token) noexcept {
  auto& waiting = span.of->waiting;
  const auto put = waiting.put(token);
  span.part.operation.order = put.number;
  give_up(in, put.oldest);
  engine::Token oldest;
  for (int i = 0; i < kMostAtOnce; ++i) {
    if (!waiting.oldest_beyond(put.number, in.core().kept(waiting.room()), oldest)) return;
    give_up(in, oldest);
  }
}
/// Kernels and proxies come later, and have its id from it; those behind ringmain's are told of it
/// as their parent.
void keep_for_parts(const Inside& in, OpenSpan& span, engine::Token token) noexcept {
  const bool parts = (switchboard.followed.load() & (abi::kKernelCh | abi::kProxyOp)) != 0;
  if (!parts && in.core().chain.load() == nullptr) return;
  span.part.operation.kept = true;
  put_in_line(in, span, token);
}

/// What was heard when it was called for is not any more.
void keep_unfollowed(const Inside& in, OpenSpan& span, engine::Token token) noexcept {
  if (span.part.operation.promised) break_promise(*in.to(), span, false);
  keep_for_parts(in, span, token);
}

/// A plan has ended: those before it have, too, whatever was lost of them.
void end_earlier(const Inside& in, Pin& later, std::int64_t at_ns) noexcept {
  const Part& last = later->part.operation;
  Communicator* const of = later->of;
  if (of == nullptr || last.plan == 0) return;
  Core& core = in.core();
  const std::uint32_t room = of->waiting.room();
  std::uint32_t from = of->oldest.get();
  if (last.order - from > room) from = last.order - room;
  bool none_before = true;
  for (std::uint32_t number = from; number != last.order; ++number) {
    const engine::Token there = of->waiting.look(number);
    Pin one = core.spans.pin(there);
    // Later than this one: of another lap, so that this one is gone.
    const auto later_by = one ? static_cast<std::int32_t>(one->part.operation.order - number) : -1;
    if (later_by == 0) {
      const Part& part = one->part.operation;
      const bool before = part.plan != 0 && part.plan != last.plan;
      if (before && (part.flags.get() & Part::kEnded) == 0) {
        const int told = std::popcount(part.kernels_begun.get());
        if (part.by_kernels && told < part.nccl_channels && part.nccl_channels <= 64) {
          for (int lost = told; lost < part.nccl_channels; ++lost) core.counts.lost_starts.add();
        }
        end_operation(in, one, EvidenceKind::later_operation, at_ns);
      } else if (!before) {
        none_before = false;  // of the same plan: it is looked at again
      }
    } else if (later_by < 0 && !of->waiting.is_gone(there, number)) {
      none_before = false;  // it is not whole yet: its thread is about to publish it
    }
    if (none_before) of->oldest.set(number + 1);
  }
}

/// After a word on its kernels or proxies: is that the end?
void look_whether_ended(const Inside& in, Pin& operation, std::int64_t now_ns) noexcept {
  const Part& part = operation->part.operation;
  if ((part.flags.get() & Part::kEnded) != 0) return;
  if (part.by_kernels) {
    if (all_of(part.kernels_ended.get(), part)) {
      end_operation(in, operation, EvidenceKind::kernel_channels, now_ns);
      end_earlier(in, operation, now_ns);
    }
    return;  // proxies end before the kernel does
  }
  const bool enqueued = (part.flags.get() & Part::kStopped) != 0;
  if (enqueued && part.open_proxies.get() == 0 && all_of(part.proxies_begun.get(), part)) {
    end_operation(in, operation, EvidenceKind::proxies, now_ns);
    end_earlier(in, operation, now_ns);
  }
}

}  // namespace

void wait_for_end(const Inside& in, OpenSpan& span, engine::Token token) noexcept {
  if (span.of == nullptr) return;
  Attachment* const to = in.to();
  if (to == nullptr) return keep_for_parts(in, span, token);
  if (!to->follow.load()) return keep_unfollowed(in, span, token);
  Core& core = in.core();
  const auto needed = switchboard.followed.load();
  Part& part = span.part.operation;
  part.by_kernels = (needed & abi::kKernelCh) != 0;
  part.by_proxies = (needed & abi::kProxyOp) != 0;
  if (!part.followed()) return keep_unfollowed(in, span, token);
  const auto ranks = static_cast<std::int32_t>(span.of->rank_and_ranks.load() >> 32);
  const auto nodes = static_cast<std::uint32_t>(span.of->nodes_and_abi.load());
  if (span.op_id == 0 && (part.by_kernels || nodes > 1)) {
    issue(*to, core, span, ranks);
    part.to_say = span.op_id != 0;
  }
  put_in_line(in, span, token);
}

void break_calls_promise(const Inside& in, OpenSpan& call, bool over) noexcept {
  ApiPart& part = call.part.api;
  if (part.promised && part.passed_on.exchange(1) == 0 && in.to() != nullptr)
    break_promise(*in.to(), call, over);
}

void let_call_go(const Inside& in, Pin call, bool over) noexcept {
  if (!call) return;
  break_calls_promise(in, *call, over);
  (void)call.end(kDone);
}

void on_kernel_begun(const Inside& in, Pin& operation, std::uint8_t nccl_channel,
                     std::int64_t now_ns) noexcept {
  Part& part = operation->part.operation;
  part.kernels_begun.set(bit_of(nccl_channel));
  part.last_ns.set(now_ns);
  if (part.followed()) say_begun(in, *operation, now_ns);
}

void on_kernel_ended(const Inside& in, Pin& operation, std::uint8_t nccl_channel,
                     std::int64_t now_ns) noexcept {
  Part& part = operation->part.operation;
  part.kernels_ended.set(bit_of(nccl_channel));
  part.last_ns.set(now_ns);
  if (part.followed()) look_whether_ended(in, operation, now_ns);
}

void on_proxy_begun(const Inside&, Pin& operation, std::uint8_t nccl_channel,
                    std::int64_t now_ns) noexcept {
  Part& part = operation->part.operation;
  part.proxies_begun.set(bit_of(nccl_channel));
  part.open_proxies.add(1);
  part.last_ns.set(now_ns);
}

void on_proxy_ended(const Inside& in, Pin& operation, std::int64_t now_ns) noexcept {
  Part& part = operation->part.operation;
  part.last_ns.set(now_ns);
  part.open_proxies.add(~std::uint32_t{0});  // one less
  if (part.followed()) look_whether_ended(in, operation, now_ns);
}

void on_progress(const Inside& in, Pin& operation, bool begun, std::int64_t now_ns) noexcept {
  Part& part = operation->part.operation;
  part.last_ns.set(now_ns);
  part.stalled.set(0);
  if (begun && part.followed() && !part.by_kernels) say_begun(in, *operation, now_ns);
}

void on_enqueued(const Inside& in, Pin& operation) noexcept {
  const Part& part = operation->part.operation;
  const bool wanted = part.followed() || part.kept;
  if (!wanted || (part.flags.get() & Part::kEnded) != 0) return (void)operation.end(kDone);
  if (part.by_proxies && !part.by_kernels) look_whether_ended(in, operation, engine::now_ns());
}

void end_operation(const Inside& in, Pin& operation, EvidenceKind how,
                   std::int64_t at_ns) noexcept {
  Part& part = operation->part.operation;
  // Somebody waits for its end, and there is nobody to say it to: who detaches the source says so.
  if (part.to_say && in.to() == nullptr) return;
  const std::uint32_t before = part.flags.set(Part::kEnded);
  if ((before & Part::kEnded) != 0) return;
  if (in.to() != nullptr) say_ended(*in.to(), in.core(), *operation, operation.token(), how, at_ns);
  if (operation->of != nullptr) operation->of->waiting.take(part.order, operation.token());
  if ((before & Part::kStopped) != 0) (void)operation.end(kDone);
}

}  // namespace ringmain::nccl
