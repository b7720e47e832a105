// Does the wrapped queue keep each sub-queue's order and bytes, for every slot class?
#include <cstring>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "engine/publish/mpmc_queue.hpp"
#include "engine/publish/queue_ops.hpp"
#include "engine/publish/slot.hpp"

namespace ringmain::engine {
namespace {

class QueueTest : public ::testing::TestWithParam<unsigned> {
 protected:
  QueueTest() : ops_(queue_ops(GetParam())), queue_(ops_.make()) {}
  ~QueueTest() override { ops_.destroy(queue_); }

  void put(QueueToken& token, std::uint64_t sequence) {
    struct From {
      std::uint64_t sequence;
      std::size_t bytes;
    } from{sequence, slot_bytes(GetParam()) - sizeof(SlotHeader)};
    ASSERT_TRUE(ops_.put(
        queue_, token, {sequence, 7},
        [](void* to, void* what) noexcept {
          const auto* f = static_cast<const From*>(what);
          std::memset(to, static_cast<int>(f->sequence & 0xff), f->bytes);
        },
        &from, sizeof(SlotHeader)));
  }
  /// Takes what is there, at most `max`; checks each slot's bytes; returns the sequences.
  std::vector<std::uint64_t> take(QueueToken& token, std::size_t max) {
    alignas(16) static std::byte room[64 * 1056];
    const std::size_t n = ops_.take(queue_, token, room, max);
    std::vector<std::uint64_t> sequences;
    for (std::size_t i = 0; i < n; ++i) {
      const std::byte* slot = room + i * slot_bytes(GetParam());
      const auto* header = reinterpret_cast<const SlotHeader*>(slot);
      EXPECT_EQ(header->time_ns, 7);
      for (std::size_t b = sizeof(SlotHeader); b < slot_bytes(GetParam()); ++b)
        EXPECT_EQ(slot[b], static_cast<std::byte>(header->sequence & 0xff));
      sequences.push_back(header->sequence);
    }
    return sequences;
  }

  const QueueOps& ops_;
  void* queue_;
};

TEST_P(QueueTest, EachSubQueueIsFirstInFirstOut) {
  const std::unique_ptr<QueueToken> a(ops_.make_token(queue_));
  const std::unique_ptr<QueueToken> b(ops_.make_token(queue_));
  for (std::uint64_t i = 1; i <= 300; ++i) {
    put(*a, i);
    put(*b, 1000 + i);
  }
  std::uint64_t next = 1;
  for (auto got = take(*a, 64); !got.empty(); got = take(*a, 64)) {
    for (const std::uint64_t s : got) EXPECT_EQ(s, next++);
  }
  EXPECT_EQ(next, 301u);
  next = 1001;
  for (auto got = take(*b, 7); !got.empty(); got = take(*b, 7)) {
    for (const std::uint64_t s : got) EXPECT_EQ(s, next++);
  }
  EXPECT_EQ(next, 1301u);
}

TEST_P(QueueTest, AnEmptySubQueueGivesNothingThoughAnotherIsFull) {
  const std::unique_ptr<QueueToken> a(ops_.make_token(queue_));
  const std::unique_ptr<QueueToken> b(ops_.make_token(queue_));
  put(*a, 1);
  EXPECT_TRUE(take(*b, 64).empty());
  EXPECT_EQ(take(*a, 64), std::vector<std::uint64_t>{1});
}

INSTANTIATE_TEST_SUITE_P(EverySlotClass, QueueTest,
                         ::testing::Range(0u, static_cast<unsigned>(slot_sizes().size())),
                         [](const auto& p) { return std::to_string(slot_bytes(p.param)); });

}  // namespace
}  // namespace ringmain::engine
