// Do the plans of all ranks fit together, and how does their data move?
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "adapters/sources/collective/loopback_plan.hpp"

namespace ringmain::collective::loopback::detail {
namespace {

using Plans = std::span<const Plan* const>;

std::string rank_text(std::size_t rank) {
  return "rank " + std::to_string(rank);
}

/// "ranks call for different …: rank 0 for a, rank 1 for b"; empty where all are the same.
template <class Say>
std::string difference(Plans plans, const char* what, const Say& say) {
  const std::string first = say(*plans[0]);
  if (std::all_of(plans.begin(), plans.end(), [&](const Plan* one) { return say(*one) == first; }))
    return {};
  std::string text = std::string("ranks call for different ") + what + ":";
  for (std::size_t rank = 0; rank < plans.size(); ++rank) {
    text += (rank == 0 ? " " : ", ") + rank_text(rank) + " for " + say(*plans[rank]);
  }
  return text;
}

bool one_to_one(const Plan& plan) {
  return plan.op == OpName::send || plan.op == OpName::recv;
}

std::string fault_of_terms(Plans plans) {
  if (!one_to_one(*plans[0])) {
    auto other = difference(plans, "operations",
                            [](const Plan& plan) { return std::string(to_string(plan.op)); });
    if (!other.empty()) return other;
  }
  auto roots =
      difference(plans, "roots", [](const Plan& plan) { return std::to_string(plan.root); });
  if (!roots.empty()) return roots;
  auto reductions = difference(
      plans, "reductions", [](const Plan& plan) { return std::string(to_string(plan.reduce)); });
  if (!reductions.empty()) return reductions;
  return difference(plans, "types", [](const Plan& plan) {
    const bool moves_bytes =
        plan.dtype != Name() && plan.type == nullptr && plan.element_bytes != 0;
    return plan.dtype == Name() ? std::string("none")
           : moves_bytes        ? std::string(plan.dtype.view()) + " of " +
                               std::to_string(plan.element_bytes) + " bytes"
                         : std::string(plan.dtype.view());
  });
}

std::string sizes_differ(const char* gives, std::size_t from, std::uint64_t given,
                         const char* takes, std::size_t to, std::uint64_t taken) {
  return rank_text(from) + " " + gives + " " + std::to_string(given) + " elements, and " +
         rank_text(to) + " " + takes + " " + std::to_string(taken);
}

/// Of what is not reduced: what one gives, another takes.
std::string fault_of_pieces(Plans plans) {
  for (std::size_t to = 0; to < plans.size(); ++to) {
    for (std::size_t from = 0; from < plans.size(); ++from) {
      const std::uint64_t given = plans[from]->gives[to].elements;
      const std::uint64_t taken = plans[to]->takes[from].elements;
      if (given == taken) continue;
      if (one_to_one(*plans[0])) {
        return "the sender gives " + std::to_string(given) + " elements, and the receiver takes " +
               std::to_string(taken);
      }
      return sizes_differ("gives", from, given, "takes", to, taken);
    }
  }
  return {};
}

/// Of what is reduced: for each rank all give as much as it takes, or as each other.
std::string fault_of_reduced(Plans plans) {
  for (std::size_t to = 0; to < plans.size(); ++to) {
    const std::uint64_t first = plans[0]->gives[to].elements;
    for (std::size_t from = 1; from < plans.size(); ++from) {
      const std::uint64_t given = plans[from]->gives[to].elements;
      if (given != first) return sizes_differ("gives", 0, first, "gives", from, given);
    }
    if (plans[to]->takes.empty()) continue;
    const std::uint64_t taken = plans[to]->takes[0].elements;
    if (first != taken) return sizes_differ("gives", 0, first, "takes", to, taken);
  }
  return {};
}

/// Pieces of one size: of what is given at all.
std::string fault_of_uniformity(Plans plans) {
  const Piece* first = nullptr;
  std::size_t first_from = 0;
  for (std::size_t from = 0; from < plans.size(); ++from) {
    for (std::size_t to = 0; to < plans.size(); ++to) {
      const bool to_root =
          plans[from]->op == OpName::gather || plans[from]->op == OpName::gather_single;
      const bool from_root = plans[from]->op == OpName::scatter;
      const auto root = static_cast<std::size_t>(plans[from]->root);
      if ((to_root && to != root) || (from_root && from != root)) continue;
      const Piece& one = plans[from]->gives[to];
      if (first == nullptr) {
        first = &one;
        first_from = from;
      } else if (one.elements != first->elements) {
        return sizes_differ("gives", first_from, first->elements, "gives", from, one.elements) +
               "; all pieces have one size";
      }
    }
  }
  return {};
}

std::string fault_of_parts(Plans plans) {
  for (std::size_t rank = 0; rank < plans.size(); ++rank) {
    const Plan& mine = *plans[rank];
    for (std::size_t i = 0; i < mine.members.size(); ++i) {
      const int member = mine.members[i];
      const auto rest = std::span(mine.members).subspan(i + 1);
      if (std::find(rest.begin(), rest.end(), member) != rest.end())
        return rank_text(rank) + " names rank " + std::to_string(member) + " twice in its part";
      const Plan& other = *plans[static_cast<std::size_t>(member)];
      if (other.members == mine.members && other.part_name == mine.part_name) continue;
      return rank_text(rank) + " is to be in part '" + mine.part_name + "' with rank " +
             std::to_string(member) + ", which names other ranks or another name";
    }
  }
  return {};
}

/// What is given, as it is before anything is written: a tensor may be in and out.
class Kept {
 public:
  explicit Kept(const Plan& plan) : plan_(plan) { copies_.reserve(plan.gives.size()); }
  /// One copy where several ranks get the same.
  void keep(std::size_t to) {
    const Piece& piece = plan_.gives[to];
    if (to > 0 && same(piece, plan_.gives[to - 1])) {
      copies_.push_back(copies_.back());
      return;
    }
    const std::uint64_t bytes = piece.elements * plan_.element_bytes;
    const std::shared_ptr<std::byte[]> copy(new std::byte[bytes]);
    if (bytes != 0) std::memcpy(copy.get(), piece.data, bytes);
    copies_.push_back(copy);
  }
  [[nodiscard]] const std::byte* to(std::size_t rank) const { return copies_[rank].get(); }

 private:
  static bool same(const Piece& a, const Piece& b) {
    return a.data == b.data && a.elements == b.elements;
  }
  const Plan& plan_;
  std::vector<std::shared_ptr<std::byte[]>> copies_;
};

}  // namespace

std::string fault_between(Plans plans) {
  auto fault = fault_of_terms(plans);
  if (!fault.empty()) return fault;
  if (plans[0]->op == OpName::split) return fault_of_parts(plans);
  if (plans[0]->uniform) fault = fault_of_uniformity(plans);
  if (!fault.empty()) return fault;
  return plans[0]->reduces ? fault_of_reduced(plans) : fault_of_pieces(plans);
}

void move_data(Plans plans) {
  std::vector<Kept> kept;
  kept.reserve(plans.size());
  for (const Plan* const plan : plans) {
    Kept& mine = kept.emplace_back(*plan);
    for (std::size_t to = 0; to < plans.size(); ++to) mine.keep(to);
  }
  std::vector<const std::byte*> values(plans.size());
  for (std::size_t to = 0; to < plans.size(); ++to) {
    const Plan& taker = *plans[to];
    for (std::size_t from = 0; from < plans.size(); ++from) values[from] = kept[from].to(to);
    if (taker.reduces) {
      if (taker.takes.empty() || taker.takes[0].elements == 0) continue;
      const Piece& all = taker.takes[0];
      reduce(taker.type->kind, taker.reduce, values, all.elements, all.data);
      continue;
    }
    for (std::size_t from = 0; from < plans.size(); ++from) {
      const Piece& one = taker.takes[from];
      if (one.elements != 0)
        std::memcpy(one.data, values[from], one.elements * taker.element_bytes);
    }
  }
}

}  // namespace ringmain::collective::loopback::detail
