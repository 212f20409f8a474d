/*
 * Kymograph: events of programs in C11 and C++17, recorded by `kymo record`. Complete description:
 * docs/tracer.md.
 *
 *     #include <kymo/kymo.h>                                             cc program.c $(pkg-config --cflags --libs kymo)
 *
 *     KYMO_EVENT(net, packet_sent, KYMO_U32(port), KYMO_TEXT(host));
 *
 *     kymo_net_packet_sent(443, "example.org");
 *
 * An event that is off costs three loads and a predicted branch. Each event is a USDT probe, too.
 * Signal handlers may record events, and so may constructors, destructors, and children of fork. The
 * tracer allocates nothing, starts no thread, and preserves errno. With -DKYMO_OFF, and where there
 * is no tracer (other systems than Linux on x86-64 and aarch64), everything here does nothing, and
 * libkymo is not needed.
 */
#ifndef KYMO_H
#define KYMO_H

#include "event.h"

/*
 * KYMO_EVENT(provider, name, fields...) defines an event, at file scope or in a namespace: the inline functions
 *
 *     void kymo_PROVIDER_NAME(arguments)      records the event, if it is on
 *     bool kymo_PROVIDER_NAME_is_on(void)     whether it is on, for arguments that you would otherwise not compute
 *
 * An event has 0 to 64 fields. The arguments of the function are those of the fields, in their
 * order.
 */
#define KYMO_EVENT(provider, ...) KYMO_INNER_EVENT("", #provider, kymo_##provider##_, __VA_ARGS__)

/*
 * Like KYMO_EVENT, with a log level: emergency, alert, critical, error, warning, notice, info,
 * debug_system, debug_program, debug_process, debug_module, debug_unit, debug_function, debug_line,
 * debug. An event without a level has the level debug.
 */
#define KYMO_EVENT_AT(level, provider, ...) \
    KYMO_INNER_EVENT("level " KYMO_INNER_LEVEL_##level "\n", #provider, kymo_##provider##_, __VA_ARGS__)

/* Like KYMO_EVENT, with a role for analyses: begin, end, counter, send, receive, checkpoint. */
#define KYMO_EVENT_AS(role, provider, ...) \
    KYMO_INNER_EVENT("role " KYMO_INNER_ROLE_##role "\n", #provider, kymo_##provider##_, __VA_ARGS__)

/* Like KYMO_ENUM, with the labels as one text: for headers that `kymo schema build` makes, whose labels may be names of macros. */
#define KYMO_ENUM_LABELS(type, name, labels) \
    (kymo_enum, #type, KYMO_INNER_C_##type, name, labels, (kymo_label_of_none = 0))

/*
 * Like KYMO_EVENT, with lines of its definition, for headers that `kymo schema build` makes (docs/define.md).
 */
#define KYMO_EVENT_LINES(lines, provider, ...) KYMO_INNER_EVENT(lines, #provider, kymo_##provider##_, __VA_ARGS__)

/*
 * Fields. The argument of most fields has the type in their name.
 */
#define KYMO_U8(name) (kymo_scalar, "u8", uint8_t, name)
#define KYMO_U16(name) (kymo_scalar, "u16", uint16_t, name)
#define KYMO_U32(name) (kymo_scalar, "u32", uint32_t, name)
#define KYMO_U64(name) (kymo_scalar, "u64", uint64_t, name)
#define KYMO_I8(name) (kymo_scalar, "i8", int8_t, name)
#define KYMO_I16(name) (kymo_scalar, "i16", int16_t, name)
#define KYMO_I32(name) (kymo_scalar, "i32", int32_t, name)
#define KYMO_I64(name) (kymo_scalar, "i64", int64_t, name)
/* Unsigned integers that are displayed in hexadecimal. */
#define KYMO_HEX8(name) (kymo_scalar, "x8", uint8_t, name)
#define KYMO_HEX16(name) (kymo_scalar, "x16", uint16_t, name)
#define KYMO_HEX32(name) (kymo_scalar, "x32", uint32_t, name)
#define KYMO_HEX64(name) (kymo_scalar, "x64", uint64_t, name)
#define KYMO_F32(name) (kymo_scalar, "f32", float, name)
#define KYMO_F64(name) (kymo_scalar, "f64", double, name)
#define KYMO_BOOL(name) (kymo_scalar, "bool", bool, name)
/* The address only: the memory behind it is not read. */
#define KYMO_POINTER(name) (kymo_scalar, "pointer", const void *, name)
/*
 * const char *, up to its zero; NULL is "(null)". In C++ also any type with data() and size():
 * std::string, std::string_view.
 */
#define KYMO_TEXT(name) (kymo_text, name)
/* Two arguments: const char *name, size_t name_length. */
#define KYMO_CHARS(name) (kymo_chars, name)
/*
 * An integer with named values: KYMO_ENUM(u8, state, idle=0, busy, broken=0xff). Values are
 * numbers, or macros that expand to numbers.
 */
#define KYMO_ENUM(type, name, ...) \
    (kymo_enum, #type, KYMO_INNER_C_##type, name, KYMO_INNER_QUOTED(__VA_ARGS__), \
     (KYMO_INNER_EACH(KYMO_INNER_LABEL, KYMO_INNER_COMMA, enum, __VA_ARGS__)))
/*
 * An array of `count` elements: u8 to u64, i8 to i64, x8 to x64, f32, f64, bool, pointer. The
 * argument is an array with that many elements; C compilers warn where they see that it has fewer.
 */
#define KYMO_ARRAY(type, count, name) (kymo_array, #type, KYMO_INNER_C_##type, count, name)
/* Two arguments: the first element's address, and size_t name_count. Sequences of u8 are bytes. */
#define KYMO_SEQUENCE(type, name) (kymo_sequence, #type, KYMO_INNER_C_##type, name)

/*
 * KYMO_CONTEXT(name, type, function) defines a context: a value that all events of the program
 * carry in sessions that ask for it. It is a number of an element type, returned by a function
 * without arguments. KYMO_CONTEXT_TEXT(name, function) is a text, up to its zero and to 1024 bytes.
 *
 * Each event then calls the function, also in signal handlers. A program may have 16 contexts. A
 * library that defines one must not be unloaded.
 */
#define KYMO_CONTEXT(name, type, function) \
    KYMO_INNER_CONTEXT(#type, KYMO_INNER_C_##type, sizeof(KYMO_INNER_C_##type), name, function, KYMO_INNER_OWN_NUMBER)
#define KYMO_CONTEXT_TEXT(name, function) KYMO_INNER_CONTEXT("text", const char *, 0, name, function, KYMO_INNER_OWN_TEXT)

/*
 * Durations of two events of yours: NAME_begin, with any fields, and NAME_end, without any. KYMO_SCOPE_END(kymo_PROVIDER_NAME)
 * stands behind the definitions of both. Then KYMO_SCOPE_OF(kymo_PROVIDER_NAME, __COUNTER__, arguments...); records the begin,
 * and the end at the end of the block, however control leaves the block, except by longjmp.
 */
#define KYMO_SCOPE_END(function) \
    KYMO_INNER_INLINE void kymo_inner_scope_end_##function(const bool *is_begun) \
    { \
        if (*is_begun) \
            function##_end(); \
    } \
    KYMO_INNER_ASSERT(1, "KYMO_SCOPE_END ends with a semicolon")
#define KYMO_SCOPE_OF(function, number, ...) KYMO_INNER_SCOPE_OF(function, number, __VA_ARGS__)
#define KYMO_INNER_SCOPE_OF(function, number, ...) \
    __attribute__((cleanup(kymo_inner_scope_end_##function), unused)) const bool kymo_inner_scope_##number = function##_begin_is_on(); \
    do { \
        if (kymo_inner_scope_##number) \
            function##_begin(__VA_ARGS__); \
    } while (0)

/* kymo_log(), KYMO_SCOPE(), KYMO_COUNTER() and others, which use these fields. */
#include "marks.h"

#endif
