#include "sim/api/calibration.h"

#include <math.h>
#include <string.h>

#include "calibrate/tables.h"
#include "sim/collective/constant_names.h"
#include "sim/io/data.h"
#include "sim/io/keys.h"

#define MAX_NS 1e9      /* ours: no launch or hop takes a second */
#define MAX_RATE 1e16   /* ours: of a copy */
#define MAX_BYTES 1e12  /* ours: of a message whose chunks still grow */
#define MAX_RATIO 1000. /* ours: of a long hop over a short one */

static double highest(OrrDim dim) {
    return dim == ORR_DIM_TIME    ? MAX_NS
           : dim == ORR_DIM_RATE  ? MAX_RATE
           : dim == ORR_DIM_BYTES ? MAX_BYTES
           : dim == ORR_DIM_NONE  ? MAX_RATIO
                                  : 1;
}

static void read_collectives(OrrKeys *keys, OrrCalibration *c) {
    if (!orr_keys_has_group(keys, "collectives"))
        return;
    c->collectives = g_memdup2(orr_coll_constants_default(), sizeof *c->collectives);
    g_auto(GStrv) names = orr_keys_list(keys, "collectives");
    for (guint i = 0; names && names[i]; i++) {
        double *at = orr_coll_constant(c->collectives, names[i]);
        OrrDim dim = orr_coll_constant_dim(names[i]);
        if (!at)
            orr_keys_complain(keys, "collectives", names[i],
                              "is no constant of collectives; ARCH.ring.PROTOCOL.launch_ns, "
                              "ARCH.nvls.eff_frac or NETWORK.launch_ns would do");
        else
            *at = orr_keys_number(keys, "collectives", names[i], dim,
                                  dim == ORR_DIM_FRACTION ? 1e-6 : 0, highest(dim), *at,
                                  ORR_KEY_QUIET);
    }
}

static double read_ns(OrrKeys *keys, const char *group, const char *key) {
    return orr_keys_number(keys, group, key, ORR_DIM_TIME, 0, MAX_NS, 0, ORR_KEY_QUIET);
}

static double read_frac(OrrKeys *keys, const char *group, const char *key) {
    return orr_keys_number(keys, group, key, ORR_DIM_FRACTION, 0, 1, 0, ORR_KEY_QUIET);
}

/* Groups for people: their keys count as known. */
static void pass_over(OrrKeys *keys, const char *group) {
    g_auto(GStrv) names = orr_keys_has_group(keys, group) ? orr_keys_list(keys, group) : NULL;
    for (guint i = 0; names && names[i]; i++)
        orr_keys_string(keys, group, names[i], "", ORR_KEY_QUIET);
}

static void read_file(OrrKeys *keys, OrrCalibration *c) {
    bool has_table = orr_keys_has_group(keys, "table");
    c->surfaces = has_table ? orr_tables_read(keys) : NULL;
    c->has_rates = orr_tables_read_rates(keys, &c->rates);
    read_collectives(keys, c);
    c->launch_ns = read_ns(keys, "launches", "rate");
    c->graph_launch_ns = read_ns(keys, "launches", "graph");
    read_ns(keys, "launches", "latency"); /* for people: a step never waits for one launch */
    c->compute_rate_frac = read_frac(keys, "overlap", "products_beside_collectives");
    c->send_rate_frac = read_frac(keys, "overlap", "products_beside_sends");
    read_frac(keys, "overlap", "collectives_beside_products"); /* for people */
    pass_over(keys, "copies");
    pass_over(keys, "best");
    pass_over(keys, "residuals");
    if (!has_table || orr_keys_has_group(keys, "calibration")) {
        orr_keys_string(keys, "calibration", "source", NULL, ORR_KEY_REQUIRED);
        pass_over(keys, "calibration");
    }
    if (!has_table && !c->has_rates && !c->collectives && !(c->launch_ns > 0) &&
        !(c->compute_rate_frac > 0))
        orr_keys_complain(keys, "calibration", "source",
                          "the file holds nothing that was measured; [table], [streaming], "
                          "[collectives], [launches] or [overlap] would do");
}

OrrCalibration *orr_calibration_load(const char *ref, GError **error) {
    g_autofree char *path = orr_data_find("calibrate/tables", ref, ".ini", error);
    g_autoptr(OrrKeys) keys = path ? orr_keys_load(path, error) : NULL;
    if (!keys)
        return NULL;
    g_autoptr(OrrCalibration) c = g_new0(OrrCalibration, 1);
    g_autofree char *name = g_path_get_basename(path);
    c->name = g_str_has_suffix(name, ".ini") ? g_strndup(name, strlen(name) - 4) : g_strdup(name);
    read_file(keys, c);
    if (!orr_keys_finish(keys, error))
        return NULL;
    if (c->surfaces && c->has_rates)
        c->surfaces->rates = c->rates;
    return g_steal_pointer(&c);
}

/* The GPU's own table under what @c measured of the rest. */
static bool join_own(OrrCalibration *c, const OrrGpu *gpu, GError **error) {
    g_autoptr(OrrCalibration) own = orr_calibration_load(gpu->surfaces, error);
    if (!own) {
        g_prefix_error(error, "GPU %s: [gpu] surfaces = ", gpu->name);
        return false;
    }
    c->surfaces = g_steal_pointer(&own->surfaces);
    if (c->surfaces && c->has_rates)
        c->surfaces->rates = c->rates;
    if (!c->collectives)
        c->collectives = g_steal_pointer(&own->collectives);
    return true;
}

/* Rates without any surface: a set that has them alone. */
static void set_of_rates(OrrCalibration *c, const OrrGpu *gpu) {
    c->surfaces = g_new0(OrrSurfaceSet, 1);
    c->surfaces->gpu = g_strdup(gpu->name);
    c->surfaces->name = g_strdup(c->name);
    c->surfaces->source = g_strdup(c->name);
    c->surfaces->clock_share = gpu->boost_hz > 0 ? gpu->sustained_hz / gpu->boost_hz : 1;
    c->surfaces->rates = c->rates;
}

bool orr_calibration_for(const char *ref, const OrrGpu *gpu, OrrCalibration **calibration,
                         GError **error) {
    bool has_own = gpu->surfaces && gpu->surfaces[0];
    *calibration = NULL;
    if (!ref && !has_own)
        return true;
    g_autoptr(OrrCalibration) c = orr_calibration_load(ref ? ref : gpu->surfaces, error);
    if (!c) {
        if (ref)
            g_prefix_error(error, "--calibration ");
        else
            g_prefix_error(error, "GPU %s: [gpu] surfaces = ", gpu->name);
        return false;
    }
    if (ref && !c->surfaces && has_own && !join_own(c, gpu, error))
        return false;
    if (!c->surfaces && c->has_rates)
        set_of_rates(c, gpu);
    *calibration = g_steal_pointer(&c);
    return true;
}

/* Sends are apart: they take few channels (DESIGN, section 4). */
static void set_rates(OrrFramework *f, const OrrCalibration *c) {
    for (int kind = 0; kind < ORR_N_COMM_KINDS; kind++) {
        double frac = kind == ORR_COMM_PP ? c->send_rate_frac : c->compute_rate_frac;
        if (frac > 0)
            f->compute_rate_frac[kind] = frac;
    }
}

OrrFramework *orr_calibration_profile(const OrrCalibration *c, const OrrFramework *framework,
                                      double host_speed) {
    if (!c || !(c->launch_ns > 0 || c->graph_launch_ns > 0 || c->compute_rate_frac > 0 ||
                c->send_rate_frac > 0))
        return NULL;
    OrrFramework *f = g_memdup2(framework, sizeof *framework);
    /* Lowering divides by the host's speed; what was measured on it is final. A framework does more
     * than launch, so the bare launch is a floor; in a graph it is all there is. */
    double speed = host_speed > 0 ? host_speed : 1;
    if (f->cuda_graphs && c->graph_launch_ns > 0)
        f->host_launch_ns = c->graph_launch_ns * speed;
    else if (!f->cuda_graphs)
        f->host_launch_ns = fmax(f->host_launch_ns, c->launch_ns * speed);
    set_rates(f, c);
    return f;
}

void orr_calibration_free(OrrCalibration *c) {
    if (!c)
        return;
    g_free(c->name);
    orr_surface_set_free(c->surfaces);
    g_free(c->collectives);
    g_free(c);
}
