// Does a pattern match a channel's name, token by token?
#pragma once
#include <string>
#include <string_view>

namespace ringmain {

/// "cuda.*" matches "cuda.event_record"; "cuda.>" matches all below cuda; ">" matches all.
/// "train.loss" also matches "train.loss@2", the channel of a type that was changed while the
/// program ran; "train.loss@2" matches that alone. Progress: wait-free.
[[nodiscard]] bool pattern_matches(std::string_view pattern, std::string_view name) noexcept;

/// Why a pattern can match no name that bindings allow: one sentence; "": it can. Throws
/// std::bad_alloc.
[[nodiscard]] std::string fault_of_pattern(std::string_view pattern);

}  // namespace ringmain
