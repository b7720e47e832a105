// What is in the file of a recording, in words that tests compare.
#pragma once
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/flight/ring_reader.hpp"

#include "bus/bus.hpp"

namespace ringmain::tests {

/// Recorded in memory where the test is of the bus only: in a folder of its own.
inline RecordOptions in_folder(const std::string& folder) {
  RecordOptions options;
  options.folder = folder;
  options.file_bytes = 1u << 20;
  options.ring_bytes = 4096;
  return options;
}

/// Its file, in which nothing may be missing or damaged.
inline engine::flight::FlightRead read_whole(const Recording& recording) {
  engine::flight::FlightRead read = engine::flight::read_flight(recording.path());
  EXPECT_EQ(read.refusal, "");
  EXPECT_EQ(read.damage, "");
  return read;
}

template <class E>
struct OneRecord {
  E event;
  engine::flight::RecordHead head;
  std::string channel, thread;
  std::uint32_t publisher = 0;
};

/// All records of that type, ring by ring, oldest first.
template <class E>
std::vector<OneRecord<E>> records_of(const engine::flight::FlightRead& read) {
  using engine::flight::TextKind;
  std::vector<OneRecord<E>> found;
  for (const auto& ring : read.rings) {
    for (const engine::flight::TrackRead* track : {&ring.ring, &ring.annex}) {
      for (const auto& record : track->records) {
        if (record.head.schema != schema<E>().hash) continue;
        OneRecord<E> one;
        one.head = record.head;
        if (record.payload_bytes == sizeof(E))
          std::memcpy(static_cast<void*>(&one.event), track->payloads.data() + record.payload_at,
                      sizeof(E));
        const auto* const source = read.find(TextKind::source, record.head.source);
        if (source != nullptr) {
          one.thread = source->text;
          one.publisher = source->source.publisher;
          const auto* const channel = read.find(TextKind::channel, source->source.channel);
          if (channel != nullptr) one.channel = channel->text;
        }
        found.push_back(one);
      }
    }
  }
  return found;
}

}  // namespace ringmain::tests
