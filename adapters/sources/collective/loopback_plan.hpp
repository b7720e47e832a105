// What does one rank give to each rank, and take from each? Every operation is made of that.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/sources/collective/collective_arguments.hpp"
#include "adapters/sources/collective/loopback_types.hpp"

namespace ringmain::collective::loopback::detail {

/// Memory of a rank.
struct Piece {
  std::byte* data = nullptr;
  std::uint64_t elements = 0;
};

/// One rank's part of an operation. Its places are those of the meeting: the ranks of a collective;
/// of a send and its receive 0 and 1.
struct Plan {
  OpName op = OpName::other;
  Name dtype{};
  const ElementType* type = nullptr;  // of `dtype`, if it is known
  std::uint64_t element_bytes = 0;    // 0: of an unknown type without an element
  std::int32_t root = kNoRank;
  ReduceOp reduce = ReduceOp::other;
  bool reduces = false;
  bool uniform = false;        // pieces have one size on all ranks
  std::vector<Piece> gives;    // to each place
  std::vector<Piece> takes;    // from each place; where it reduces, one of all of them, or none
  std::vector<int> members{};  // of a split: the ranks of this rank's part
  std::string part_name{};     // its name
  Piece window{};              // of a new window
};

/// Or what is wrong with the arguments, in a sentence. Copies what may go before the end.
struct Planned {
  Plan plan;
  std::string fault;
};
[[nodiscard]] Planned plan_of(const Arguments& arguments, std::int32_t rank, std::int32_t size);
/// `memory` of a new window.
[[nodiscard]] Planned plan_of_window(const Tensor& memory, std::int32_t size);

/// Do the plans of all places fit together? Empty, or the sentence.
[[nodiscard]] std::string fault_between(std::span<const Plan* const> plans);
/// Moves the data of plans that fit. Throws std::bad_alloc, and then has written nothing.
void move_data(std::span<const Plan* const> plans);

}  // namespace ringmain::collective::loopback::detail
