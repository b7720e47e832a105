// Sets variables in the environment for one test; each test is a process of its own under
// ctest.
#pragma once
#include <cstdlib>
#include <string>

namespace ringmain::tests {

/// Set while it lives.
class Environment {
 public:
  Environment(const char* name, const std::string& value) : name_(name) {
    ::setenv(name, value.c_str(), 1);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  ~Environment() { ::unsetenv(name_); }

 private:
  const char* name_;
};

}  // namespace ringmain::tests
