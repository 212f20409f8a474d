/* A program of several files that have the same event. */
#include "parts.h"

int main(void)
{
    kymo_parts_seen("main");
    part_one();
    part_two();
    return 0;
}
