// Does the library that the driver loads do nothing where it was not asked for?
#include <cerrno>
#include <dlfcn.h>
#include <filesystem>
#include <iterator>

#include <gtest/gtest.h>

namespace ringmain::cuda {
namespace {

std::ptrdiff_t threads() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"),
                       std::filesystem::directory_iterator());
}

TEST(CudaInjectTest, OutsideOfARunItStartsAndLoadsNothingHoweverOftenItIsCalled) {
  void* const library = ::dlopen(RINGMAIN_CUDA_INJECT, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << ::dlerror();
  auto* const initialize = reinterpret_cast<int (*)()>(::dlsym(library, "InitializeInjection"));
  ASSERT_NE(initialize, nullptr) << ::dlerror();
  const std::ptrdiff_t before = threads();
  for (int call = 0; call < 3; ++call) {
    errno = EDOM;
    EXPECT_EQ(initialize(), 1);
    EXPECT_EQ(errno, EDOM);
  }
  EXPECT_EQ(threads(), before);
  for (const char* const name : {"libcupti.so.13", "libcupti.so.12", "libcuda.so.1"})
    EXPECT_EQ(::dlopen(name, RTLD_LAZY | RTLD_NOLOAD), nullptr) << name;
}

}  // namespace
}  // namespace ringmain::cuda
