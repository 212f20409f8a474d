/*
 * Two tracepoints to filter: `one` has a single integer, `fifty` has fifty of them. LTTng-UST copies every field of an
 * event before it looks at the filter, so the two differ by what that copy costs.
 */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER kymo_bench

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./provider.h"

#if !defined(PROVIDER_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define PROVIDER_H

#include <lttng/tracepoint.h>
#include <stdint.h>

#define FIELD(tens, ones) lttng_ust_field_integer(uint32_t, f##tens##ones, values[tens * 10 + ones])
#define TEN_FIELDS(tens)                                                                                               \
    FIELD(tens, 0) FIELD(tens, 1) FIELD(tens, 2) FIELD(tens, 3) FIELD(tens, 4)                                         \
    FIELD(tens, 5) FIELD(tens, 6) FIELD(tens, 7) FIELD(tens, 8) FIELD(tens, 9)

LTTNG_UST_TRACEPOINT_EVENT(kymo_bench, one,
    LTTNG_UST_TP_ARGS(int, a),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(int, a, a)))

LTTNG_UST_TRACEPOINT_EVENT(kymo_bench, fifty,
    LTTNG_UST_TP_ARGS(const uint32_t *, values),
    LTTNG_UST_TP_FIELDS(TEN_FIELDS(0) TEN_FIELDS(1) TEN_FIELDS(2) TEN_FIELDS(3) TEN_FIELDS(4)))

#endif

#include <lttng/tracepoint-event.h>
