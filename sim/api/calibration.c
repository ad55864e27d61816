#include "sim/api/calibration.h"

#include <string.h>

#include "sim/collective/constant_names.h"
#include "sim/io/keys.h"

#define MAX_NS 1e9 /* ours: no launch or hop takes a second */

bool orr_calibration_read(const char *path, OrrCollConstants **constants, GError **error) {
    g_autoptr(OrrKeys) keys = orr_keys_load(path, error);
    *constants = NULL;
    if (!keys)
        return false;
    if (!orr_keys_has_group(keys, "collectives"))
        return true;
    g_autofree OrrCollConstants *k = g_memdup2(orr_coll_constants_default(), sizeof *k);
    orr_keys_string(keys, "calibration", "source", NULL, ORR_KEY_REQUIRED);
    orr_keys_string(keys, "calibration", "summary", "", ORR_KEY_QUIET);
    g_auto(GStrv) names = orr_keys_list(keys, "collectives");
    for (guint i = 0; names && names[i]; i++) {
        double *at = orr_coll_constant(k, names[i]);
        bool is_share = g_str_has_suffix(names[i], "eff_frac");
        if (!at)
            orr_keys_complain(keys, "collectives", names[i],
                              "is no constant of collectives; ARCH.ring.PROTOCOL.launch_ns, "
                              "ARCH.nvls.eff_frac or NETWORK.launch_ns would do");
        else if (is_share)
            *at = orr_keys_number(keys, "collectives", names[i], ORR_DIM_FRACTION, 1e-6, 1, *at,
                                  ORR_KEY_QUIET);
        else
            *at = orr_keys_number(keys, "collectives", names[i], ORR_DIM_TIME, 0, MAX_NS, *at,
                                  ORR_KEY_QUIET);
    }
    if (!orr_keys_finish(keys, error))
        return false;
    *constants = g_steal_pointer(&k);
    return true;
}
