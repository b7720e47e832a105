// Which providers come with ringmain? Each is a line in add_builtin_providers().
#include <charconv>
#include <string>
#include <utility>

#include "adapters/registry.hpp"
#include "adapters/sinks/json_lines.hpp"
#include "adapters/sinks/summary.hpp"
#include "adapters/sources/heartbeat.hpp"
#include "adapters/sources/nvtx/nvtx_steps.hpp"

namespace ringmain::registry {

namespace {

class HeartbeatSource final : public Source {
 public:
  explicit HeartbeatSource(heartbeat::Source beats) : beats_(std::move(beats)) {}
  static Result<std::unique_ptr<HeartbeatSource>> open(Bus& bus, std::string_view argument) {
    int period_ms = 1000;
    if (const std::string fault = read_period(argument, period_ms); !fault.empty()) {
      return Error{Error::Code::refused, fault};
    }
    auto attached = heartbeat::Source::attach(bus, milliseconds(period_ms));
    if (!attached) return attached.error();
    return std::make_unique<HeartbeatSource>(std::move(attached).value());
  }
  /// Leaves the period as it is where the argument is "". "" or what is wrong.
  static std::string read_period(std::string_view argument, int& period_ms) {
    const char* const end = argument.data() + argument.size();
    const auto read = std::from_chars(argument.data(), end, period_ms);
    if (argument.empty() || (read.ec == std::errc{} && read.ptr == end && period_ms > 0)) return "";
    return "heartbeat wants its period in ms, such as heartbeat:100, and not '" +
           std::string(argument.substr(0, 64)) + "'";
  }

 private:
  heartbeat::Source beats_;
};

/// NVTX lets a library in at its first call only, when its variable is set.
class NvtxSource final : public Source {
 public:
  static Result<std::unique_ptr<NvtxSource>> open(Bus&, std::string_view) {
    return Error{Error::Code::refused,
                 "NVTX is heard in programs that are started so: ringmain run --source nvtx "
                 "--sink … -- COMMAND"};
  }
};

/// Calls to MPI are seen only where they pass a library that was there before MPI's.
class MpiSource final : public Source {
 public:
  static Result<std::unique_ptr<MpiSource>> open(Bus&, std::string_view) {
    return Error{Error::Code::refused,
                 "MPI is heard in programs that are started so: ringmain run --source mpi "
                 "--sink … -- mpirun …"};
  }
};

/// PyTorch lets a package in at `import torch`, where it is asked to attach.
class TorchSource final : public Source {
 public:
  static Result<std::unique_ptr<TorchSource>> open(Bus&, std::string_view) {
    return Error{Error::Code::refused,
                 "PyTorch is heard in Python programs: ringmain run --source torch --sink … -- "
                 "COMMAND, or ringmain.torch.attach(bus) in the program"};
  }
};

/// PyTorch looks for what hears its wait counters before the first of them.
class TorchWaitsSource final : public Source {
 public:
  static Result<std::unique_ptr<TorchWaitsSource>> open(Bus&, std::string_view) {
    return Error{Error::Code::refused,
                 "PyTorch's wait counters are heard in programs that are started so: ringmain run "
                 "--source torch_waits --sink … -- COMMAND"};
  }
};

}  // namespace

void add_builtin_providers(Registry& registry) {
  const auto add = [&registry](Provider provider) {
    (void)registry.add(std::move(provider));  // a name that is taken stays whose it was
  };
  add(sinks::JsonLines::provider());
  add(sinks::Summary::provider());

  Provider heartbeat;
  heartbeat.summary = "\"I am alive\", every second or every MS milliseconds";
  heartbeat.argument = "[MS]";
  heartbeat.argument_fault = [](std::string_view argument) {
    int period_ms = 0;
    return HeartbeatSource::read_period(argument, period_ms);
  };
  heartbeat.run.in_process = true;
  add(source_provider<HeartbeatSource>(std::move(heartbeat)));

  Provider nvtx;
  nvtx.name = "nvtx";
  nvtx.summary = "ranges and marks that a program says through NVTX, in C, C++ and Python";
  nvtx.argument = "[step=RANGE]";
  nvtx.argument_fault = [](std::string_view argument) {
    const auto rules = nvtx::StepRules::read(argument);
    return rules ? "" : rules.error().message;
  };
  nvtx.run.environment = {{"NVTX_INJECTION64_PATH", "{libdir}/ringmain/libringmain_nvtx.so",
                           EnvironmentEdit::How::set, "RINGMAIN_NVTX_CHAIN"}};
  add(source_provider<NvtxSource>(std::move(nvtx)));

  Provider mpi;
  mpi.name = "mpi";
  mpi.summary = "what ranks ask of Open MPI or MPICH, in C, C++, Fortran and Python";
  mpi.run.environment = {
      {"LD_PRELOAD", "{libdir}/ringmain/libringmain_mpi.so", EnvironmentEdit::How::prepend, ""}};
  add(source_provider<MpiSource>(std::move(mpi)));

  Provider torch;
  torch.name = "torch";
  torch.summary = "PyTorch's compiles, GPU trace and monitor events, where pip installed ringmain";
  torch.run.environment = {
      {"RINGMAIN_ATTACH", "torch"},
      {"RINGMAIN_RUN_LIBRARY", "{libdir}/" RINGMAIN_RUN_FILE},
  };
  add(source_provider<TorchSource>(std::move(torch)));

  Provider torch_waits;
  torch_waits.name = "torch_waits";
  torch_waits.summary = "what PyTorch waits for in C++: compiles, process groups, devices";
  torch_waits.run.environment = {{"LD_PRELOAD", "{libdir}/ringmain/libringmain_wait_counter.so",
                                  EnvironmentEdit::How::prepend, ""}};
  add(source_provider<TorchWaitsSource>(std::move(torch_waits)));
}

}  // namespace ringmain::registry
