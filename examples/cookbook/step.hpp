// The event that the programs below publish
#pragma once
#include <chrono>
#include <cstdio>

#include <ringmain/bus/bus.hpp>

struct Step {
  int number;
  double loss;
};
constexpr auto describe(ringmain::EventOf<Step>) {
  return ringmain::event("train.step", ringmain::field<&Step::number>("number"),
                         ringmain::field<&Step::loss>("loss"));
}
