// What does this process wait for, when somebody asks it? The bus knows nobody's operations;
// sources that follow some say so here.
#pragma once
#include <functional>
#include <memory>

#include "../json_text.hpp"

namespace ringmain::detail {

/// Writes what it knows as one JSON object, or, where its source has left, nothing, and answers
/// false. Called in a thread of ringmain's, with no lock held, while any thread of the program may
/// hang: it waits for none of them. May throw std::bad_alloc, before it has written anything.
using StallFn = std::function<bool(formats::JsonText& json)>;

/// While it lives, its function is called at each request. The end does not wait for a call that is
/// running: the function uses what outlives its source. Threads: any.
class [[nodiscard]] StallRequest {
 public:
  StallRequest() noexcept = default;
  /// Throws std::bad_alloc.
  explicit StallRequest(StallFn tell);
  StallRequest(StallRequest&&) noexcept = default;
  StallRequest& operator=(StallRequest&&) noexcept = default;

 private:
  std::shared_ptr<const StallFn> tell_;
};

/// Has all of them write, one after another. False: there was none. Throws std::bad_alloc.
bool tell_stalls(formats::JsonText& json);

}  // namespace ringmain::detail
