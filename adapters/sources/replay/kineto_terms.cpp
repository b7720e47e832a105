#include "adapters/sources/replay/kineto_terms.hpp"

#include <charconv>

#include "events/terms/collective_names.hpp"

namespace ringmain::replay {
namespace {

constexpr std::uint64_t kElementsMax = std::uint64_t{1} << 53;  // more is a fault of the trace

std::int32_t rank_in(std::string_view digits) {
  std::int32_t rank = -1;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), rank);
  return read.ec == std::errc{} && rank >= 0 ? rank : -1;
}

}  // namespace

AnnotationTerms annotation_terms(std::string_view annotation) {
  AnnotationTerms terms;
  for (const std::string_view backend : {collective::kNccl, collective::kGloo}) {
    if (!annotation.starts_with(backend)) continue;
    std::string_view rest = annotation.substr(backend.size());
    if (!rest.starts_with(':')) continue;
    rest.remove_prefix(1);
    const auto space = rest.find(' ');
    terms.backend = annotation.substr(0, backend.size());
    terms.operation = collective::operation_name(rest.substr(0, space));
    if (space == std::string_view::npos) return terms;
    const std::string_view ranks = rest.substr(space + 1);  // "0->1", "1<-0"
    for (const std::string_view arrow : {"->", "<-"}) {
      const auto at = ranks.find(arrow);
      if (at == std::string_view::npos) continue;
      terms.rank = rank_in(ranks.substr(0, at));
      terms.peer = rank_in(ranks.substr(at + arrow.size()));
    }
  }
  return terms;
}

std::uint64_t dtype_bytes(std::string_view dtype) noexcept {
  if (dtype.starts_with("c10::")) dtype.remove_prefix(5);
  struct Row {
    std::string_view dtype;
    std::uint64_t bytes;
  };
  static constexpr Row kRows[] = {
      {"Float", 4},
      {"float", 4},
      {"BFloat16", 2},
      {"Half", 2},
      {"Double", 8},
      {"double", 8},
      {"Long", 8},
      {"long", 8},
      {"long int", 8},
      {"Int", 4},
      {"int", 4},
      {"Short", 2},
      {"short", 2},
      {"short int", 2},
      {"Byte", 1},
      {"unsigned char", 1},
      {"Char", 1},
      {"signed char", 1},
      {"char", 1},
      {"Bool", 1},
      {"bool", 1},
      {"ComplexHalf", 4},
      {"ComplexFloat", 8},
      {"ComplexDouble", 16},
      {"UInt16", 2},
      {"UInt32", 4},
      {"UInt64", 8},
      {"complex<Half>", 4},
      {"complex<float>", 8},
      {"complex<double>", 16},
  };
  for (const Row& row : kRows) {
    if (row.dtype == dtype) return row.bytes;
  }
  return dtype.starts_with("Float8") ? 1 : 0;
}

std::uint64_t elements_of_dims(std::string_view json) noexcept {
  std::uint64_t sum = 0;
  std::uint64_t product = 1;
  bool counted = false;  // the bracket at hand holds numbers
  for (std::size_t at = 0; at < json.size(); ++at) {
    const char c = json[at];
    if (c == '[' || c == ']') {
      if (counted) sum = sum > kElementsMax - product ? kElementsMax : sum + product;
      product = 1;
      counted = false;
    } else if (c >= '0' && c <= '9') {
      std::uint64_t size = 0;
      const auto read = std::from_chars(json.data() + at, json.data() + json.size(), size);
      at = static_cast<std::size_t>(read.ptr - json.data()) - 1;
      if (read.ec != std::errc{}) size = kElementsMax;
      product = size != 0 && product > kElementsMax / size ? kElementsMax : product * size;
      counted = true;
    }
  }
  return sum;
}

std::string_view first_string(std::string_view json) noexcept {
  for (std::size_t at = 0; (at = json.find('"', at)) != std::string_view::npos;) {
    const auto end = json.find('"', at + 1);
    if (end == std::string_view::npos) return {};
    if (end > at + 1) return json.substr(at + 1, end - at - 1);
    at = end + 1;
  }
  return {};
}

}  // namespace ringmain::replay
