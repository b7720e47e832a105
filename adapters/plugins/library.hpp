// How does a plugin's library get into the process, and out again? Checked before it is loaded,
// loaded once, unloaded when nothing of it is in use.
#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "bus/result.hpp"

#include "adapters/provider.hpp"

namespace ringmain::registry {

/// A library that is mapped; its end unmaps it.
class LoadedLibrary;

/// Threads: any.
class PluginLibrary {
 public:
  PluginLibrary(std::string path, std::string sha256)
      : path_(std::move(path)), sha256_(std::move(sha256)) {}

  /// Loads the library if need be and finds that provider in its table. The Error is one sentence.
  Result<Factory> factory(ProviderKind kind, const std::string& name);
  /// Lets go of the library: it is unmapped when its last factory and object are gone.
  void let_go();
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] bool loaded() const;

 private:
  Result<std::shared_ptr<const LoadedLibrary>> load();

  const std::string path_;
  const std::string sha256_;
  mutable std::recursive_mutex mutex_;  // the library's initialisers may ask for its providers
  bool loading_ = false;
  std::shared_ptr<const LoadedLibrary> loaded_;
};

/// "", or what is wrong with the file as a shared library for this machine. The system's loader may
/// crash on a file that is cut short.
[[nodiscard]] std::string elf_fault(const std::string& path);

}  // namespace ringmain::registry
