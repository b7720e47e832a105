#include "bus/result.hpp"

namespace ringmain {

std::string_view to_string(PublishCode code) noexcept {
  switch (code) {
    case PublishCode::accepted:
      return "accepted";
    case PublishCode::unheard:
      return "unheard";
    case PublishCode::full:
      return "full";
    case PublishCode::closed:
      return "closed";
    case PublishCode::would_deadlock:
      return "would_deadlock";
    case PublishCode::no_memory:
      return "no_memory";
    case PublishCode::too_deep:
      return "too_deep";
    case PublishCode::vetoed:
      return "vetoed";
    case PublishCode::forked:
      return "forked";
  }
  return "?";
}

std::string_view to_string(Detached detached) noexcept {
  switch (detached) {
    case Detached::done:
      return "done";
    case Detached::deferred:
      return "deferred";
    case Detached::timeout:
      return "timeout";
    case Detached::was_not_attached:
      return "was_not_attached";
  }
  return "?";
}

}  // namespace ringmain
