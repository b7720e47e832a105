// How does a file say what an event looks like, for readers that have never seen its type?
//
//   train.step<tab>16<tab>Step
//   step<tab>u64<tab>count<tab>0<tab>8<tab>
//   loss<tab>f64<tab><tab>8<tab>8<tab>
//
// First the name, bytes and C++ type; then each field's name, kind, unit, offset, bytes and
// enumerators. Not for users of the library.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "../event.hpp"

namespace ringmain::detail {

/// Throws std::bad_alloc.
[[nodiscard]] std::string text_of(const Schema& schema);
/// The schema with that hash, or of a type without a name with one of its own, which lives as long
/// as the process; nullptr: the text is damaged, or
/// an enemy's. Throws std::bad_alloc.
[[nodiscard]] const Schema* schema_of(std::string_view text, std::uint64_t hash);

}  // namespace ringmain::detail
