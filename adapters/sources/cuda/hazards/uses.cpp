#include "adapters/sources/cuda/hazards/uses.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace ringmain::cuda::hazards {

/// A piece that holds `at` ends there, and another one begins.
void Uses::cut(std::uint64_t at) {
  auto piece = pieces_.upper_bound(at);
  if (piece == pieces_.begin()) return;
  --piece;
  if (piece->first == at || piece->second.end <= at) return;
  Piece rest = piece->second;
  kept_ += rest.uses.size();
  piece->second.end = at;
  pieces_.emplace(at, std::move(rest));
}

/// Both ends are cut. Afterwards each byte between them is in a piece.
void Uses::fill(std::uint64_t begin, std::uint64_t end) {
  std::uint64_t at = begin;
  while (at < end) {
    const auto next = pieces_.lower_bound(at);
    const std::uint64_t until = next == pieces_.end() ? end : std::min(next->first, end);
    if (at < until) pieces_.emplace_hint(next, at, Piece{until, {}});
    at = next == pieces_.end() || until == end ? until : next->second.end;
  }
}

void Uses::keep(Piece& piece, const KeptUse& use) {
  for (KeptUse& kept : piece.uses) {
    if (kept.place != use.place || kept.use.access != use.use.access) continue;
    kept = use;
    return;
  }
  piece.uses.push_back(use);
  ++kept_;
}

void Uses::clear(std::uint64_t address, std::uint64_t bytes) {
  const std::uint64_t end = end_of(address, bytes);
  if (address == end) return;
  cut(address);
  cut(end);
  const auto first = pieces_.lower_bound(address);
  const auto last = pieces_.lower_bound(end);
  for (auto piece = first; piece != last; ++piece) kept_ -= piece->second.uses.size();
  pieces_.erase(first, last);
}

std::size_t Uses::make_room(const Clock& host) {
  if (kept_ < most_) return 0;
  for (auto piece = pieces_.begin(); piece != pieces_.end();) {
    auto& uses = piece->second.uses;
    const auto over = std::remove_if(uses.begin(), uses.end(), [&](const KeptUse& use) {
      return host.at(use.place) >= use.count;
    });
    kept_ -= static_cast<std::size_t>(std::distance(over, uses.end()));
    uses.erase(over, uses.end());
    piece = uses.empty() ? pieces_.erase(piece) : std::next(piece);
  }
  const std::size_t left = kept_ > most_ / 2 ? kept_ : 0;
  if (left != 0) clear();
  return left;
}

}  // namespace ringmain::cuda::hazards
