// Where are plugins looked for, and what lies there? Reads manifests, loads nothing.
#pragma once
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "bus/result.hpp"

#include "adapters/plugins/manifest.hpp"

namespace ringmain::registry {

/// Threads: any.
class PluginPlaces {
 public:
  /// Folders, manifests or libraries, with ':' between them.
  void add_places(std::string_view places);
  /// A folder that may be missing.
  void add_quiet_place(std::string folder);

  struct Found {
    std::string path;  // of the manifest, links resolved
    std::string text;
    std::string library;  // its path
    Manifest manifest;
  };
  struct Scan {
    std::vector<Found> found;         // in the order of the places, then of their names
    std::vector<std::string> faults;  // one sentence each
  };
  [[nodiscard]] Scan scan() const;

 private:
  struct Place {
    std::string path;
    bool quiet;
  };
  void add(std::string path, bool quiet);

  mutable std::mutex mutex_;
  std::vector<Place> places_;
};

}  // namespace ringmain::registry
