// Which calls must be told for what is listened to? Those of its kinds, and those that make and
// release the handles whose generation or bytes its events carry.
#pragma once
#include <bitset>

#include "adapters/sources/cuda/cuda_attachment.hpp"
#include "adapters/sources/cuda/cupti_abi.hpp"

namespace ringmain::cuda {

constexpr Kinds operator|(CallKind a, CallKind b) noexcept {
  return bit_of(a) | bit_of(b);
}
constexpr Kinds operator|(Kinds kinds, CallKind kind) noexcept {
  return kinds | bit_of(kind);
}

/// Kinds whose events carry an event's, a stream's, an allocation's generation.
constexpr Kinds kOfEvents = CallKind::event_creation | CallKind::event_deletion |
                            CallKind::event_record | CallKind::event_wait |
                            CallKind::event_synchronization;
constexpr Kinds kOfStreams =
    CallKind::stream_creation | CallKind::stream_deletion | CallKind::stream_synchronization;
constexpr Kinds kOfMemory = CallKind::memory_allocation | CallKind::memory_deallocation;

constexpr Kinds needed_for(Kinds heard) noexcept {
  Kinds needed = heard;
  if ((heard & kOfEvents) != 0) needed |= CallKind::event_creation | CallKind::event_deletion;
  if ((heard & kOfStreams) != 0) needed |= CallKind::stream_creation | CallKind::stream_deletion;
  if ((heard & kOfMemory) != 0) needed |= kOfMemory;
  return needed;
}

/// Those that the wrapper has calls of.
constexpr Kinds kWrapped =
    kOfEvents | kOfStreams | kOfMemory | bit_of(CallKind::device_synchronization);
/// What is kept of handles whose kinds are needed from now on and were not before may be out of
/// date: it is forgotten.
void forget_what_was_missed(Kinds before, Kinds now, Handles& handles) noexcept;

/// What CUPTI does not tell of, though it is listened to.
struct Refusal {
  unsigned calls = 0;
  abi::Result answer = abi::kSuccess;

  /// One sentence. Throws std::bad_alloc.
  [[nodiscard]] std::string text(const Cupti& cupti) const;
};

/// What CUPTI is asked for. Threads: one at a time, the one that holds the source's lock.
///
/// Nothing is disabled before the subscription ends: where CUPTI 13.0 is told to disable a number
/// while a thread is in a call of it, it tells that thread's calls as exits only from then on, to
/// later subscriptions too (driver 580.159.04). What nobody listens to has its Switch off.
class Enabled {
 public:
  /// Enables call by call, until `heard` is served. Nothing of what stays is touched. Returns
  /// CUPTI's last refusal, or kSuccess.
  abi::Result serve(Kinds heard, Attachment& to, abi::Subscriber subscriber);
  /// Forgets what was enabled: the subscription is over.
  void ended(Attachment& to);
  /// Has CUPTI forgotten what it was asked for? A question that fails says nothing of it; when all
  /// of them fail or are denied it has, and `why` is its first answer.
  [[nodiscard]] bool forgotten(const Attachment& to, abi::Subscriber subscriber,
                               abi::Result& why) const;
  /// How many calls CUPTI refused to tell of.
  [[nodiscard]] unsigned refused() const noexcept { return refused_; }
  [[nodiscard]] bool refused_all() const noexcept { return refused_ != 0 && accepted_ == 0; }

 private:
  abi::Result switch_calls(Kinds needed, Attachment& to, abi::Subscriber subscriber);
  abi::Result tell_contexts(Attachment& to, abi::Subscriber subscriber);

  Kinds needed_ = 0;
  unsigned refused_ = 0;
  unsigned accepted_ = 0;
  std::bitset<call_rows().size()> told_;  // by CUPTI, whether anybody listens or not
  bool contexts_ = false;
  bool states_ = false;
};

}  // namespace ringmain::cuda
