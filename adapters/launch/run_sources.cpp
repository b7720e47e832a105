#include "adapters/launch/run_sources.hpp"

#include <algorithm>
#include <utility>

#include "adapters/launch/text.hpp"
#include "adapters/launch/thread.hpp"

namespace ringmain::run {
namespace {

std::string name_of_source(std::string_view source) {
  return std::string(registry::Spec::of(source).name);
}

}  // namespace

void RunSources::open(const std::string& source) {
  const auto known = registry::Registry::process().check(registry::ProviderKind::source, source);
  if (!known) return miss(source, known.error().message);
  if (known.value().run.in_process) open_here(source);
}

void RunSources::open_here(const std::string& source) {
  auto opened = registry::Registry::process().open_source(bus_, source);
  if (!opened) return miss(source, opened.error().message);
  {
    const std::lock_guard lock(opened_mutex_);
    opened_.push_back(std::move(opened).value());
  }
  const std::lock_guard lock(attached_mutex_);
  attached_[name_of_source(source)] = "";
}

bool RunSources::join(std::string_view name) {
  if (std::none_of(asked_.begin(), asked_.end(),
                   [&](const std::string& one) { return registry::Spec::of(one).name == name; })) {
    return false;
  }
  const std::lock_guard lock(attached_mutex_);
  attached_[std::string(name)] = "";
  return true;
}

void RunSources::miss(std::string_view source, std::string_view why) {
  const std::string name = name_of_source(source);
  tell("source " + name + " could not attach to " + process_title(me_) + ": " + std::string(why));
  const std::lock_guard lock(attached_mutex_);
  attached_[name] = why;
}

void RunSources::at_end(std::function<void(nanoseconds)> say_last) {
  const std::lock_guard lock(opened_mutex_);
  at_end_.push_back(std::move(say_last));
}

void RunSources::end(nanoseconds limit) {
  std::vector<registry::Opened<registry::Source>> ending;
  std::vector<std::function<void(nanoseconds)>> last;
  {
    const std::lock_guard lock(opened_mutex_);
    ending.swap(opened_);
    last.swap(at_end_);
  }
  for (const auto& say_last : last) say_last(limit);  // outside the lock
  ending.clear();                                     // likewise
}

std::map<std::string, std::string> RunSources::attached() const {
  const std::lock_guard lock(attached_mutex_);
  return attached_;
}

}  // namespace ringmain::run
