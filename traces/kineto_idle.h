/* Idle time of a traced device by whether the host had launched what ended it. */
#ifndef TRACES_KINETO_IDLE_H
#define TRACES_KINETO_IDLE_H

#include <glib.h>
#include <stdint.h>

typedef struct OrrLaunches OrrLaunches;

OrrLaunches *orr_traces__launches_new(void);
void orr_traces__launches_free(OrrLaunches *launches);
/* A call of the runtime that began at @begin_us, and an event of the device, by what correlates
 * them; NAN: nothing. */
void orr_traces__launches_host(OrrLaunches *launches, double correlation, double begin_us);
void orr_traces__launches_device(OrrLaunches *launches, double correlation, double begin_us,
                                 double end_us);
/* Nanoseconds in which the device ran nothing and what came next had not been launched; *@n: events
 * whose launch is known. NAN if there are none. */
double orr_traces__launches_idle_ns(OrrLaunches *launches, uint32_t *n);

#endif
