/*
 * Jobs of a few kinds, one after the other: how long do they take, and how long do they wait?
 *
 *     make -C examples/c && kymo record -- examples/c/jobs
 *     kymo print kymo-traces/jobs-*
 *     kymo pairs kymo-traces/jobs-*
 */
#include <kymo/kymo.h>

#include <stdlib.h>

/* What happens, and what is told of it. The functions kymo_jobs_queued() and kymo_jobs_done() have these arguments. */
KYMO_EVENT_AT(info, jobs, queued, KYMO_U32(id), KYMO_ENUM(u8, kind, sort=0, sum=1), KYMO_U32(size));
KYMO_EVENT_AT(info, jobs, done, KYMO_U32(id), KYMO_I64(result), KYMO_SEQUENCE(u32, first));

enum { JOBS = 1000, SIZE = 4096 };

static int compare(const void *a, const void *b)
{
    const uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return left < right ? -1 : left > right;
}

static int64_t sort(uint32_t *numbers, size_t size)
{
    KYMO_SCOPE("sort"); /* to the end of the function: kymo:begin and kymo:end */
    qsort(numbers, size, sizeof *numbers, compare);
    return numbers[0];
}

static int64_t sum(const uint32_t *numbers, size_t size)
{
    KYMO_SCOPE("sum");
    int64_t all = 0;
    for (size_t at = 0; at < size; ++at)
        all += numbers[at];
    return all;
}

int main(void)
{
    static uint32_t numbers[SIZE];
    for (uint32_t id = 0; id < JOBS; ++id) {
        const size_t size = 16 + (size_t)rand() % (SIZE - 16);
        const uint8_t kind = id % 3 == 0;
        kymo_jobs_queued(id, kind, (uint32_t)size);
        for (size_t at = 0; at < size; ++at)
            numbers[at] = (uint32_t)rand();
        const int64_t result = kind == 0 ? sort(numbers, size) : sum(numbers, size);
        kymo_jobs_done(id, result, numbers, 4);
        KYMO_COUNTER("done", id + 1);
        if (size > SIZE - 40)
            kymo_log(KYMO_WARNING, "job %u is large: %zu numbers", id, size);
    }
    return 0;
}
