/*
 * Writes events: the structures that the headers and libkymo share, and the fast path that most
 * events take.
 *
 *     site     control byte ── 0: nothing
 *     enter    busy = frame ── clock ── room? same contexts? ──> id, ticks, CPU ──> where fields go
 *                 └ anything else: kymo_enter_slowly(): no lane yet, a handler of signals, the next sub-buffer, other contexts
 *     leave    at = end ── published (release) ── busy = 0
 *
 * Programs must not use these names directly. A signal handler may run between any two lines: while
 * busy is set it writes to another lane, and a write that it jumps out of was not published. The
 * library does the same in `enter.rs` and `write.rs` of `crates/tracer/src`; change both together.
 */
#ifndef KYMO_WRITE_H
#define KYMO_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where there is no tracer, or KYMO_OFF is defined, events are functions that do nothing. */
#if !defined(KYMO_OFF) && !(defined(__linux__) && defined(__LP64__) && (defined(__x86_64__) || defined(__aarch64__)) && \
                            __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
#define KYMO_OFF 1
#endif

/*
 * Maximum bytes of an event's fields: the longest texts and sequences are truncated, and that is
 * counted.
 */
#define KYMO_FIELD_BYTES_MAX 16384

#define KYMO_INNER_INLINE static inline __attribute__((always_inline, unused))
#define KYMO_INNER_UNUSED __attribute__((unused))
#ifdef __cplusplus
#define KYMO_INNER_ASSERT static_assert
#define KYMO_INNER_CAST(type, value) static_cast<type>(value)
#define KYMO_INNER_POINTER(type, value) reinterpret_cast<type>(value)
/* Bytes that are aligned as the type demands. */
#define KYMO_INNER_ALIGNED(type, bytes) static_cast<type>(static_cast<void *>(bytes))
#else
#define KYMO_INNER_ASSERT _Static_assert
#define KYMO_INNER_CAST(type, value) ((type)(value))
#define KYMO_INNER_POINTER(type, value) ((type)(value))
#define KYMO_INNER_ALIGNED(type, bytes) ((type)(void *)(bytes))
#endif

/* A text as filters see it. */
struct kymo_text {
    const char *bytes;
    uint64_t length;
};

/* A sequence as filters see it. */
struct kymo_sequence {
    const void *elements;
    uint64_t count;
};

#ifndef KYMO_OFF

/*
 * Thread sanitizers do not know that the recorder passes memory from one thread to the next, and
 * report a race. So this code is not instrumented for races, and does not call the sanitizer's
 * memcpy, which is.
 */
#if defined(__SANITIZE_THREAD__)
#define KYMO_INNER_SEES_RACES 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define KYMO_INNER_SEES_RACES 1
#endif
#endif
#if defined(__has_feature)
#if __has_feature(memory_sanitizer)
#define KYMO_INNER_SEES_MEMORY 1
#endif
#endif
#if defined(KYMO_INNER_SEES_RACES)
#define KYMO_INNER_NO_RACES __attribute__((no_sanitize("thread")))
#elif defined(KYMO_INNER_SEES_MEMORY)
/* libkymo has no sanitizer: memory that it writes counts as never written. */
#define KYMO_INNER_NO_RACES __attribute__((no_sanitize("memory")))
#else
#define KYMO_INNER_NO_RACES
#endif
#define KYMO_INNER_WRITER KYMO_INNER_INLINE KYMO_INNER_NO_RACES
#define KYMO_INNER_RARELY(condition) __builtin_expect(!!(condition), 0)
#define KYMO_INNER_BARRIER() __asm__ volatile("" ::: "memory")

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* An event. Control byte: 0 is off, 1 is on, larger values are the slot of a filter. */
struct kymo_event {
    const unsigned char *control;
    uint32_t number; /* its ID plus one */
    uint32_t bytes;  /* of the definition */
    const char *definition;
    unsigned char off;
    volatile uint32_t attached; /* its upper half is the semaphore of its USDT probes; only the kernel writes it */
};

/* First words of a thread's state for writes that do not interrupt another write. */
struct kymo_lane {
    uintptr_t busy;
    unsigned char *memory;
    uint64_t fast; /* contexts for which the fast path writes events */
    uint64_t at, end, begin, base, published, contexts;
};

/* An event in progress. */
struct kymo_write {
    struct kymo_lane *lane;
    uint64_t end;
    uint64_t ticks;
};

/* Value of a context that the program defines. */
struct kymo_own {
    uint64_t value;   /* a number; its first `size` bytes count */
    const char *text; /* or a text, and its length */
    uint64_t length;
};

struct kymo_context {
    const char *definition;
    uint32_t bytes; /* of the definition */
    uint32_t size;  /* bytes of the number; 0: it is a text */
    void (*get)(struct kymo_own *own);
    uint32_t number; /* its number plus one */
};

bool kymo_register_context(struct kymo_context *context);
bool kymo_register(struct kymo_event *event);
void kymo_unregister(struct kymo_event *event);
unsigned char *kymo_enter_slowly(struct kymo_write *write, const struct kymo_event *event, uint64_t bytes, const void *site);
void kymo_was_cut(const struct kymo_write *write);
extern const ptrdiff_t kymo_thread_offset;
extern const ptrdiff_t kymo_cpu_offset;
extern uint64_t (*kymo_filters[256])(const void *arguments, uint64_t slot_and_size);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

/* Offset of the contexts that the recorder wants. */
#define KYMO_INNER_CONTEXTS_AT 536
#define KYMO_INNER_CPU 1u

KYMO_INNER_WRITER uint32_t kymo_inner_control(const struct kymo_event *event)
{
    return __atomic_load_n(__atomic_load_n(&event->control, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
}

/*
 * Whether a filter keeps an event. Interpreted filters trust only the callsite for the size of its
 * arguments.
 */
KYMO_INNER_WRITER bool kymo_inner_is_kept(uint32_t slot, const void *arguments, size_t size)
{
    const uint64_t bytes = size;
    return kymo_filters[slot](arguments, slot | bytes << 8) != 0;
}

KYMO_INNER_WRITER uint64_t kymo_inner_ticks(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#endif
}

KYMO_INNER_WRITER struct kymo_lane *kymo_inner_lane(void)
{
    struct kymo_lane *lane;
#if defined(__x86_64__)
    __asm__ volatile("movq %%fs:(%1), %0" : "=r"(lane) : "r"(kymo_thread_offset));
#else
    uintptr_t thread;
    __asm__ volatile("mrs %0, tpidr_el0" : "=r"(thread));
    lane = *KYMO_INNER_POINTER(struct kymo_lane *const volatile *, thread + KYMO_INNER_CAST(uintptr_t, kymo_thread_offset));
#endif
    return lane;
}

KYMO_INNER_WRITER uint16_t kymo_inner_cpu(void)
{
    uint32_t cpu;
#if defined(__x86_64__)
    __asm__ volatile("movl %%fs:(%1), %0" : "=r"(cpu) : "r"(kymo_cpu_offset));
#else
    uintptr_t thread;
    __asm__ volatile("mrs %0, tpidr_el0" : "=r"(thread));
    cpu = *KYMO_INNER_POINTER(const volatile uint32_t *, thread + KYMO_INNER_CAST(uintptr_t, kymo_cpu_offset));
#endif
    return KYMO_INNER_CAST(uint16_t, cpu);
}

KYMO_INNER_WRITER void kymo_inner_set_busy(struct kymo_lane *lane, uintptr_t busy)
{
    *KYMO_INNER_CAST(volatile uintptr_t *, &lane->busy) = busy;
}

KYMO_INNER_WRITER unsigned char *kymo_inner_put(unsigned char *to, const void *from, size_t bytes)
{
    __builtin_memcpy(to, from, bytes);
    return to + bytes;
}

/* Copies a number of bytes that is known only at run time. */
KYMO_INNER_WRITER unsigned char *kymo_inner_put_many(unsigned char *to, const void *from, size_t bytes)
{
#if defined(KYMO_INNER_SEES_RACES)
    for (size_t byte = 0; byte < bytes; ++byte)
        KYMO_INNER_CAST(volatile unsigned char *, to)[byte] = KYMO_INNER_CAST(const volatile unsigned char *, from)[byte];
    return to + bytes;
#else
    return kymo_inner_put(to, from, bytes);
#endif
}

/*
 * Starts writing an event. Returns the address for its fields; NULL: the event is lost and counted.
 */
KYMO_INNER_WRITER unsigned char *kymo_inner_enter(struct kymo_write *write, const struct kymo_event *event, uint64_t bytes)
{
    struct kymo_lane *lane = kymo_inner_lane();
    if (!KYMO_INNER_RARELY(!lane) && !KYMO_INNER_RARELY(*KYMO_INNER_CAST(const volatile uintptr_t *, &lane->busy))) {
        uint64_t ticks, fast, total;
        kymo_inner_set_busy(lane, KYMO_INNER_POINTER(uintptr_t, __builtin_frame_address(0)));
        KYMO_INNER_BARRIER();
        fast = lane->fast;
        total = 6 + 2 * (fast & KYMO_INNER_CPU) + bytes;
        /*
         * In a child process the page is zeros: there is no room, and the memory, which is not
         * mapped there, is not read. The clock is read after there is room, so that timestamps
         * never decrease in a lane.
         */
        if (!KYMO_INNER_RARELY(lane->end - lane->at < total) &&
            !KYMO_INNER_RARELY(__atomic_load_n(KYMO_INNER_ALIGNED(const uint64_t *, lane->memory + KYMO_INNER_CONTEXTS_AT),
                                               __ATOMIC_RELAXED) != fast) &&
            !KYMO_INNER_RARELY(((ticks = kymo_inner_ticks()) - lane->begin) >> 32)) {
            unsigned char *to = lane->memory + lane->at;
            const uint16_t id = KYMO_INNER_CAST(uint16_t, event->number - 1);
            const uint32_t low = KYMO_INNER_CAST(uint32_t, ticks);
            write->lane = lane;
            write->end = lane->at + total;
            write->ticks = ticks;
            to = kymo_inner_put(to, &id, sizeof id);
            to = kymo_inner_put(to, &low, sizeof low);
            if (fast & KYMO_INNER_CPU) {
                const uint16_t cpu = kymo_inner_cpu();
                to = kymo_inner_put(to, &cpu, sizeof cpu);
            }
            return to;
        }
        KYMO_INNER_BARRIER();
        kymo_inner_set_busy(lane, 0);
    }
    /* A separate structure, so that the fast path can keep `*write` in registers. */
    struct kymo_write slow;
    unsigned char *to = kymo_enter_slowly(&slow, event, bytes, __builtin_return_address(0));
    if (to)
        *write = slow;
    return to;
}

/* Publishes the event: other processes see it from now on. */
KYMO_INNER_WRITER void kymo_inner_leave(const struct kymo_write *write)
{
    struct kymo_lane *lane = write->lane;
    const uint64_t published = (write->end - lane->base) << 32 | KYMO_INNER_CAST(uint32_t, write->ticks);
    /*
     * First the word that only this thread sees: if a handler jumps out between the two stores, the
     * event is published together with the next one.
     */
    *KYMO_INNER_CAST(volatile uint64_t *, &lane->at) = write->end;
    KYMO_INNER_BARRIER();
    __atomic_store_n(KYMO_INNER_ALIGNED(uint64_t *, lane->memory + lane->published), published, __ATOMIC_RELEASE);
    KYMO_INNER_BARRIER();
    kymo_inner_set_busy(lane, 0);
}

KYMO_INNER_WRITER void kymo_inner_was_cut(const struct kymo_write *write)
{
    const struct kymo_write copy = *write;
    kymo_was_cut(&copy);
}

/* A text or a sequence of an event that is too long. */
struct kymo_inner_part {
    uint64_t *count;
    uint64_t bytes; /* of an element */
    const char *text; /* NULL: a sequence */
};

/*
 * Truncates the longest parts, all of them to the same length, so that at most `room` bytes remain;
 * texts at character boundaries.
 */
static KYMO_INNER_UNUSED __attribute__((noinline, cold)) KYMO_INNER_NO_RACES void
kymo_inner_cut(const struct kymo_inner_part *parts, size_t count, uint64_t room)
{
    uint64_t low = 0, high = room;
    while (low < high) {
        const uint64_t middle = low + (high - low + 1) / 2;
        uint64_t sum = 0;
        for (size_t part = 0; part < count; ++part) {
            const uint64_t most = middle / parts[part].bytes;
            sum += (*parts[part].count < most ? *parts[part].count : most) * parts[part].bytes;
        }
        if (sum <= room)
            low = middle;
        else
            high = middle - 1;
    }
    for (size_t part = 0; part < count; ++part) {
        uint64_t most = low / parts[part].bytes;
        if (*parts[part].count <= most)
            continue;
        /* A byte 10xxxxxx continues a UTF-8 character, which has at most three of them. */
        for (int more = 0; parts[part].text && more < 3 && most > 0 && (parts[part].text[most] & 0xc0) == 0x80; ++more)
            --most;
        *parts[part].count = most;
    }
}

#endif
#endif
