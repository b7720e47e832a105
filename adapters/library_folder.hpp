// Where were ringmain's libraries loaded from?
#pragma once
#include <string>

namespace ringmain::registry {

/// The folder that ringmain's libraries were loaded from; "" if that cannot be told.
[[nodiscard]] std::string library_folder();

}  // namespace ringmain::registry
