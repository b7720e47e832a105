#include "adapters/sources/nccl/nccl_words.hpp"

#include "events/terms/collective_names.hpp"

namespace ringmain::nccl {

Words::Words() {
  for (std::size_t i = 1; i < kCount; ++i) {
    names_[i] = Name(kKnownWords[i]);
    const auto* const known = collective::find_spelling(kKnownWords[i]);
    operations_[i] = known == nullptr ? names_[i] : Name(known->name);
  }
}

Word Words::search(const char* text) noexcept {
  for (std::size_t i = kOther + 1; i < kCount; ++i) {
    if (std::strcmp(text, kKnownWords[i].data()) == 0) return static_cast<Word>(i);
  }
  return kOther;
}

std::uint32_t Words::bytes_of(Word type) noexcept {
  const std::string_view name = kKnownWords[type];
  if (name.substr(0, 4) != "nccl") return 0;
  if (name.ends_with("64")) return 8;
  if (name.ends_with("32")) return 4;
  return name.ends_with("16") ? 2 : 1;
}

}  // namespace ringmain::nccl
