#include "bus/door.hpp"

#include "bus/core/door_core.hpp"

namespace ringmain {

std::string Door::path() const {
  return door_ == nullptr || door_->door().forked() ? std::string() : door_->door().path();
}

}  // namespace ringmain
