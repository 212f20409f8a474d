/*
 * A program with the tracer before triggers: `program-x86_64.gz` is this file, built by `make.sh`. Recorders of today record it
 * as they did then.
 */
#include <kymo/kymo.h>
#include <stdio.h>
#include <unistd.h>

KYMO_EVENT(test, count, KYMO_U64(value));

int main(void)
{
    uint64_t value;
    while (!kymo_test_count_is_on())
        usleep(1000);
    for (value = 0; value < 1000; ++value)
        kymo_test_count(value);
    puts("done");
    fflush(stdout);
    (void)getchar();
    return 0;
}
