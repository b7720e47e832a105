/* How does C leave what was published last in a file that the process may die beside? The flight
 * recorder's part of ringmain.h, which includes this and has the rules.
 *
 *   ringmain_recording* flight;
 *   ringmain_record(bus, "collective.>,train.*", NULL, &flight);
 *   ... kill -9 ...                      and then: ringmain post-mortem */
#ifndef RINGMAIN_C_RINGMAIN_RECORD_H
#define RINGMAIN_C_RINGMAIN_RECORD_H

#include "ringmain.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Leaves what is published in a file that outlives the process, SIGKILL included; the program
 * `ringmain post-mortem` reads it. It counts as interest. */
typedef struct ringmain_recording ringmain_recording;
#define RINGMAIN_FILES_ALL 0xffffffffu
typedef struct ringmain_record_options {
  uint32_t bytes;
  uint32_t files_kept; /* of dead processes, in the folder; 0: 16; RINGMAIN_FILES_ALL */
  const char* folder;  /* NULL: RINGMAIN_FLIGHT_DIR, else the runtime folder, else /dev/shm */
  uint64_t file_bytes; /* all of them allocated at once: 1 MiB to 4 GiB; 0: 8 MiB */
  uint64_t ring_bytes; /* of each thread and pattern: a power of two from 4 KiB; 0: 64 KiB */
} ringmain_record_options;
/* Of all channels that match one of the patterns, present and future: "collective.>,train.*", up
 * to eight; a channel goes by the first that matches. Which collectives are open is there, too.
 * `options` may be NULL. RINGMAIN_REFUSED: patterns that can match no name, wrong sizes, or a bus
 * with four recordings. Where no file can be had it is RINGMAIN_OK, the record is in memory, and
 * ringmain_recording_complaint() says why. */
ringmain_code ringmain_record(ringmain_bus* bus, const char* patterns,
                              const ringmain_record_options* options,
                              ringmain_recording** recording);
/* The file; "": the record is in the process's memory only. Valid until the recording is closed.
 * Threads: any. Progress: wait-free. */
const char* ringmain_recording_path(const ringmain_recording* recording);
/* Why it is in memory only: one sentence, or "". As the path. */
const char* ringmain_recording_complaint(const ringmain_recording* recording);
/* When it has returned nothing is recorded any more, and the file says that it was closed in order.
 * Before or after its bus is closed; inside callbacks, too. In a forked child the parent's goes on.
 * NULL counts as closed already. A recording that is never closed goes on until the process ends,
 * or the bus does. */
void ringmain_recording_close(ringmain_recording* recording);

#ifdef __cplusplus
}
#endif
#endif
