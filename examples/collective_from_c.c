/* How does a backend in C report its operations, and a tool in C look at them? A shim of an
 * all-reduce asks before each call and says how it ended; hooks see both, and one refuses. */
#include <stdio.h>

#include <ringmain/adapters/collective.h>
#include <ringmain/c/ringmain.h>

static int failed(ringmain_code code) {
  if (code == RINGMAIN_OK) return 0;
  fprintf(stderr, "%s: %s\n", ringmain_code_name(code), ringmain_last_error());
  return 1;
}

/* --- a backend: it moves nothing, as this is the only rank --- */

static ringmain_code all_reduce(const ringmain_communicator* group, float* data, int64_t count) {
  ringmain_tensor tensor = RINGMAIN_TENSOR;
  ringmain_arguments arguments = RINGMAIN_ARGUMENTS;
  ringmain_operation* operation;
  ringmain_code code;
  int64_t waiting;

  tensor.data = data;
  tensor.sizes = &count;
  tensor.dimensions = 1;
  tensor.data_bytes = (uint64_t)count * sizeof *data;
  tensor.dtype = ringmain_name("float32", 7);
  arguments.op = RINGMAIN_OP_ALL_REDUCE;
  arguments.reduce = RINGMAIN_REDUCE_SUM;
  arguments.input = &tensor;
  arguments.inputs = 1;
  code = ringmain_issue(group, &arguments, &operation);
  if (code != RINGMAIN_OK) return code; /* refused: nothing is called */
  /* … the backend's call … */
  code = ringmain_operation_returned(operation, NULL);
  ringmain_operation_started(operation); /* from here on in any thread */
  waiting = ringmain_operation_wait_begin(operation);
  ringmain_operation_wait_end(operation, waiting);
  ringmain_operation_completed(operation);
  ringmain_operation_free(operation);
  return code;
}

static void give_up(void* user, uint32_t reason) {
  size_t bytes;
  const char* why = ringmain_name_text(reason, &bytes);
  printf("the backend gives up: %.*s\n", (int)bytes, why);
  ++*(int*)user;
}

/* --- a tool --- */

static uint32_t ask(void* user, const ringmain_pre_hook_args* args) {
  static const char why[] = "too small to be worth it";
  (void)user;
  if (args->op != RINGMAIN_OP_ALL_REDUCE || args->arguments->input->data_bytes >= 16) return 0;
  return ringmain_name(why, sizeof why - 1);
}
static void tell(void* user, const ringmain_post_hook_args* args) {
  if (args->outcome == RINGMAIN_OUTCOME_REFUSED) ++*(int*)user;
}
static void end(void* user, const ringmain_completion_hook_args* args) {
  size_t bytes;
  const char* word = ringmain_name_text(args->word, &bytes);
  printf("%.*s %llu %s\n", (int)bytes, word, (unsigned long long)args->sequence,
         args->completed ? "completed" : "failed");
  ++*(int*)user;
}
static void aborted(void* user, const ringmain_abort_hook_args* args) {
  (void)args;
  ++*(int*)user;
}

int main(void) {
  ringmain_communicator_options options = RINGMAIN_COMMUNICATOR_OPTIONS;
  ringmain_communicator *world, *found;
  ringmain_hook* hooks[4];
  ringmain_aborted result = {sizeof result, 0, 0, 0, 0, 0, {0}};
  float data[8] = {0};
  int refused = 0, ended = 0, abort_hooks = 0, gave_up = 0, i;

  options.name = "world";
  options.backend = "shim";
  options.source = "shim";
  options.abort = give_up;
  options.user = &gave_up;
  if (failed(ringmain_communicator_make(NULL, &options, &world)) || /* on the process's bus */
      failed(ringmain_communicator_find(NULL, "world", RINGMAIN_NO_RANK, &found)) ||
      failed(ringmain_pre_hook(found, ask, NULL, NULL, NULL, &hooks[0])) ||
      failed(ringmain_post_hook(found, tell, &refused, NULL, NULL, &hooks[1])) ||
      failed(ringmain_completion_hook(found, end, &ended, NULL, NULL, &hooks[2])) ||
      failed(ringmain_abort_hook(found, aborted, &abort_hooks, NULL, NULL, &hooks[3])))
    return 1;

  if (failed(all_reduce(world, data, 8))) return 1;
  if (all_reduce(world, data, 2) != RINGMAIN_VETOED) return 1;
  printf("refused: %s\n", ringmain_last_error());
  if (failed(ringmain_abort(world, "that is all", NULL, -1, &result))) return 1;
  if (all_reduce(world, data, 8) != RINGMAIN_CLOSED) return 1;

  for (i = 0; i < 4; ++i) {
    if (failed(ringmain_hook_remove(hooks[i], -1))) return 1; /* it is called no more */
    ringmain_hook_free(hooks[i]);
  }
  ringmain_communicator_free(found);
  ringmain_communicator_free(world);
  return !(refused == 1 && ended == 2 && abort_hooks == 1 && gave_up == 1 && result.hooks == 1);
}
