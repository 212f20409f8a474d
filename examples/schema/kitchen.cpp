// The same kitchen in C++: texts may be std::string.
#include "kitchen_events.h"

#include <string>

int main()
{
    const uint8_t spices[4] = {1, 2, 3, 4};
    for (uint32_t order = 0; order < 100; ++order) {
        const uint16_t tastes[] = {7}, cook = static_cast<uint16_t>(order % 2);
        kymo_orders_placed(order, KITCHEN_DISH_CAKE, "table " + std::to_string(order % 4));
        kymo_orders_taken(order, cook);
        kymo_stove_busy(cook);
        kymo_stove_begin(order, KITCHEN_DISH_CAKE, 0xCAFE, spices);
        kymo_stove_done(order, 250.5, false, tastes, 1);
        if (order % 10 == 9) {
            KYMO_STOVE_CLEAN_SCOPE(cook);
            kymo_log(KYMO_INFO, "order %u is out", order);
        }
        kymo_stove_idle(cook);
    }
}
