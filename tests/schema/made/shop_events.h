/* Made by `kymo schema build` from the schema shop, version 3. Changes here are lost with the next build. */
#ifndef KYMO_SCHEMA_SHOP_H
#define KYMO_SCHEMA_SHOP_H

#include <kymo/kymo.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverlength-strings"

/* Events of the shop's front end */

/* outcome: What a look into the cache finds */
enum shop_outcome {
    SHOP_OUTCOME_MISSING = 0, /* it has to be fetched */
    SHOP_OUTCOME_FOUND = 1,
    SHOP_OUTCOME_EXPIRED = 16,
};

/* wide */
#define SHOP_WIDE_LOW UINT64_C(1)
#define SHOP_WIDE_HIGH UINT64_C(18446744073709551615)

/* cache: The cache of pages */

/*
 * A page is looked for
 * page: its address
 * size (bytes): its size; 0: unknown
 * times (ms)
 */
KYMO_EVENT_LINES("level 6\n"
                 "schema shop 3 0 4\n", cache, look, KYMO_TEXT(page), KYMO_U32(size), KYMO_ENUM_LABELS(u8, result, "missing=0, found=1, expired=16"), KYMO_HEX64(hash), KYMO_ARRAY(u8, 16, digest), KYMO_SEQUENCE(f64, times), KYMO_POINTER(at), KYMO_BOOL(hit), KYMO_ENUM_LABELS(u64, w, "low=1, high=18446744073709551615"), KYMO_TEXT(type));

KYMO_EVENT_LINES("level 14\n"
                 "schema shop 3 0 5\n"
                 "as begin key=id name=page group=\"cache:fetch\" within=@process\n", cache, fetch_begin, KYMO_U64(id), KYMO_TEXT(page));

/* number: as `id` of the begin */
KYMO_EVENT_LINES("level 13\n"
                 "schema shop 3 0 6\n"
                 "as end key=number name=\"fetch\" group=\"cache:fetch\" within=@process\n", cache, fetch_end, KYMO_U64(number));

KYMO_EVENT_LINES("level 14\n"
                 "schema shop 3 0 7\n"
                 "as send key=id name=\"job\" group=\"cache:job\"\n", cache, submit, KYMO_U32(id));

KYMO_EVENT_LINES("level 14\n"
                 "schema shop 3 0 8\n"
                 "as receive key=job early=5000 name=\"job\" group=\"cache:job\"\n", cache, take, KYMO_U32(job), KYMO_U32(count));

KYMO_EVENT_LINES("level 14\n"
                 "schema shop 3 0 9\n"
                 "as counter value=entries unit=\"pages\" name=\"entries\" within=@process\n", cache, fill, KYMO_U64(entries));

KYMO_EVENT_LINES("level 14\n"
                 "schema shop 3 0 10\n"
                 "as state state=\"busy\" group=\"Workers\" name=\"worker\" within=@process\n", cache, busy);

KYMO_EVENT_LINES("level 14\n"
                 "schema shop 3 0 11\n"
                 "as state group=\"Workers\" name=\"worker\" within=@process\n", cache, idle);

/* A page is rendered */
KYMO_EVENT_LINES("level 6\n"
                 "schema shop 3 0 20\n"
                 "as begin name=\"render\" group=\"cache:render\" within=@thread\n", cache, render_begin, KYMO_TEXT(page), KYMO_ARRAY(u8, 4, parts), KYMO_SEQUENCE(f64, weights));

/* The end of `render` */
KYMO_EVENT_LINES("level 6\n"
                 "schema shop 3 0 21\n"
                 "as end name=\"render\" group=\"cache:render\" within=@thread\n", cache, render_end);

KYMO_EVENT_LINES("level 14\n"
                 "schema shop 3 0 22\n"
                 "as begin name=\"wait\" group=\"cache:wait\" within=@thread\n", cache, wait_begin);

/* The end of `wait` */
KYMO_EVENT_LINES("level 14\n"
                 "schema shop 3 0 23\n"
                 "as end name=\"wait\" group=\"cache:wait\" within=@thread\n", cache, wait_end);

/* KYMO_CACHE_RENDER_SCOPE(...); records `cache:render` from here to the end of the block. Its arguments are those of kymo_cache_render_begin(). */
KYMO_SCOPE_END(kymo_cache_render);
#define KYMO_CACHE_RENDER_SCOPE(...) KYMO_SCOPE_OF(kymo_cache_render, __COUNTER__, __VA_ARGS__)

/* KYMO_CACHE_WAIT_SCOPE(...); records `cache:wait` from here to the end of the block. Its arguments are those of kymo_cache_wait_begin(). */
KYMO_SCOPE_END(kymo_cache_wait);
#define KYMO_CACHE_WAIT_SCOPE(...) KYMO_SCOPE_OF(kymo_cache_wait, __COUNTER__, __VA_ARGS__)

#pragma GCC diagnostic pop

#endif
