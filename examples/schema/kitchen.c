/*
 * A kitchen: its events are defined in kitchen.kymo, of which the build makes kitchen_events.h.
 *
 *     cmake -B build examples/schema && cmake --build build && kymo record -- build/kitchen-c
 *     kymo pairs kymo-traces/kitchen-c-*
 *     kymo flows kymo-traces/kitchen-c-*
 */
#include "kitchen_events.h"

int main(void)
{
    static const uint8_t spices[4] = {1, 2, 3, 4};
    for (uint32_t order = 0; order < 100; ++order) {
        const uint8_t dish = order % 10 == 0 ? KITCHEN_DISH_CAKE : order % 2 ? KITCHEN_DISH_SOUP : KITCHEN_DISH_SALAD;
        const uint16_t tastes[2] = {7, (uint16_t)order};
        const uint16_t cook = (uint16_t)(order % 2);
        kymo_orders_placed(order, dish, "window");
        kymo_orders_waiting(1);
        kymo_orders_taken(order, cook);
        kymo_orders_waiting(0);
        kymo_stove_busy(cook);
        kymo_stove_begin(order, dish, 0xCAFE, spices);
        kymo_stove_done(order, 250.5, order == 13, tastes, 2);
        if (order % 10 == 9) {
            KYMO_STOVE_CLEAN_SCOPE(cook);
            kymo_log(KYMO_INFO, "order %u is out", (unsigned)order);
        }
        kymo_stove_idle(cook);
    }
    return 0;
}
