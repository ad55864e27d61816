/* Between the parts of the grid. */
#ifndef ORR_CALIBRATE_GRID_PRIV_H
#define ORR_CALIBRATE_GRID_PRIV_H

#include "calibrate/grid.h"

/* Appends @c unless it has a flaw. */
void orr_grid__add(GArray *cases, OrrCase c);
void orr_grid__collectives(const OrrGridWish *wish, const OrrDeviceFacts *facts, GArray *cases);

#endif
