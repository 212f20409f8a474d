/* Events of a thread that may call nothing of the system but what docs/tracer.md says that they call, from its first one on. */
#include <kymo/kymo.h>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

KYMO_EVENT(sandbox, live, KYMO_U64(number));

#define ALLOW(call) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static void *inside(void *nothing)
{
    struct sock_filter calls[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(SYS_rt_sigprocmask), ALLOW(SYS_mmap), ALLOW(SYS_madvise), ALLOW(SYS_getpid), ALLOW(SYS_gettid), ALLOW(SYS_prctl),
        ALLOW(SYS_exit_group), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    const struct sock_fprog program = {sizeof calls / sizeof calls[0], calls};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        _exit(1);
    for (uint64_t number = 0; number < 10000; ++number)
        kymo_sandbox_live(number);
    _exit(0);
    return nothing;
}

int main(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, inside, NULL) != 0)
        return 1;
    pthread_join(thread, NULL);
    return 2;
}
