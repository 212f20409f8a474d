/* Fields of all types: the same program in C and in C++. */
#include <kymo/kymo.h>

#ifdef __cplusplus
#include <string>
#include <string_view>
namespace inside {
KYMO_EVENT(test, of_namespace, KYMO_TEXT(name));
KYMO_EVENT(test, of_namespace_too);
}
#endif

#define TWO 0x2

KYMO_EVENT(test, nothing);
KYMO_EVENT_AT(warning, test, integers, KYMO_U8(a), KYMO_U16(b), KYMO_U32(c), KYMO_U64(d), KYMO_I8(e), KYMO_I16(f), KYMO_I32(g), KYMO_I64(h));
KYMO_EVENT(test, others, KYMO_HEX8(a), KYMO_HEX16(b), KYMO_HEX32(c), KYMO_HEX64(d), KYMO_F32(e), KYMO_F64(f), KYMO_BOOL(g), KYMO_POINTER(h));
KYMO_EVENT_AS(counter, test, enums, KYMO_ENUM(u8, state, idle = 0, busy, two = TWO, new = 0xff), KYMO_ENUM(i16, sign, less = -1, more = 1));
KYMO_EVENT(test, texts, KYMO_TEXT(a), KYMO_U8(between), KYMO_TEXT(b), KYMO_CHARS(c), KYMO_CHARS(d));
KYMO_EVENT(test, lists, KYMO_ARRAY(u16, 3, ports), KYMO_SEQUENCE(u8, payload), KYMO_SEQUENCE(i64, times), KYMO_ARRAY(pointer, 2, places),
           KYMO_SEQUENCE(f32, loads), KYMO_SEQUENCE(bool, flags));
KYMO_EVENT(test, cut, KYMO_U32(number), KYMO_TEXT(a), KYMO_SEQUENCE(u64, b), KYMO_TEXT(c));
KYMO_EVENT(test, sixteen, KYMO_U8(f1), KYMO_U8(f2), KYMO_U8(f3), KYMO_U8(f4), KYMO_U8(f5), KYMO_U8(f6), KYMO_U8(f7), KYMO_U8(f8), KYMO_U8(f9),
           KYMO_U8(f10), KYMO_U8(f11), KYMO_U8(f12), KYMO_U8(f13), KYMO_U8(f14), KYMO_U8(f15), KYMO_U8(f16));

#define EIGHT(p) KYMO_U8(p##0), KYMO_U8(p##1), KYMO_U8(p##2), KYMO_U8(p##3), KYMO_U8(p##4), KYMO_U8(p##5), KYMO_U8(p##6), KYMO_U8(p##7)
KYMO_EVENT(test, sixty_four, EIGHT(a), EIGHT(b), EIGHT(c), EIGHT(d), EIGHT(e), EIGHT(f), EIGHT(g), EIGHT(h));

static char long_text[20001];
static uint64_t numbers[4000];

int main(void)
{
    static const uint16_t ports[3] = {1, 2, 0xffff};
    static const uint8_t payload[] = {9, 8, 7};
    static const int64_t times[] = {-1, 1};
    static const void *const places[2] = {numbers, NULL};
    static const float loads[] = {0.5f};
    static const bool flags[] = {true, false};
    kymo_test_nothing();
    kymo_test_integers(0xff, 0xffff, 0xffffffff, 0xffffffffffffffff, -1, -2, -3, -4);
    kymo_test_others(0x1, 0x2, 0x3, 0x4, 1.5f, -2.5, true, numbers);
    kymo_test_enums(1, -1);
    kymo_test_texts("plain", 7, NULL, "not all of it", 3, NULL, 9);
    kymo_test_texts("", 8, "gr\xc3\xbc\xc3\x9f" "e", NULL, 0, "x\0y", 3);
    kymo_test_lists(ports, payload, 3, times, 2, places, loads, 1, flags, 2);
    kymo_test_lists(ports, NULL, 5, times, 0, places, NULL, 0, NULL, 0);
    kymo_test_sixteen(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16);
    /* What is too long: the longest are cut to the same length, between characters. */
    for (int at = 0; at < 10000; ++at) {
        long_text[2 * at] = '\xc3';
        long_text[2 * at + 1] = '\xbc';
    }
    kymo_test_cut(1, long_text, NULL, 0, "short");
    kymo_test_cut(2, long_text, numbers, 4000, "short");
    kymo_test_cut(3, "all", numbers, ~(size_t)0, "of it");
    kymo_test_cut(4, "all", numbers, 2044, "of it");
#ifdef __cplusplus
    inside::kymo_test_of_namespace("of C");
    inside::kymo_test_of_namespace(std::string("of a\0string", 11));
    inside::kymo_test_of_namespace(std::string_view("of a view", 4));
#endif
    return kymo_test_nothing_is_on() ? 0 : 1;
}
