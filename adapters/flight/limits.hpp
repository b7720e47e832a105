// How large may a dump be? Files come from processes that were dying, so each bound is checked
// before memory is taken, and what exceeds it is refused in a sentence.
//
// A ring of 20,000 operations with stacks, the largest that is in use, makes a file of some 30 MB.
#pragma once
#include <cstddef>

namespace ringmain::flight {

inline constexpr std::size_t kFileBytesMax = std::size_t{512} << 20;
inline constexpr std::size_t kFilesMax = std::size_t{1} << 17;
inline constexpr std::size_t kContainersMax = std::size_t{1} << 24;  // lists and dicts of a file
inline constexpr std::size_t kValuesMax = std::size_t{1} << 26;  // of a file, shared ones each time
inline constexpr std::size_t kTextBytesMax = std::size_t{1} << 30;  // of a file, the same
inline constexpr std::size_t kMemoMax = std::size_t{1} << 23;       // what a pickle may use again
inline constexpr std::size_t kDepthMax = 64;
inline constexpr std::size_t kEntriesMax = std::size_t{1} << 20;  // of a file
inline constexpr std::size_t kTensorsMax = std::size_t{1} << 16;  // of one side of an entry
inline constexpr std::size_t kMembersMax = std::size_t{1} << 20;  // of a group

}  // namespace ringmain::flight
