// Two copies of the library in one process, as two wheels bring them: both work, each has its own
// process bus, and the second one says so. This program links neither; it loads two plugins, each
// with its own copy.
#include <cstdint>
#include <cstdio>
#include <dlfcn.h>
#include <string>
#include <unistd.h>

namespace {

struct Loaded {
  void* handle;
  explicit Loaded(const char* path) : handle(::dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
    if (handle == nullptr) std::fprintf(stderr, "%s\n", ::dlerror());
  }
  template <class F>
  F* function(const char* name) const {
    return reinterpret_cast<F*>(::dlsym(handle, name));
  }
};

/// What is written on stderr while it lives.
class Said {
 public:
  Said() : file_(std::tmpfile()), before_(::dup(2)) { ::dup2(::fileno(file_), 2); }
  Said(const Said&) = delete;
  Said& operator=(const Said&) = delete;
  ~Said() { end(); }
  std::string end() {
    if (before_ < 0) return {};
    std::fflush(stderr);
    ::dup2(before_, 2);
    ::close(before_);
    before_ = -1;
    std::rewind(file_);
    std::string text;
    for (int c = std::fgetc(file_); c != EOF; c = std::fgetc(file_))
      text.push_back(static_cast<char>(c));
    std::fclose(file_);
    return text;
  }

 private:
  std::FILE* file_;
  int before_;
};

int fail(const char* what) {
  std::fprintf(stderr, "two copies: %s\n", what);
  return 1;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) return fail("usage: two_copies PLUGIN SECOND_PLUGIN");
  const Loaded plugins[] = {Loaded(arguments[1]), Loaded(arguments[2])};
  void* buses[2] = {};
  Said said;
  for (int i = 0; i < 2; ++i) {
    if (plugins[i].handle == nullptr) return 1;
    buses[i] = plugins[i].function<void*()>("process_bus")();
    plugins[i].function<void(void*)>("attach")(buses[i]);
  }
  const std::string text = said.end();
  const std::string begin = "ringmain: 2 copies of the library are in this process (";
  if (text.find(begin) == std::string::npos ||
      text.find("libringmain.so", text.find(begin)) == std::string::npos ||
      text.find("libringmain_second.so", text.find(begin)) == std::string::npos) {
    std::fputs(text.c_str(), stderr);
    return fail("neither of them says that there are two");
  }
  if (buses[0] == buses[1]) return fail("they share a process bus, so there are not two copies");
  for (const Loaded& p : plugins) p.function<void(std::uint64_t)>("publish")(500);
  for (const Loaded& p : plugins) {
    // Each hears its own copy's events and no others.
    if (p.function<int(std::uint64_t)>("heard")(500) != 1) return fail("a count is wrong");
    if (p.function<int()>("detach")() != 1) return fail("a plugin does not detach");
  }
  return 0;
}
