// How do I refuse an event before it happens?
#include <cmath>
#include <string>

#include "step.hpp"

int main() {
  ringmain::Bus bus;
  const ringmain::Name why{"loss is not a number"};
  auto guard =
      bus.channel<Step>().subscribe_inline([&](const Step& step) {  // in the publishing thread
        return std::isnan(step.loss) ? ringmain::Verdict::veto(why) : ringmain::Verdict::allow();
      });
  const ringmain::PublishResult told = bus.channel<Step>().publish({1, std::nan("")});
  std::printf("%s\n", std::string(told.why.view()).c_str());
  return told == ringmain::PublishCode::vetoed ? 0 : 1;
}
