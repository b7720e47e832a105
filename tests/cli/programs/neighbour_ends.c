// Ends: by return, by call, by signal, in handlers and threads, with and without what stdio holds.
#define _GNU_SOURCE
#include <fenv.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "tests/cli/programs/neighbour.h"

static void say_goodbye(void) {
  puts("goodbye");
}
static void close_output(void) {
  fclose(stdout);
  fclose(stderr);
}
static void close_numbers(void) {
  close(1);
  close(2);
}
static void exit_otherwise(void) {
  _exit(12);
}
static void on_signal_exit(int number) {
  (void)number;
  _exit(13);
}

static int returns(int argc, char** argv) {
  printf("held");
  return atoi(argv[0]);
}
static int exits(int argc, char** argv) {
  printf("held");
  exit(atoi(argv[0]));
}
static int exits_without_flush(int argc, char** argv) {
  printf("held");
  _exit(3);
}
static int exits_by_group(int argc, char** argv) {
  printf("held");
  syscall(SYS_exit_group, 8);
  return 0;
}
static int exits_alone(int argc, char** argv) {
  puts("held");
  fflush(stdout);
  pthread_exit(NULL);
}
static void* works_on(void* nothing) {
  neighbour_linger();
  puts("worked on");
  return nothing;
}
static int exits_alone_before_another(int argc, char** argv) {
  pthread_t other;
  pthread_create(&other, NULL, works_on, NULL);
  pthread_detach(other);
  pthread_exit(NULL);
}
static int exits_by_call(int argc, char** argv) {
  atexit(say_goodbye);  // not called
  puts("held");
  fflush(stdout);
  printf("lost");
  syscall(SYS_exit, atoi(argv[0]));
  return 0;
}
static int exits_by_call_before_another(int argc, char** argv) {
  pthread_t other;
  atexit(say_goodbye);
  pthread_create(&other, NULL, works_on, NULL);
  syscall(SYS_exit, 18);
  return 0;
}
static int exits_strictly(int argc, char** argv) {
  prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
  (void)!write(1, "strict\n", 7);
  syscall(SYS_exit, 4);
  return 0;
}
static int exits_alone_with_goodbye(int argc, char** argv) {
  atexit(say_goodbye);
  printf("held");
  pthread_exit(NULL);
}
static void* leaves(void* nothing) {
  pthread_exit(nothing);
}
static int exits_alone_without_numbers(int argc, char** argv) {
  const struct rlimit few = {3, 3};
  pthread_t other;
  pthread_create(&other, NULL, leaves,
                 NULL);  // the C library opens a library of the compiler's now
  pthread_join(other, NULL);
  pthread_create(&other, NULL, works_on, NULL);
  setrlimit(RLIMIT_NOFILE, &few);
  pthread_exit(NULL);
}
static pthread_t main_thread;
static void* joins_main(void* nothing) {
  pthread_join(main_thread, NULL);
  puts("joined");
  exit(5);
}
static int is_joined(int argc, char** argv) {
  pthread_t other;
  main_thread = pthread_self();
  pthread_create(&other, NULL, joins_main, NULL);
  pthread_exit(NULL);
}
static void* cancels_main(void* nothing) {
  pthread_cancel(main_thread);
  pthread_join(main_thread, NULL);
  puts("cancelled");
  return nothing;
}
static int is_cancelled(int argc, char** argv) {
  pthread_t other;
  atexit(say_goodbye);
  main_thread = pthread_self();
  pthread_create(&other, NULL, cancels_main, NULL);
  for (;;) pause();
  return 0;
}
static sem_t data_is_gone;
static void tells(void* nothing) {
  sem_post(&data_is_gone);
}
static void* awaits_data(void* nothing) {
  sem_wait(&data_is_gone);
  puts("gone");
  exit(4);
}
static int ends_its_data(int argc, char** argv) {
  pthread_key_t key;
  pthread_t other;
  sem_init(&data_is_gone, 0, 0);
  pthread_key_create(&key, tells);
  pthread_setspecific(key, &data_is_gone);
  pthread_create(&other, NULL, awaits_data, NULL);
  pthread_exit(NULL);
}
static int quick_exits(int argc, char** argv) {
  atexit(say_goodbye);
  at_quick_exit(close_output);
  puts("held");
  fflush(stdout);
  quick_exit(6);
}
static int aborts(int argc, char** argv) {
  printf("held");
  abort();
}
static int says_goodbye(int argc, char** argv) {
  atexit(say_goodbye);
  puts("hello");
  return 0;
}
static int closes_its_output_at_exit(int argc, char** argv) {
  atexit(close_output);
  puts("hello");
  fputs("hello, too\n", stderr);
  return 0;
}
static int closes_numbers_at_exit(int argc, char** argv) {
  atexit(close_numbers);
  puts("hello");
  return 0;
}
static int exits_otherwise_at_exit(int argc, char** argv) {
  atexit(exit_otherwise);
  return 0;
}
static int exits_in_a_handler(int argc, char** argv) {
  signal(SIGUSR1, on_signal_exit);
  raise(SIGUSR1);
  return 0;
}
static void* exits_now(void* status) {
  exit((int)(long)status);
}
static int exits_in_a_thread(int argc, char** argv) {
  pthread_t other;
  pthread_create(&other, NULL, exits_now, (void*)17L);
  pthread_join(other, NULL);
  return 0;
}
static int dies_of(int argc, char** argv) {
  printf("held");
  fflush(stdout);
  const struct rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  kill(getpid(), atoi(argv[0]));
  for (;;) pause();
  return 0;
}
static int faults(int argc, char** argv) {
  const struct rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  *(volatile int*)0 = 1;
  return 0;
}
static int execs(int argc, char** argv) {
  puts("before");
  fflush(stdout);
  execvp(argv[0], argv);
  return 1;
}
static int execs_nothing(int argc, char** argv) {
  execlp("/nowhere/at/all", "x", NULL);
  printf("%s\n", strerror(errno));
  return 0;
}
static int execs_without_environment(int argc, char** argv) {
  char* words[] = {"/bin/sh", "-c", "echo $HOME none", NULL};
  char* none[] = {NULL};
  execve(words[0], words, none);
  return 1;
}
static void say_state(const char* call) {
  const int kept = errno;
#if defined(__x86_64__)
  const unsigned vector_state = __builtin_ia32_stmxcsr();
#else
  const unsigned vector_state = 0;
#endif
  printf("%s: %d, rounds %d, raised %x, %x\n", call, kept, fegetround(),
         fetestexcept(FE_ALL_EXCEPT), vector_state);
  errno = kept;
}
/// What a call that returns may change is errno, by its own reason.
static int execs_keep_state(int argc, char** argv) {
  char* const words[] = {"x", NULL};
  fesetround(FE_UPWARD);
  feraiseexcept(FE_DIVBYZERO);
#if defined(__x86_64__)
  __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);  // small numbers are 0
#endif
  execv("/nowhere/at/all", words), say_state("execv");
  execve("/etc", words, words + 1), say_state("execve");
  execvp("no-such-command-at-all", words), say_state("execvp");
  execvpe("", words, words + 1), say_state("execvpe");
  execl("/dev/null", "x", NULL), say_state("execl");
  execlp("no-such-command-at-all", "x", NULL), say_state("execlp");
  execle("/nowhere/at/all", "x", NULL, words + 1), say_state("execle");
  fexecve(-1, words, words + 1), say_state("fexecve");
  execveat(1000, "x", words, words + 1, 0), say_state("execveat");
  errno = 77;
  fflush(stdout);
  if (vfork() == 0) _exit(0);
  say_state("_exit");
  return 0;
}
static int writes_to_closed_output(int argc, char** argv) {
  close(1);
  printf("lost");
  return fflush(stdout) == 0 ? 0 : 21;
}
static int ends_in_the_middle_of_a_line(int argc, char** argv) {
  fputs("no end", stderr);
  fputs("none", stdout);
  return 0;
}

const struct neighbour neighbour_ends[] = {
    {"returns", returns},
    {"exits", exits},
    {"exits_without_flush", exits_without_flush},
    {"exits_by_group", exits_by_group},
    {"exits_alone", exits_alone},
    {"exits_alone_before_another", exits_alone_before_another},
    {"exits_by_call", exits_by_call},
    {"exits_by_call_before_another", exits_by_call_before_another},
    {"exits_strictly", exits_strictly},
    {"exits_alone_with_goodbye", exits_alone_with_goodbye},
    {"exits_alone_without_numbers", exits_alone_without_numbers},
    {"is_joined", is_joined},
    {"is_cancelled", is_cancelled},
    {"ends_its_data", ends_its_data},
    {"quick_exits", quick_exits},
    {"aborts", aborts},
    {"says_goodbye", says_goodbye},
    {"closes_its_output_at_exit", closes_its_output_at_exit},
    {"closes_numbers_at_exit", closes_numbers_at_exit},
    {"exits_otherwise_at_exit", exits_otherwise_at_exit},
    {"exits_in_a_handler", exits_in_a_handler},
    {"exits_in_a_thread", exits_in_a_thread},
    {"dies_of", dies_of},
    {"faults", faults},
    {"execs", execs},
    {"execs_nothing", execs_nothing},
    {"execs_keep_state", execs_keep_state},
    {"execs_without_environment", execs_without_environment},
    {"writes_to_closed_output", writes_to_closed_output},
    {"ends_in_the_middle_of_a_line", ends_in_the_middle_of_a_line},
    {NULL, NULL}};
