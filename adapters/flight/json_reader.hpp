// What does a dump in JSON say? By simdjson, turned into the values that a pickle makes, too.
#pragma once
#include <string>

#include "bus/result.hpp"

#include "adapters/flight/document.hpp"

namespace ringmain::flight {

/// Whole numbers above 2^63 become what 64 bits with a sign make of them: torchcomms writes the id
/// of `finalize` as 2^64 - 1, and PyTorch's pickles have -1 there. An Error: one sentence.
[[nodiscard]] Result<Document> read_json(std::string bytes);

/// JSON or a pickle, whichever the bytes begin like.
[[nodiscard]] Result<Document> read_document(std::string bytes);
/// True if these bytes begin like a dump in one of the two formats.
[[nodiscard]] bool begins_like_a_dump(std::string_view bytes) noexcept;

}  // namespace ringmain::flight
