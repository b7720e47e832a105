// A tool that was set before a run.
extern "C" __attribute__((visibility("default"))) int launch_answer() {
  return 42;
}
