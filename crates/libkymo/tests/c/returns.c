/*
 * Handlers call fork, and the child returns from the handler into the event that it has interrupted: that is the parent's, and the child goes
 * on with events of its own.
 */
#include <kymo/kymo.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

KYMO_EVENT(returns, live, KYMO_U64(child), KYMO_U64(number), KYMO_TEXT(text));

enum { CHILDREN = 1500 };
static const char text[] = "a text that is copied while somebody forks, and which is long enough for that to happen";
static volatile sig_atomic_t child, children, killed, failed;

/* Once more, when the event that was interrupted is over. */
static void again(void)
{
    const struct itimerval soon = {{0, 0}, {0, 50 + (int)children % 100}};
    setitimer(ITIMER_REAL, &soon, NULL);
}

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
    again();
}

/* The parent overwrites what it has, so that there always is room: its events are written where they are. */
static void overwrite(void)
{
    char line[1024];
    const uint64_t mode_and_limit[] = {1, 32};
    FILE *const maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps)) {
        char *const path = strchr(line, '/'), *const end = strstr(line, ".ctl");
        if (!path || !end)
            continue;
        end[4] = 0;
        const int memory = open(path, O_WRONLY);
        if (pwrite(memory, mode_and_limit, sizeof mode_and_limit, 520) != sizeof mode_and_limit)
            _exit(3);
        close(memory);
        break;
    }
    if (maps)
        fclose(maps);
}

int main(void)
{
    const struct sigaction action = {.sa_handler = handle};
    overwrite();
    sigaction(SIGALRM, &action, NULL);
    again();
    /* The first one may be a child's too, which was about to begin when it was interrupted. */
    for (uint64_t number = 1; children < CHILDREN; ++number) {
        kymo_returns_live(0, number, text);
        if (child) {
            for (uint64_t more = 1; more < 4; ++more)
                kymo_returns_live(1, more, text);
            _exit(0);
        }
    }
    printf("%d children, %d killed, %d failed\n", (int)children, (int)killed, (int)failed);
    return killed || failed;
}
