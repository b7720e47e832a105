#include "adapters/plugins/manifest.hpp"

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <optional>

#include "adapters/did_you_mean.hpp"

namespace ringmain::registry {
namespace {

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t' || s.back() == '\r'))
    s.remove_suffix(1);
  return s;
}

std::string with_folder(std::string_view text, std::string_view folder) {
  std::string made(text);
  for (std::size_t at = 0; (at = made.find("{dir}", at)) != made.npos; at += folder.size()) {
    made.replace(at, 5, folder);
  }
  return made;
}

class ManifestReader {
 public:
  explicit ManifestReader(std::string_view folder) : folder_(folder) {}

  Result<Manifest> read(std::string_view text) {
    while (!text.empty()) {
      ++line_;
      const std::size_t end = std::min(text.find('\n'), text.size());
      const std::string_view line = trimmed(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
      if (line.empty() || line.front() == '#') continue;
      if (const std::string fault = take(line); !fault.empty()) {
        return Error{Error::Code::refused, "line " + std::to_string(line_) + ": " + fault};
      }
    }
    if (!seen_abi_) return missing("abi = " + std::to_string(1));
    if (made_.library.empty()) return missing("library = FILE.so");
    if (made_.providers.empty()) return missing("[sink NAME], [source NAME] or [bridge NAME]");
    return std::move(made_);
  }

 private:
  static Error missing(const std::string& what) {
    return Error{Error::Code::refused, "it lacks a line '" + what + "'"};
  }

  /// "" or what is wrong with the line.
  std::string take(std::string_view line) {
    const bool odd = std::any_of(line.begin(), line.end(), [](char c) {
      return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    });
    if (odd) return "it holds a control character; a manifest is plain text";
    if (line.front() == '[') return take_head(line);
    const std::size_t equals = line.find('=');
    if (equals == line.npos)
      return "'" + shown(line) + "' is neither 'key = value' nor '[kind name]'";
    const std::string_view key = trimmed(line.substr(0, equals));
    const std::string_view value = trimmed(line.substr(equals + 1));
    if (value.empty()) return "'" + shown(key) + "' has no value";
    return made_.providers.empty() ? take_general(key, value) : take_own(key, value);
  }

  static std::string shown(std::string_view word) { return std::string(word.substr(0, 64)); }

  std::string take_head(std::string_view line) {
    const std::string_view inside = trimmed(line.substr(1, line.size() - 2));
    const std::size_t space = inside.find(' ');
    if (line.back() != ']' || space == inside.npos) {
      return "'" + shown(line) + "' should be '[sink NAME]', '[source NAME]' or '[bridge NAME]'";
    }
    const std::string_view kind = inside.substr(0, space);
    Provider provider;
    provider.name = trimmed(inside.substr(space));
    for (const ProviderKind one :
         {ProviderKind::source, ProviderKind::sink, ProviderKind::bridge}) {
      if (to_string(one) != kind) continue;
      provider.kind = one;
      if (made_.providers.size() == 64) return "a plugin has at most 64 providers";
      made_.providers.push_back(std::move(provider));
      return "";
    }
    return "'" + shown(kind) + "' is no kind of provider" +
           did_you_mean(kind, {"source", "sink", "bridge"});
  }

  std::string take_general(std::string_view key, std::string_view value) {
    if (key == "abi") {
      const auto [end, error] =
          std::from_chars(value.data(), value.data() + value.size(), made_.abi);
      if (error != std::errc{} || end != value.data() + value.size()) {
        return "abi should be a number, and not '" + shown(value) + "'";
      }
      seen_abi_ = true;
      return "";
    }
    if (key == "library") {
      made_.library = with_folder(value, folder_);
      return "";
    }
    if (key == "sha256") {
      const bool fine =
          value.size() == 64 && value.find_first_not_of("0123456789abcdef") == value.npos;
      made_.sha256 = value;
      return fine ? "" : "sha256 should be 64 digits of 0-9 and a-f";
    }
    return "there is no key '" + shown(key) + "' before the first provider" +
           did_you_mean(key, {"abi", "library", "sha256"});
  }

  std::string take_own(std::string_view key, std::string_view value) {
    Provider& p = made_.providers.back();
    if (key == "summary") return p.summary = value, "";
    if (key == "argument") return p.argument = value, "";
    if (key == "refused") return p.run.refused = value, "";
    if (key == "tags") return take_tags(value, p.tags), "";
    if (key == "in_process") {
      p.run.in_process = value == "yes";
      return value == "yes" || value == "no" ? "" : "in_process is yes or no";
    }
    if (key == "set" || key == "prepend") return take_edit(key == "set", value, p.run.environment);
    return "there is no key '" + shown(key) + "' of a provider" +
           did_you_mean(key,
                        {"summary", "argument", "tags", "in_process", "set", "prepend", "refused"});
  }

  static void take_tags(std::string_view value, std::vector<std::string>& tags) {
    while (!value.empty()) {
      const std::size_t end = std::min(value.find(','), value.size());
      if (const auto tag = trimmed(value.substr(0, end)); !tag.empty()) tags.emplace_back(tag);
      value.remove_prefix(std::min(end + 1, value.size()));
    }
  }

  std::string take_edit(bool set, std::string_view value, std::vector<EnvironmentEdit>& to) const {
    const std::size_t equals = value.find('=');
    if (equals == value.npos || equals == 0) {
      return "it should say 'VARIABLE=VALUE', and not '" + shown(value) + "'";
    }
    to.push_back({std::string(value.substr(0, equals)),
                  with_folder(value.substr(equals + 1), folder_),
                  set ? EnvironmentEdit::How::set : EnvironmentEdit::How::prepend});
    return "";
  }

  const std::string_view folder_;
  Manifest made_;
  std::size_t line_ = 0;
  bool seen_abi_ = false;
};

}  // namespace

Result<Manifest> read_manifest(std::string_view text, std::string_view folder) {
  return ManifestReader(folder).read(text);
}

}  // namespace ringmain::registry
