// State: what a process has at its start and may count on: masks, limits, rounding, memory, names,
// time.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fenv.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <locale.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>

#include "tests/cli/programs/neighbour.h"

int neighbour_errno_at_start;

void neighbour_linger(void) {
  const struct timespec while_ = {0, 40 * 1000 * 1000};
  const int kept = errno;
  nanosleep(&while_, NULL);
  errno = kept;
}

static int errno_is_0(int argc, char** argv) {
  printf("%d\n", neighbour_errno_at_start);
  return 0;
}
static int mask_of_files(int argc, char** argv) {
  const mode_t mask = umask(0);
  umask(mask);
  printf("%03o\n", (unsigned)mask);
  return close(open("made", O_WRONLY | O_CREAT, 0666));
}
static int limits(int argc, char** argv) {
  for (int what = 0; what < RLIM_NLIMITS; ++what) {
    struct rlimit limit;
    getrlimit(what, &limit);
    printf("%d: %llu %llu\n", what, (unsigned long long)limit.rlim_cur,
           (unsigned long long)limit.rlim_max);
  }
  return 0;
}
static int rounding(int argc, char** argv) {
  printf("%d %d %.20g\n", fegetround(), fetestexcept(FE_ALL_EXCEPT), 1.0 / 3.0);
  fesetround(FE_UPWARD);
  neighbour_linger();
  printf("%d\n", fegetround() == FE_UPWARD);
  return 0;
}
static int locale(int argc, char** argv) {
  printf("%s\n", setlocale(LC_ALL, NULL));
  return 0;
}
static int own_locale(int argc, char** argv) {
  setlocale(LC_ALL, "");
  neighbour_linger();
  printf("%.2f\n", 1.5);
  return 0;
}
static int words_it_was_given(int argc, char** argv) {
  for (int i = 0; i < argc; ++i) printf("[%s]", argv[i]);
  printf("%s\n", strrchr(program_invocation_name, '/'));
  return 0;
}
static int variables(int argc, char** argv) {
  for (int i = 0; i < argc; ++i) printf("%s\n", getenv(argv[i]) ? getenv(argv[i]) : "unset");
  return 0;
}
static int name_of_thread(int argc, char** argv) {
  char name[17] = "";
  neighbour_linger();
  prctl(PR_GET_NAME, name);
  puts(name);
  return 0;
}
static int place_and_priority(int argc, char** argv) {
  cpu_set_t set;
  sched_getaffinity(0, sizeof set, &set);
  printf("%d %d %d\n", CPU_COUNT(&set), getpriority(PRIO_PROCESS, 0), sched_getscheduler(0));
  return 0;
}
static int folder(int argc, char** argv) {
  struct stat here, there;
  printf("%d\n",
         stat(".", &here) == 0 && stat(getenv("PWD"), &there) == 0 && here.st_ino == there.st_ino);
  return 0;
}
static int moves_its_folder(int argc, char** argv) {
  if (mkdir("old", 0755) != 0 || chdir("old") != 0 || rmdir("../old") != 0) return 1;
  neighbour_linger();
  puts("stands nowhere");
  return 0;
}
static int timers(int argc, char** argv) {
  struct itimerval timer;
  for (int which = 0; which < 3; ++which) {
    getitimer(which, &timer);
    printf("%ld ", timer.it_value.tv_sec + timer.it_value.tv_usec);
  }
  printf("%u\n", alarm(0));
  return 0;
}
/// As a container that does not know these calls: then no thread has descriptors of its own.
static int without_own_table(int argc, char** argv) {
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_close_range, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_unshare, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    return 98;
  execvp(argv[0], argv);
  return 99;
}
static int little_memory(int argc, char** argv) {
  const struct rlimit limit = {1u << 30, 1u << 30};
  setrlimit(RLIMIT_AS, &limit);
  char* room = malloc(256u << 20);
  if (room == NULL) return puts("none"), 1;
  memset(room, 1, 256u << 20);
  puts("256 MiB");
  return 0;
}
static int no_memory(int argc, char** argv) {
  const struct rlimit limit = {1, 1};
  neighbour_linger();
  setrlimit(RLIMIT_AS, &limit);
  neighbour_linger();
  const char text[] = "no memory at all\n";
  return write(1, text, sizeof text - 1) < 0;
}
static int finds_functions(int argc, char** argv) {
  void* const next = dlsym(RTLD_NEXT, "write");
  void* const any = dlsym(RTLD_DEFAULT, "pthread_create");
  printf("%d %d %d\n", next != NULL, any != NULL, dlopen("libnowhere.so", RTLD_NOW) == NULL);
  return 0;
}
static int own_names(int argc, char** argv) {
  static const char* const kNames[] = {"main_loop", "publish", "subscribe", "flush",
                                       "finish",    "run",     "join"};
  for (unsigned i = 0; i < sizeof kNames / sizeof *kNames; ++i) {
    if (dlsym(RTLD_DEFAULT, kNames[i]) != NULL) printf("%s is taken\n", kNames[i]);
  }
  return 0;
}

const struct neighbour neighbour_state[] = {{"errno_is_0", errno_is_0},
                                            {"mask_of_files", mask_of_files},
                                            {"limits", limits},
                                            {"rounding", rounding},
                                            {"locale", locale},
                                            {"own_locale", own_locale},
                                            {"words_it_was_given", words_it_was_given},
                                            {"variables", variables},
                                            {"name_of_thread", name_of_thread},
                                            {"place_and_priority", place_and_priority},
                                            {"folder", folder},
                                            {"moves_its_folder", moves_its_folder},
                                            {"timers", timers},
                                            {"without_own_table", without_own_table},
                                            {"little_memory", little_memory},
                                            {"no_memory", no_memory},
                                            {"finds_functions", finds_functions},
                                            {"own_names", own_names},
                                            {NULL, NULL}};
