// Descriptors: numbers that are counted on, closed, taken over and used up.
#define _GNU_SOURCE
#include <dirent.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>

#include "tests/cli/programs/neighbour.h"

static int new_file(const char* name) {
  return open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
}

static void write_text(int fd, const char* text) {
  printf("write to it: %s\n", write(fd, text, strlen(text)) < 0 ? strerror(errno) : "fine");
}

static void limit_to(rlim_t soft) {
  struct rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = soft;
  setrlimit(RLIMIT_NOFILE, &limit);
}

static int close_from_3(int argc, char** argv) {
  neighbour_linger();
  closefrom(3);
  puts("closed");
  return 4;
}

static int close_from_3_at_once(int argc, char** argv) {
  closefrom(3);
  neighbour_linger();
  return 0;
}

static int close_range_3(int argc, char** argv) {
  neighbour_linger();
  syscall(SYS_close_range, 3u, ~0u, 0u);
  neighbour_linger();
  puts("closed");
  return 0;
}

static int close_each(int argc, char** argv) {
  for (int fd = 3; fd < 65536; ++fd) close(fd);
  neighbour_linger();
  return 0;
}

static int close_all_and_exit(int argc, char** argv) {
  for (int fd = 0; fd < 65536; ++fd) close(fd);
  return 5;
}

static int cloexec_all(int argc, char** argv) {
  syscall(SYS_close_range, 3u, ~0u, 4u /* CLOSE_RANGE_CLOEXEC */);
  execlp("sh", "sh", "-c", "echo went on", NULL);
  return 1;
}

static int lowest_is_3(int argc, char** argv) {
  neighbour_linger();
  printf("%d %d\n", new_file("one"), new_file("two"));
  return 0;
}

static int lowest_is_0(int argc, char** argv) {
  close(0);
  neighbour_linger();
  printf("%d\n", new_file("one"));
  return 0;
}

static int lowest_is_1(int argc, char** argv) {
  close(1);
  neighbour_linger();
  if (new_file("one") != 1) return 1;
  puts("into the file");
  return 0;
}

static int lowest_is_2(int argc, char** argv) {
  close(2);
  neighbour_linger();
  if (new_file("one") != 2) return 1;
  fputs("into the file\n", stderr);
  neighbour_linger();
  return 0;
}

static int low_ones_are_free(int argc, char** argv) {
  neighbour_linger();
  for (int fd = 3; fd < 64; ++fd) {
    if (fcntl(fd, F_GETFD) != -1) printf("%d is taken\n", fd);
  }
  return 0;
}

static int high_ones_are_free(int argc, char** argv) {
  struct rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  neighbour_linger();
  for (rlim_t fd = limit.rlim_cur - 16; fd < limit.rlim_cur; ++fd) {
    if (fcntl((int)fd, F_GETFD) != -1) printf("%d is taken\n", (int)fd);
  }
  return 0;
}

static int takes_over(int argc, char** argv) {  // neighbour takes_over FROM TO
  const int data = new_file("data");
  for (int fd = atoi(argv[0]); fd < atoi(argv[1]); ++fd) {
    if (fd != data && fd != 1 && dup2(data, fd) != fd) perror("dup2");
  }
  neighbour_linger();
  for (int fd = atoi(argv[0]); fd < atoi(argv[1]); ++fd) {
    if (fd != 1) dprintf(fd, "%d\n", fd);
  }
  neighbour_linger();
  return 0;
}

static int reuses_numbers(int argc, char** argv) {
  closefrom(3);
  int fds[40];
  for (int i = 0; i < 40; ++i) fds[i] = new_file("data");
  for (int i = 0; i < 40; ++i) dprintf(fds[i], "%d\n", fds[i]);
  neighbour_linger();
  return 0;
}

static int reuses_all_numbers(int argc, char** argv) {
  neighbour_linger();
  closefrom(3);
  const int data = open("data", O_WRONLY | O_CREAT | O_APPEND, 0644);
  int count = 1;
  while (dup(data) >= 0) ++count;
  neighbour_linger();
  dprintf(data, "%s\n", count > 100 ? "many" : "few");
  return 0;
}

static int sockets_on_reused_numbers(int argc, char** argv) {
  closefrom(3);
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) return 1;
  for (int fd = 5; fd < 1000; ++fd) dup2(pair[0], fd);
  neighbour_linger();
  struct pollfd seen = {pair[1], POLLIN, 0};
  printf("%d %d: %s\n", pair[0], pair[1],
         poll(&seen, 1, 50) == 0 ? "nothing came" : "foreign bytes");
  return 0;
}

static int limit_of_8(int argc, char** argv) {
  limit_to(8);
  neighbour_linger();
  for (int fd; (fd = new_file("one")) >= 0;) printf("%d\n", fd);
  puts(strerror(errno));
  return 0;
}

static int limit_of_3(int argc, char** argv) {
  limit_to(3);
  neighbour_linger();
  printf("%d %s\n", new_file("one"), strerror(errno));
  return 0;
}

static int limit_of_0(int argc, char** argv) {
  limit_to(0);
  neighbour_linger();
  puts("nothing more");
  return 0;
}

static int dup_from_10(int argc, char** argv) {
  printf("%d %d\n", fcntl(1, F_DUPFD, 10), fcntl(1, F_DUPFD_CLOEXEC, 10));
  return 0;
}

static int dup_to_fixed_ones(int argc, char** argv) {
  static const int kNumbers[] = {9, 63, 64, 100, 200, 255};
  for (unsigned i = 0; i < sizeof kNumbers / sizeof *kNumbers; ++i) {
    const int fd = dup2(1, kNumbers[i]);
    dprintf(fd, "%d\n", fd);
  }
  neighbour_linger();
  return 0;
}

static int one_of_each_kind(int argc, char** argv) {
  sigset_t none;
  sigemptyset(&none);
  int ends[2];
  if (pipe(ends) != 0) return 1;
  printf("%d %d %d %d %d %d %d\n", ends[0], ends[1], epoll_create1(0), eventfd(0, 0),
         signalfd(-1, &none, 0), timerfd_create(CLOCK_MONOTONIC, 0), memfd_create("here", 0));
  return 0;
}

static int watches_by_select(int argc, char** argv) {
  int ends[2];
  if (pipe(ends) != 0 || write(ends[1], "x", 1) != 1) return 1;
  fd_set ready;
  FD_ZERO(&ready);
  FD_SET(ends[0], &ready);
  printf("%d of %d\n", select(FD_SETSIZE, &ready, NULL, NULL, NULL), ends[0]);
  return 0;
}

static int walks_its_folder(int argc, char** argv) {
  DIR* folder = opendir(".");
  printf("%d\n", dirfd(folder));
  closedir(folder);
  return 0;
}

static int writes_to_what_it_was_given(int argc, char** argv) {  // neighbour … FD
  neighbour_linger();
  write_text(atoi(argv[0]), "given\n");
  return 0;
}

static int truncates_what_it_was_given(int argc, char** argv) {
  printf("%s\n", ftruncate(atoi(argv[0]), 3) == 0 ? "cut" : strerror(errno));
  return 0;
}

static int seeks_in_its_output(int argc, char** argv) {
  printf("%lld\n", (long long)lseek(0, 2, SEEK_SET));
  return 0;
}

static int leaves_its_output_non_blocking(int argc, char** argv) {
  const int flags = fcntl(1, F_GETFL);
  printf("%s\n", (flags & O_NONBLOCK) == 0 && (fcntl(2, F_GETFL) & O_NONBLOCK) == 0
                     ? "blocking"
                     : "not blocking");
  return 0;
}

const struct neighbour neighbour_descriptors[] = {
    {"close_from_3", close_from_3},
    {"close_from_3_at_once", close_from_3_at_once},
    {"close_range_3", close_range_3},
    {"close_each", close_each},
    {"close_all_and_exit", close_all_and_exit},
    {"cloexec_all", cloexec_all},
    {"lowest_is_3", lowest_is_3},
    {"lowest_is_0", lowest_is_0},
    {"lowest_is_1", lowest_is_1},
    {"lowest_is_2", lowest_is_2},
    {"low_ones_are_free", low_ones_are_free},
    {"high_ones_are_free", high_ones_are_free},
    {"takes_over", takes_over},
    {"reuses_numbers", reuses_numbers},
    {"reuses_all_numbers", reuses_all_numbers},
    {"sockets_on_reused_numbers", sockets_on_reused_numbers},
    {"limit_of_8", limit_of_8},
    {"limit_of_3", limit_of_3},
    {"limit_of_0", limit_of_0},
    {"dup_from_10", dup_from_10},
    {"dup_to_fixed_ones", dup_to_fixed_ones},
    {"one_of_each_kind", one_of_each_kind},
    {"watches_by_select", watches_by_select},
    {"walks_its_folder", walks_its_folder},
    {"writes_to_what_it_was_given", writes_to_what_it_was_given},
    {"truncates_what_it_was_given", truncates_what_it_was_given},
    {"seeks_in_its_output", seeks_in_its_output},
    {"leaves_its_output_non_blocking", leaves_its_output_non_blocking},
    {NULL, NULL}};
