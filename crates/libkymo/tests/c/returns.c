/*
 * Handlers call fork, and the child returns from the handler into the event that it has interrupted: that is the parent's, and the child goes
 * on with events of its own.
 */
#include <kymo/kymo.h>

#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

KYMO_EVENT(returns, live, KYMO_U64(child), KYMO_U64(number), KYMO_TEXT(text));

enum { CHILDREN = 1500 };
static const char text[] = "a text that is copied while somebody forks, and which is long enough for that to happen";
static volatile sig_atomic_t child, children, killed, failed;

static void handle(int number)
{
    (void)number;
    if (child || children == CHILDREN)
        return;
    const pid_t pid = fork();
    if (pid == 0) {
        child = 1;
        /* While the event below goes on. */
        kymo_returns_live(1, 0, text);
        return;
    }
    int status = 0;
    waitpid(pid, &status, 0);
    killed += WIFSIGNALED(status);
    failed += WIFEXITED(status) && WEXITSTATUS(status) != 0;
    ++children;
}

int main(void)
{
    const struct sigaction action = {.sa_handler = handle};
    const struct itimerval often = {{0, 500}, {0, 500}};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    for (uint64_t number = 0; children < CHILDREN; ++number) {
        kymo_returns_live(0, number, text);
        if (child) {
            for (uint64_t more = 1; more < 4; ++more)
                kymo_returns_live(1, more, text);
            /* Whoever takes files that nothing is in must not take this one. */
            _exit(0);
        }
    }
    printf("%d children, %d killed, %d failed\n", (int)children, (int)killed, (int)failed);
    return killed || failed;
}
