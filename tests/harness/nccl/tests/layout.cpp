#include "tests/harness/nccl/tests/layout.hpp"

#include <fstream>
#include <sstream>
#include <stdexcept>

namespace ringmain::nccl_conformance {

Layout::Layout(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(path + " cannot be read");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string kind;
    std::string name;
    std::size_t number = 0;
    if (words >> kind >> name && kind != "layout" && words >> number) {
      found_.emplace(kind.append(" ").append(name), number);
    }
  }
}

std::size_t Layout::of(const std::string& key) const {
  const auto place = found_.find(key);
  if (place == found_.end()) throw std::runtime_error("this NCCL has no " + key);
  return place->second;
}

std::optional<std::size_t> Layout::symbol(const std::string& name) const {
  const auto place = found_.find("symbol " + name);
  if (place == found_.end()) return {};
  return place->second;
}

}  // namespace ringmain::nccl_conformance
