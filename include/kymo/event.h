/*
 * The expansion of KYMO_EVENT: from its fields, a definition for recorders, arguments for filters,
 * and four functions.
 *
 *     kymo_net_sent(port, host)          inline: the control byte and `attached`; if one is not 0, the arguments and the filter
 *     kymo_inner_record_net_sent()       out of line: the size, then the bytes
 *     kymo_inner_usdt_net_sent()         out of line: the USDT probe
 *     kymo_net_sent_is_on()
 *
 * A field is a list in parentheses whose first word is its kind. Each aspect of a field (parameter,
 * member, bytes...) has one macro for each kind, KYMO_INNER_ASPECT_kind.
 */
#ifndef KYMO_INNER_EVENT_H
#define KYMO_INNER_EVENT_H

#include "each.h"
#include "usdt.h"
#include "write.h"

/* C types of elements, and of the integers of enumerations. */
#define KYMO_INNER_C_u8 uint8_t
#define KYMO_INNER_C_u16 uint16_t
#define KYMO_INNER_C_u32 uint32_t
#define KYMO_INNER_C_u64 uint64_t
#define KYMO_INNER_C_i8 int8_t
#define KYMO_INNER_C_i16 int16_t
#define KYMO_INNER_C_i32 int32_t
#define KYMO_INNER_C_i64 int64_t
#define KYMO_INNER_C_x8 uint8_t
#define KYMO_INNER_C_x16 uint16_t
#define KYMO_INNER_C_x32 uint32_t
#define KYMO_INNER_C_x64 uint64_t
#define KYMO_INNER_C_f32 float
#define KYMO_INNER_C_f64 double
#define KYMO_INNER_C_bool bool
#define KYMO_INNER_C_pointer const void *

/*
 * Values of enumerations must be numbers once macros are expanded: a C name would appear as such in
 * the definition.
 */
#define KYMO_INNER_LABEL(label) KYMO_INNER_LABEL_(label)
#define KYMO_INNER_LABEL_(label) kymo_label_##label##l

#define KYMO_INNER_LEVEL_emergency "0"
#define KYMO_INNER_LEVEL_alert "1"
#define KYMO_INNER_LEVEL_critical "2"
#define KYMO_INNER_LEVEL_error "3"
#define KYMO_INNER_LEVEL_warning "4"
#define KYMO_INNER_LEVEL_notice "5"
#define KYMO_INNER_LEVEL_info "6"
#define KYMO_INNER_LEVEL_debug_system "7"
#define KYMO_INNER_LEVEL_debug_program "8"
#define KYMO_INNER_LEVEL_debug_process "9"
#define KYMO_INNER_LEVEL_debug_module "10"
#define KYMO_INNER_LEVEL_debug_unit "11"
#define KYMO_INNER_LEVEL_debug_function "12"
#define KYMO_INNER_LEVEL_debug_line "13"
#define KYMO_INNER_LEVEL_debug "14"

#define KYMO_INNER_ROLE_begin "begin"
#define KYMO_INNER_ROLE_end "end"
#define KYMO_INNER_ROLE_counter "counter"
#define KYMO_INNER_ROLE_send "send"
#define KYMO_INNER_ROLE_receive "receive"
#define KYMO_INNER_ROLE_checkpoint "checkpoint"

/* Checks that the argument is a field. */
#define KYMO_INNER_CHECK(field) \
    KYMO_INNER_ASSERT(KYMO_INNER_IS_FIELD(field), #field " is no field: KYMO_U32(name), KYMO_TEXT(name), ... are");

/* The field's line of the definition. */
#define KYMO_INNER_LINE(field) KYMO_INNER_LINE_ field
#define KYMO_INNER_LINE_(kind, ...) KYMO_INNER_LINE_##kind(__VA_ARGS__)
#define KYMO_INNER_LINE_kymo_scalar(type, ctype, name) "field " type " " KYMO_INNER_QUOTED(name) "\n"
#define KYMO_INNER_LINE_kymo_enum(type, ctype, name, labels, checked) \
    "field enum " type "(" labels ") " KYMO_INNER_QUOTED(name) "\n"
#define KYMO_INNER_LINE_kymo_text(name) "field text " KYMO_INNER_QUOTED(name) "\n"
#define KYMO_INNER_LINE_kymo_chars(name) "field text " KYMO_INNER_QUOTED(name) "\n"
#define KYMO_INNER_LINE_kymo_array(type, ctype, count, name) \
    "field array " KYMO_INNER_QUOTED(count) " " type " " KYMO_INNER_QUOTED(name) "\n"
#define KYMO_INNER_LINE_kymo_sequence(type, ctype, name) "field sequence " type " " KYMO_INNER_QUOTED(name) "\n"

/* The field's parameters. Their names differ from the variables of the program. */
#define KYMO_INNER_PARAMETER(field) KYMO_INNER_PARAMETER_ field
#define KYMO_INNER_PARAMETER_(kind, ...) KYMO_INNER_PARAMETER_##kind(__VA_ARGS__)
#define KYMO_INNER_PARAMETER_kymo_scalar(type, ctype, name) KYMO_INNER_UNUSED ctype name##_
#define KYMO_INNER_PARAMETER_kymo_enum(type, ctype, name, labels, checked) KYMO_INNER_UNUSED ctype name##_
#define KYMO_INNER_PARAMETER_kymo_text(name) KYMO_INNER_UNUSED KYMO_INNER_TEXT_OF_CALLER name##_
#define KYMO_INNER_PARAMETER_kymo_chars(name) KYMO_INNER_UNUSED const char *name##_, KYMO_INNER_UNUSED size_t name##_length
#define KYMO_INNER_PARAMETER_kymo_sequence(type, ctype, name) \
    KYMO_INNER_UNUSED ctype const *name##_, KYMO_INNER_UNUSED size_t name##_count
#ifdef __cplusplus
#define KYMO_INNER_PARAMETER_kymo_array(type, ctype, count, name) KYMO_INNER_UNUSED ctype const(&name##_)[count]
#else
#define KYMO_INNER_PARAMETER_kymo_array(type, ctype, count, name) KYMO_INNER_UNUSED ctype const name##_[static count]
#endif

/* Texts: in C++ also any type with data() and size(), like std::string. */
#ifdef __cplusplus
extern "C++" {
namespace kymo {
class text {
public:
    text(const char *ends_with_zero) : bytes_(ends_with_zero), length_(~size_t{0}) {}
    template <typename Text, typename = decltype(static_cast<const char *>(static_cast<const Text *>(nullptr)->data()) +
                                                 static_cast<const Text *>(nullptr)->size())>
    text(const Text &of) : bytes_(of.data() ? of.data() : ""), length_(of.data() ? of.size() : 0) {}
    const char *bytes() const { return bytes_; }
    size_t length() const { return length_ == ~size_t{0} && bytes_ ? __builtin_strlen(bytes_) : length_; }

private:
    const char *bytes_;
    size_t length_;
};
} // namespace kymo
}
#define KYMO_INNER_TEXT_OF_CALLER ::kymo::text
#else
#define KYMO_INNER_TEXT_OF_CALLER const char *
#endif


#define KYMO_INNER_HAS_FIELDS(...) KYMO_INNER_IS_FIELD(KYMO_INNER_SECOND(__VA_ARGS__, 0, 0))
#define KYMO_INNER_PARAMETERS(has_fields, ...) \
    KYMO_INNER_VOID_##has_fields KYMO_INNER_EACH(KYMO_INNER_PARAMETER, KYMO_INNER_COMMA, __VA_ARGS__)
#define KYMO_INNER_VOID_0 void
#define KYMO_INNER_VOID_1

/*
 * Arguments: lines of the definition besides fields, provider as text, prefix of functions; then
 * the event's name and its fields.
 */
#define KYMO_INNER_EVENT(lines, provider, prefix, ...) \
    KYMO_INNER_NAMED(lines, provider, prefix, KYMO_INNER_FIRST(__VA_ARGS__, 0), KYMO_INNER_HAS_FIELDS(__VA_ARGS__), __VA_ARGS__)
#define KYMO_INNER_NAMED(lines, provider, prefix, name, has_fields, ...) \
    KYMO_INNER_TITLED(lines, provider, prefix, name, has_fields, __VA_ARGS__)
#define KYMO_INNER_TITLED(lines, provider, prefix, name, has_fields, ...) \
    KYMO_INNER_WITHIN(KYMO_INNER_IS_MANY(__VA_ARGS__), lines, provider, #name, prefix##name, has_fields, __VA_ARGS__)
#define KYMO_INNER_WITHIN(is_many, ...) KYMO_INNER_WITHIN_(is_many, __VA_ARGS__)
#define KYMO_INNER_WITHIN_(is_many, ...) KYMO_INNER_WITHIN_##is_many(__VA_ARGS__)
#define KYMO_INNER_WITHIN_0(...) KYMO_INNER_DEFINED(__VA_ARGS__)
/* One error, and functions that calls fit, so that it stays the only one. */
#define KYMO_INNER_WITHIN_1(lines, provider, title, function, has_fields, ...) \
    KYMO_INNER_ANY(function) \
    KYMO_INNER_INLINE bool function##_is_on(void) { return false; } \
    KYMO_INNER_ASSERT(0, provider ":" title " has more than 64 fields")

#ifdef __cplusplus
#define KYMO_INNER_ANY(function) \
    template <typename... Kymo_any> KYMO_INNER_INLINE void function(const Kymo_any &...) {}
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 202311L
#define KYMO_INNER_ANY(function) KYMO_INNER_INLINE void function(...) {}
#elif defined(__clang__)
#define KYMO_INNER_ANY(function) void function(...) __attribute__((overloadable));
#else
#define KYMO_INNER_ANY(function) KYMO_INNER_INLINE void function() {}
#endif

#ifdef KYMO_OFF

#define KYMO_INNER_DEFINED(lines, provider, title, function, has_fields, ...) \
    KYMO_INNER_FUNCTIONS(function, 0, 0, provider, title, has_fields, __VA_ARGS__)
#define KYMO_INNER_FUNCTIONS(function, event, attached, provider, title, has_fields, ...) \
    KYMO_INNER_EACH(KYMO_INNER_CHECK, KYMO_INNER_NOTHING, __VA_ARGS__) \
    KYMO_INNER_INLINE bool function##_is_on(void) { return false; } \
    KYMO_INNER_INLINE void function(KYMO_INNER_PARAMETERS(has_fields, __VA_ARGS__)) {} \
    KYMO_INNER_ASSERT(1, "whoever defines an event ends that with a semicolon")

#define KYMO_INNER_CONTEXT(type, ctype, size, name, function, put) \
    KYMO_INNER_INLINE ctype kymo_inner_context_##name(void) { return function(); } \
    KYMO_INNER_ASSERT(1, "whoever defines a context ends that with a semicolon")

#else

/*
 * A context that events carry. It is never unregistered, because an event may be calling its
 * function at any time.
 */
#define KYMO_INNER_CONTEXT(type, ctype, size, name, function, put) \
    static const char kymo_inner_definition_of_##name[] = "context " #name "\nfield " type " " #name "\n"; \
    static void kymo_inner_get_##name(struct kymo_own *kymo_own) \
    { \
        ctype const kymo_value = function(); \
        put(kymo_own, kymo_value); \
    } \
    static struct kymo_context kymo_inner_context_##name = {kymo_inner_definition_of_##name, \
                                                            sizeof kymo_inner_definition_of_##name - 1, size, \
                                                            kymo_inner_get_##name, 0}; \
    static __attribute__((constructor(101))) void kymo_inner_begin_context_##name(void) \
    { \
        kymo_register_context(&kymo_inner_context_##name); \
    } \
    KYMO_INNER_ASSERT(1, "whoever defines a context ends that with a semicolon")
#define KYMO_INNER_OWN_NUMBER(own, number) __builtin_memcpy(&own->value, &number, sizeof number)
#define KYMO_INNER_OWN_TEXT(own, bytes) kymo_inner_own_text(own, bytes)

/* The field's member of the structure that filters see. */
#define KYMO_INNER_MEMBER(field) KYMO_INNER_MEMBER_ field
#define KYMO_INNER_MEMBER_(kind, ...) KYMO_INNER_MEMBER_##kind(__VA_ARGS__)
#define KYMO_INNER_MEMBER_kymo_scalar(type, ctype, name) ctype name;
#define KYMO_INNER_MEMBER_kymo_enum(type, ctype, name, labels, checked) ctype name;
#define KYMO_INNER_MEMBER_kymo_text(name) struct kymo_text name;
#define KYMO_INNER_MEMBER_kymo_chars(name) struct kymo_text name;
#define KYMO_INNER_MEMBER_kymo_array(type, ctype, count, name) ctype const *name;
#define KYMO_INNER_MEMBER_kymo_sequence(type, ctype, name) struct kymo_sequence name;
#define KYMO_INNER_MEMBER_0 char kymo_no_field;
#define KYMO_INNER_MEMBER_1

/* Sets the field's member. Lengths are computed here, once. */
#define KYMO_INNER_FILL(field) KYMO_INNER_FILL_ field
#define KYMO_INNER_FILL_(kind, ...) KYMO_INNER_FILL_##kind(__VA_ARGS__)
#define KYMO_INNER_FILL_kymo_scalar(type, ctype, name) kymo_of.name = name##_;
#define KYMO_INNER_FILL_kymo_enum(type, ctype, name, labels, checked) kymo_of.name = name##_;
#define KYMO_INNER_FILL_kymo_text(name) kymo_of.name = kymo_inner_text(name##_);
#define KYMO_INNER_FILL_kymo_chars(name) kymo_of.name = kymo_inner_chars(name##_, name##_length);
#define KYMO_INNER_FILL_kymo_array(type, ctype, count, name) kymo_of.name = name##_;
#define KYMO_INNER_FILL_kymo_sequence(type, ctype, name) kymo_of.name = kymo_inner_sequence(name##_, name##_count);
#define KYMO_INNER_FILL_0 kymo_of.kymo_no_field = 0;
#define KYMO_INNER_FILL_1

/* Fixed bytes of the field. */
#define KYMO_INNER_FIXED(field) KYMO_INNER_FIXED_ field
#define KYMO_INNER_FIXED_(kind, ...) KYMO_INNER_FIXED_##kind(__VA_ARGS__)
#define KYMO_INNER_FIXED_kymo_scalar(type, ctype, name) + sizeof(ctype)
#define KYMO_INNER_FIXED_kymo_enum(type, ctype, name, labels, checked) + sizeof(ctype)
#define KYMO_INNER_FIXED_kymo_text(name) + sizeof(uint16_t)
#define KYMO_INNER_FIXED_kymo_chars(name) + sizeof(uint16_t)
#define KYMO_INNER_FIXED_kymo_array(type, ctype, count, name) + sizeof(ctype[count##u])
#define KYMO_INNER_FIXED_kymo_sequence(type, ctype, name) + sizeof(uint16_t)

/*
 * Variable bytes of the field. A count above the limit of an event is reduced to just above that
 * limit.
 */
#define KYMO_INNER_MORE(field) KYMO_INNER_MORE_ field
#define KYMO_INNER_MORE_(kind, ...) KYMO_INNER_MORE_##kind(__VA_ARGS__)
#define KYMO_INNER_MORE_kymo_scalar(type, ctype, name)
#define KYMO_INNER_MORE_kymo_enum(type, ctype, name, labels, checked)
#define KYMO_INNER_MORE_kymo_text(name) + kymo_inner_most(kymo_of->name.length)
#define KYMO_INNER_MORE_kymo_chars(name) + kymo_inner_most(kymo_of->name.length)
#define KYMO_INNER_MORE_kymo_array(type, ctype, count, name)
#define KYMO_INNER_MORE_kymo_sequence(type, ctype, name) + kymo_inner_most(kymo_of->name.count) * sizeof(ctype)

/* The part of the field that may be truncated. */
#define KYMO_INNER_PART(field) KYMO_INNER_PART_ field
#define KYMO_INNER_PART_(kind, ...) KYMO_INNER_PART_##kind(__VA_ARGS__)
#define KYMO_INNER_PART_kymo_scalar(type, ctype, name)
#define KYMO_INNER_PART_kymo_enum(type, ctype, name, labels, checked)
#define KYMO_INNER_PART_kymo_text(name) {&kymo_less.name.length, 1, kymo_less.name.bytes},
#define KYMO_INNER_PART_kymo_chars(name) {&kymo_less.name.length, 1, kymo_less.name.bytes},
#define KYMO_INNER_PART_kymo_array(type, ctype, count, name)
#define KYMO_INNER_PART_kymo_sequence(type, ctype, name) {&kymo_less.name.count, sizeof(ctype), NULL},

/* Writes the field's bytes. */
#define KYMO_INNER_PUT(field) KYMO_INNER_PUT_ field
#define KYMO_INNER_PUT_(kind, ...) KYMO_INNER_PUT_##kind(__VA_ARGS__)
#define KYMO_INNER_PUT_kymo_scalar(type, ctype, name) kymo_to = kymo_inner_put(kymo_to, &kymo_of->name, sizeof(ctype));
#define KYMO_INNER_PUT_kymo_enum(type, ctype, name, labels, checked) \
    kymo_to = kymo_inner_put(kymo_to, &kymo_of->name, sizeof(ctype)); \
    { KYMO_INNER_LABELS_FIT(type, ctype, name, checked); }
/*
 * The compiler makes a packed enumeration as large as its values need. The last value, -1 or the
 * largest one, lets it need more than the integer has if a label is below or above the integer's
 * range. Of labels of 64 bits, C compilers only warn.
 */
#define KYMO_INNER_LABELS_FIT(type, ctype, name, checked) \
    __extension__ enum __attribute__((packed)) kymo_labels { \
        KYMO_INNER_INSIDE checked, \
        kymo_label_of_type = KYMO_INNER_CAST(ctype, -1) \
    }; \
    KYMO_INNER_ASSERT(sizeof(enum kymo_labels) <= sizeof(ctype), "a label of " #name " does not fit " type)
#define KYMO_INNER_PUT_kymo_text(name) kymo_to = kymo_inner_put_counted(kymo_to, kymo_of->name.bytes, kymo_of->name.length, 1);
#define KYMO_INNER_PUT_kymo_chars(name) KYMO_INNER_PUT_kymo_text(name)
#define KYMO_INNER_PUT_kymo_array(type, ctype, count, name) \
    kymo_to = kymo_inner_put_array(kymo_to, kymo_of->name, sizeof(ctype[count]));
#define KYMO_INNER_PUT_kymo_sequence(type, ctype, name) \
    kymo_to = kymo_inner_put_counted(kymo_to, kymo_of->name.elements, kymo_of->name.count, sizeof(ctype));
#define KYMO_INNER_INSIDE(...) __VA_ARGS__

KYMO_INNER_INLINE struct kymo_text kymo_inner_chars(const char *bytes, size_t length)
{
    struct kymo_text text;
    /* Readers end a text at its first zero, and filters have to see the same text. */
    const void *zero;
    length = length < KYMO_FIELD_BYTES_MAX ? length : KYMO_FIELD_BYTES_MAX;
    zero = bytes && length ? __builtin_memchr(bytes, 0, length) : 0;
    /* A text of length 0 may have a null pointer. */
    text.bytes = bytes ? bytes : length ? "(null)" : "";
    text.length = zero ? (size_t)((const char *)zero - bytes) : bytes || !length ? length : 6;
    return text;
}

KYMO_INNER_INLINE struct kymo_text kymo_inner_text(KYMO_INNER_TEXT_OF_CALLER text)
{
#ifdef __cplusplus
    return kymo_inner_chars(text.bytes(), text.length());
#else
    struct kymo_text its;
    its.bytes = text ? text : "(null)";
    its.length = __builtin_strlen(its.bytes);
    return its;
#endif
}

KYMO_INNER_INLINE void kymo_inner_own_text(struct kymo_own *own, const char *bytes)
{
    own->text = bytes ? bytes : "(null)";
    own->length = __builtin_strlen(own->text);
}

KYMO_INNER_INLINE struct kymo_sequence kymo_inner_sequence(const void *elements, size_t count)
{
    struct kymo_sequence sequence;
    /* Copying 0 elements needs a valid pointer too. */
    sequence.elements = elements ? elements : "";
    sequence.count = elements ? count : 0;
    return sequence;
}

KYMO_INNER_WRITER uint64_t kymo_inner_most(uint64_t count)
{
    return count <= KYMO_FIELD_BYTES_MAX ? count : KYMO_FIELD_BYTES_MAX + 1;
}

KYMO_INNER_WRITER unsigned char *kymo_inner_put_counted(unsigned char *to, const void *from, uint64_t count, size_t bytes)
{
    const uint16_t written = KYMO_INNER_CAST(uint16_t, count);
    to = kymo_inner_put(to, &written, sizeof written);
    return kymo_inner_put_many(to, from, count * bytes);
}

/* A null array is recorded as all zeros. */
KYMO_INNER_WRITER unsigned char *kymo_inner_put_array(unsigned char *to, const void *from, size_t bytes)
{
    if (from)
        return kymo_inner_put_many(to, from, bytes);
    __builtin_memset(to, 0, bytes);
    return to + bytes;
}

/*
 * The event itself. It is registered before the program's constructors run, and unregistered after
 * its destructors.
 */
#define KYMO_INNER_DEFINED(lines, provider, title, function, has_fields, ...) \
    static const char kymo_inner_definition_##function[] = \
        "event " provider ":" title "\n" lines "source " __FILE__ ":" KYMO_INNER_QUOTED(__LINE__) "\n" \
        KYMO_INNER_EACH(KYMO_INNER_LINE, KYMO_INNER_NOTHING, __VA_ARGS__); \
    static KYMO_INNER_PROBES __attribute__((aligned(32))) struct kymo_event kymo_inner_event_##function = { \
        &kymo_inner_event_##function.off, 0, sizeof kymo_inner_definition_##function - 1, \
        kymo_inner_definition_##function, 0, 0}; \
    static __attribute__((constructor(101))) void kymo_inner_begin_##function(void) \
    { \
        kymo_register(&kymo_inner_event_##function); \
    } \
    static __attribute__((destructor(101))) void kymo_inner_end_##function(void) \
    { \
        kymo_unregister(&kymo_inner_event_##function); \
    } \
    KYMO_INNER_FUNCTIONS(function, kymo_inner_event_##function, kymo_inner_event_##function.attached, provider, title, \
                         has_fields, __VA_ARGS__)

/*
 * The functions that write the event. Only the callsite is inline, so that an event that is off
 * costs as little as possible.
 */
#define KYMO_INNER_FUNCTIONS(function, event, attached, provider, title, has_fields, ...) \
    KYMO_INNER_EACH(KYMO_INNER_CHECK, KYMO_INNER_NOTHING, __VA_ARGS__) \
    struct kymo_inner_of_##function { \
        KYMO_INNER_MEMBER_##has_fields KYMO_INNER_EACH(KYMO_INNER_MEMBER, KYMO_INNER_NOTHING, __VA_ARGS__) \
    } __attribute__((aligned(8))); \
    KYMO_INNER_ASSERT(0 KYMO_INNER_EACH(KYMO_INNER_FIXED, KYMO_INNER_NOTHING, __VA_ARGS__) <= KYMO_FIELD_BYTES_MAX, \
                      #function " has more bytes than an event can have"); \
    static __attribute__((noinline, unused)) KYMO_INNER_NO_RACES void kymo_inner_record_##function( \
        const struct kymo_inner_of_##function *kymo_of, bool kymo_is_cut) \
    { \
        const uint64_t kymo_fixed = 0 KYMO_INNER_EACH(KYMO_INNER_FIXED, KYMO_INNER_NOTHING, __VA_ARGS__); \
        const uint64_t kymo_bytes = kymo_fixed KYMO_INNER_EACH(KYMO_INNER_MORE, KYMO_INNER_NOTHING, __VA_ARGS__); \
        struct kymo_write kymo_write; \
        unsigned char *kymo_to; \
        if (KYMO_INNER_RARELY(kymo_bytes > KYMO_FIELD_BYTES_MAX)) { \
            struct kymo_inner_of_##function kymo_less = *kymo_of; \
            const struct kymo_inner_part kymo_parts[] = { \
                KYMO_INNER_EACH(KYMO_INNER_PART, KYMO_INNER_NOTHING, __VA_ARGS__){NULL, 1, NULL}}; \
            kymo_inner_cut(kymo_parts, sizeof kymo_parts / sizeof kymo_parts[0] - 1, KYMO_FIELD_BYTES_MAX - kymo_fixed); \
            kymo_inner_record_##function(&kymo_less, true); \
            return; \
        } \
        kymo_to = kymo_inner_enter(&kymo_write, &event, kymo_bytes); \
        if (KYMO_INNER_RARELY(!kymo_to)) \
            return; \
        KYMO_INNER_EACH(KYMO_INNER_PUT, KYMO_INNER_NOTHING, __VA_ARGS__) \
        if (KYMO_INNER_RARELY(kymo_is_cut)) \
            kymo_inner_was_cut(&kymo_write); \
        kymo_inner_leave(&kymo_write); \
    } \
    KYMO_INNER_USDT(function, attached, provider, title, __VA_ARGS__) \
    KYMO_INNER_INLINE void kymo_inner_give_##function(uint32_t kymo_control, const struct kymo_inner_of_##function *kymo_of, \
                                                      bool kymo_is_cut) \
    { \
        if (KYMO_INNER_RARELY(attached)) \
            kymo_inner_usdt_##function(kymo_of); \
        if (kymo_control == 1 || (kymo_control && kymo_inner_is_kept(kymo_control, kymo_of, sizeof *kymo_of))) \
            kymo_inner_record_##function(kymo_of, kymo_is_cut); \
    } \
    KYMO_INNER_INLINE bool function##_is_on(void) { return kymo_inner_is_wanted(kymo_inner_control(&event), &attached); } \
    KYMO_INNER_INLINE void function(KYMO_INNER_PARAMETERS(has_fields, __VA_ARGS__)) \
    { \
        const uint32_t kymo_control = kymo_inner_control(&event); \
        if (KYMO_INNER_RARELY(kymo_inner_is_wanted(kymo_control, &attached))) { \
            struct kymo_inner_of_##function kymo_of; \
            KYMO_INNER_FILL_##has_fields KYMO_INNER_EACH(KYMO_INNER_FILL, KYMO_INNER_NOTHING, __VA_ARGS__) \
            kymo_inner_give_##function(kymo_control, &kymo_of, false); \
        } \
    } \
    KYMO_INNER_ASSERT(1, "whoever defines an event ends that with a semicolon")

#endif
#endif
