/* A header with an event, for several files of a program. */
#ifndef PARTS_H
#define PARTS_H

#include <kymo/kymo.h>

KYMO_EVENT(parts, seen, KYMO_TEXT(where));

void part_one(void);
void part_two(void);

#endif
