// Signals: waited for, handled, counted, blocked, and deadly.
#define _GNU_SOURCE
#include <setjmp.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <time.h>

#include "tests/cli/programs/neighbour.h"

static volatile sig_atomic_t handled;
static pthread_t main_thread;
static volatile sig_atomic_t in_another;

static void count(int number) {
  (void)number;
  ++handled;
  if (!pthread_equal(pthread_self(), main_thread)) in_another = 1;
}
static void handle(int number, int flags) {
  struct sigaction action = {.sa_handler = count, .sa_flags = flags};
  main_thread = pthread_self();
  sigaction(number, &action, NULL);
}
static sigset_t just(int number) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, number);
  return set;
}

static int start_with_defaults(int argc, char** argv) {
  for (int number = 1; number < 65; ++number) {
    struct sigaction action;
    if (sigaction(number, NULL, &action) == 0 && action.sa_handler != SIG_DFL)
      printf("%d is not default\n", number);
  }
  sigset_t blocked, pending;
  sigprocmask(SIG_BLOCK, NULL, &blocked);
  sigpending(&pending);
  for (int number = 1; number < 65; ++number) {
    if (sigismember(&blocked, number) == 1) printf("%d is blocked\n", number);
    if (sigismember(&pending, number) == 1) printf("%d is pending\n", number);
  }
  return 0;
}
static int waits_for_one(int argc, char** argv) {
  const sigset_t set = just(SIGUSR1);
  sigprocmask(SIG_BLOCK, &set, NULL);
  neighbour_linger();
  kill(getpid(), SIGUSR1);
  int number = 0;
  sigwait(&set, &number);
  printf("%d\n", number);
  return 0;
}
static int waits_for_none(int argc, char** argv) {
  const sigset_t set = just(SIGUSR2);
  const struct timespec at_once = {0, 30000000};
  sigprocmask(SIG_BLOCK, &set, NULL);
  printf("%d %s\n", sigtimedwait(&set, NULL, &at_once), strerror(errno));
  return 0;
}
static int reads_one(int argc, char** argv) {
  const sigset_t set = just(SIGHUP);
  sigprocmask(SIG_BLOCK, &set, NULL);
  const int fd = signalfd(-1, &set, SFD_CLOEXEC);
  neighbour_linger();
  kill(getpid(), SIGHUP);
  struct signalfd_siginfo info;
  printf("%d\n", read(fd, &info, sizeof info) == sizeof info ? (int)info.ssi_signo : -1);
  return 0;
}
static int counts_many(int argc, char** argv) {
  handle(SIGRTMIN + 3, 0);
  for (int i = 0; i < 1000; ++i) sigqueue(getpid(), SIGRTMIN + 3, (union sigval){.sival_int = i});
  while (handled < 1000) sched_yield();
  printf("%d, %s\n", (int)handled, in_another ? "in a thread of somebody else" : "all here");
  return 0;
}
static int is_profiled(int argc, char** argv) {
  handle(SIGPROF, SA_RESTART);
  const struct itimerval often = {{0, 1000}, {0, 1000}};
  setitimer(ITIMER_PROF, &often, NULL);
  while (handled < 20) {
  }
  printf("profiled, %s\n", in_another ? "in a thread of somebody else" : "all here");
  return 0;
}
static int is_interrupted(int argc, char** argv) {
  handle(SIGALRM, 0);
  int ends[2];
  if (pipe(ends) != 0) return 1;
  ualarm(20000, 20000);
  char byte;
  printf("%zd %s\n", read(ends[0], &byte, 1), strerror(errno));
  ualarm(0, 0);
  return 0;
}
static int pauses(int argc, char** argv) {
  handle(SIGALRM, 0);
  ualarm(20000, 20000);
  pause();
  ualarm(0, 0);
  puts("woken");
  return 0;
}
static void* sleeps(void* nothing) {
  const sigset_t set = just(SIGUSR1);
  pthread_sigmask(SIG_UNBLOCK, &set, NULL);
  while (!handled) sched_yield();
  return nothing;
}
static int sends_to_a_thread(int argc, char** argv) {
  handle(SIGUSR1, 0);
  pthread_t other;
  pthread_create(&other, NULL, sleeps, NULL);
  pthread_kill(other, SIGUSR1);
  pthread_join(other, NULL);
  printf("%d\n", (int)handled);
  return 0;
}
static sigjmp_buf back;
static void jump(int number) {
  siglongjmp(back, number);
}
static int recovers_from_a_fault(int argc, char** argv) {
  signal(SIGSEGV, jump);
  const int number = sigsetjmp(back, 1);
  if (number == 0) *(volatile int*)(long)handled = 1;
  printf("%d\n", number);
  return 0;
}
static int handles_on_its_own_stack(int argc, char** argv) {
  static char room[65536];
  const stack_t stack = {.ss_sp = room, .ss_size = sizeof room};
  sigaltstack(&stack, NULL);
  handle(SIGUSR2, SA_ONSTACK);
  raise(SIGUSR2);
  printf("%d\n", (int)handled);
  return 0;
}
static int writes_to_nobody(int argc, char** argv) {
  int ends[2];
  if (pipe(ends) != 0) return 1;
  close(ends[0]);
  neighbour_linger();
  (void)!write(ends[1], "x", 1);
  return 0;
}
static int writes_to_nobody_and_ignores(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);
  int ends[2];
  if (pipe(ends) != 0) return 1;
  close(ends[0]);
  printf("%zd %s\n", write(ends[1], "x", 1), strerror(errno));
  return 0;
}
static int handles_broken_pipes(int argc, char** argv) {
  handle(SIGPIPE, 0);
  neighbour_linger();
  neighbour_linger();
  printf("%d\n", (int)handled);
  return 0;
}
static int reaps(int argc, char** argv) {
  handle(SIGCHLD, SA_RESTART);
  for (int i = 0; i < 20; ++i) {
    if (fork() == 0) _exit(i);
  }
  int sum = 0, status = 0, count_of = 0;
  while (wait(&status) > 0) sum += WEXITSTATUS(status), ++count_of;
  printf("%d children, %d, %s\n", count_of, sum, handled > 0 ? "told" : "not told");
  return 0;
}
static int ignores_children(int argc, char** argv) {
  signal(SIGCHLD, SIG_IGN);
  for (int i = 0; i < 5; ++i) {
    if (fork() == 0) _exit(i);
  }
  printf("%d", wait(NULL));
  printf(" %s\n", strerror(errno));
  return 0;
}
static void told_by_thread(union sigval value) {
  handled = value.sival_int;
}
static int times_in_a_thread(int argc, char** argv) {
  struct sigevent event = {.sigev_notify = SIGEV_THREAD,
                           .sigev_notify_function = told_by_thread,
                           .sigev_value.sival_int = 7};
  const struct itimerspec soon = {{0, 0}, {0, 5000000}};
  timer_t timer;
  if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) return 1;
  timer_settime(timer, 0, &soon, NULL);
  while (!handled) sched_yield();
  printf("%d\n", (int)handled);
  return 0;
}
static int stops_and_goes_on(int argc, char** argv) {
  const pid_t me = getpid();
  const pid_t child = fork();
  if (child == 0) {
    for (int i = 0; i < 20; ++i) kill(me, SIGSTOP), usleep(2000), kill(me, SIGCONT), usleep(2000);
    _exit(0);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  puts("went on");
  return 0;
}
static int outgrows_its_files(int argc, char** argv) {
  handle(SIGXFSZ, 0);
  neighbour_linger();
  neighbour_linger();
  printf("%d\n", (int)handled);
  return 0;
}

const struct neighbour neighbour_signals[] = {
    {"start_with_defaults", start_with_defaults},
    {"waits_for_one", waits_for_one},
    {"waits_for_none", waits_for_none},
    {"reads_one", reads_one},
    {"counts_many", counts_many},
    {"is_profiled", is_profiled},
    {"is_interrupted", is_interrupted},
    {"pauses", pauses},
    {"sends_to_a_thread", sends_to_a_thread},
    {"recovers_from_a_fault", recovers_from_a_fault},
    {"handles_on_its_own_stack", handles_on_its_own_stack},
    {"writes_to_nobody", writes_to_nobody},
    {"writes_to_nobody_and_ignores", writes_to_nobody_and_ignores},
    {"handles_broken_pipes", handles_broken_pipes},
    {"reaps", reaps},
    {"ignores_children", ignores_children},
    {"times_in_a_thread", times_in_a_thread},
    {"stops_and_goes_on", stops_and_goes_on},
    {"outgrows_its_files", outgrows_its_files},
    {NULL, NULL}};
