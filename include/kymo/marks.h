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

#define KYMO_INNER_MARKED(mark, ...) KYMO_INNER_FUNCTIONS(kymo_inner_##mark, kymo_event_##mark, 1, mark, __VA_ARGS__)

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
    const unsigned char control = kymo_inner_control(&kymo_event_log);
    va_list arguments;
    int length;
    va_start(arguments, format);
    length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    of.level = KYMO_INNER_CAST(uint8_t, level);
    of.text.bytes = text;
    of.text.length = length < 0 ? 0 : length > KYMO_LOG_BYTES_MAX ? KYMO_LOG_BYTES_MAX : KYMO_INNER_CAST(uint64_t, length);
    if (control == 1 || (control && kymo_inner_is_kept(control, &of, sizeof of)))
        kymo_inner_record_kymo_inner_log(&of, length > KYMO_LOG_BYTES_MAX);
    errno = number_of_error;
#endif
}

#ifdef __cplusplus
extern "C++" {
namespace kymo {
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
#define KYMO_INNER_SCOPE(name, number) KYMO_INNER_SCOPE_(name, number)
#define KYMO_INNER_SCOPE_(name, number) KYMO_INNER_UNUSED const ::kymo::scope kymo_inner_scope_##number(name)
#else
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
