/* How does a source's library join a run, and what can it say there? The C side of run.hpp, for
 * libraries that are built against what does not change, and for sources written in C. */
#ifndef RINGMAIN_ADAPTERS_RUN_H
#define RINGMAIN_ADAPTERS_RUN_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The process's bus (a ringmain::Bus*; for C, ringmain_open_process() gives the same one), with the
 * sinks of the run open; NULL where this process belongs to no run, or not to one that asked for
 * this source. Makes threads at the first call; idempotent. Threads: any. */
void* ringmain_run_join(const char* source);
/* For a source that came in vain: one sentence for standard error and the summary. */
void ringmain_run_could_not_attach(const char* source, const char* why);
/* Brings what was published so far to the sinks; returns by the limit. */
void ringmain_run_flush(int64_t limit_ns);

#ifdef __cplusplus
}
#endif
#endif
