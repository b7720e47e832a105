// Which dumps belong to a job, and which rank left each? Files and folders are read; what cannot be
// read is kept as a sentence, so that one cut file does not hide what the others say.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "bus/result.hpp"

#include "adapters/flight/dump.hpp"

namespace ringmain::flight {

struct JobOptions {
  std::vector<std::string> paths;  // files and folders
  std::string prefix{};            // of the names of files in folders; "" takes all
  std::string rank_from{};         // a regular expression for names, its first group is the rank
  std::int64_t world_size = 0;     // 0: as the dumps have it
};

/// A file that was not read, and why.
struct Unread {
  std::string file;
  std::int64_t rank = -1;  // by its name; -1: not known
  std::string why;
};

struct Job {
  Kept kept;
  std::vector<Dump> dumps;  // by rank, each rank once
  std::vector<Unread> unread;
  // Of a folder: what does not begin like a dump, rings without operations, and of earlier runs.
  std::vector<std::string> passed_over;
  std::int64_t world_size = 0;
};

/// The files that the paths name, each once, those of a folder in order of their names; without
/// names that begin with a dot. An Error where a path does not exist or no file is left.
[[nodiscard]] Result<std::vector<std::string>> find_files(const JobOptions& options);

/// The rank that a file's name tells: by `rank_from` if it is given, else its last number. -1:
/// none. An Error if `rank_from` is no regular expression.
[[nodiscard]] Result<std::int64_t> rank_of_name(const std::string& file,
                                                const std::string& rank_from);

/// The whole file. An Error: one sentence, without the name.
[[nodiscard]] Result<std::string> read_file(const std::string& file);

/// The same; of a flight recorder's ring, the dump in JSON that it amounts to.
[[nodiscard]] Result<std::string> read_dump_bytes(const std::string& file);

/// An Error where nothing can be said: no file, no dump among them, a rank that two files have.
[[nodiscard]] Result<Job> read_job(const JobOptions& options);

}  // namespace ringmain::flight
