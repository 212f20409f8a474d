/*
 * Marks: events that need no definition. They are logs, checkpoints, durations, counters, flows
 * between two places, calls, signals and packets. Analyses know their meaning (docs/roles.md).
 * Arguments are evaluated only while the event is on.
 */
#ifndef KYMO_MARKS_H
#define KYMO_MARKS_H

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "kymo.h"

/* Log levels: those of LTTng. */
enum kymo_level {
    KYMO_EMERGENCY,
    KYMO_ALERT,
    KYMO_CRITICAL,
    KYMO_ERROR,
    KYMO_WARNING,
    KYMO_NOTICE,
    KYMO_INFO,
    KYMO_DEBUG_SYSTEM,
    KYMO_DEBUG_PROGRAM,
    KYMO_DEBUG_PROCESS,
    KYMO_DEBUG_MODULE,
    KYMO_DEBUG_UNIT,
    KYMO_DEBUG_FUNCTION,
    KYMO_DEBUG_LINE,
    KYMO_DEBUG
};

/* Kinds of checkpoints; the numbers are those of Genode. */
enum kymo_checkpoint {
    KYMO_CHECKPOINT_UNDEFINED = 0,
    KYMO_CHECKPOINT_START = 1,
    KYMO_CHECKPOINT_END = 2,
    KYMO_CHECKPOINT_NEW = 0x10,
    KYMO_CHECKPOINT_DELETE = 0x11,
    KYMO_CHECKPOINT_STATE = 0x12,
    KYMO_CHECKPOINT_EXCEPTION = 0xfe,
    KYMO_CHECKPOINT_FAILURE = 0xff
};

/* Maximum bytes of a log's text; a longer text is truncated and counted. */
#define KYMO_LOG_BYTES_MAX 1024

/*
 * kymo_log(level, format, ...) records `kymo:log` with a level, and a text with the format of
 * printf. The text is formatted only while the event is on. In signal handlers it is as safe as
 * vsnprintf.
 */
#define kymo_log(level, ...) \
    do { \
        if (kymo_inner_log_is_on()) \
            kymo_inner_format(level, __VA_ARGS__); \
    } while (0)

/*
 * KYMO_CHECKPOINT(name, data, object, type) records that the program passed a checkpoint, with a
 * number, an address, and a kind from kymo_checkpoint.
 */
#define KYMO_CHECKPOINT(name, data, object, type) \
    KYMO_INNER_MARK(checkpoint, name, data, object, KYMO_INNER_CAST(uint8_t, type))

/*
 * The same at a place that is called like its function (in C++ with its arguments), with a number.
 */
#define KYMO_CHECKPOINT_HERE(data) KYMO_CHECKPOINT(KYMO_INNER_FUNCTION, data, NULL, KYMO_CHECKPOINT_UNDEFINED)

/*
 * KYMO_CHECKPOINT_SCOPE_NAMED(name, data); records a duration with a number, from here to the end of the
 * block: two checkpoints, START and END, with the same name and number. KYMO_CHECKPOINT_SCOPE(data); is
 * called like its function. The name must live as long.
 */
#define KYMO_CHECKPOINT_SCOPE_NAMED(name, data) KYMO_INNER_CHECKPOINT_SCOPE(name, data, __COUNTER__)
#define KYMO_CHECKPOINT_SCOPE(data) KYMO_CHECKPOINT_SCOPE_NAMED(KYMO_INNER_FUNCTION, data)

/*
 * KYMO_LOG_TSC(n); measures from here to the end of the block, in ticks of the processor's counter,
 * over all threads. Each n-th time it prints a line on standard error:
 *
 *     TSC name: sum (calls calls, last ticks)
 *
 * Numbers above 100,000 are shown in K, M and G. Of a function that calls itself, the outermost call
 * of a thread counts. KYMO_TRACE_TSC(n); records the line as a log, `kymo:log` of the level info.
 */
#define KYMO_LOG_TSC(n) KYMO_LOG_TSC_NAMED(n, KYMO_INNER_FUNCTION)
#define KYMO_LOG_TSC_NAMED(n, name) KYMO_INNER_TSC(n, name, kymo_inner_print_profile, __COUNTER__)
#define KYMO_TRACE_TSC(n) KYMO_TRACE_TSC_NAMED(n, KYMO_INNER_FUNCTION)
#define KYMO_TRACE_TSC_NAMED(n, name) KYMO_INNER_TSC(n, name, kymo_inner_trace_profile, __COUNTER__)

/*
 * KYMO_SCOPE(name); records a duration from here to the end of the block, however control leaves
 * the block, except by longjmp: `kymo:begin` and `kymo:end`, paired by their key. The name must
 * live as long.
 */
#define KYMO_SCOPE(name) KYMO_INNER_SCOPE(name, __COUNTER__)

/*
 * A duration by hand. The key distinguishes durations of the same name, on any threads on which
 * they begin and end.
 */
#define KYMO_BEGIN(name, key) KYMO_INNER_MARK(begin, key, name)
#define KYMO_END(name, key) KYMO_INNER_MARK(end, key, name)

/* Sets a counter. */
#define KYMO_COUNTER(name, value) KYMO_INNER_MARK(counter, name, value)

/*
 * A flow from the place that sends a number to the place that receives it, in this program or
 * another one.
 */
#define KYMO_SEND(id) KYMO_INNER_MARK(send, id)
#define KYMO_RECEIVE(id) KYMO_INNER_MARK(receive, id)

/*
 * A call of another component, recorded by the caller (CALL, RETURN) and by the component that
 * serves it (DISPATCH, REPLY). The id distinguishes calls. It is 0 if there is none; such a call
 * ends on the thread where it began.
 */
#define KYMO_RPC_CALL(name, id) KYMO_INNER_MARK(rpc_call, id, name)
#define KYMO_RPC_RETURN(name, id) KYMO_INNER_MARK(rpc_return, id, name)
#define KYMO_RPC_DISPATCH(name, id) KYMO_INNER_MARK(rpc_dispatch, id, name)
#define KYMO_RPC_REPLY(name, id) KYMO_INNER_MARK(rpc_reply, id, name)

/*
 * A signal is submitted to a context, and received there; `number` is the number of signals at
 * once.
 */
#define KYMO_SIGNAL_SUBMIT(context, number) KYMO_INNER_MARK(signal_submit, context, number)
#define KYMO_SIGNAL_RECEIVE(context, number) KYMO_INNER_MARK(signal_receive, context, number)

/* The way that a packet goes, seen from this machine or component. */
enum kymo_direction { KYMO_UNKNOWN, KYMO_INBOUND, KYMO_OUTBOUND };

/* Maximum of the snap length: an event has no room for more bytes of a packet. */
#define KYMO_SNAP_LENGTH_MAX 16000

/*
 * kymo_packet(interface, direction, data, size) records `kymo:packet`: a packet of a network, with
 * the name of its interface, a direction from kymo_direction, and its bytes from the head of
 * Ethernet on (docs/packets.md). The event has the packet's length, and its bytes up to the snap
 * length.
 */
#define kymo_packet(interface, direction, data, size) \
    do { \
        if (kymo_inner_packet_is_on()) \
            kymo_inner_captured(interface, KYMO_INNER_CAST(uint8_t, direction), data, size); \
    } while (0)

/*
 * Sets how many bytes of a packet this program records at most, from the next one on: 256 by
 * default, and never more than KYMO_SNAP_LENGTH_MAX.
 */
#define kymo_set_snap_length(bytes) kymo_inner_set_snap_length(bytes)

#ifdef __cplusplus
#define KYMO_INNER_FUNCTION __PRETTY_FUNCTION__
#else
#define KYMO_INNER_FUNCTION __func__
#endif

#define KYMO_INNER_MARK(mark, ...) \
    do { \
        if (kymo_inner_##mark##_is_on()) \
            kymo_inner_##mark(__VA_ARGS__); \
    } while (0)

#ifndef KYMO_OFF
#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)
/* libkymo contains these events, and registers them. */
extern struct kymo_event kymo_event_log, kymo_event_checkpoint, kymo_event_begin, kymo_event_end, kymo_event_counter, kymo_event_send,
    kymo_event_receive, kymo_event_rpc_call, kymo_event_rpc_return, kymo_event_rpc_dispatch, kymo_event_rpc_reply, kymo_event_signal_submit,
    kymo_event_signal_receive, kymo_event_packet;
extern uint32_t kymo_snap_length;
#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif

#ifdef KYMO_OFF
#define KYMO_INNER_MARKED(mark, ...) KYMO_INNER_FUNCTIONS(kymo_inner_##mark, 0, 0, "kymo", #mark, 1, mark, __VA_ARGS__)
#else
/* The semaphore is in the file that has the probe: the kernel demands that. */
#define KYMO_INNER_MARKED(mark, ...) \
    static KYMO_INNER_PROBES KYMO_INNER_UNUSED volatile uint32_t kymo_inner_attached_##mark = 0; \
    KYMO_INNER_FUNCTIONS(kymo_inner_##mark, kymo_event_##mark, kymo_inner_attached_##mark, "kymo", #mark, 1, mark, __VA_ARGS__)
#endif

KYMO_INNER_MARKED(log, KYMO_U8(level), KYMO_CHARS(text));
KYMO_INNER_MARKED(checkpoint, KYMO_TEXT(name), KYMO_U64(data), KYMO_POINTER(object), KYMO_U8(type));
KYMO_INNER_MARKED(begin, KYMO_HEX64(key), KYMO_TEXT(name));
KYMO_INNER_MARKED(end, KYMO_HEX64(key), KYMO_TEXT(name));
KYMO_INNER_MARKED(counter, KYMO_TEXT(name), KYMO_I64(value));
KYMO_INNER_MARKED(send, KYMO_HEX64(id));
KYMO_INNER_MARKED(receive, KYMO_HEX64(id));
KYMO_INNER_MARKED(rpc_call, KYMO_HEX64(id), KYMO_TEXT(name));
KYMO_INNER_MARKED(rpc_return, KYMO_HEX64(id), KYMO_TEXT(name));
KYMO_INNER_MARKED(rpc_dispatch, KYMO_HEX64(id), KYMO_TEXT(name));
KYMO_INNER_MARKED(rpc_reply, KYMO_HEX64(id), KYMO_TEXT(name));
KYMO_INNER_MARKED(signal_submit, KYMO_HEX64(context), KYMO_U32(number));
KYMO_INNER_MARKED(signal_receive, KYMO_HEX64(context), KYMO_U32(number));
KYMO_INNER_MARKED(packet, KYMO_TEXT(interface), KYMO_U8(direction), KYMO_U16(link), KYMO_U32(length), KYMO_U64(received),
                  KYMO_SEQUENCE(u8, data));

KYMO_INNER_INLINE void kymo_inner_set_snap_length(uint32_t bytes)
{
#ifdef KYMO_OFF
    (void)bytes;
#else
    __atomic_store_n(&kymo_snap_length, bytes < KYMO_SNAP_LENGTH_MAX ? bytes : KYMO_SNAP_LENGTH_MAX, __ATOMIC_RELAXED);
#endif
}

/* Records the beginning of a packet that begins with the head of Ethernet (link 1). */
KYMO_INNER_INLINE void kymo_inner_captured(KYMO_INNER_TEXT_OF_CALLER interface, uint8_t direction, const void *data, size_t size)
{
#ifdef KYMO_OFF
    (void)interface;
    (void)direction;
    (void)data;
    (void)size;
#else
    const uint32_t snap_length = __atomic_load_n(&kymo_snap_length, __ATOMIC_RELAXED);
    const uint32_t length = size < UINT32_MAX ? KYMO_INNER_CAST(uint32_t, size) : UINT32_MAX;
    kymo_inner_packet(interface, direction, 1, length, 0, KYMO_INNER_CAST(const uint8_t *, data), size < snap_length ? size : snap_length);
#endif
}

/* Formats and records a log, out of line: it needs more stack than an event. */
static __attribute__((noinline, unused, format(printf, 2, 3))) void kymo_inner_format(int level, const char *format, ...)
{
#ifdef KYMO_OFF
    (void)level;
    (void)format;
#else
    char text[KYMO_LOG_BYTES_MAX + 1];
    const int number_of_error = errno;
    struct kymo_inner_of_kymo_inner_log of;
    const uint32_t control = kymo_inner_control(&kymo_event_log);
    va_list arguments;
    int length;
    va_start(arguments, format);
    length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    of.level = KYMO_INNER_CAST(uint8_t, level);
    of.text.bytes = text;
    of.text.length = length < 0 ? 0 : length > KYMO_LOG_BYTES_MAX ? KYMO_LOG_BYTES_MAX : KYMO_INNER_CAST(uint64_t, length);
    kymo_inner_give_kymo_inner_log(control, &of, length > KYMO_LOG_BYTES_MAX);
    errno = number_of_error;
#endif
}

/* A duration with a number. */
struct kymo_checkpoint_scope {
    const char *name; /* NULL: the begin was not recorded, so the end is not either */
    uint64_t data;
};
KYMO_INNER_INLINE struct kymo_checkpoint_scope kymo_inner_checkpoint_scope(const char *name, uint64_t data)
{
    struct kymo_checkpoint_scope duration;
    duration.name = name;
    duration.data = data;
    if (name)
        kymo_inner_checkpoint(name, data, NULL, KYMO_CHECKPOINT_START);
    return duration;
}
KYMO_INNER_INLINE void kymo_inner_checkpoint_scope_end(const struct kymo_checkpoint_scope *duration)
{
    if (duration->name)
        kymo_inner_checkpoint(duration->name, duration->data, NULL, KYMO_CHECKPOINT_END);
}
#define KYMO_INNER_BEGIN_CHECKPOINT_SCOPE(name, data) \
    (kymo_inner_checkpoint_is_on() ? kymo_inner_checkpoint_scope(name, data) : kymo_inner_checkpoint_scope(NULL, 0))

/* Ticks of all calls of a place. */
struct kymo_profile {
    uint64_t sum;
    uint64_t calls;
};
/* One call of it. */
struct kymo_profiled {
    struct kymo_profile *profile;
    unsigned *depth; /* calls of this thread that have not ended */
    void (*tell)(const char *name, uint64_t sum, uint64_t calls, uint64_t last);
    const char *name;
    uint64_t every;
    uint64_t begin;
};
KYMO_INNER_INLINE uint64_t kymo_inner_profile_ticks(void)
{
#if defined(__x86_64__) || defined(__i386__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    return 0;
#endif
}
KYMO_INNER_INLINE struct kymo_profiled kymo_inner_profiled(
    struct kymo_profile *profile, unsigned *depth, void (*tell)(const char *, uint64_t, uint64_t, uint64_t), const char *name, uint64_t every)
{
    struct kymo_profiled call;
    ++*depth;
    call.profile = profile;
    call.depth = depth;
    call.tell = tell;
    call.name = name;
    call.every = every;
    call.begin = kymo_inner_profile_ticks();
    return call;
}
KYMO_INNER_INLINE void kymo_inner_profiled_end(const struct kymo_profiled *call)
{
    const uint64_t last = kymo_inner_profile_ticks() - call->begin;
    if (--*call->depth == 0) {
        const uint64_t sum = __atomic_add_fetch(&call->profile->sum, last, __ATOMIC_RELAXED);
        const uint64_t calls = __atomic_add_fetch(&call->profile->calls, 1, __ATOMIC_RELAXED);
        if (call->every && calls % call->every == 0)
            call->tell(call->name, sum, calls, last);
    }
}
/* Whole units of a number, and the letter of the unit. */
static __attribute__((unused)) uint64_t kymo_inner_scaled(uint64_t number, const char **unit)
{
    const uint64_t thousand = 1000, above = 100;
    const char *const units[] = {"", "K", "M", "G"};
    unsigned at = 0;
    while (at < 3 && number > above * thousand) {
        number /= thousand;
        ++at;
    }
    *unit = units[at];
    return number;
}
static __attribute__((noinline, unused)) void kymo_inner_print_profile(const char *name, uint64_t sum, uint64_t calls, uint64_t last)
{
#ifndef KYMO_OFF
    const char *unit_of_sum, *unit_of_last;
    const uint64_t scaled_sum = kymo_inner_scaled(sum, &unit_of_sum), scaled_last = kymo_inner_scaled(last, &unit_of_last);
    const int number_of_error = errno;
    fprintf(stderr, "TSC %s: %llu%s (%llu calls, last %llu%s)\n", name, KYMO_INNER_CAST(unsigned long long, scaled_sum), unit_of_sum,
            KYMO_INNER_CAST(unsigned long long, calls), KYMO_INNER_CAST(unsigned long long, scaled_last), unit_of_last);
    errno = number_of_error;
#else
    (void)name, (void)sum, (void)calls, (void)last;
#endif
}
static __attribute__((noinline, unused)) void kymo_inner_trace_profile(const char *name, uint64_t sum, uint64_t calls, uint64_t last)
{
    const char *unit_of_sum, *unit_of_last;
    const uint64_t scaled_sum = kymo_inner_scaled(sum, &unit_of_sum), scaled_last = kymo_inner_scaled(last, &unit_of_last);
    (void)name, (void)scaled_sum, (void)calls, (void)scaled_last;
    kymo_log(KYMO_INFO, "TSC %s: %llu%s (%llu calls, last %llu%s)", name, KYMO_INNER_CAST(unsigned long long, scaled_sum), unit_of_sum,
             KYMO_INNER_CAST(unsigned long long, calls), KYMO_INNER_CAST(unsigned long long, scaled_last), unit_of_last);
}
#ifdef KYMO_OFF
#define KYMO_INNER_TSC(n, name, tell, number) ((void)sizeof(n), (void)sizeof(name))
#else
#define KYMO_INNER_TSC(n, name, tell, number) KYMO_INNER_TSC_(n, name, tell, number)
#endif
#define KYMO_INNER_TSC_STATE(number) \
    static struct kymo_profile kymo_inner_profile_##number; \
    static __thread unsigned kymo_inner_depth_##number

#ifdef __cplusplus
extern "C++" {
namespace kymo {
class checkpoint_scope {
public:
    explicit checkpoint_scope(const kymo_checkpoint_scope &begun) : begun_(begun) {}
    ~checkpoint_scope() { kymo_inner_checkpoint_scope_end(&begun_); }
    checkpoint_scope(const checkpoint_scope &) = delete;
    checkpoint_scope &operator=(const checkpoint_scope &) = delete;

private:
    kymo_checkpoint_scope begun_;
};
class profiled {
public:
    explicit profiled(const kymo_profiled &call) : call_(call) {}
    ~profiled() { kymo_inner_profiled_end(&call_); }
    profiled(const profiled &) = delete;
    profiled &operator=(const profiled &) = delete;

private:
    kymo_profiled call_;
};
class scope {
public:
    explicit scope(const char *name) : name_(kymo_inner_begin_is_on() ? name : nullptr)
    {
        if (name_)
            kymo_inner_begin(key(), name_);
    }
    ~scope()
    {
        if (name_)
            kymo_inner_end(key(), name_);
    }
    scope(const scope &) = delete;
    scope &operator=(const scope &) = delete;

private:
    uint64_t key() const { return reinterpret_cast<uint64_t>(this); }
    const char *name_;
};
} // namespace kymo
}
#define KYMO_INNER_CHECKPOINT_SCOPE(name, data, number) KYMO_INNER_CHECKPOINT_SCOPE_(name, data, number)
#define KYMO_INNER_CHECKPOINT_SCOPE_(name, data, number) \
    KYMO_INNER_UNUSED const ::kymo::checkpoint_scope kymo_inner_checkpoint_scope_##number(KYMO_INNER_BEGIN_CHECKPOINT_SCOPE(name, data))
#define KYMO_INNER_TSC_(n, name, tell, number) \
    KYMO_INNER_TSC_STATE(number); \
    KYMO_INNER_UNUSED const ::kymo::profiled kymo_inner_profiled_##number( \
        kymo_inner_profiled(&kymo_inner_profile_##number, &kymo_inner_depth_##number, tell, name, n))
#define KYMO_INNER_SCOPE(name, number) KYMO_INNER_SCOPE_(name, number)
#define KYMO_INNER_SCOPE_(name, number) KYMO_INNER_UNUSED const ::kymo::scope kymo_inner_scope_##number(name)
#else
#define KYMO_INNER_CHECKPOINT_SCOPE(name, data, number) KYMO_INNER_CHECKPOINT_SCOPE_(name, data, number)
#define KYMO_INNER_CHECKPOINT_SCOPE_(name, data, number) \
    __attribute__((cleanup(kymo_inner_checkpoint_scope_end), unused)) struct kymo_checkpoint_scope kymo_inner_checkpoint_scope_##number = \
        KYMO_INNER_BEGIN_CHECKPOINT_SCOPE(name, data)
#define KYMO_INNER_TSC_(n, name, tell, number) \
    KYMO_INNER_TSC_STATE(number); \
    __attribute__((cleanup(kymo_inner_profiled_end), unused)) struct kymo_profiled kymo_inner_profiled_##number = \
        kymo_inner_profiled(&kymo_inner_profile_##number, &kymo_inner_depth_##number, tell, name, n)
struct kymo_scope {
    const char *name; /* NULL: the begin was not recorded, so the end is not either */
};
KYMO_INNER_INLINE struct kymo_scope kymo_inner_scope_begin(uintptr_t key, const char *name)
{
    struct kymo_scope begun;
    begun.name = kymo_inner_begin_is_on() ? name : NULL;
    if (begun.name)
        kymo_inner_begin(key, name);
    return begun;
}
KYMO_INNER_INLINE void kymo_inner_scope_end(const struct kymo_scope *scope)
{
    if (scope->name)
        kymo_inner_end((uintptr_t)scope, scope->name);
}
#define KYMO_INNER_SCOPE(name, number) KYMO_INNER_SCOPE_(name, number)
#define KYMO_INNER_SCOPE_(name, number) \
    __attribute__((cleanup(kymo_inner_scope_end), unused)) struct kymo_scope kymo_inner_scope_##number = \
        kymo_inner_scope_begin((uintptr_t)&kymo_inner_scope_##number, name)
#endif

#endif
