/* A load of switches and system calls: on each of some CPUs, two processes hand a byte to and fro. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void hand(int from, int to) {
    char byte = 0;
    if (read(from, &byte, 1) != 1 || write(to, &byte, 1) != 1) _exit(1);
}

static void pair(int cpu, int rounds) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    sched_setaffinity(0, sizeof set, &set);
    int there[2], back[2];
    if (pipe(there) != 0 || pipe(back) != 0) _exit(1);
    if (fork() == 0) {
        for (int round = 0; round < rounds; round++) hand(there[0], back[1]);
        _exit(0);
    }
    if (write(there[1], "x", 1) != 1) _exit(1);
    for (int round = 1; round < rounds; round++) hand(back[0], there[1]);
    wait(0);
}

int main(int count, char **words) {
    if (count != 3) return 2;
    int rounds = atoi(words[1]), cpus = atoi(words[2]);
    double begin = now();
    for (int cpu = 0; cpu < cpus; cpu++) {
        if (fork() == 0) {
            pair(cpu, rounds);
            _exit(0);
        }
    }
    while (wait(0) > 0) {}
    printf("%.6f\n", now() - begin);
    return 0;
}
