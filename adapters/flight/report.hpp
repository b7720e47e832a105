// How is a verdict told? As text for people, as JSON for programs, as a picture (SVG).
#pragma once
#include <string>

#include "adapters/flight/verdict.hpp"

namespace ringmain::flight {

/// What was found, one finding a paragraph; then what cannot be said, and who comes late.
[[nodiscard]] std::string report_text(const Job& job, const Verdict& verdict);
/// One object. Its keys are in docs/flight-recorder.md.
[[nodiscard]] std::string report_json(const Job& job, const Verdict& verdict);
/// The operations around each finding: a row for the ranks that are alike, a column an operation.
[[nodiscard]] std::string report_svg(const Job& job, const Verdict& verdict);

}  // namespace ringmain::flight
