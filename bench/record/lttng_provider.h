/*
 * The events of hits.c, for LTTng-UST.
 */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER kymo_record

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./lttng_provider.h"

#if !defined(LTTNG_PROVIDER_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define LTTNG_PROVIDER_H

#include <lttng/tracepoint.h>
#include <stdint.h>

LTTNG_UST_TRACEPOINT_EVENT(kymo_record, one,
    LTTNG_UST_TP_ARGS(uint32_t, value),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint32_t, value, value)))

LTTNG_UST_TRACEPOINT_EVENT(kymo_record, three,
    LTTNG_UST_TP_ARGS(int, a, int, b, const char *, name),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(int, a, a)
        lttng_ust_field_integer(int, b, b)
        lttng_ust_field_string(name, name)))

#endif

#include <lttng/tracepoint-event.h>
