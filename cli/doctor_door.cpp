#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <unistd.h>
#include <vector>

#include "bus/core/door_core.hpp"
#include "bus/door.hpp"

#include "cli/doctor.hpp"
#include "cli/door_client.hpp"
#include "cli/terminal.hpp"

namespace ringmain::cli {
namespace {

using State = Finding::State;
constexpr std::int64_t kLimitNs = 10'000'000'000;

}  // namespace

/// Opens a door, asks at it, and closes it again.
Finding examine_door() {
  const char* const said = std::getenv("RINGMAIN_DOOR");
  const detail::DoorAsked asked = detail::read_door_variable(said == nullptr ? "" : said);
  if (!asked.complaint.empty()) {
    return {"door", State::note, "RINGMAIN_DOOR is " + asked.complaint,
            "set it to 1, or to a folder's whole path"};
  }
  auto made = open_door();
  const std::string mend =
      "set RINGMAIN_DOOR to a folder of yours on a local disk or in memory, as a whole path";
  if (!made) return {"door", State::note, made.error().message, mend};
  const std::filesystem::path path = made.value().path();
  const DoorAnswer answer =
      ask_door({path.parent_path().string(), path.filename().string(), 0}, "who", kLimitNs);
  if (!answer.fault.empty()) return {"door", State::note, answer.fault, mend};
  made.value().reset();
  const std::vector<DoorAt> doors = find_doors("").doors;
  // Where RINGMAIN_DOOR asks for it, this process has one open, too.
  const auto others = std::count_if(doors.begin(), doors.end(), [](const DoorAt& one) {
    return one.pid != static_cast<std::uint32_t>(::getpid());
  });
  return {"door", State::good,
          "sockets go to " + path.parent_path().string() + "; " +
              (others == 1 ? "1 process has"
                           : with_commas(static_cast<std::uint64_t>(others)) + " processes have") +
              " one open",
          ""};
}

}  // namespace ringmain::cli
