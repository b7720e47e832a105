// Of glibc 2.32: libstdc++ counts with atomics where it is not set.
char __libc_single_threaded = 0;
