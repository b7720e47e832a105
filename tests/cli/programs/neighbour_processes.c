// Processes and threads: forked, cloned, spawned, left alone, outliving their parents.
#define _GNU_SOURCE
#include <sched.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "tests/cli/programs/neighbour.h"

extern char** environ;

static int forks_many(int argc, char** argv) {
  int sum = 0, status = 0;
  for (int i = 0; i < 50; ++i) {
    const pid_t child = fork();
    if (child == 0) return i;
    waitpid(child, &status, 0);
    sum += WEXITSTATUS(status);
  }
  printf("%d\n", sum);
  return 0;
}
static int forks_at_once(int argc, char** argv) {
  int sum = 0, status = 0;
  for (int i = 0; i < 30; ++i) {
    if (fork() == 0) exit(i);
  }
  while (wait(&status) > 0) sum += WEXITSTATUS(status);
  printf("%d\n", sum);
  return 0;
}
static int forks_with_text_held(int argc, char** argv) {
  printf("held ");
  if (fork() == 0) return 0;
  wait(NULL);
  return 0;
}
static int forks_a_grandchild(int argc, char** argv) {
  int ends[2];
  if (pipe(ends) != 0) return 1;
  if (fork() == 0) {
    if (fork() == 0) {
      neighbour_linger();
      (void)!write(ends[1], "grandchild\n", 11);
      _exit(0);
    }
    _exit(0);
  }
  wait(NULL);
  close(ends[1]);
  char text[64];
  const ssize_t bytes = read(ends[0], text, sizeof text);
  printf("%.*s", (int)bytes, text);
  return 0;
}
static int child_outlives_it(int argc, char** argv) {
  if (fork() == 0) {
    setsid();
    neighbour_linger();
    neighbour_linger();
    (void)!write(1, "late\n", 5);
    _exit(0);
  }
  return 0;
}
static int becomes_a_daemon(int argc, char** argv) {
  if (daemon(1, 1) != 0) return 1;
  neighbour_linger();
  puts("a daemon");
  return 3;
}
static int vforks(int argc, char** argv) {
  for (volatile int i = 0; i < 10; ++i) {
    const pid_t child = vfork();
    if (child == 0) {
      execlp("true", "true", NULL);
      _exit(1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    printf("%d", WEXITSTATUS(status));
  }
  puts("");
  return 0;
}
static int vforks_and_exits(int argc, char** argv) {
  const pid_t child = vfork();
  if (child == 0) _exit(44);
  int status = 0;
  waitpid(child, &status, 0);
  printf("%d\n", WEXITSTATUS(status));
  return 0;
}
static int spawns(int argc, char** argv) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 3, "spawned", O_WRONLY | O_CREAT, 0644);
  posix_spawn_file_actions_adddup2(&actions, 3, 1);
  posix_spawn_file_actions_addclosefrom_np(&actions, 4);
  char* words[] = {"sh", "-c", "echo to the file; exit 9", NULL};
  pid_t child;
  int status = 0;
  if (posix_spawnp(&child, "sh", &actions, NULL, words, environ) != 0) return 1;
  waitpid(child, &status, 0);
  printf("%d\n", WEXITSTATUS(status));
  return 0;
}
static int calls_the_shell(int argc, char** argv) {
  printf("%d\n", WEXITSTATUS(system("exit 7")));
  FILE* out = popen("cat >popened", "w");
  fputs("text\n", out);
  printf("%d\n", WEXITSTATUS(pclose(out)));
  return 0;
}
static int has_no_children(int argc, char** argv) {
  neighbour_linger();
  printf("%d %s\n", wait(NULL), strerror(errno));
  return 0;
}
static void* forks_here(void* nothing) {
  const pid_t child = fork();
  if (child == 0) exit(5);
  int status = 0;
  waitpid(child, &status, 0);
  printf("%d\n", WEXITSTATUS(status));
  return nothing;
}
static int forks_in_a_thread(int argc, char** argv) {
  pthread_t other;
  pthread_create(&other, NULL, forks_here, NULL);
  pthread_join(other, NULL);
  return 0;
}
static int clones_by_hand(int argc, char** argv) {
  const long child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
  if (child == 0) syscall(SYS_exit_group, 6);
  int status = 0;
  waitpid((pid_t)child, &status, 0);
  printf("%d\n", WEXITSTATUS(status));
  return 0;
}
static void* returns_it(void* what) {
  return what;
}
static atomic_int at_work;
static void* works_hard(void* unused) {
  FILE* const nowhere = fopen("/dev/null", "w");
  while (at_work) {
    void* const room[2] = {malloc(100), malloc(5000)};
    fprintf(nowhere, "%p\n", room[0]);
    free(room[0]);
    free(room[1]);
  }
  fclose(nowhere);
  return unused;
}
static int forks_under_load(int argc, char** argv) {
  pthread_t threads[4];
  int status = 0, sum = 0;
  at_work = 1;
  for (int i = 0; i < 4; ++i) pthread_create(&threads[i], NULL, works_hard, NULL);
  for (int i = 0; i < 200; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      free(malloc(1000));
      if (i % 3 == 0) exit(1);
      if (i % 3 == 1) _exit(2);
      execlp("true", "true", NULL);
      _exit(9);
    }
    waitpid(child, &status, 0);
    sum += WEXITSTATUS(status);
  }
  at_work = 0;
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  printf("%d\n", sum);
  return 0;
}
static int hundred_threads(int argc, char** argv) {
  pthread_t threads[100];
  for (int i = 0; i < 100; ++i) pthread_create(&threads[i], NULL, returns_it, NULL);
  for (int i = 0; i < 100; ++i) pthread_join(threads[i], NULL);
  puts("joined");
  return 0;
}
static int child_leaves_its_user_namespace(int argc, char** argv) {
  neighbour_linger();
  if (fork() == 0) return unshare(CLONE_NEWUSER) == 0 ? 0 : errno;
  int status = 0;
  wait(&status);
  printf("%s\n", WEXITSTATUS(status) == 0 ? "left" : strerror(WEXITSTATUS(status)));
  return 0;
}
static int becomes_nobody(int argc, char** argv) {
  neighbour_linger();
  if (setgid(65534) != 0 || setuid(65534) != 0) return puts("not root"), 0;
  printf("%d %d\n", (int)getuid(), (int)getgid());
  return 0;
}
static int changes_its_root(int argc, char** argv) {
  if (chroot(".") != 0) return puts("not root"), 0;
  printf("%s\n", access("/etc/passwd", F_OK) == 0 ? "outside" : "inside");
  neighbour_linger();
  return 0;
}
static int child_dies(int argc, char** argv) {
  const pid_t child = fork();
  if (child == 0) raise(SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  printf("%d\n", WTERMSIG(status));
  return 0;
}
static int child_execs_with_closed_descriptors(int argc, char** argv) {
  neighbour_linger();
  if (fork() == 0) {
    closefrom(0);
    execlp("sh", "sh", "-c", "exec >out; echo fine", NULL);
  }
  int status = 0;
  wait(&status);
  printf("%d\n", WEXITSTATUS(status));
  return 0;
}
static int dies_with_its_parent(int argc, char** argv) {
  int signal_of_death = -1;
  prctl(PR_GET_PDEATHSIG, &signal_of_death);
  printf("%d %d\n", signal_of_death, prctl(PR_GET_DUMPABLE));
  return 0;
}

const struct neighbour neighbour_processes[] = {
    {"forks_many", forks_many},
    {"forks_at_once", forks_at_once},
    {"forks_with_text_held", forks_with_text_held},
    {"forks_a_grandchild", forks_a_grandchild},
    {"child_outlives_it", child_outlives_it},
    {"becomes_a_daemon", becomes_a_daemon},
    {"vforks", vforks},
    {"vforks_and_exits", vforks_and_exits},
    {"spawns", spawns},
    {"calls_the_shell", calls_the_shell},
    {"has_no_children", has_no_children},
    {"forks_in_a_thread", forks_in_a_thread},
    {"clones_by_hand", clones_by_hand},
    {"forks_under_load", forks_under_load},
    {"hundred_threads", hundred_threads},
    {"child_leaves_its_user_namespace", child_leaves_its_user_namespace},
    {"becomes_nobody", becomes_nobody},
    {"changes_its_root", changes_its_root},
    {"child_dies", child_dies},
    {"child_execs_with_closed_descriptors", child_execs_with_closed_descriptors},
    {"dies_with_its_parent", dies_with_its_parent},
    {NULL, NULL}};
