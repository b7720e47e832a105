// What does the table of CUDA's calls say? Each of its rows as a line of JSON, for calls_test.py.
#include <cstdio>
#include <string>
#include <string_view>

#include "events/terms/cuda_call_table.hpp"

int main() {
  using ringmain::cuda::CallRow;
  for (const CallRow& row : ringmain::cuda::call_rows()) {
    std::printf(
        "{\"domain\": %d, \"cbid\": %d, \"name\": \"%s\", \"cupti\": \"%s\", \"kind\": %d, "
        "\"since\": %u, \"until\": %u, \"per_thread_stream\": %s}\n",
        static_cast<int>(row.domain), row.cbid, std::string(row.name).c_str(),
        std::string(row.cupti).c_str(), static_cast<int>(row.call.kind), row.since, row.until,
        row.per_thread_stream ? "true" : "false");
  }
}
