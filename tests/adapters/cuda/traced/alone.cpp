// Each wrapped call in a program that is linked with nothing of CUDA's: prints what it answers,
// then what was heard of all.
//
// usage: traced_alone [unheard]
#include <chrono>
#include <cstdio>
#include <map>
#include <string>

#include "bus/bus.hpp"

#include "adapters/formats/json_line.hpp"
#include "adapters/sources/cuda/cuda_source.hpp"

#include "tests/adapters/cuda/traced/each_call.hpp"

int main(int count, char**) {
  using namespace ringmain;
  Bus bus;
  std::map<std::string, int> phases;
  const auto heard = bus.subscribe("cuda.*", [&](const EventView& event) {
    for (const FieldSchema& field : event.schema().fields) {
      std::string text;
      formats::append_json_field(text, field, event.bytes().data());
      if (field.name == "phase") ++phases[text];
      if (field.name == "result" && text == "0" && event.channel() != "cuda.source")
        ++phases["succeeded"];
    }
  });
  cuda::Source source;
  if (count == 1) {
    auto made = cuda::Source::attach(bus, {.wrapped_only = true});
    if (!made) return 1;
    source = std::move(made).value();
  }
  cuda::tests::Things things;
  for (const auto& each : cuda::tests::each_call())
    std::printf("%d: %d\n", each.cbid, each.make(things, true));
  source.detach();
  if (!bus.flush(std::chrono::minutes(5))) return 1;
  for (const auto& [phase, times] : phases) std::printf("%s: %d\n", phase.c_str(), times);
}
