/* What needs no definition: the same program in C and in C++. */
#include <kymo/kymo.h>
#include <stdlib.h>

static int evaluated;

static int count(void)
{
    return ++evaluated;
}

static int fact(int n)
{
    KYMO_SCOPE("fact");
    return n < 2 ? 1 : n * fact(n - 1);
}

static int fall(int n)
{
    KYMO_TRACE_TSC_NAMED(2, "fall");
    KYMO_LOG_TSC_NAMED(2, "fall");
    return n < 1 ? 0 : fall(n - 1);
}

static void pass(int is_early)
{
    KYMO_CHECKPOINT_HERE(5);
    KYMO_CHECKPOINT_SCOPE(6);
    KYMO_CHECKPOINT_SCOPE_NAMED("inside", (unsigned)count());
    if (is_early)
        return;
    KYMO_TRACE_TSC(1);
    KYMO_LOG_TSC(1000);
}

static const void *volatile nothing;

int main(void)
{
    static char long_text[2001];
    for (int at = 0; at < 2000; ++at)
        long_text[at] = 'x';
    errno = 77;
    kymo_log(KYMO_WARNING, "%d of %s", 3, "them");
    kymo_log(KYMO_INFO, "plain");
    kymo_log(KYMO_DEBUG, "%s", long_text);
    if (errno != 77)
        return 2;
    KYMO_CHECKPOINT("here", 42, long_text, KYMO_CHECKPOINT_NEW);
    KYMO_CHECKPOINT("there", (unsigned)count(), nothing, KYMO_CHECKPOINT_FAILURE);
    {
        KYMO_SCOPE("outer");
        KYMO_SCOPE("beside"); KYMO_SCOPE("these");
        fact(3);
    }
    for (int turn = 0; turn < 3; ++turn) {
        KYMO_SCOPE("turn");
        if (turn == 1)
            continue;
        if (turn == 2)
            break;
    }
    KYMO_BEGIN("job", 7);
    KYMO_END("job", 7);
    KYMO_COUNTER("queue", -5);
    KYMO_SEND(0x1234);
    KYMO_RECEIVE(0x1234);
    KYMO_RPC_CALL("open", 1);
    KYMO_RPC_DISPATCH("open", 1);
    KYMO_RPC_REPLY("open", 1);
    KYMO_RPC_RETURN("open", 1);
    KYMO_SIGNAL_SUBMIT(9, 1);
    KYMO_SIGNAL_RECEIVE(9, 2);
    {
        static unsigned char frame[20000];
        frame[0] = 1;
        frame[3] = 4;
        kymo_packet("eth0", KYMO_OUTBOUND, frame, 300);
        kymo_set_snap_length(4);
        kymo_packet("eth1", KYMO_INBOUND, frame, 60);
        kymo_packet("eth1", KYMO_UNKNOWN, NULL, 0);
        kymo_set_snap_length(100000);
        kymo_packet("eth0", KYMO_OUTBOUND, frame, sizeof frame);
    }
    pass(1);
    pass(0);
    for (int turn = 0; turn < 5; ++turn)
        fall(turn);
    /* What nobody wants is not evaluated. */
    return evaluated == (getenv("KYMO_SESSION") ? 3 : 0) ? 0 : 3;
}
