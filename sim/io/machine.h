/* What the machine has left. */
#ifndef ORR_IO_MACHINE_H
#define ORR_IO_MACHINE_H

#include <glib.h>

/* Bytes of memory that programs can still take; 0 where the system does not say. */
guint64 orr_machine_available_bytes(void);
/* The same out of the text of /proc/meminfo (proc(5): MemAvailable, in kB of 1,024 bytes). */
guint64 orr_machine_parse_available(const char *text);

#endif
