#include "cli/fr_output.hpp"

#include "cli/sort_output.hpp"

namespace ringmain::cli {

std::string write_whole(const std::string& path, std::string_view bytes) {
  try {
    SortOutput output(path, {});
    output.write(bytes);
    output.finish();
  } catch (const CannotSort& why) {
    return why.what();
  }
  return "";
}

std::string read_job_options(const Arguments& arguments, flight::JobOptions& options) {
  options.paths = arguments.operands();
  if (options.paths.empty()) return "it wants dumps: files, or a folder that holds them";
  options.prefix = arguments.value("--prefix").value_or("");
  options.rank_from = arguments.value("--rank-from").value_or("");
  if (const auto size = arguments.value("--world-size")) {
    const auto number = parse_number(*size, 1, 1e6);
    if (!number || *number != static_cast<double>(static_cast<std::int64_t>(*number))) {
      return "--world-size is a number of ranks from 1 to 1,000,000, and not '" + *size + "'";
    }
    options.world_size = static_cast<std::int64_t>(*number);
  }
  return "";
}

int nothing_judged(std::string_view sentence) {
  (void)failed(sentence);
  return kWrongUsage;
}

std::string read_grace(const Arguments& arguments, flight::JudgeOptions& options) {
  const auto grace = arguments.value("--grace");
  if (!grace) return "";
  const auto seconds = parse_number(*grace, 0, 1e6);
  if (!seconds)
    return "--grace is a number of seconds from 0 to 1,000,000, and not '" + *grace + "'";
  options.grace_s = *seconds;
  return "";
}

}  // namespace ringmain::cli
