#include "adapters/plugins/library.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include "adapters/plugin.hpp"
#include "adapters/plugins/probe.hpp"
#include "adapters/plugins/sha256.hpp"
#include "adapters/plugins/trust.hpp"

namespace ringmain::registry {
namespace {

class File {
 public:
  explicit File(const std::string& path) : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] int fd() const noexcept { return fd_; }
  bool read_at(void* to, std::size_t bytes, std::uint64_t at) const {
    return ::pread(fd_, to, bytes, static_cast<off_t>(at)) == static_cast<ssize_t>(bytes);
  }

 private:
  int fd_;
};

/// The machine that this code was compiled for.
Result<std::uint16_t> own_machine() {
  ElfW(Ehdr) header;
  const File self("/proc/self/exe");
  if (self.fd() < 0 || !self.read_at(&header, sizeof header, 0)) {
    return Error{Error::Code::system, "/proc is not there"};
  }
  return header.e_machine;
}

Error cannot(const std::string& path, const std::string& why) {
  return Error{Error::Code::refused, "the plugin " + path + " cannot be loaded: " + why};
}

}  // namespace

std::string elf_fault(const std::string& path) {
  const File file(path);
  struct stat status {};
  if (file.fd() < 0 || ::fstat(file.fd(), &status) != 0) {
    return std::generic_category().message(errno);
  }
  if (!S_ISREG(status.st_mode)) return "it is no file";
  const auto size = static_cast<std::uint64_t>(status.st_size);
  ElfW(Ehdr) header;
  if (size < sizeof header || !file.read_at(&header, sizeof header, 0) ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    return "it is no shared library";
  }
  const auto machine = own_machine();
  const unsigned char own_class = sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32;
  if (header.e_ident[EI_CLASS] != own_class || (machine && header.e_machine != machine.value())) {
    return "it was built for another kind of processor";
  }
  if (header.e_type != ET_DYN) return "it is no shared library";
  if (header.e_phentsize != sizeof(ElfW(Phdr)) || header.e_phnum == 0 || header.e_phnum > 1024) {
    return "it is damaged; install it again";
  }
  for (std::uint64_t i = 0; i < header.e_phnum; ++i) {
    ElfW(Phdr) segment;
    const std::uint64_t at = header.e_phoff + i * sizeof segment;
    const bool there = header.e_phoff <= size && at + sizeof segment <= size &&
                       file.read_at(&segment, sizeof segment, at);
    if (!there || (segment.p_type == PT_LOAD &&
                   (segment.p_offset > size || segment.p_filesz > size - segment.p_offset))) {
      return "it is cut short; install it again";
    }
  }
  return "";
}

class LoadedLibrary {
 public:
  LoadedLibrary(void* handle, const ringmain_plugin_table_v1* table)
      : handle_(handle), table_(table) {}
  LoadedLibrary(const LoadedLibrary&) = delete;
  LoadedLibrary& operator=(const LoadedLibrary&) = delete;
  ~LoadedLibrary() { ::dlclose(handle_); }

  [[nodiscard]] const ringmain_plugin_provider_v1* find(std::string_view kind,
                                                        std::string_view name) const {
    for (std::uint32_t i = 0; i < table_->providers; ++i) {
      const auto& one = table_->list[i];
      if (one.kind != nullptr && one.name != nullptr && one.open != nullptr && kind == one.kind &&
          name == one.name) {
        return &one;
      }
    }
    return nullptr;
  }

 private:
  void* handle_;
  const ringmain_plugin_table_v1* table_;
};

namespace {

/// Calls the plugin's open() and takes over what it gives.
template <class T>
Result<std::unique_ptr<T>> open_from(const ringmain_plugin_provider_v1& provider, Bus* bus,
                                     std::string_view argument) {
  ringmain_plugin_error error{};
  void* const made = provider.open(bus, argument.data(), argument.size(), &error);
  if (made != nullptr) return std::unique_ptr<T>(static_cast<T*>(made));
  error.text[sizeof error.text - 1] = '\0';
  const std::string said = error.text[0] == '\0' ? "its plugin does not say why" : error.text;
  const bool known = error.code >= 0 && error.code <= static_cast<int>(Error::Code::system);
  return Error{known ? static_cast<Error::Code>(error.code) : Error::Code::refused, said};
}

Factory factory_of(std::shared_ptr<const LoadedLibrary> keep,
                   const ringmain_plugin_provider_v1* provider, ProviderKind kind) {
  switch (kind) {
    case ProviderKind::source:
      return SourceFactory([keep, provider](Bus& bus, std::string_view argument) {
        return open_from<Source>(*provider, &bus, argument);
      });
    case ProviderKind::bridge:
      return BridgeFactory([keep, provider](Bus& bus, std::string_view argument) {
        return open_from<Bridge>(*provider, &bus, argument);
      });
    case ProviderKind::sink:
      break;
  }
  return SinkFactory([keep, provider](std::string_view argument) {
    return open_from<Sink>(*provider, nullptr, argument);
  });
}

}  // namespace

bool PluginLibrary::loaded() const {
  const std::lock_guard lock(mutex_);
  return loaded_ != nullptr;
}

void PluginLibrary::let_go() {
  std::shared_ptr<const LoadedLibrary> gone;  // unmapped after the lock
  const std::lock_guard lock(mutex_);
  gone.swap(loaded_);
}

Result<std::shared_ptr<const LoadedLibrary>> PluginLibrary::load() {
  if (const std::string fault = trust_fault(path_); !fault.empty()) return cannot(path_, fault);
  if (const std::string fault = elf_fault(path_); !fault.empty()) return cannot(path_, fault);
  if (!sha256_.empty() && sha256_of_file(path_) != sha256_) {
    return cannot(path_,
                  "it is not the file that its manifest was written for (sha256); install "
                  "both again");
  }
  // First in another process: initialisers that throw, and damage that the checks above do not see,
  // end that process and not this one.
  if (const std::string fault = probe_plugin(path_); !fault.empty()) return cannot(path_, fault);
  void* const handle = ::dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = ::dlerror();
    return cannot(path_, why == nullptr ? "the system does not say why" : why);
  }
  const TableLook looked = look_at_table(handle);
  if (looked.table == nullptr) {
    ::dlclose(handle);
    return cannot(path_, looked.fault);
  }
  return std::make_shared<const LoadedLibrary>(handle, looked.table);
}

Result<Factory> PluginLibrary::factory(ProviderKind kind, const std::string& name) {
  const std::lock_guard lock(mutex_);
  if (loading_) return cannot(path_, "it asks for itself while it is loaded");
  if (loaded_ == nullptr) {
    loading_ = true;
    auto loaded = load();
    loading_ = false;
    if (!loaded) return loaded.error();
    loaded_ = std::move(loaded).value();
  }
  const auto* provider = loaded_->find(to_string(kind), name);
  if (provider == nullptr) {
    return Error{Error::Code::not_found, "the plugin " + path_ + " has no " +
                                             std::string(to_string(kind)) + " '" + name +
                                             "', though its manifest says so; install both again"};
  }
  return factory_of(loaded_, provider, kind);
}

}  // namespace ringmain::registry
