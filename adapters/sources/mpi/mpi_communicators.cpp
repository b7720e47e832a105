#include "adapters/sources/mpi/mpi_communicators.hpp"

#include <array>
#include <chrono>
#include <cstdio>
#include <new>
#include <string>

#include "events/terms/collective_names.hpp"

#include "adapters/launch/say.hpp"
#include "adapters/run.hpp"

namespace ringmain::mpi {
namespace {

using collective::Communicator;
using collective::OpName;
using collective::Tensor;
using collective::Tensors;

constinit std::atomic<bool> vetoes{false};

collective::CommunicatorOptions options_of(MPI_Comm comm, std::string_view name, std::int32_t rank,
                                           std::int32_t size) {
  collective::CommunicatorOptions options;
  options.name = name;
  options.backend = options.source = collective::kMpi;
  options.rank = rank;
  options.size = size;
  options.follows_vetoes = vetoes;
  options.abort = [comm](Name) {
    run::flush(std::chrono::seconds(2));
    (void)PMPI_Abort(comm, MPI_ERR_OTHER);
  };
  return options;
}

/// What a hook is shown: how much, and not where.
class Shown {
 public:
  explicit Shown(const Operation& of) noexcept
      : in_size_(static_cast<std::int64_t>(of.in_elements)),
        out_size_(static_cast<std::int64_t>(of.out_elements)) {
    in_.sizes = {&in_size_, 1};
    in_.bytes = of.gives_bytes;
    out_.sizes = {&out_size_, 1};
    out_.bytes = of.gets_bytes;
    in_.dtype = out_.dtype = of.dtype;
  }
  Shown(const Shown&) = delete;
  Shown& operator=(const Shown&) = delete;

  [[nodiscard]] const Tensor& in() const noexcept { return in_; }
  [[nodiscard]] const Tensor& out() const noexcept { return out_; }
  /// Where there is one tensor for both.
  [[nodiscard]] const Tensor& both() const noexcept { return in_size_ != 0 ? in_ : out_; }
  [[nodiscard]] Tensors ins() const noexcept { return of(in_size_, in_); }
  [[nodiscard]] Tensors outs() const noexcept { return of(out_size_, out_); }

 private:
  static Tensors of(std::int64_t elements, const Tensor& one) noexcept {
    return elements == 0 ? Tensors{} : Tensors{&one, 1};
  }
  std::int64_t in_size_, out_size_;
  Tensor in_, out_;
};

/// The reduction is not read: it is `other`.
collective::Arguments arguments_of(const Operation& of, const Shown& shown, bool async) noexcept {
  constexpr auto kReduction = collective::ReduceOp::other;
  switch (of.kind) {
    case OpName::send:
      return collective::Send{shown.in(), of.peer, async};
    case OpName::recv:
      return collective::Recv{{shown.out(), of.peer, async}};
    case OpName::broadcast:
      return collective::Broadcast{shown.both(), of.peer, async};
    case OpName::all_reduce:
      return collective::AllReduce{shown.in(), kReduction, async};
    case OpName::reduce:
      return collective::Reduce{shown.both(), of.peer, kReduction, async};
    case OpName::all_gather_single:
      return collective::AllGatherSingle{shown.in(), shown.out(), async};
    case OpName::all_gather_v:
      return collective::AllGatherV{{shown.in(), shown.outs(), async}};
    case OpName::reduce_scatter_single:
      return collective::ReduceScatterSingle{shown.in(), shown.out(), kReduction, async};
    case OpName::reduce_scatter_v:
      return collective::ReduceScatterV{{shown.ins(), shown.out(), kReduction, async}};
    case OpName::all_to_all_single:
      return collective::AllToAllSingle{shown.in(), shown.out(), async};
    case OpName::all_to_all_v_single:
      return collective::AllToAllVSingle{shown.in(), shown.out(), {}, {}, async};
    case OpName::barrier:
      return collective::Barrier{async};
    case OpName::scatter:
      return collective::Scatter{shown.out(), shown.ins(), of.peer, async};
    case OpName::gather:
      return collective::Gather{shown.in(), shown.outs(), of.peer, async};
    default:
      return collective::Other{of.name.view(), shown.ins(),       shown.outs(), of.peer,
                               kReduction,     of.point_to_point, async};
  }
}

/// What nobody has asked for is said once.
void say_unfollowed(const Operation& operation, Name reason) noexcept {
  static constinit std::atomic<bool> said{false};
  if (said.exchange(true)) return;
  const std::string_view op = operation.name.view(), group = operation.group.view(),
                         why = reason.view();
  char text[512];
  std::snprintf(text, sizeof text,
                "a hook refused %.*s on %.*s (%.*s), which went on: hooks may refuse calls of MPI "
                "only with --source mpi:veto",
                static_cast<int>(op.size()), op.data(), static_cast<int>(group.size()),
                group.data(), static_cast<int>(std::min<std::size_t>(why.size(), 200)), why.data());
  run::say({text});
}

/// By the communicator's error handler, as MPI itself would.
int refuse(const Kept& kept) noexcept {
  (void)PMPI_Comm_call_errhandler(kept.handle, MPI_ERR_OTHER);
  return MPI_ERR_OTHER;
}

int issue_by(const Kept& kept, Operation& operation, bool asynchronous, int (*call)(void*),
             void* asks) noexcept {
  const Shown shown(operation);
  bool refused = false;
  int code = MPI_SUCCESS;
  {
    collective::Issuing issuing = kept.comm.issue(arguments_of(operation, shown, asynchronous),
                                                  issued_event(operation, asynchronous));
    take_ids(operation, issuing.operation().id());
    refused = !issuing && vetoes;
    if (!refused) {
      if (issuing && issuing.reason() != Name()) say_unfollowed(operation, issuing.reason());
      code = call(asks);
      if (code == MPI_SUCCESS) {
        issuing.returned();
      } else {
        issuing.threw(failed_event(code));
      }
    }
  }
  if (refused || code != MPI_SUCCESS) operation.reported = 0;  // its end is told
  operation.refused = refused;
  return refused ? refuse(kept) : code;
}

}  // namespace

void follow_vetoes(bool follow) noexcept {
  vetoes = follow;
}

Kept* keep_communicator(MPI_Comm comm, const Group& group, std::span<const int> world) noexcept
    try {
  Bus* const on = bus();
  const Name name = group.name;
  if (on == nullptr || name == Name()) return nullptr;
  auto options = options_of(comm, name.view(), group.rank, group.size);
  options.ranks = world;
  auto made = Communicator::make(*on, options);
  return made ? new Kept(std::move(made).value(), comm) : nullptr;
} catch (const std::bad_alloc&) {
  return nullptr;
}

Kept* renamed(const Kept& from, Name name, std::span<const int> world) noexcept try {
  auto options = options_of(from.handle, name.view(), from.comm.rank(), from.comm.size());
  options.ranks = world;
  auto part = from.comm.part(options);
  return part ? new Kept(std::move(part).value(), from.handle) : nullptr;
} catch (const std::bad_alloc&) {
  return nullptr;
}

void run_abort_hooks(const Kept& kept, int code) noexcept try {
  (void)kept.comm.run_abort_hooks("MPI_Abort with error code " + std::to_string(code),
                                  "application");
} catch (const std::bad_alloc&) {
  // The program ends all the same.
}

int detail::issue(Operation& operation, bool asynchronous, int (*call)(void*),
                  void* asks) noexcept {
  if (operation.kept != nullptr)
    return issue_by(*operation.kept, operation, asynchronous, call, asks);
  issued(operation, asynchronous);
  const Inside mark(operation);
  return call(asks);
}

}  // namespace ringmain::mpi
