#include "bus/core/door_words.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iterator>
#include <mutex>
#include <pthread.h>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include "engine/system/clock.hpp"
#include "engine/system/descriptor.hpp"

#include "bus/core/bus_core.hpp"
#include "bus/core/buses.hpp"
#include "bus/core/dump_requests.hpp"
#include "bus/core/heartbeats.hpp"
#include "bus/core/python_stacks.hpp"
#include "bus/core/stall_requests.hpp"
#include "bus/core/stats_json.hpp"
#include "bus/door.hpp"
#include "bus/json_text.hpp"
#include "bus/rank.hpp"

namespace ringmain::detail {
namespace {

using engine::door::Reply;
using formats::JsonText;

/// Every answer ends in an empty line; without it, it was cut.
constexpr const char kHelp[] =
    "A door of ringmain. Say one word on a line:\n"
    "  stats    the buses of this process, with all their figures, as JSON\n"
    "  dump     has its flight recorders write their dumps, and says which files, as JSON\n"
    "  stacks   the Python stacks of all threads\n"
    "  stalled  what its NCCL operations wait for, as JSON\n"
    "  who      which process this is, as JSON\n"
    "  help     this\n"
    "\n";

void say_sentence(Reply& reply, const std::string& sentence) {
  reply.say("ringmain: " + sentence + "\n\n");
}

void add_process(JsonText& json) {
  const RankIdentity me = read_rank_identity();
  json.open('{').key("ringmain").text(RINGMAIN_VERSION).key("pid").number(::getpid());
  json.key("program").text(::program_invocation_short_name).key("host").text(me.host);
  // A launcher itself, and a program without one, has none.
  const bool has_rank = me.launcher != "none";
  json.key("rank");
  has_rank ? json.number(me.rank) : json.null();
  json.key("world_size");
  has_rank ? json.number(me.world_size) : json.null();
  json.key("job").text(me.job).key("launcher").text(me.launcher);
}

void finish(JsonText& json, Reply& reply) {
  json.close('}');
  reply.say(json.str() + "\n\n");
}

std::vector<std::string> recordings() {
  std::vector<std::string> paths;
  for (const auto& bus : buses()) {
    for (std::string& path : bus->recording_paths()) paths.push_back(std::move(path));
  }
  return paths;
}

void answer_who(Reply& reply) {
  JsonText json;
  add_process(json);
  finish(json, reply);
}

/// A time that is going on, in ns; null: it is not, or has not begun.
void add_age(JsonText& json, const char* key, std::int64_t since_ns, std::int64_t now_ns) {
  json.key(key);
  since_ns == 0 ? json.null() : json.number(now_ns - since_ns);
}

void add_watchdogs(JsonText& json) {
  json.key("watchdogs").open('[');
  for (const auto& one : heartbeats()) {
    json.open('{').key("bus").text(one->bus).key("looks").number(one->looks.load());
    json.key("period_ns").number(one->period_ns);
    const std::int64_t last = one->last_look_ns, inside = one->looking_since_ns,
                       calling = one->calling_since_ns, now = engine::now_ns();
    add_age(json, "last_look_age_ns", last, now);
    add_age(json, "inside_look_for_ns", inside, now);
    add_age(json, "before_abort_for_ns", calling, now);
    json.close('}');
  }
  json.close(']');
}

void answer_stats(Reply& reply) {
  JsonText json;
  add_process(json);
  json.key("monotonic_ns").number(engine::now_ns()).key("buses").open('[');
  for (const auto& bus : buses()) {
    json.open('{').key("name").text(bus->name());
    add_stats(json, stats_of(*bus));
    json.key("recordings").open('[');
    for (const std::string& path : bus->recording_paths()) json.text(path);
    json.close(']').close('}');
  }
  json.close(']');
  add_watchdogs(json);
  finish(json, reply);
}

void answer_stalled(Reply& reply) {
  JsonText json;
  add_process(json);
  json.key("monotonic_ns").number(engine::now_ns()).key("sources").open('[');
  if (!tell_stalls(json)) {
    return say_sentence(reply,
                        "nobody follows operations in this process, so nothing is known of what "
                        "hangs: it has made no NCCL communicator yet, as no launcher does, or was "
                        "started without 'ringmain run --source nccl --door' and has attached no "
                        "nccl::Source");
  }
  json.close(']');
  finish(json, reply);
}

/// Allocates nothing from the heap, unless there are no stacks: a thread may hang in malloc.
void answer_stacks(Reply& reply, const char* process) {
  const char* why = nullptr;
  const engine::Descriptor file = python_stacks_in_memory(process, why);
  if (file.get() < 0) return say_sentence(reply, why);
  (void)!::write(file.get(), "\n", 1);
  if (!reply.show(file.get())) reply.say_static("ringmain: there was no memory to answer\n\n");
}

}  // namespace

/// One dump of all recorders at a time.
struct DoorWords::Dumping {
  std::mutex mutex;
  std::condition_variable changed;
  bool running = false;
  bool owed = false;  // somebody was told that it is under way, and not yet what became of it
  std::int64_t since_ns = 0;
  std::vector<Dumped> written;

  void run() noexcept {
    std::vector<Dumped> made;
    dump_all(made);
    const std::lock_guard lock(mutex);
    written = std::move(made);
    running = false;
    changed.notify_all();
  }
};

DoorWords::DoorWords(nanoseconds dump_limit)
    : process_(process_in_words()),
      dump_limit_(dump_limit),
      dumping_(std::make_shared<Dumping>()) {}

void DoorWords::dump(Reply& reply) {
  Dumping& it = *dumping_;
  std::unique_lock lock(it.mutex);
  if (!it.running && !it.owed) {
    it.running = true;
    it.since_ns = engine::now_ns();
    // In a thread of its own: a file system that hangs holds up no other answer.
    try {
      std::thread([held = dumping_] {
        (void)::pthread_setname_np(::pthread_self(), "ringmain:dump");
        held->run();
      }).detach();
    } catch (const std::exception&) {  // no thread, or no memory for one
      lock.unlock();
      it.run();
      lock.lock();
    }
  }
  const bool done = it.changed.wait_for(lock, dump_limit_, [&it] { return !it.running; });
  it.owed = !done;
  if (!done) {
    const std::int64_t seconds = (engine::now_ns() - it.since_ns) / 1'000'000'000;
    return say_sentence(reply, "a dump has been under way for " + std::to_string(seconds) +
                                   " s; does the file system hang? Ask again later");
  }
  const std::vector<std::string> rings = recordings();
  std::vector<Dumped> files;
  std::copy_if(it.written.begin(), it.written.end(), std::back_inserter(files),
               [](const Dumped& one) { return !one.is_idle; });
  if (files.empty() && rings.empty()) {
    return say_sentence(
        reply, "nothing is recorded in this process: " +
                   (it.written.empty() ? "give it a FlightRecorderHook" : it.written[0].fault) +
                   ", or record a bus (ringmain run --flight PATTERNS)");
  }
  JsonText json;
  add_process(json);
  json.key("files").open('[');
  for (const Dumped& one : files) {
    json.open('{').key("path").text(one.path).key("error");
    one.fault.empty() ? json.null() : json.text(one.fault);
    json.close('}');
  }
  json.close(']').key("recordings").open('[');
  for (const std::string& path : rings) json.text(path);
  json.close(']');
  finish(json, reply);
}

void DoorWords::answer(std::string_view word, Reply& reply) {
  if (word == "stats") return answer_stats(reply);
  if (word == "dump") return dump(reply);
  if (word == "stacks") return answer_stacks(reply, process_.c_str());
  if (word == "stalled") return answer_stalled(reply);
  if (word == "who") return answer_who(reply);
  if (word == "help") return reply.say_static(kHelp);
  reply.say_static("ringmain: a door answers stats, dump, stacks, stalled, who and help\n\n");
}

}  // namespace ringmain::detail

namespace ringmain {

Result<std::string> python_stacks() {
  const std::string process = detail::process_in_words();
  const char* why = nullptr;
  const engine::Descriptor file = detail::python_stacks_in_memory(process.c_str(), why);
  if (file.get() < 0) {
    const bool no_file = why == detail::kNoFileInMemory;
    return Error{no_file ? Error::Code::system : Error::Code::refused, why};
  }
  engine::door::Reply reply;
  if (!reply.show(file.get())) return Error{Error::Code::no_memory, "there was no memory for it"};
  return std::string(reply.view());
}

}  // namespace ringmain
