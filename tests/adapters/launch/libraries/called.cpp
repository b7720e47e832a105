// A library that a program calls; another one may be loaded before it.
extern "C" {

__attribute__((visibility("default"))) int launch_named() {
  return 1;
}
/// Without a call that only this library answers, the linker would leave it out.
__attribute__((visibility("default"))) int launch_is_linked() {
  return 1;
}
}
