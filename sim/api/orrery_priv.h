/* Inside the public face of the library. */
#ifndef ORR_API_ORRERY_PRIV_H
#define ORR_API_ORRERY_PRIV_H

#include "sim/api/orrery.h"

#include <glib.h>

/* Hands @inner over to the caller, if he wants it; frees it. */
void orr_orrery__tell(OrreryError **error, GError *inner);

#endif
