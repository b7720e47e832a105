// What may be asked of the source `nccl_calls`, after its colon? Words with a comma between.
#pragma once
#include <string>
#include <string_view>

#include "adapters/did_you_mean.hpp"

namespace ringmain::nccl {

struct CallsWords {
  bool ends = false;  // CallsOptions::completions
  bool tags = false;  // CallsOptions::tags
  std::string fault{};

  static CallsWords read(std::string_view argument) {
    CallsWords words;
    while (!argument.empty()) {
      const std::string_view word = argument.substr(0, argument.find(','));
      argument.remove_prefix(word.size() == argument.size() ? word.size() : word.size() + 1);
      if (word == "ends") {
        words.ends = true;
      } else if (word == "tags") {
        words.tags = true;
      } else {
        words.fault = "source nccl_calls knows the words ends and tags, and not '" +
                      std::string(word) + "'" + registry::did_you_mean(word, {"ends", "tags"});
      }
    }
    return words;
  }
};

}  // namespace ringmain::nccl
