/* Is collective.h C, of every standard, and C++? Compiled as each; and does every struct have the
 * size that a program of another compiler was built for? Beside ringmain.h, in either order. */
#include "bindings/c/ringmain.h"

#include "adapters/collective.h"

#define RINGMAIN_ASSERT_AT(line, holds) typedef char ringmain_assert_##line[(holds) ? 1 : -1]
#define RINGMAIN_ASSERT_IN(line, holds) RINGMAIN_ASSERT_AT(line, holds)
#define RINGMAIN_HOLDS(holds) RINGMAIN_ASSERT_IN(__LINE__, holds)

RINGMAIN_HOLDS(sizeof(ringmain_communicator_options) == 80);
RINGMAIN_HOLDS(sizeof(ringmain_communicator_state) == 32);
RINGMAIN_HOLDS(sizeof(ringmain_tensor) == 48);
RINGMAIN_HOLDS(sizeof(ringmain_arguments) == 104);
RINGMAIN_HOLDS(sizeof(ringmain_pre_hook_args) == 40);
RINGMAIN_HOLDS(sizeof(ringmain_post_hook_args) == 56);
RINGMAIN_HOLDS(sizeof(ringmain_completion_hook_args) == 56);
RINGMAIN_HOLDS(sizeof(ringmain_abort_hook_args) == 24);
RINGMAIN_HOLDS(sizeof(ringmain_hook_options) == 16);
RINGMAIN_HOLDS(sizeof(ringmain_aborted) == 56);

/* Not called: that it compiles is the test. */
int ringmain_collective_header_compiles(ringmain_bus* bus);
int ringmain_collective_header_compiles(ringmain_bus* bus) {
  const ringmain_communicator_options options = RINGMAIN_COMMUNICATOR_OPTIONS;
  const ringmain_arguments arguments = RINGMAIN_ARGUMENTS;
  const ringmain_tensor tensor = RINGMAIN_TENSOR;
  ringmain_communicator* made;
  const ringmain_code code = ringmain_communicator_make(bus, &options, &made);
  return code == RINGMAIN_OK && arguments.peer == tensor.device;
}
