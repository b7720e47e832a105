// What did this process call for lately, in a file that PyTorch's analyzer and `ringmain fr` read?
//
// A recorder hangs on communicators as hooks, remembers their last operations with what became of
// each, and writes them as flight recorders of PyTorch and torchcomms do, format 2.10. An operation
// is recorded before its backend is called, so one that hangs is there; it is retired when its end
// is said, and not when it was issued. Recording takes one lock for the time of a few stores; its
// memory, and a dump's, is taken when the recorder is made.
//
//   FlightRecorderHook recorder({.max_entries = 2000});
//   (void)recorder.register_with_comm(comm);
//   …
//   auto written = recorder.dump_file(rank);   // ~/.cache/torch/comm_lib_trace_rank_3
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "../../../bus/result.hpp"

#include "communicator.hpp"

namespace ringmain::collective {

namespace detail {
class FlightRing;
struct FlightHooks;
}  // namespace detail

/// Whose environment variables say where a file goes: TORCHCOMM_FR_… or TORCH_FR_….
enum class FlightVariables : std::uint8_t { torchcomms, torch };

struct FlightRecorderOptions {
  /// How many operations are kept, the newest; 0: what the variable …_FR_BUFFER_SIZE says, else
  /// 2000.
  std::size_t max_entries = 0;
  /// False: it shares one ring with all others of this process that are not isolated, and the ring
  /// is as large as the largest that was asked for.
  bool isolated = false;
  FlightVariables variables = FlightVariables::torchcomms;
  /// Before the colon of operations' names. Empty: the communicator's backend where PyTorch's
  /// analyzer knows it, else nccl.
  std::string backend{};
  /// Of this process in the job: what dumps are called that nobody asks for, which need it.
  std::int64_t rank = -1;
  bool dumps_on_abort = false;    // before a group is given up through its communicator
  bool dumps_on_failure = false;  // once, at the first operation that fails or times out
  bool dumps_at_exit = false;     // when the process ends by exit()
  /// SIGUSR2: whenever the process gets that signal; the program's own handler is called as before,
  /// and is there again at the recorder's end. 0: no handler is touched.
  int dumps_on_signal = 0;
};

/// Threads: any, all of it, at any time; a dump holds nobody up but for the copy of the ring.
class FlightRecorderHook {
 public:
  /// Throws std::bad_alloc, std::invalid_argument (a dump is wanted, and `rank` is negative; a
  /// signal that cannot be), std::system_error (no thread for a signal's dumps).
  explicit FlightRecorderHook(const FlightRecorderOptions& options = {});
  FlightRecorderHook(const FlightRecorderHook&) = delete;
  FlightRecorderHook& operator=(const FlightRecorderHook&) = delete;
  /// As unregister().
  ~FlightRecorderHook();

  /// From its next operation on; parts of a split are recorded with it. Again: nothing. refused: as
  /// Communicator::pre_hook().
  [[nodiscard]] Result<bool> register_with_comm(const Communicator& comm);
  /// When it has returned outside callbacks, nothing is recorded any more. What is there stays.
  void unregister() noexcept;

  /// One JSON object on one line: every operation by its own name. Throws std::bad_alloc.
  [[nodiscard]] std::string dump_json(bool include_completed = true) const;
  /// A pickle of data: what PyTorch's analyzer knows, by the names that every release of it does.
  [[nodiscard]] std::string dump_pickle(bool include_completed = true) const;
  /// Writes that pickle to <prefix><rank>, whole or not at all, and returns the path. The prefix is
  /// the variable …_FR_DUMP_TEMP_FILE, else torch/comm_lib_trace_rank_ in the user's cache folder,
  /// which is made. With …_FR_DUMP_DYNAMIC_FILE_NAME=1 the variable is the whole name. The Python
  /// stacks of all threads, if the process has Python that lends them, go to stacks-<rank>.txt
  /// beside it. Calls at one time for the same file are one dump: those that come while it is
  /// written wait for it and get its result, and what was issued meanwhile need not be in it.
  /// Writing allocates nothing; std::bad_alloc is thrown where there is no memory for what is
  /// returned. Progress: blocking.
  [[nodiscard]] Result<std::string> dump_file(std::int64_t rank,
                                              bool include_completed = true) const;

  /// Forgets all operations, also those that are open; numbers begin again.
  void reset() noexcept;
  /// Was it, or one that shares its ring, ever registered?
  [[nodiscard]] bool is_enabled() const noexcept;
  /// How many operations it holds.
  [[nodiscard]] std::size_t size() const noexcept;
  /// Operations that could not be recorded, as there was no memory.
  [[nodiscard]] std::uint64_t lost() const noexcept;
  /// Of this process in the job, as it was given; negative: it was not.
  [[nodiscard]] std::int64_t rank() const noexcept { return options_.rank; }
  /// Writes the file of that rank, as a dump that nobody asks for, with the ring alone: it may be
  /// called after the recorder's end. Throws std::bad_alloc.
  [[nodiscard]] std::function<void()> dumper() const;
  /// Why the last dump that nobody called for was not written: one sentence, or "" if it was.
  [[nodiscard]] std::string complaint() const;

 private:
  const FlightRecorderOptions options_;
  const std::shared_ptr<detail::FlightRing> ring_;
  const std::shared_ptr<detail::FlightHooks> hooks_;
  const std::shared_ptr<const void> on_signal_;  // ends first
};

}  // namespace ringmain::collective
