// Who writes a dump when somebody asks this process for one? The bus knows no recorder of
// operations; those that are there say so here.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ringmain::detail {

/// A file that was written, or why it was not.
struct Dumped {
  std::string path;   // "": it has none
  std::string fault;  // one sentence, or ""
  /// There is nothing that it could have written; told only where nobody else has anything either.
  bool is_idle = false;
};
/// Adds what it wrote to what others have written; it need not write a file that is there already.
/// Where there is no memory to say so, it writes all the same. Called in a thread of ringmain's,
/// one call at a time, with no lock held.
using DumpFn = std::function<void(std::vector<Dumped>& written)>;

/// While it lives, its function is called at each request. The end does not wait for a call that
/// is running. Threads: any.
class [[nodiscard]] DumpRequest {
 public:
  DumpRequest() noexcept = default;
  /// Throws std::bad_alloc.
  explicit DumpRequest(DumpFn dump);
  DumpRequest(DumpRequest&&) noexcept = default;
  DumpRequest& operator=(DumpRequest&&) noexcept = default;

 private:
  std::shared_ptr<const DumpFn> dump_;
};

/// Has all of them write, and adds what they wrote. Allocates nothing itself.
void dump_all(std::vector<Dumped>& written) noexcept;

}  // namespace ringmain::detail
