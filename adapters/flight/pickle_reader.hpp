// What does a pickle of plain data say? Reads the opcodes that make numbers, text, lists, tuples
// and dicts; those that call code or make objects are refused by their names. Nothing is executed.
//
// Protocols 2 to 5, as PyTorch's own writer and Python's pickle.dump() make them.
#pragma once
#include <string>

#include "bus/result.hpp"

#include "adapters/flight/document.hpp"

namespace ringmain::flight {

/// An Error: one sentence that names the byte and the opcode. At most kFileBytesMax bytes.
[[nodiscard]] Result<Document> read_pickle(std::string bytes);

}  // namespace ringmain::flight
