// An operation as a backend reports it, from issue to completion.
#pragma once
#include <array>
#include <cstdint>

#include "adapters/sources/collective/communicator.hpp"

namespace ringmain::bench {

inline constexpr std::array<std::int64_t, 2> kTensorSizes{512, 96};

/// All-reduces of one tensor on a communicator of eight.
class Reported {
 public:
  explicit Reported(Bus& bus) : comm_(world(bus)) {
    arguments_ = collective::AllReduce{collective::Tensor{.data = this,
                                                          .sizes = kTensorSizes,
                                                          .dtype = Name("float32"),
                                                          .bytes = 196608,
                                                          .device = 0},
                                       collective::ReduceOp::sum, true};
  }
  /// False: nobody heard of it, or it was refused.
  [[gnu::always_inline]] bool all_reduce() const {
    collective::Operation operation;
    {
      collective::Issuing issuing = comm_.issue(arguments_);
      if (!issuing) return false;
      operation = issuing.operation();
      issuing.returned();
    }
    return operation.completed();
  }
  [[nodiscard]] const collective::Communicator& comm() const noexcept { return comm_; }
  [[nodiscard]] const collective::Arguments& arguments() const noexcept { return arguments_; }

 private:
  static collective::Communicator world(Bus& bus) {
    collective::CommunicatorOptions options;
    options.name = "world";
    options.backend = "loopback";
    options.source = "bench";
    options.size = 8;
    return collective::Communicator::make(bus, options).value();
  }

  collective::Communicator comm_;
  collective::Arguments arguments_;
};

}  // namespace ringmain::bench
