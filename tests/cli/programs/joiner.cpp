// A program with a source of its own, which joins the run where it is asked for.
#include <cstdint>
#include <cstdio>
#include <string_view>

#include "ringmain/adapters/run.hpp"

namespace {
struct Joined {
  std::uint64_t number;
};
constexpr auto describe(ringmain::EventOf<Joined>) {
  return ringmain::event("program.joined", ringmain::field<&Joined::number>("number"));
}
}  // namespace

int main(int count, char** words) {
  const std::string_view way = count > 1 ? words[1] : "";
  if (way == "not") return 0;
  ringmain::Bus* bus = ringmain::run::join("injected");
  std::puts(bus == nullptr ? "not asked for" : "joined");
  if (bus == nullptr) return 0;
  if (way == "in_vain") {
    ringmain::run::could_not_attach("injected", "the program has no ranges");
    return 0;
  }
  for (std::uint64_t i = 0; i < 30; ++i) bus->channel<Joined>().post({i});
  return ringmain_run_join("injected") == bus ? 0 : 1;
}
