// The bridge of bridge.c, in C++.
//
//     c++ -O2 $(pkg-config --cflags kymo) examples/packets/bridge.cpp $(pkg-config --libs kymo) -o bridge
#include <kymo/kymo.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

// A frame of Ethernet with a protocol for experiments (0x88b5), and a number behind the head.
static std::vector<unsigned char> make(unsigned number)
{
    static constexpr std::array<unsigned char, 14> head{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5};
    std::vector<unsigned char> frame(60 + number * 10, static_cast<unsigned char>(number));
    std::copy(head.begin(), head.end(), frame.begin());
    return frame;
}

int main()
{
    const std::string left = "left", right = "right";
    kymo_set_snap_length(128);
    for (unsigned number = 0; number < 40; ++number) {
        const auto frame = make(number);
        kymo_packet(left, KYMO_INBOUND, frame.data(), frame.size());
        if (number % 4 == 3)
            kymo_log(KYMO_WARNING, "frame %u goes nowhere", number);
        else
            kymo_packet(right, KYMO_OUTBOUND, frame.data(), frame.size());
    }
}
