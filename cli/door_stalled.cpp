#include "cli/door_stalled.hpp"

#include <cstdio>
#include <simdjson.h>
#include <string_view>

#include "cli/plain_text.hpp"

namespace ringmain::cli {
namespace {

using simdjson::SUCCESS;
using Object = simdjson::dom::object;

std::string text_of(const Object& from, const char* key) {
  std::string_view text;
  return from[key].get(text) == SUCCESS ? plain_text(text, false) : std::string();
}
std::optional<std::string> some_text(const Object& from, const char* key) {
  std::string_view text;
  if (from[key].get(text) != SUCCESS) return std::nullopt;
  return plain_text(text, false);
}
std::optional<std::int64_t> some_number(const Object& from, const char* key) {
  std::int64_t number = 0;
  if (from[key].get(number) != SUCCESS) return std::nullopt;
  return number;
}
std::int64_t number_of(const Object& from, const char* key) {
  return some_number(from, key).value_or(0);
}
std::uint64_t large_number_of(const Object& from, const char* key) {
  std::uint64_t number = 0;
  return from[key].get(number) == SUCCESS ? number : 0;
}
bool is_true(const Object& from, const char* key) {
  bool value = false;
  return from[key].get(value) == SUCCESS && value;
}

/// `take(object)` for each object of the array.
template <class Take>
void for_each_object(const Object& from, const char* key, Take take) {
  simdjson::dom::array all;
  if (from[key].get(all) != SUCCESS) return;
  for (const simdjson::dom::element one : all) {
    Object object;
    if (one.get(object) == SUCCESS) take(object);
  }
}
std::vector<std::string> words_of(const Object& from, const char* key) {
  std::vector<std::string> words;
  simdjson::dom::array all;
  if (from[key].get(all) != SUCCESS) return words;
  for (const simdjson::dom::element one : all) {
    std::string_view word;
    if (one.get(word) == SUCCESS) words.push_back(plain_text(word, false));
  }
  return words;
}

StalledOperation read_operation(const Object& from) {
  StalledOperation made;
  made.func = text_of(from, "func");
  made.group = text_of(from, "group");
  made.reading = some_text(from, "reading");
  made.last = some_text(from, "last");
  made.peer = some_number(from, "peer");
  made.nccl_channel = some_number(from, "nccl_channel");
  made.step = some_number(from, "step");
  made.begun_channels = some_number(from, "begun_channels");
  made.rank = number_of(from, "rank");
  made.waited_ns = number_of(from, "waited_ns");
  made.since_ns = number_of(from, "since_ns");
  made.nccl_channels = number_of(from, "nccl_channels");
  made.open_proxies = number_of(from, "open_proxies");
  made.sequence = large_number_of(from, "sequence");
  made.communicator = large_number_of(from, "communicator");
  for_each_object(from, "proxies", [&made](const Object& one) {
    made.proxies.push_back(
        {number_of(one, "nccl_channel"), number_of(one, "peer"), is_true(one, "send")});
  });
  return made;
}

std::optional<StalledGroup::Last> read_last(const Object& from, const char* key,
                                            const char* number) {
  Object last;
  if (from[key].get(last) != SUCCESS) return std::nullopt;
  return StalledGroup::Last{text_of(last, "func"), large_number_of(last, number),
                            number_of(last, "since_ns")};
}

StalledGroup read_group(const Object& from) {
  StalledGroup made;
  made.group = text_of(from, "group");
  made.communicator = large_number_of(from, "communicator");
  made.rank = number_of(from, "rank");
  made.ranks = number_of(from, "ranks");
  made.waiting = number_of(from, "waiting");
  made.unseen = number_of(from, "unseen");
  made.last = read_last(from, "last", "sequence");
  made.last_point_to_point = read_last(from, "last_point_to_point", "peer");
  Object sequences;
  if (from["sequences"].get(sequences) != SUCCESS) return made;
  for (const auto& [func, value] : sequences) {
    std::uint64_t number = 0;
    if (value.get(number) == SUCCESS) made.sequences[plain_text(func, false)] = number;
  }
  return made;
}

std::string seconds(std::int64_t ns) {
  char text[40];
  (void)std::snprintf(text, sizeof text, "%.1f s", static_cast<double>(ns) / 1e9);
  return text;
}

std::string joined(const std::vector<std::string>& names, const char* last) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i != 0) text += i + 1 == names.size() ? last : ", ";
    std::string name = names[i];
    for (char& c : name) c = c == '_' ? ' ' : c;
    text += name;
  }
  return text;
}

std::string of_proxies(const StalledOperation& one) {
  if (one.open_proxies == 0)
    return "nothing of it is open on the network; its kernel was not asked for";
  std::string text = "open on the network:";
  for (const StalledOperation::Proxy& proxy : one.proxies) {
    text += (&proxy == one.proxies.data() ? " " : ", ");
    text += (proxy.send ? "to rank " : "from rank ") + std::to_string(proxy.peer) +
            " on NCCL channel " + std::to_string(proxy.nccl_channel);
  }
  const auto shown = static_cast<std::int64_t>(one.proxies.size());
  if (one.open_proxies > shown) text += ", " + std::to_string(one.open_proxies - shown) + " more";
  return text;
}

std::string what_it_waits_for(const StalledOperation& one) {
  if (!one.reading) return of_proxies(one);
  const std::string& reading = *one.reading;
  if (reading == "not_begun") return "its kernel has not begun";
  const std::string peer = one.peer ? "rank " + std::to_string(*one.peer) : "a rank not known";
  if (reading == "kernel_running") {
    return "its kernel runs on " + std::to_string(one.begun_channels.value_or(0)) + " of " +
           std::to_string(one.nccl_channels) + " NCCL channels and waits for " +
           (one.peer ? peer : "other ranks");
  }
  const std::string on = "on NCCL channel " + std::to_string(one.nccl_channel.value_or(-1)) +
                         ", step " + std::to_string(one.step.value_or(-1)) + ", it waits for ";
  const std::string last = one.last ? " (" + *one.last + ")" : "";
  if (reading == "own_gpu_late") return on + "its own GPU to give the data" + last;
  if (reading == "own_gpu_not_taking") return on + "its own GPU to take the data" + last;
  if (reading == "local_pci") return on + "its own PCI bus" + last;
  if (reading == "peer_has_no_room") return on + "room at " + peer + last;
  if (reading == "network") return on + "the network to " + peer + last;
  if (reading == "peer_or_network") return on + peer + ", or the network between" + last;
  return reading;
}

std::string where(const std::string& group, std::int64_t rank) {
  return (group.empty() ? "a communicator without a name" : group) + ", rank " +
         std::to_string(rank);
}

std::string in_words(const StalledGroup& one) {
  std::string text = "  " + where(one.group, one.rank) + " of " + std::to_string(one.ranks) + ": ";
  text += one.waiting == 0 ? "none known to be" : std::to_string(one.waiting);
  text += " under way";
  if (one.unseen != 0) {
    text += ", " + std::to_string(one.unseen) +
            " that may be under way or over, as nothing shows " + "their end";
  }
  if (one.last) {
    text += "; last called " + one.last->func + " " + std::to_string(one.last->number) + ", " +
            seconds(one.last->since_ns) + " ago";
  }
  if (const auto& last = one.last_point_to_point) {
    text += "; last " + last->func + (last->func == "Recv" ? " from rank " : " to rank ") +
            std::to_string(last->number) + ", " + seconds(last->since_ns) + " ago";
  }
  return text + "\n";
}

std::string what_is_asked(const StalledProcess& process) {
  if (process.asked_for.empty() || !process.asked_for_ns)
    return "  NCCL is not asked for operations here, so nothing is known of what hangs: ask again "
           "in "
           "a second, or run it without door=never\n";
  std::string text = "  NCCL has been asked for " + joined(process.asked_for, " and ") + " for " +
                     seconds(*process.asked_for_ns) + "; what began before is not known";
  if (!process.not_asked_for.empty())
    text += "; it is not asked for " + joined(process.not_asked_for, " and ");
  if (process.masked) text += "; another has changed what it is asked for since";
  if (process.no_room != 0)
    text += "; " + std::to_string(process.no_room) + " starts found no room and are missing";
  return text + "\n";
}

}  // namespace

std::string name_of(const StalledOperation& one) {
  const std::string group = one.group.empty() ? "" : " of " + one.group;
  if (!one.is_point_to_point()) return one.func + " " + std::to_string(one.sequence) + group;
  const std::string peer = one.peer ? std::to_string(*one.peer) : "?";
  return one.func + (one.func == "Recv" ? " from rank " : " to rank ") + peer + group;
}

std::optional<StalledProcess> read_stalled(const std::string& answer) {
  simdjson::dom::parser parser;
  Object from;
  if (parser.parse(answer).get(from) != SUCCESS) return std::nullopt;
  StalledProcess made;
  made.pid = number_of(from, "pid");
  made.program = text_of(from, "program");
  made.rank = some_number(from, "rank");
  made.world_size = some_number(from, "world_size");
  made.monotonic_ns = number_of(from, "monotonic_ns");
  bool is_there = false;
  for_each_object(from, "sources", [&](const Object& source) {
    if (text_of(source, "source") != "nccl") return;
    is_there = true;
    made.asked_for = words_of(source, "asked_for");
    made.not_asked_for = words_of(source, "not_asked_for");
    made.asked_for_ns = some_number(source, "asked_for_ns");
    made.masked = is_true(source, "masked");
    made.no_room = number_of(source, "no_room");
    made.left_out = number_of(source, "left_out");
    for_each_object(source, "communicators",
                    [&made](const Object& one) { made.groups.push_back(read_group(one)); });
    for_each_object(source, "operations",
                    [&made](const Object& one) { made.operations.push_back(read_operation(one)); });
  });
  if (!is_there) return std::nullopt;
  return made;
}

std::string in_words(const StalledProcess& process) {
  std::string text = "Process " + std::to_string(process.pid) + " (" + process.program + ")";
  if (process.rank) {
    text += ", rank " + std::to_string(*process.rank);
    if (process.world_size) text += " of " + std::to_string(*process.world_size);
  }
  text += "\n";
  for (const StalledOperation& one : process.operations) {
    text += "  " + name_of(one) + ", rank " + std::to_string(one.rank) + ": nothing heard for " +
            seconds(one.waited_ns) + "; " + what_it_waits_for(one) + "\n";
  }
  if (process.left_out != 0)
    text += "  " + std::to_string(process.left_out) + " later operations are left out\n";
  for (const StalledGroup& one : process.groups) text += in_words(one);
  if (process.groups.empty()) text += "  no communicator is open\n";
  return text + what_is_asked(process);
}

}  // namespace ringmain::cli
