/* A load of system calls on one CPU: prints the nanoseconds of each. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int main(int count, char **words) {
    if (count != 2) return 2;
    long calls = atol(words[1]);
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(0, &set);
    sched_setaffinity(0, sizeof set, &set);
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (long call = 0; call < calls; call++) syscall(SYS_getppid);
    clock_gettime(CLOCK_MONOTONIC, &end);
    double nanos = (double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec);
    printf("%.3f\n", nanos / (double)calls);
    return 0;
}
