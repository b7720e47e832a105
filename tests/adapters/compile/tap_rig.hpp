// A tap on a bus without threads, and records to give it.
#pragma once
#include <string>
#include <string_view>

#include "bus/test_bus.hpp"

#include "adapters/sources/compile/trace_tap.hpp"

namespace ringmain::compile {

/// The keys that records share, to be put after a kind.
inline std::string at(int frame, int recompile, int attempt = 0) {
  return R"("frame_id": )" + std::to_string(frame) + R"(, "frame_compile_id": )" +
         std::to_string(recompile) + R"(, "attempt": )" + std::to_string(attempt);
}

struct TapRig {
  TestBus bus;
  Heard<Start> starts = bus.heard<Start>();
  Heard<End> ends = bus.heard<End>();
  Heard<Graph> graphs = bus.heard<Graph>();
  Heard<GraphBreak> breaks = bus.heard<GraphBreak>();
  Heard<Guard> guards = bus.heard<Guard>();
  Heard<Recompile> recompiles = bus.heard<Recompile>();
  Heard<DynamicShape> shapes = bus.heard<DynamicShape>();
  Heard<Cache> caches = bus.heard<Cache>();
  Heard<Backend> backends = bus.heard<Backend>();
  Heard<Phase> phases = bus.heard<Phase>();
  Heard<Limit> limits = bus.heard<Limit>();
  Heard<Reset> resets = bus.heard<Reset>();
  Heard<Metrics> metrics = bus.heard<Metrics>();
  Heard<StackFrame> stacks = bus.heard<StackFrame>();
  Heard<InstalledGuard> installed = bus.heard<InstalledGuard>();
  Heard<Code> codes = bus.heard<Code>();
  TraceTap tap{bus};

  void say(const std::string& kind, const std::string& value, const std::string& keys,
           std::string_view payload = {}) {
    tap.record("{\"" + kind + "\": " + value + (keys.empty() ? "" : ", " + keys) + "}", payload);
    bus.deliver();
  }
  void artifact(const std::string& name, const std::string& keys, std::string_view payload) {
    say("artifact", "{\"name\": \"" + name + "\", \"encoding\": \"string\"}", keys, payload);
  }
  void begin(const std::string& keys, const std::string& function = "f", int file = 1,
             int line = 10) {
    say("dynamo_start",
        R"({"stack": [{"line": 1, "name": "<module>", "filename": 0}, {"line": )" +
            std::to_string(line) + R"(, "name": ")" + function + R"(", "filename": )" +
            std::to_string(file) + "}]}",
        keys);
  }
  void end(const std::string& keys, const std::string& fields = R"("duration_us": 12)") {
    say("compilation_metrics", "{" + fields + "}", keys);
  }
  void event(char letter, const std::string& name, const std::string& keys, double ts_us = 0,
             const std::string& arguments = "{}") {
    say("chromium_event", "{}", keys,
        R"({"name": ")" + name + R"(", "ts": )" + std::to_string(ts_us) + R"(, "ph": ")" +
            std::string(1, letter) + R"(", "args": )" + arguments + "}");
  }
};

}  // namespace ringmain::compile
