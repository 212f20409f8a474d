/*
 * Children of all kinds, each of which records so many events with its kind and its number: forks [KIND|stay]
 *
 * With a kind it is a child that was executed. Who stays has only children that the C library knows of.
 */
#define _GNU_SOURCE
#include <kymo/kymo.h>

#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

KYMO_EVENT(forks, live, KYMO_U32(pid), KYMO_U32(kind), KYMO_U64(number));

enum { EVENTS = 1000 };
enum kind { PARENT, FORK, FORK_ALONE, CLONE, IN_HANDLER, GRANDCHILD, VFORK, SPAWNED, EXECUTED, VFORK_EXECUTED };

static void live(uint32_t kind)
{
    for (uint64_t number = 0; number < EVENTS; ++number)
        kymo_forks_live((uint32_t)syscall(SYS_getpid), kind, number);
}

static void child(uint32_t kind)
{
    live(kind);
    _exit(0);
}

static void wait_for(pid_t pid)
{
    int status;
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
        abort();
}

static volatile pid_t of_handler;

static void handle(int signal)
{
    (void)signal;
    of_handler = fork();
    if (of_handler == 0)
        child(IN_HANDLER);
}

int main(int argc, char **argv)
{
    char kind[8];
    char *arguments[] = {argv[0], kind, NULL};
    pid_t pid;
    const bool stays = argc > 1 && strcmp(argv[1], "stay") == 0;
    if (argc > 1 && !stays) {
        live((uint32_t)atoi(argv[1]));
        return 0;
    }
    live(PARENT);
    if ((pid = fork()) == 0)
        child(FORK);
    wait_for(pid);
#ifdef WITHOUT_HANDLERS
    if ((pid = _Fork()) == 0)
        child(FORK_ALONE);
    wait_for(pid);
    if ((pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)) == 0)
        child(CLONE);
    wait_for(pid);
#endif
    signal(SIGUSR1, handle);
    raise(SIGUSR1);
    wait_for(of_handler);
    if ((pid = fork()) == 0) {
        if ((pid = fork()) == 0)
            child(GRANDCHILD);
        wait_for(pid);
        _exit(0);
    }
    wait_for(pid);
    if (stays) {
        live(PARENT);
        return 0;
    }
    /* It has the memory of its parent, and records there. */
    if ((pid = vfork()) == 0) {
        live(VFORK);
        _exit(0);
    }
    wait_for(pid);
    snprintf(kind, sizeof kind, "%d", SPAWNED);
    if (posix_spawn(&pid, argv[0], NULL, NULL, arguments, environ) != 0)
        abort();
    wait_for(pid);
    snprintf(kind, sizeof kind, "%d", VFORK_EXECUTED);
    if ((pid = vfork()) == 0) {
        execv(argv[0], arguments);
        _exit(1);
    }
    wait_for(pid);
    live(PARENT);
    /* What it was before it is another program stays. */
    snprintf(kind, sizeof kind, "%d", EXECUTED);
    execv(argv[0], arguments);
    return 1;
}
