// sigabbrev_np(), of glibc 2.32: Linux's numbers on x86-64.
#define _GNU_SOURCE
#include <signal.h>
#include <stddef.h>
#include <string.h>

const char* sigabbrev_np(int number) {
  static const char* const names[] = {
      NULL,   "HUP",  "INT",  "QUIT", "ILL",    "TRAP",   "ABRT",  "BUS",  "FPE",  "KILL", "USR1",
      "SEGV", "USR2", "PIPE", "ALRM", "TERM",   "STKFLT", "CHLD",  "CONT", "STOP", "TSTP", "TTIN",
      "TTOU", "URG",  "XCPU", "XFSZ", "VTALRM", "PROF",   "WINCH", "POLL", "PWR",  "SYS"};
  return number > 0 && number < (int)(sizeof names / sizeof *names) ? names[number] : NULL;
}
