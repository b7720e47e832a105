// Which of NCCL's words is this? Its functions, types and algorithms come as texts of static
// storage; to intern one takes a lock, so that all that are known are interned before the first
// call, and a text is found here without one.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "engine/system/figure.hpp"

#include "bus/text.hpp"

namespace ringmain::nccl {

/// One byte in an open event's place. 0: no text, 1: a text that is not known.
using Word = std::uint8_t;

/// Each ends with a 0, as it is compared with C's texts.
constexpr std::string_view kKnownWords[] = {"",
                                            "other",
                                            "AllGather",
                                            "AllGatherV",
                                            "AllReduce",
                                            "AlltoAll",
                                            "Broadcast",
                                            "Gather",
                                            "Recv",
                                            "Reduce",
                                            "ReduceScatter",
                                            "Scatter",
                                            "SendRecv",
                                            "Send",
                                            "PutSignal",
                                            "Signal",
                                            "WaitSignal",
                                            "Invalid",
                                            "ncclInt8",
                                            "ncclUint8",
                                            "ncclInt32",
                                            "ncclUint32",
                                            "ncclInt64",
                                            "ncclUint64",
                                            "ncclFloat16",
                                            "ncclFloat32",
                                            "ncclFloat64",
                                            "ncclBfloat16",
                                            "ncclFloat8e4m3",
                                            "ncclFloat8e5m2",
                                            "Unknown",
                                            "TREE",
                                            "RING",
                                            "COLLNET_DIRECT",
                                            "COLLNET_CHAIN",
                                            "NVLS",
                                            "NVLS_TREE",
                                            "PAT",
                                            "LL",
                                            "LL128",
                                            "SIMPLE"};

class Words {
 public:
  enum : Word { kNone = 0, kOther = 1 };

  Words();
  Words(const Words&) = delete;
  Words& operator=(const Words&) = delete;

  /// Threads: any. Progress: wait-free. A text's address is a hint that saves the search.
  [[nodiscard]] Word find(const char* text) noexcept {
    if (text == nullptr || *text == '\0') return kNone;
    const auto address = reinterpret_cast<std::uintptr_t>(text);
    engine::Figure<std::uint64_t>& hint = hints_[(address >> 2 ^ address >> 9) % kHints];
    const std::uint64_t hinted = hint.get();
    const auto word = static_cast<Word>(hinted);
    if (hinted >> 8 == address && std::strcmp(text, kKnownWords[word].data()) == 0) return word;
    const Word found = search(text);
    if (found != kOther) hint.set(std::uint64_t{address} << 8 | found);
    return found;
  }
  [[nodiscard]] Name name(Word word) const noexcept { return names_[word]; }
  /// Of a function: the house's word for it.
  [[nodiscard]] Name operation(Word word) const noexcept { return operations_[word]; }
  /// Of a type: the bytes of an element; 0: not known.
  [[nodiscard]] static std::uint32_t bytes_of(Word type) noexcept;
  [[nodiscard]] static std::string_view text(Word word) noexcept { return kKnownWords[word]; }

  static constexpr std::size_t kCount = sizeof(kKnownWords) / sizeof(kKnownWords[0]);

 private:
  enum : std::size_t { kHints = 128 };
  [[nodiscard]] static Word search(const char* text) noexcept;

  std::array<Name, kCount> names_{};
  std::array<Name, kCount> operations_{};
  std::array<engine::Figure<std::uint64_t>, kHints> hints_{};  // address << 8 | word
};

}  // namespace ringmain::nccl
