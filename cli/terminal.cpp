#include "cli/terminal.hpp"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <sys/ioctl.h>
#include <unistd.h>

namespace ringmain::cli {
namespace {

constexpr std::size_t kBarColumns = 24;

std::string formatted(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

/// Three significant digits.
std::string three(double value) {
  return formatted(value < 9.995 ? "%.2f" : value < 99.95 ? "%.1f" : "%.0f", value);
}

bool locale_is_utf8() noexcept {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    const std::string_view locale = value;
    return locale.find("UTF-8") != locale.npos || locale.find("utf8") != locale.npos;
  }
  return false;
}

std::string bar(double share, bool utf8) {
  const auto full = static_cast<std::size_t>(std::clamp(share, 0.0, 1.0) * kBarColumns + 0.5);
  std::string made;
  for (std::size_t i = 0; i < kBarColumns; ++i) {
    made += utf8 ? (i < full ? "━" : "╌") : (i < full ? "#" : ".");
  }
  return made;
}

}  // namespace

bool is_terminal(std::FILE* file) noexcept {
  return ::isatty(::fileno(file)) == 1;
}

std::size_t columns(std::FILE* file) noexcept {
  winsize size{};
  const bool known = ::ioctl(::fileno(file), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

bool coloured(std::FILE* file) noexcept {
  const char* off = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  return is_terminal(file) && (off == nullptr || *off == '\0') && term != nullptr &&
         std::string_view(term) != "dumb";
}

std::string painted(bool colours, Colour colour, std::string_view text) {
  if (!colours) return std::string(text);
  constexpr const char* kCodes[] = {"1", "32", "31", "33", "2"};
  static_assert(std::size(kCodes) == static_cast<std::size_t>(Colour::dim) + 1);
  return "\x1b[" + std::string(kCodes[static_cast<int>(colour)]) + "m" + std::string(text) +
         "\x1b[0m";
}

std::string with_commas(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, 1, ',');
  return text;
}

std::string duration_text(double ns) {
  if (ns < 1000) return formatted("%.0f ns", ns);
  if (ns < 1e6) return three(ns / 1e3) + " us";
  if (ns < 1e9) return three(ns / 1e6) + " ms";
  if (ns < 120e9) return three(ns / 1e9) + " s";
  return formatted("%.1f min", ns / 60e9);
}

std::string bytes_text(std::uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit < 4; ++unit) value /= 1024;
  return (unit == 0 ? std::to_string(bytes) : three(value)) + " " + kUnits[unit];
}

std::string rate_text(double per_second) {
  if (per_second < 1e3) return formatted("%.0f/s", per_second);
  if (per_second < 1e6) return three(per_second / 1e3) + " k/s";
  return three(per_second / 1e6) + " M/s";
}

std::string plural(std::uint64_t n, std::string_view one) {
  return with_commas(n) + " " + std::string(one) + (n == 1 ? "" : "s");
}

std::string shown(std::string_view text) {
  std::string made(text);
  for (std::size_t i = 0; i < made.size(); ++i) {
    const auto byte = static_cast<unsigned char>(made[i]);
    const bool c1 = byte == 0xc2 && i + 1 < made.size() &&
                    (static_cast<unsigned char>(made[i + 1]) & 0xe0u) == 0x80u;
    if (byte < ' ' || byte == 0x7f) made[i] = '?';
    if (c1) made.replace(i, 2, "?");
  }
  return made;
}

std::string in_columns(std::string_view text, std::size_t width) {
  const auto starts = [](char c) { return (static_cast<unsigned char>(c) & 0xc0u) != 0x80u; };
  const auto wide = static_cast<std::size_t>(std::count_if(text.begin(), text.end(), starts));
  if (wide <= width) return std::string(text) + std::string(width - wide, ' ');
  std::size_t kept = 0, at = 0;
  for (; at < text.size(); ++at) {
    if (starts(text[at]) && ++kept == width) break;
  }
  return std::string(text.substr(0, at)) + "…";
}

ProgressLine::ProgressLine(bool wanted)
    : shown_(wanted && is_terminal(stderr)), utf8_(locale_is_utf8()) {}

void ProgressLine::show(std::string_view what, double share, std::string_view text) {
  if (!shown_) return;
  std::string line(what);
  std::size_t used = what.size();
  if (share >= 0) {
    line += " " + bar(share, utf8_) + formatted(" %3.0f %%", 100 * std::clamp(share, 0.0, 1.0));
    used += 1 + kBarColumns + 6;
  }
  const std::size_t room = columns(stderr);
  if (used + 3 < room) line += "  " + std::string(text.substr(0, room - used - 3));
  std::fprintf(stderr, "\r\x1b[K%s", line.c_str());
  std::fflush(stderr);
  drawn_ = true;
}

void ProgressLine::clear() {
  if (!drawn_) return;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
  drawn_ = false;
}

}  // namespace ringmain::cli
