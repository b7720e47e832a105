// How is a document written, as a pickle or as JSON?
//
// The pickle is of protocol 2 and has data opcodes only, so restricted unpicklers read it, too.
// Texts that come again are taken from its memo, which halves a dump.
#pragma once
#include <string>

#include "adapters/flight/document.hpp"

namespace ringmain::flight {

/// Bytes of a text that are no UTF-8 become U+FFFD, as Python refuses them.
[[nodiscard]] std::string to_pickle(const Document& document);
/// On one line, as PyTorch writes it. What JSON cannot say (nan, inf) becomes null.
[[nodiscard]] std::string to_json(const Document& document);

}  // namespace ringmain::flight
