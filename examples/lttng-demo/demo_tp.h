/*
 * Tracepoints of the demo: a job queue with several workers.
 *
 * submit   a job enters the queue
 * begin    a worker takes it
 * chunk    the worker reports sizes it handled (a sequence) and a checksum
 * end      the worker is done with it
 */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER jobs

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./demo_tp.h"

#if !defined(DEMO_TP_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define DEMO_TP_H

#include <lttng/tracepoint.h>
#include <stddef.h>
#include <stdint.h>

LTTNG_UST_TRACEPOINT_ENUM(
    jobs, kind,
    LTTNG_UST_TP_ENUM_VALUES(
        lttng_ust_field_enum_value("PARSE", 0)
        lttng_ust_field_enum_value("COMPRESS", 1)
        lttng_ust_field_enum_value("RENDER", 2)
        lttng_ust_field_enum_range("CUSTOM", 3, 9)
    )
)

LTTNG_UST_TRACEPOINT_EVENT(
    jobs, submit,
    LTTNG_UST_TP_ARGS(uint32_t, id, int, kind, const char *, name, uint32_t, queue_depth),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(uint32_t, id, id)
        lttng_ust_field_enum(jobs, kind, int, kind, kind)
        lttng_ust_field_string(name, name)
        lttng_ust_field_integer(uint32_t, queue_depth, queue_depth)
    )
)
LTTNG_UST_TRACEPOINT_LOGLEVEL(jobs, submit, LTTNG_UST_TRACEPOINT_LOGLEVEL_INFO)

LTTNG_UST_TRACEPOINT_EVENT(
    jobs, begin,
    LTTNG_UST_TP_ARGS(uint32_t, id, int, worker),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(uint32_t, id, id)
        lttng_ust_field_integer(int, worker, worker)
    )
)

LTTNG_UST_TRACEPOINT_EVENT(
    jobs, chunk,
    LTTNG_UST_TP_ARGS(uint32_t, id, const uint16_t *, sizes, size_t, count, uint64_t, checksum, double, ratio),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(uint32_t, id, id)
        lttng_ust_field_sequence(uint16_t, sizes, sizes, size_t, count)
        lttng_ust_field_integer_hex(uint64_t, checksum, checksum)
        lttng_ust_field_float(double, ratio, ratio)
    )
)

LTTNG_UST_TRACEPOINT_EVENT(
    jobs, end,
    LTTNG_UST_TP_ARGS(uint32_t, id, int64_t, result),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(uint32_t, id, id)
        lttng_ust_field_integer(int64_t, result, result)
    )
)

#endif

#include <lttng/tracepoint-event.h>
