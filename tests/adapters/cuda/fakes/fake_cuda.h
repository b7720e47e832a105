/* What can a test tell the libraries that stand in for NVIDIA's, and ask of them?
 *
 * They obey the rules of README.md beside this file. Whole programs are told by variables, which
 * stand there, too. Functions named fake_cuda_… are in the fake libcuda.so.1, fake_cupti_… in the
 * fake libcupti.so.13. Threads: any. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- The driver, and the calls that it and the runtime serve ---- */

/* The next `times` calls of this name ("cudaMalloc", "cuMemAlloc_v2") do nothing and return
 * `result`. */
void fake_cuda_fail(const char* name, int result, unsigned times);

/* In the middle of the next call of this name, after its ENTER and before its EXIT, `middle` is
 * called in the calling thread. */
void fake_cuda_during(const char* name, void (*middle)(void*), void* with);

/* In each call, after its ENTER, `at` is called with its name in the calling thread. What it
 * returns is the call's result, and nothing is done; below 0: the call goes on. It may wait, so
 * that a call is late. Null: no more. To be told while no thread is in a call. */
void fake_cuda_script(int (*at)(const char* name, void* with), void* with);

/* One call that goes through as all do, with these parameters, and does nothing: for numbers that
 * no function of the fake has. `result` is returned. */
int fake_cuda_raise(int domain, uint32_t cbid, const char* name, const void* params,
                    size_t params_bytes, int result);

/* A notice of the domain of resources, as for a context or a stream. */
void fake_cuda_raise_resource(uint32_t cbid, void* context, void* stream);

uint64_t fake_cuda_served(void);            /* calls that came in, nested ones too */
uint64_t fake_cuda_forbidden(void);         /* of these, from inside a callback that must not */
const char* fake_cuda_forbidden_name(void); /* the last of them, or null */
uint32_t fake_cuda_context_uid(void);       /* of this thread's current context, 0: none */

uint64_t fake_cuda_living(void); /* streams, events and registered blocks that are there */

/* Forgets what was told and counted, and lets go what is held. Handles live on, and so do contexts
 * that are broken. */
void fake_cuda_reset(void);

/* ---- Work on streams: all is done at once, unless this holds it ---- */

/* Something that runs on the stream until it is told to finish; what is put there later waits for
 * it. Returns its number, above 0; 0: there is no such stream. */
uint64_t fake_cuda_hold(void* stream);
void fake_cuda_finish(uint64_t held); /* 0: all there are */

/* Until the driver's thread has called the host functions whose turn it was. */
void fake_cuda_settle(void);

/* An error of the GPU's in all contexts: nothing that is on a stream is done any more, host
 * functions neither, and every call that needs a context answers `result`. */
void fake_cuda_break(int result);

/* What cuDeviceGetAttribute says from now on, until the reset. 122 with 0: streams cannot write
 * 64 bits of memory. */
void fake_cuda_attribute(int attribute, int value);

uint64_t fake_cuda_in_host_functions(void); /* calls from inside a host function: answered 800 */
uint64_t fake_cuda_stray_writes(void);      /* a stream wrote to memory that was not pinned then */

/* ---- CUPTI ---- */

void fake_cupti_version(uint32_t version); /* what cuptiGetVersion says, and its rules */

/* The next `times` calls of this function of CUPTI's answer `result`. `owner`, which may be null,
 * is the name told beside 39. */
void fake_cupti_answer(const char* function, int result, unsigned times, const char* owner);

/* In the next call of this function of CUPTI's, before it does anything, `middle` is called in the
 * calling thread. */
void fake_cupti_during(const char* function, void (*middle)(void*), void* with);

/* At the begin of each function of CUPTI's, before it does anything, `at` is called with its name
 * in the calling thread, and what it returns is answered; 0: the function goes on. Null: no more.
 */
void fake_cupti_script(int (*at)(const char* function, void* with), void* with);

enum FakeHostility {
  FAKE_POISON = 1,      /* what a callback is given cannot be read once it returned */
  FAKE_NULL_PARAMS = 2, /* functionParams is null */
  FAKE_UNKNOWN_NUMBERS =
      4 /* inside each call that is told another is, with a number that nobody knows */
};
void fake_cupti_hostile(unsigned modes);

/* Not 0: CUPTI has a lock of its own, which it holds in each of its functions and while it calls
 * back. To be told while no thread is in either. */
void fake_cupti_hold_own_lock(int holds);

/* The next `times` deliveries after an unsubscription go to who has left. */
void fake_cupti_deliver_late(unsigned times);

/* The next `times` deliveries at this site (0: ENTER, 1: EXIT) are not made. */
void fake_cupti_lose(int site, unsigned times);

/* A fatal fault: told in the domain of states, then CUPTI is gone, as after cuptiFinalize(). */
void fake_cupti_fatal(int result, const char* message);

uint64_t fake_cupti_asked(void); /* how often any of its functions was called */
uint64_t fake_cupti_delivered(void);
unsigned fake_cupti_subscribers(void);
int fake_cupti_enabled(int domain, uint32_t cbid); /* by any subscriber */
unsigned fake_cupti_enabled_count(void);
/* How often two threads were in cuptiEnableCallback or …GetCallbackState of one subscriber at once,
 * which is its mistake. */
uint64_t fake_cupti_overlaps(void);

/* How often a function was called with the handle of a subscription that cuptiFinalize had ended,
 * but for cuptiGetCallbackState: nobody can ask otherwise whether it has. */
uint64_t fake_cupti_dead_handles(void);
/* How often a number was disabled. CUPTI 13.0 tells a thread that is in a call of it only exits
 * from then on, to later subscriptions, too. */
uint64_t fake_cupti_disabled(void);

/* Forgets what was told and counted, and all subscribers. */
void fake_cupti_reset(void);

#ifdef __cplusplus
}
#endif
