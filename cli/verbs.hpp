// Which verbs are there? A new one is a function here, a file beside it, and a line in verbs().
#pragma once
#include <span>

#include "cli/arguments.hpp"

namespace ringmain::cli {

[[nodiscard]] const Verb& run_verb();
[[nodiscard]] const Verb& replay_verb();
[[nodiscard]] const Verb& sort_verb();
[[nodiscard]] const Verb& providers_verb();
[[nodiscard]] const Verb& doctor_verb();
[[nodiscard]] std::span<const Verb* const> verbs();

/// What became of SIGPIPE before the program chose to ignore it.
using SignalHandler = void(int);
[[nodiscard]] SignalHandler*& inherited_sigpipe() noexcept;

}  // namespace ringmain::cli
