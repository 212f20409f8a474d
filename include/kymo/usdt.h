/*
 * Events as USDT probes: a note in the ELF file for each event, which tools such as bpftrace, perf
 * and `kymo record --usdt` find.
 *
 *     site     control byte == attached ── both 0: nothing
 *                └ not equal ── attached: kymo_inner_usdt_EVENT(): nop, where the kernel puts its breakpoint
 *                            └─ control byte: filter, record
 *
 * The note names a semaphore: 16 bits that the kernel increments in each process while a tool is
 * attached. They are the upper half of `attached`, whose lower half is always 0, so that `attached`
 * equals a control byte only if both are 0: one comparison tells whether anything wants the event.
 * The word lies beside the pointer to the control byte, in the program's own data, where the kernel
 * can change it; no code of ours ever writes to it. docs/tracer.md, "USDT", describes the arguments.
 */
#ifndef KYMO_USDT_H
#define KYMO_USDT_H

#include "write.h"

#ifndef KYMO_OFF

/* Bytes of a text without a zero at its end that tools see, with the zero that they need. */
#define KYMO_INNER_USDT_TEXT_BYTES 256

/* Tools find semaphores in this section, by the difference of its address and its place in the file. */
#define KYMO_INNER_PROBES __attribute__((section(".probes")))

/*
 * Whether the recorder or a tool wants the event. The comparison is as wide as `attached` is. An
 * event that is off costs three loads, which processors do side by side, and a branch: no more than
 * without `attached` where a processor has three load ports (docs/tracer.md). A comparison with
 * memory costs more, since it does not become one operation with the branch.
 */
KYMO_INNER_WRITER bool kymo_inner_is_wanted(uint32_t control, const volatile uint32_t *attached)
{
    return control != *attached;
}

/* A copy of the text that ends with a zero, as tools need it. */
KYMO_INNER_WRITER const char *kymo_inner_usdt_text(char *to, struct kymo_text text)
{
    const uint64_t most = KYMO_INNER_USDT_TEXT_BYTES - 1;
    const uint64_t length = text.length < most ? text.length : most;
    kymo_inner_put_many(KYMO_INNER_POINTER(unsigned char *, to), text.bytes, length);
    to[length] = 0;
    return to;
}

/* The first twelve of an event's fields; `kymo_absent` stands for those that it does not have. */
#define KYMO_INNER_TWELVE(what, ...) \
    KYMO_INNER_TWELVE_(what, __VA_ARGS__, (kymo_absent), (kymo_absent), (kymo_absent), (kymo_absent), (kymo_absent), \
                       (kymo_absent), (kymo_absent), (kymo_absent), (kymo_absent), (kymo_absent), (kymo_absent), \
                       (kymo_absent), 0)
#define KYMO_INNER_TWELVE_(what, name, a, b, c, d, e, f, g, h, i, j, k, l, ...) what(a, b, c, d, e, f, g, h, i, j, k, l)

/* The arguments' text, separated by spaces: SIZE@OFFSET(REGISTER), where the size of signed integers is negative. */
#define KYMO_INNER_NOTES(a, b, c, d, e, f, g, h, i, j, k, l) \
    KYMO_INNER_NOTE("", a) KYMO_INNER_NOTE(" ", b) KYMO_INNER_NOTE(" ", c) KYMO_INNER_NOTE(" ", d) \
    KYMO_INNER_NOTE(" ", e) KYMO_INNER_NOTE(" ", f) KYMO_INNER_NOTE(" ", g) KYMO_INNER_NOTE(" ", h) \
    KYMO_INNER_NOTE(" ", i) KYMO_INNER_NOTE(" ", j) KYMO_INNER_NOTE(" ", k) KYMO_INNER_NOTE(" ", l)
#define KYMO_INNER_NOTE(before, field) KYMO_INNER_NOTE_(before, KYMO_INNER_INSIDE field)
#define KYMO_INNER_NOTE_(before, ...) KYMO_INNER_NOTE__(before, __VA_ARGS__, 0)
#define KYMO_INNER_NOTE__(before, kind, ...) KYMO_INNER_NOTE_##kind(before, __VA_ARGS__)
#define KYMO_INNER_NOTE_kymo_scalar(before, type, ctype, name, ...) before "%c[kymo_size_" #name "]@" KYMO_INNER_NOTE_AT(name)
#define KYMO_INNER_NOTE_kymo_enum(before, type, ctype, name, ...) KYMO_INNER_NOTE_kymo_scalar(before, type, ctype, name, 0)
#define KYMO_INNER_NOTE_kymo_text(before, name, ...) before "8@" KYMO_INNER_NOTE_AT(name)
#define KYMO_INNER_NOTE_kymo_chars(before, name, ...) before "8@" KYMO_INNER_NOTE_AT(name)
#define KYMO_INNER_NOTE_kymo_array(before, type, ctype, count, name, ...) before "8@" KYMO_INNER_NOTE_AT(name)
#define KYMO_INNER_NOTE_kymo_sequence(before, type, ctype, name, ...) before "8@" KYMO_INNER_NOTE_AT(name)
#define KYMO_INNER_NOTE_kymo_absent(before, ...)
#if defined(__x86_64__)
#define KYMO_INNER_NOTE_AT(name) "%c[kymo_at_" #name "](%[kymo_seen])"
#else
#define KYMO_INNER_NOTE_AT(name) "[%[kymo_seen], %c[kymo_at_" #name "]]"
#endif
/* An address that the linker knows, also in position-independent code. */
#if defined(__x86_64__) || defined(__clang__)
#define KYMO_INNER_SYMBOL "i"
#else
#define KYMO_INNER_SYMBOL "S"
#endif

/* The numbers in that text. */
#define KYMO_INNER_NUMBERS(a, b, c, d, e, f, g, h, i, j, k, l) \
    KYMO_INNER_NUMBER(a) KYMO_INNER_NUMBER(b) KYMO_INNER_NUMBER(c) KYMO_INNER_NUMBER(d) KYMO_INNER_NUMBER(e) \
    KYMO_INNER_NUMBER(f) KYMO_INNER_NUMBER(g) KYMO_INNER_NUMBER(h) KYMO_INNER_NUMBER(i) KYMO_INNER_NUMBER(j) \
    KYMO_INNER_NUMBER(k) KYMO_INNER_NUMBER(l)
#define KYMO_INNER_NUMBER(field) KYMO_INNER_NUMBER_(KYMO_INNER_INSIDE field)
#define KYMO_INNER_NUMBER_(...) KYMO_INNER_NUMBER__(__VA_ARGS__, 0)
#define KYMO_INNER_NUMBER__(kind, ...) KYMO_INNER_NUMBER_##kind(__VA_ARGS__)
#define KYMO_INNER_NUMBER_kymo_scalar(type, ctype, name, ...) \
    , [kymo_size_##name] "n"(KYMO_INNER_SIGN(type, ctype) * KYMO_INNER_CAST(int, sizeof(ctype))) KYMO_INNER_NUMBER_AT(name)
#define KYMO_INNER_NUMBER_kymo_enum(type, ctype, name, ...) KYMO_INNER_NUMBER_kymo_scalar(type, ctype, name, 0)
#define KYMO_INNER_NUMBER_kymo_text(name, ...) KYMO_INNER_NUMBER_AT(name)
#define KYMO_INNER_NUMBER_kymo_chars(name, ...) KYMO_INNER_NUMBER_AT(name)
#define KYMO_INNER_NUMBER_kymo_array(type, ctype, count, name, ...) KYMO_INNER_NUMBER_AT(name)
#define KYMO_INNER_NUMBER_kymo_sequence(type, ctype, name, ...) KYMO_INNER_NUMBER_AT(name)
#define KYMO_INNER_NUMBER_kymo_absent(...)
#define KYMO_INNER_NUMBER_AT(name) , [kymo_at_##name] "n"(__builtin_offsetof(__typeof__(kymo_seen), name))

/* -1 for signed integers. Floating-point numbers are given as their bits: readers know none in memory. */
#ifdef __cplusplus
#define KYMO_INNER_SIGN(type, ctype) (type[0] == 'i' ? -1 : 1)
#else
#define KYMO_INNER_SIGN(type, ctype) _Generic((ctype)0, int8_t: -1, int16_t: -1, int32_t: -1, int64_t: -1, default: 1)
#endif

/* Copies of texts that may have no zero at their end. */
#define KYMO_INNER_COPIES(a, b, c, d, e, f, g, h, i, j, k, l) \
    KYMO_INNER_COPY(a) KYMO_INNER_COPY(b) KYMO_INNER_COPY(c) KYMO_INNER_COPY(d) KYMO_INNER_COPY(e) KYMO_INNER_COPY(f) \
    KYMO_INNER_COPY(g) KYMO_INNER_COPY(h) KYMO_INNER_COPY(i) KYMO_INNER_COPY(j) KYMO_INNER_COPY(k) KYMO_INNER_COPY(l)
#define KYMO_INNER_COPY(field) KYMO_INNER_COPY_(KYMO_INNER_INSIDE field)
#define KYMO_INNER_COPY_(...) KYMO_INNER_COPY__(__VA_ARGS__, 0)
#define KYMO_INNER_COPY__(kind, ...) KYMO_INNER_COPY_##kind(__VA_ARGS__)
#define KYMO_INNER_COPY_kymo_scalar(...)
#define KYMO_INNER_COPY_kymo_enum(...)
#define KYMO_INNER_COPY_kymo_chars(name, ...) \
    char name##_copied[KYMO_INNER_USDT_TEXT_BYTES]; \
    kymo_seen.name.bytes = kymo_inner_usdt_text(name##_copied, kymo_seen.name);
#ifdef __cplusplus
#define KYMO_INNER_COPY_kymo_text(name, ...) KYMO_INNER_COPY_kymo_chars(name, 0)
#else
#define KYMO_INNER_COPY_kymo_text(...)
#endif
#define KYMO_INNER_COPY_kymo_array(...)
#define KYMO_INNER_COPY_kymo_sequence(...)
#define KYMO_INNER_COPY_kymo_absent(...)

/*
 * The function with the event's probe, out of line: it runs while a tool is attached. The notes are
 * those of <sys/sdt.h>. The event's address makes the function differ from those of other events, which a
 * linker could fold into one. The flag "?" puts one into the group of a function that the linker may
 * drop, and the base tells tools that a file was moved.
 */
#define KYMO_INNER_USDT(function, attached, provider, title, ...) \
    static __attribute__((noinline, cold, unused)) KYMO_INNER_NO_RACES void kymo_inner_usdt_##function( \
        const struct kymo_inner_of_##function *kymo_of) \
    { \
        struct kymo_inner_of_##function kymo_seen = *kymo_of; \
        KYMO_INNER_TWELVE(KYMO_INNER_COPIES, __VA_ARGS__) \
        __asm__ volatile( \
            "990:\tnop\n" \
            "\t.pushsection .note.stapsdt,\"?\",\"note\"\n" \
            "\t.balign 4\n" \
            "\t.4byte 992f-991f, 994f-993f, 3\n" \
            "991:\t.asciz \"stapsdt\"\n" \
            "992:\t.balign 4\n" \
            "993:\t.8byte 990b\n" \
            "\t.8byte _.stapsdt.base\n" \
            "\t.8byte %c[kymo_attached]+2\n" \
            "\t.asciz \"" provider "\"\n" \
            "\t.asciz \"" title "\"\n" \
            "\t.asciz \"" KYMO_INNER_TWELVE(KYMO_INNER_NOTES, __VA_ARGS__) "\"\n" \
            "994:\t.balign 4\n" \
            "\t.popsection\n" \
            "\t.ifndef _.stapsdt.base\n" \
            "\t.pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n" \
            "\t.weak _.stapsdt.base\n" \
            "\t.hidden _.stapsdt.base\n" \
            "_.stapsdt.base:\t.space 1\n" \
            "\t.size _.stapsdt.base, 1\n" \
            "\t.popsection\n" \
            "\t.endif" \
            : \
            : [kymo_seen] "r"(&kymo_seen), [kymo_own] "r"(&attached), [kymo_attached] KYMO_INNER_SYMBOL(&attached) \
              KYMO_INNER_TWELVE(KYMO_INNER_NUMBERS, __VA_ARGS__) \
            : "memory"); \
    }

#endif
#endif
