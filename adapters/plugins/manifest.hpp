// What does a plugin's manifest say? Everything that lists and messages need, so that its library
// is not loaded before its first use.
//
//   abi = 1
//   library = libexample.so
//   sha256 = 9f86d081…                  may be left out
//
//   [sink tally]
//   summary = counts events by channel
//   tags = example, debug
//   argument = FILE
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bus/result.hpp"

#include "adapters/provider.hpp"

namespace ringmain::registry {

constexpr std::string_view kManifestEnding = ".ringmain-plugin";

struct Manifest {
  std::uint32_t abi = 0;
  std::string library;              // as written, relative to the manifest's folder
  std::string sha256;               // of the library; "" where it does not say
  std::vector<Provider> providers;  // without loaders
};

/// Reads a manifest's text; `folder` replaces {dir}. The Error names the line.
[[nodiscard]] Result<Manifest> read_manifest(std::string_view text, std::string_view folder);

}  // namespace ringmain::registry
