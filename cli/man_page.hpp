// What does `man ringmain-run` show? A page in the man(7) language, from the declaration of a verb.
#pragma once
#include <string>
#include <vector>

#include "cli/verbs.hpp"

namespace ringmain::cli {

/// A verb below those that it is nested in, the program first.
using VerbPath = std::vector<const Verb*>;

/// "ringmain-fr-analyze": the name of its page, and of the file without ".1".
[[nodiscard]] std::string page_name(const VerbPath& path);
/// The page, in ASCII.
[[nodiscard]] std::string man_page(const VerbPath& path, std::string_view version);
/// `path`, and all that is nested in its last verb, at any depth, outer ones first.
[[nodiscard]] std::vector<VerbPath> verbs_below(const VerbPath& path);

}  // namespace ringmain::cli
