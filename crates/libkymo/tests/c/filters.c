/*
 * Filters see arguments as the structure of the fields: natural alignment, texts and sequences as address and length, arrays as address.
 * The program is its own recorder here: it makes its filter, and switches its event to it.
 */
#include <kymo/kymo.h>

#include <stddef.h>
#include <string.h>

KYMO_EVENT(filters, seen, KYMO_U8(a), KYMO_U32(b), KYMO_TEXT(c), KYMO_BOOL(d), KYMO_F64(e), KYMO_SEQUENCE(u16, f), KYMO_U16(g), KYMO_ARRAY(u8, 3, h),
           KYMO_ENUM(i16, i, one = 1), KYMO_POINTER(j), KYMO_U8(k));

static int asked;

static uint64_t number_at(const void *arguments, size_t offset, size_t bytes)
{
    uint64_t number = 0;
    memcpy(&number, (const char *)arguments + offset, bytes);
    return number;
}

#define SAME(offset, bytes, expected) (number_at(arguments, offset, bytes) == (uint64_t)(expected))

static const uint16_t sequence[] = {5, 6};
static const uint8_t array[] = {1, 2, 3};

/* Keeps what has an odd first number. */
static uint64_t filter(const void *arguments, uint64_t slot_and_size)
{
    double real;
    ++asked;
    memcpy(&real, (const char *)arguments + 32, sizeof real);
    const char *const text = (const char *)(uintptr_t)number_at(arguments, 8, 8);
    if (slot_and_size != (200 | 96 << 8) || !SAME(4, 4, 0x12345678) || !SAME(16, 8, 4) || memcmp(text, "text", 4) != 0 || !SAME(24, 1, 1) || real != 0.25 ||
        !SAME(40, 8, (uintptr_t)sequence) || !SAME(48, 8, 2) || !SAME(56, 2, 0xabcd) || !SAME(64, 8, (uintptr_t)array) || !SAME(72, 2, 1) ||
        !SAME(80, 8, (uintptr_t)&asked) || !SAME(88, 1, 9))
        return 0;
    return number_at(arguments, 0, 1) % 2;
}

int main(void)
{
    if (sizeof(struct kymo_inner_of_kymo_filters_seen) != 96)
        return 1;
    kymo_filters[200] = filter;
    *(unsigned char *)(uintptr_t)kymo_inner_event_kymo_filters_seen.control = 200;
    for (int number = 0; number < 10; ++number)
        kymo_filters_seen((uint8_t)number, 0x12345678, "text", true, 0.25, sequence, 2, 0xabcd, array, 1, &asked, 9);
    return asked == 10 ? 0 : 2;
}
