// Which stream, device and event did a synchronizing call mean? The call's own record does not say.
//
// Kineto writes a second record of category cuda_sync for it, with the same correlation, on the
// GPU's side of the trace. Its stream and event ids are Kineto's own numbers, not handles.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "adapters/sources/replay/kineto_record.hpp"

namespace ringmain::replay {

/// Threads: one at a time. Memory: 40 bytes per cuda_sync record.
class KinetoSyncs {
 public:
  struct Sync {
    std::int64_t correlation = 0;
    std::int64_t stream = KinetoArgs::kAbsent;
    std::int64_t event = KinetoArgs::kAbsent;
    std::int32_t device = -1;
    std::int64_t context = 0;
  };

  /// The first reading: a record of category cuda_sync.
  void note(const KinetoArgs& args, std::int32_t device) {
    if (args.correlation == KinetoArgs::kAbsent) return;
    syncs_.push_back({args.correlation, args.stream, args.wait_on_event, device, args.context});
    if (args.wait_on_correlation > 0) {  // the call that recorded the event, and on which stream
      syncs_.push_back({args.wait_on_correlation, args.wait_on_stream, args.wait_on_event, device,
                        args.context});
    }
  }
  /// Between the readings.
  void sort() { std::stable_sort(syncs_.begin(), syncs_.end(), before); }
  /// What is known of the call with that correlation; nullptr: nothing.
  [[nodiscard]] const Sync* find(std::int64_t correlation) const {
    Sync key;
    key.correlation = correlation;
    const auto found = std::lower_bound(syncs_.begin(), syncs_.end(), key, before);
    return found != syncs_.end() && found->correlation == correlation ? &*found : nullptr;
  }
  [[nodiscard]] std::uint64_t bytes_held() const noexcept {
    return syncs_.capacity() * sizeof(Sync);
  }

 private:
  static bool before(const Sync& a, const Sync& b) noexcept {
    return a.correlation < b.correlation;
  }
  std::vector<Sync> syncs_;
};

}  // namespace ringmain::replay
