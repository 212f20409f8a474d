/*
 * A bridge: frames come in on the left side, and most go out on the right one. Which do not?
 *
 *     cc -O2 $(pkg-config --cflags kymo) examples/packets/bridge.c $(pkg-config --libs kymo) -o bridge
 *     kymo record --output bridge-trace -- ./bridge
 *     kymo export bridge-trace --format pcapng --output bridge.pcapng && tshark -r bridge.pcapng
 */
#include <kymo/kymo.h>
#include <string.h>

enum { FRAMES = 40, HEAD = 14 };

/* A frame of Ethernet with a protocol for experiments (0x88b5), and a number behind the head. */
static size_t make(unsigned char *frame, unsigned number)
{
    static const unsigned char head[HEAD] = {2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5};
    const size_t size = 60 + number * 10;
    memset(frame, (int)number, size);
    memcpy(frame, head, sizeof head);
    return size;
}

int main(void)
{
    static unsigned char frame[1514];
    kymo_set_snap_length(128);
    for (unsigned number = 0; number < FRAMES; ++number) {
        const size_t size = make(frame, number);
        kymo_packet("left", KYMO_INBOUND, frame, size);
        if (number % 4 == 3)
            kymo_log(KYMO_WARNING, "frame %u goes nowhere", number);
        else
            kymo_packet("right", KYMO_OUTBOUND, frame, size);
    }
    return 0;
}
