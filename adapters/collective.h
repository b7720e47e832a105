/* How does a backend or a tool that is written in C report collective operations, and hook on them?
 * The C side of collective::Communicator (sources/collective/communicator.hpp, which says more):
 * one rank's end of a group. Link libringmain_collective and libringmain.
 *
 *   ringmain_communicator_make(0, &options, &world);       0: the process's bus
 *   code = ringmain_issue(world, &arguments, &operation);  pre hooks are asked
 *   if (code != RINGMAIN_OK) return refused(ringmain_last_error());
 *   backend_all_reduce(…);
 *   ringmain_operation_returned(operation, work);          this thread: post hooks are told
 *   ringmain_operation_completed(operation);               any thread, any time
 *   ringmain_operation_free(operation);
 *
 * Rules are those of ringmain.h (<ringmain/c/ringmain.h>), which has the codes that calls return,
 * ringmain_last_error(), names, and the bus: ringmain_open() and ringmain_open_process(). A bus
 * that is NULL is the process's, which is the one that ringmain_run_join() (run.h) gave. Names are
 * numbers of ringmain_name(); 0 is "". Nothing is thrown, and no call ends the process.
 *
 * Threads: any, at any time, also inside hooks, unless it is said otherwise. A handle must not be
 * used while or after it is freed. Progress: blocking, unless it is said otherwise. */
#ifndef RINGMAIN_ADAPTERS_COLLECTIVE_H
#define RINGMAIN_ADAPTERS_COLLECTIVE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ringmain_bus; /* of ringmain.h */
typedef struct ringmain_communicator ringmain_communicator;
typedef struct ringmain_operation ringmain_operation;
typedef struct ringmain_hook ringmain_hook;

/* Called once, after the last use of `user`, also if the call that it was given to failed. May be
 * NULL. */
typedef void (*ringmain_collective_destroy_fn)(void* user);

/* --- communicators --- */

enum { RINGMAIN_NO_RANK = -1, RINGMAIN_NO_DEVICE = -1 };

/* How the backend gives the group up; `reason` is a name. Called in the thread that aborts. */
typedef void (*ringmain_give_up_fn)(void* user, uint32_t reason);

typedef struct ringmain_communicator_options {
  uint32_t bytes;
  int32_t rank;                           /* 0 … size - 1 */
  int32_t size;                           /* 1 at least */
  int32_t device;                         /* RINGMAIN_NO_DEVICE: none; 0 is a device */
  const char* name;                       /* of the group: events' field `group`; not empty */
  const char* description;                /* what its maker calls it */
  const char* backend;                    /* "nccl", "mpi" … */
  const char* source;                     /* whose word its events are */
  const int32_t* ranks;                   /* its `size` members' in the world; NULL: not known */
  ringmain_give_up_fn abort;              /* NULL: ringmain_abort() is not supported */
  void* user;                             /* of `abort` */
  ringmain_collective_destroy_fn destroy; /* of `user` */
} ringmain_communicator_options;
/* To begin with: one rank of one, on no device. */
#define RINGMAIN_COMMUNICATOR_OPTIONS                                                            \
  {                                                                                              \
    (uint32_t)sizeof(ringmain_communicator_options), 0, 1, RINGMAIN_NO_DEVICE, 0, 0, 0, 0, 0, 0, \
        0, 0                                                                                     \
  }

/* Publishes collective.group `made`. RINGMAIN_REFUSED: options that cannot be, or a bus
 * that is another process's. RINGMAIN_CONFLICT: the program has a channel of such a name for
 * another event. If `options` cannot be read, its `user` is not destroyed. */
int32_t ringmain_communicator_make(struct ringmain_bus* bus,
                                   const ringmain_communicator_options* options,
                                   ringmain_communicator** communicator);
/* Another handle of a communicator of this bus that was made, by whichever source, and has not
 * ended; of several with that name the first of that rank (RINGMAIN_NO_RANK: of any).
 * RINGMAIN_NOT_FOUND. */
int32_t ringmain_communicator_find(struct ringmain_bus* bus, const char* group, int32_t rank,
                                   ringmain_communicator** communicator);
/* Another handle of the same communicator, which is freed by itself: to keep what a hook is shown.
 */
int32_t ringmain_communicator_retain(const ringmain_communicator* communicator,
                                     ringmain_communicator** kept);
/* Frees the handle; the last one, of those in C++, too, ends the communicator. May be NULL. */
void ringmain_communicator_free(ringmain_communicator* communicator);
/* What is open failed as cancelled; operations and hooks are refused from here on. May be called
 * again, and on NULL. Publishes collective.group `ended`. Makes all threads pass a barrier. */
void ringmain_communicator_end(const ringmain_communicator* communicator);
/* 1: both are handles of the same communicator. Progress: wait-free. */
int ringmain_communicator_same(const ringmain_communicator* one,
                               const ringmain_communicator* other);

typedef struct ringmain_communicator_state {
  uint32_t bytes;
  int32_t rank;
  int32_t size;
  uint32_t name;           /* of the group: a name, as all below but for the three words */
  uint32_t backend;        /* a name */
  uint32_t ended;          /* 1: yes */
  uint32_t aborted;        /* 1: yes */
  uint32_t supports_abort; /* 1: yes */
} ringmain_communicator_state;
/* Fills `state` as far as its `bytes`, which the caller sets, go. Progress: wait-free. */
int32_t ringmain_communicator_read(const ringmain_communicator* communicator,
                                   ringmain_communicator_state* state);

/* This rank's part of a split, with the hooks that the communicator has now: to take a hook away
 * takes it from both. Publishes collective.group `split`. Refusals as ringmain_communicator_make(),
 * or: it has ended. */
int32_t ringmain_communicator_part(const ringmain_communicator* communicator,
                                   const ringmain_communicator_options* options,
                                   ringmain_communicator** part);
/* A split gave this rank nothing: collective.group `split` with an empty name. */
void ringmain_communicator_no_part(const ringmain_communicator* communicator);

/* --- what an operation is called for with --- */

/* torchcomms' operations. */
enum {
  RINGMAIN_OP_OTHER = 0, /* by `word` */
  RINGMAIN_OP_SEND = 1,
  RINGMAIN_OP_RECV = 2,
  RINGMAIN_OP_BROADCAST = 3,
  RINGMAIN_OP_ALL_REDUCE = 4,
  RINGMAIN_OP_REDUCE = 5,
  RINGMAIN_OP_ALL_GATHER = 6,
  RINGMAIN_OP_ALL_GATHER_V = 7,
  RINGMAIN_OP_ALL_GATHER_SINGLE = 8,
  RINGMAIN_OP_REDUCE_SCATTER = 9,
  RINGMAIN_OP_REDUCE_SCATTER_V = 10,
  RINGMAIN_OP_REDUCE_SCATTER_SINGLE = 11,
  RINGMAIN_OP_ALL_TO_ALL_SINGLE = 12,
  RINGMAIN_OP_ALL_TO_ALL_V_SINGLE = 13,
  RINGMAIN_OP_ALL_TO_ALL = 14,
  RINGMAIN_OP_BARRIER = 15,
  RINGMAIN_OP_SCATTER = 16,
  RINGMAIN_OP_GATHER = 17,
  RINGMAIN_OP_GATHER_SINGLE = 18,
  RINGMAIN_OP_SPLIT = 19,
  RINGMAIN_OP_NEW_WINDOW = 20,
  RINGMAIN_OP_BATCH_OP_ISSUE = 21,
  RINGMAIN_OP_FINALIZE = 22
};
enum {
  RINGMAIN_REDUCE_SUM = 0,
  RINGMAIN_REDUCE_AVG = 1,
  RINGMAIN_REDUCE_PRODUCT = 2,
  RINGMAIN_REDUCE_MIN = 3,
  RINGMAIN_REDUCE_MAX = 4,
  RINGMAIN_REDUCE_BIT_AND = 5,
  RINGMAIN_REDUCE_BIT_OR = 6,
  RINGMAIN_REDUCE_BIT_XOR = 7,
  RINGMAIN_REDUCE_PREMUL_SUM = 8,
  RINGMAIN_REDUCE_OTHER = 9
};

typedef struct ringmain_tensor {
  const void* data;     /* its first element; NULL: not said */
  const int64_t* sizes; /* `dimensions` of them */
  uint64_t data_bytes;
  const void* object;  /* what it is in the caller's own language; hooks of it know */
  uint32_t dimensions; /* 0: one element */
  uint32_t dtype;      /* a name: "float32" */
  int32_t device;      /* RINGMAIN_NO_DEVICE: the host, or not said; 0 is a device */
  uint32_t unused;
} ringmain_tensor;
/* To begin with: nothing is said. */
#define RINGMAIN_TENSOR \
  { 0, 0, 0, 0, 0, 0, RINGMAIN_NO_DEVICE, 0 }

/* What its operation does not have is not read. */
typedef struct ringmain_arguments {
  uint32_t bytes;
  uint32_t op;      /* RINGMAIN_OP_… */
  const char* word; /* RINGMAIN_OP_OTHER: the operation's in words of torchcomms, PyTorch, NCCL or
                       MPI ("ncclAllReduce"), or a new one; else NULL */
  const ringmain_tensor* input;
  const ringmain_tensor* output;
  uint32_t inputs; /* how many */
  uint32_t outputs;
  uint32_t tensor_bytes;    /* sizeof(ringmain_tensor) */
  int32_t peer;             /* the other rank, or the root; RINGMAIN_NO_RANK: none; 0 is a rank */
  uint32_t reduce;          /* RINGMAIN_REDUCE_… */
  uint32_t async_op;        /* 1: the caller will wait later */
  uint32_t point_to_point;  /* RINGMAIN_OP_OTHER: 1: it is not of the whole group */
  uint32_t splits;          /* how many sizes each of the two lists below has */
  const uint64_t* in_split; /* RINGMAIN_OP_ALL_TO_ALL_V_SINGLE; NULL: not said */
  const uint64_t* out_split;
  const int32_t* ranks;  /* RINGMAIN_OP_SPLIT: of the new group, in this one */
  const char* new_group; /* its name */
  uint32_t ranks_count;
  uint32_t operations; /* RINGMAIN_OP_BATCH_OP_ISSUE: how many */
} ringmain_arguments;
/* To begin with: an operation without tensors, which is asynchronous to nobody. */
#define RINGMAIN_ARGUMENTS                                                                         \
  {                                                                                                \
    (uint32_t)sizeof(ringmain_arguments), RINGMAIN_OP_OTHER, 0, 0, 0, 0, 0,                        \
        (uint32_t)sizeof(ringmain_tensor), RINGMAIN_NO_RANK, RINGMAIN_REDUCE_OTHER, 0, 0, 0, 0, 0, \
        0, 0, 0, 0                                                                                 \
  }

/* --- one operation --- */

/* Asks the pre hooks; if it is RINGMAIN_OK, the backend may be called. The operation then needs
 * ringmain_operation_returned(), …_returned_part() or …_threw() once, in this thread, which is
 * marked with it until then, and ringmain_operation_free() once, in any order. `*operation` is NULL
 * if nobody listens and there is no hook; all calls take that.
 * RINGMAIN_VETOED: a hook refused, or could not be asked; ringmain_last_error() is its reason.
 * RINGMAIN_CLOSED: the communicator has ended or was aborted. RINGMAIN_REFUSED: arguments that
 * cannot be. In these cases there is no operation to tell of or to free.
 *
 * Hooks of C++ get the struct of collective_arguments.hpp where the tensors fit: as many as it
 * has (a second one for broadcast, all_reduce and reduce only if it is the same memory), else
 * collective::Other with the same word. Progress: lock-free, but for hooks and one allocation. */
int32_t ringmain_issue(const ringmain_communicator* communicator,
                       const ringmain_arguments* arguments, ringmain_operation** operation);
/* The backend's call has returned. `work` is for post hooks, may be NULL. RINGMAIN_REFUSED: in
 * another thread, said before, or one that this thread issued after it has still to return. */
int32_t ringmain_operation_returned(ringmain_operation* operation, const void* work);
/* The same for a split; `part` is what this rank is in, NULL: it is in none. */
int32_t ringmain_operation_returned_part(ringmain_operation* operation,
                                         const ringmain_communicator* part);
/* The backend did not take it: it failed. Threads and refusals as above. */
int32_t ringmain_operation_threw(ringmain_operation* operation, const char* what);

/* What becomes of it, in any thread and order; the first of completed and failed is believed, also
 * of several sources. RINGMAIN_UNHEARD: nobody listened when it was issued.
 * RINGMAIN_NOT_ATTACHED: it is over or had begun already, or is a part of another source's.
 * Progress: lock-free, but for hooks. */
int32_t ringmain_operation_started(const ringmain_operation* operation);
int32_t ringmain_operation_completed(const ringmain_operation* operation);
enum {
  RINGMAIN_FAILED_ERROR = 0,
  RINGMAIN_FAILED_TIMED_OUT = 1,
  RINGMAIN_FAILED_ABORTED = 2,
  RINGMAIN_FAILED_VETOED = 3,
  RINGMAIN_FAILED_CANCELLED = 4,
  RINGMAIN_FAILED_UNKNOWN = 5
};
/* `how`: RINGMAIN_FAILED_…; `reason` may be NULL; `result` is the vendor's code. */
int32_t ringmain_operation_failed(const ringmain_operation* operation, uint32_t how,
                                  const char* reason, int32_t result);
/* The operation's id in all events, 0 of NULL. Progress: wait-free. */
uint64_t ringmain_operation_id(const ringmain_operation* operation);
/* Around a thread's waiting for it: collective.wait. What begin returned is for end; 0: nobody
 * listens, and nothing will be said. Progress: lock-free. */
int64_t ringmain_operation_wait_begin(const ringmain_operation* operation);
void ringmain_operation_wait_end(const ringmain_operation* operation, int64_t begun);
/* By any thread; the operation itself goes on. May be NULL. */
void ringmain_operation_free(ringmain_operation* operation);
/* For a source below others: `*op_id` is the operation that this thread is issuing on the bus, 0:
 * none. */
int32_t ringmain_operation_here(struct ringmain_bus* bus, uint64_t* op_id);

/* --- hooks --- */

/* What `args` points to is good during the call only. A longjmp out of a hook is not allowed. */
typedef struct ringmain_pre_hook_args {
  uint32_t bytes;
  uint32_t op; /* RINGMAIN_OP_… */
  uint64_t op_id;
  uint32_t word; /* events' field `op`: a name, "all_reduce" */
  uint32_t async_op;
  const ringmain_communicator* communicator;
  const ringmain_arguments* arguments; /* without `word` */
} ringmain_pre_hook_args;

enum {
  RINGMAIN_OUTCOME_ISSUED = 0,  /* the backend took it: it is not done */
  RINGMAIN_OUTCOME_REFUSED = 1, /* by a pre hook: the backend was not called */
  RINGMAIN_OUTCOME_THREW = 2    /* the backend did not take it */
};
typedef struct ringmain_post_hook_args {
  uint32_t bytes;
  uint32_t op; /* RINGMAIN_OP_… */
  uint64_t op_id;
  uint32_t word;    /* a name */
  uint32_t outcome; /* RINGMAIN_OUTCOME_… */
  uint32_t reason;  /* a name: why it was refused, or what was thrown */
  uint32_t unused;
  const void* work;
  const ringmain_communicator* communicator;
  const ringmain_communicator* part; /* split: that this rank is in; NULL: in none */
} ringmain_post_hook_args;

typedef struct ringmain_completion_hook_args {
  uint32_t bytes;
  uint32_t completed; /* 1; 0: it failed */
  uint64_t op_id;
  uint64_t sequence;   /* the group's own count */
  int64_t duration_ns; /* since it started, or if it failed: since it was issued; 0: not known */
  uint32_t word;       /* a name */
  uint32_t group;      /* a name */
  uint32_t how;        /* RINGMAIN_FAILED_…, if it failed */
  uint32_t reason;     /* a name, if it failed */
  int32_t result;      /* the vendor's code, if it failed */
  uint32_t unused;
} ringmain_completion_hook_args;

typedef struct ringmain_abort_hook_args {
  uint32_t bytes;
  uint32_t reason; /* a name */
  uint64_t incident;
  uint32_t asked_by; /* a name */
  uint32_t unused;
} ringmain_abort_hook_args;

/* In the thread that issues, before the backend is called. 0 lets the operation go on; a name
 * refuses it and says why. */
typedef uint32_t (*ringmain_pre_hook_fn)(void* user, const ringmain_pre_hook_args* args);
/* In the same thread, once for each call of the pre hooks. */
typedef void (*ringmain_post_hook_fn)(void* user, const ringmain_post_hook_args* args);
/* Once for each end, in the thread that says it, whichever source does. */
typedef void (*ringmain_completion_hook_fn)(void* user, const ringmain_completion_hook_args* args);
/* Each in a thread of its own. */
typedef void (*ringmain_abort_hook_fn)(void* user, const ringmain_abort_hook_args* args);

typedef struct ringmain_hook_options {
  uint32_t bytes;
  int32_t priority; /* higher first; equal ones in order of registration */
  const char* name; /* shown in figures and reasons */
} ringmain_hook_options;

/* `options` may be NULL. RINGMAIN_REFUSED: the communicator has ended, or its bus. A hook that is
 * registered while an operation is issued is called for the next one. */
int32_t ringmain_pre_hook(const ringmain_communicator* communicator, ringmain_pre_hook_fn see,
                          void* user, ringmain_collective_destroy_fn destroy,
                          const ringmain_hook_options* options, ringmain_hook** hook);
int32_t ringmain_post_hook(const ringmain_communicator* communicator, ringmain_post_hook_fn see,
                           void* user, ringmain_collective_destroy_fn destroy,
                           const ringmain_hook_options* options, ringmain_hook** hook);
int32_t ringmain_completion_hook(const ringmain_communicator* communicator,
                                 ringmain_completion_hook_fn see, void* user,
                                 ringmain_collective_destroy_fn destroy,
                                 const ringmain_hook_options* options, ringmain_hook** hook);
int32_t ringmain_abort_hook(const ringmain_communicator* communicator, ringmain_abort_hook_fn see,
                            void* user, ringmain_collective_destroy_fn destroy,
                            const ringmain_hook_options* options, ringmain_hook** hook);
/* Takes it away, from parts of the communicator, too. RINGMAIN_OK: no call of it is running or will
 * ever start, and `user` was destroyed. RINGMAIN_DEFERRED: called inside a callback or a hook; it
 * is called no more, and `user` is destroyed after the last running call; call again outside to
 * wait. RINGMAIN_TIMEOUT: as that. RINGMAIN_NOT_ATTACHED: it is over, its communicator is gone,
 * or it is NULL. The caller must hold no lock that the hook wants. */
int32_t ringmain_hook_remove(ringmain_hook* hook, int64_t limit_ns);
/* Removes it, without a limit, if that was not done; frees the handle. May be NULL. */
void ringmain_hook_free(ringmain_hook* hook);
/* Frees the handle only: the hook stays for the communicator's life. May be NULL. */
void ringmain_hook_release(ringmain_hook* hook);

/* --- to give a group up --- */

enum {
  RINGMAIN_ABORT_DONE = 0,   /* hooks were called, and the backend gave the group up */
  RINGMAIN_ABORT_JOINED = 1, /* somebody else's: its hooks were called, or this is one of them */
  RINGMAIN_ABORT_UNSUPPORTED = 2,
  RINGMAIN_ABORT_ENDED = 3
};
typedef struct ringmain_aborted {
  uint32_t bytes;
  uint32_t how; /* RINGMAIN_ABORT_… */
  uint64_t incident;
  uint32_t hooks;          /* that were called */
  uint32_t operations;     /* that failed with it */
  uint32_t stuck;          /* hooks that had not returned in time */
  uint32_t stuck_names[7]; /* names of the first of them */
} ringmain_aborted;

/* All abort hooks are called at once, together within `within_ns` (below 0: without a limit; C++
 * has 5 s); one that is stuck is left, and named in `result`. Then what is open fails as aborted,
 * and the backend's `abort` is called. A second caller waits for the first one's hooks. `asked_by`
 * may be NULL: "application"; so may `result`. RINGMAIN_REFUSED: it has no `abort`; no hook was
 * called. RINGMAIN_CLOSED: it has ended, or was aborted before. `result` is filled then, too. */
int32_t ringmain_abort(const ringmain_communicator* communicator, const char* reason,
                       const char* asked_by, int64_t within_ns, ringmain_aborted* result);
/* Only the hooks, for a backend that gives up by itself: "backend". Each call is an incident. */
int32_t ringmain_run_abort_hooks(const ringmain_communicator* communicator, const char* reason,
                                 const char* asked_by, int64_t within_ns, ringmain_aborted* result);

#ifdef __cplusplus
}
#endif
#endif
