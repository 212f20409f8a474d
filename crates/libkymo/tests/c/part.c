/* A part of a static library: its function has the name PART. */
#include "parts.h"

#define TEXT(text) TEXT_(text)
#define TEXT_(text) #text

void PART(void)
{
    kymo_parts_seen(TEXT(PART));
}
