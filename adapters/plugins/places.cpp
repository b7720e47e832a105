#include "adapters/plugins/places.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <system_error>
#include <utility>

#include "adapters/plugins/trust.hpp"

namespace ringmain::registry {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t kManifestBytesMax = 64 * 1024;

/// The manifests at a place, sorted; `fault` is a sentence where there can be none.
std::vector<fs::path> manifests_at(const std::string& place, bool quiet, std::string& fault) {
  std::error_code error;
  const fs::path path(place);
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) {
    if (!quiet) fault = "no plugins at " + place + ": " + std::generic_category().message(ENOENT);
    return {};
  }
  if (fs::is_directory(status)) {
    std::vector<fs::path> all;
    for (fs::directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
      if (at->path().extension() == kManifestEnding) all.push_back(at->path());
    }
    if (error) fault = "the plugin folder " + place + " cannot be read: " + error.message();
    std::sort(all.begin(), all.end());
    return all;
  }
  if (path.extension() == kManifestEnding) return {path};
  fs::path beside = path;
  beside.replace_extension(kManifestEnding);
  if (fs::exists(beside, error)) return {beside};
  fault = "the plugin " + place + " has no manifest " + beside.filename().string() + " beside it";
  return {};
}

std::string fault_of(const fs::path& manifest, const std::string& why) {
  return "the manifest " + manifest.string() + " cannot be used: " + why;
}

Result<std::string> text_of(const fs::path& manifest) {
  std::error_code error;
  if (!fs::is_regular_file(manifest, error)) {
    return Error{Error::Code::refused, fault_of(manifest, "it is no file")};
  }
  std::ifstream file(manifest, std::ios::binary);
  std::string text(kManifestBytesMax + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (!file.is_open() || file.bad()) {
    return Error{Error::Code::system, fault_of(manifest, "it cannot be read")};
  }
  if (text.size() > kManifestBytesMax) {
    return Error{Error::Code::refused, fault_of(manifest, "it is longer than 64 KiB")};
  }
  return text;
}

}  // namespace

void PluginPlaces::add(std::string path, bool quiet) {
  const std::lock_guard lock(mutex_);
  const bool known = std::any_of(places_.begin(), places_.end(),
                                 [&](const Place& place) { return place.path == path; });
  if (!known) places_.push_back({std::move(path), quiet});
}

void PluginPlaces::add_places(std::string_view places) {
  while (!places.empty()) {
    const std::size_t end = std::min(places.find(':'), places.size());
    if (end > 0) add(std::string(places.substr(0, end)), false);
    places.remove_prefix(std::min(end + 1, places.size()));
  }
}

void PluginPlaces::add_quiet_place(std::string folder) {
  add(std::move(folder), true);
}

PluginPlaces::Scan PluginPlaces::scan() const {
  std::vector<Place> places;
  {
    const std::lock_guard lock(mutex_);
    places = places_;
  }
  Scan made;
  std::set<std::string> seen;
  for (const Place& place : places) {
    std::string fault;
    for (const fs::path& manifest : manifests_at(place.path, place.quiet, fault)) {
      std::error_code error;
      const fs::path real = fs::canonical(manifest, error);
      if (error) {
        made.faults.push_back(fault_of(manifest, error.message()));
        continue;
      }
      if (!seen.insert(real.string()).second) continue;
      if (const std::string why = trust_fault(real.string()); !why.empty()) {
        made.faults.push_back(fault_of(real, why));
        continue;
      }
      auto text = text_of(real);
      if (!text) {
        made.faults.push_back(text.error().message);
        continue;
      }
      auto read = read_manifest(text.value(), real.parent_path().string());
      if (!read) {
        made.faults.push_back(fault_of(real, read.error().message));
        continue;
      }
      const fs::path library = (real.parent_path() / read.value().library).lexically_normal();
      made.found.push_back(
          {real.string(), std::move(text).value(), library.string(), std::move(read).value()});
    }
    if (!fault.empty()) made.faults.push_back(fault);
  }
  return made;
}

}  // namespace ringmain::registry
