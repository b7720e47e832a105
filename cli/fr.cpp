// `ringmain fr …`: what flight recorders left behind: PyTorch's, torchcomms' and our own.
#include "cli/verbs.hpp"

namespace ringmain::cli {

const Verb& fr_verb() {
  static const Verb* const kNested[] = {&fr_analyze_verb(), &fr_merge_verb(), &fr_convert_verb()};
  static const Verb kVerb{
      .name = "fr",
      .operands = "VERB [ARGUMENT…]",
      .summary = "flight recorder dumps: who hangs in which collective, and why",
      .details =
          "Reads the dumps that the flight recorders of PyTorch and torchcomms leave, one file a\n"
          "rank, as pickles or JSON, and the rings of 'ringmain run --flight', also of processes\n"
          "that live. No pickle is executed: one that calls code is refused.",
      .verbs = kNested};
  return kVerb;
}

}  // namespace ringmain::cli
