// Where may a libcupti lie, and which file is a loaded library? Asked of the loader.
#pragma once
#include <string>
#include <vector>

namespace ringmain::cuda {

/// The file of a library that dlopen() gave, as the loader names it.
[[nodiscard]] std::string path_of(void* library);

/// Whether both paths lead to one file.
[[nodiscard]] bool same_file(const std::string& one, const std::string& other);

/// Files named libcupti.so.N that lie where they do beside a libcudart that is loaded: in a Python
/// package's folders, or a toolkit's. N is the runtime's version. Those that are there, best first.
[[nodiscard]] std::vector<std::string> beside_the_runtime();

/// Whether this program was linked without a loader.
[[nodiscard]] bool is_static_program();

}  // namespace ringmain::cuda
