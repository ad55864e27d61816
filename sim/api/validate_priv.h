/* Private to validation: files that rows share, loaded once. */
#ifndef ORR_API_VALIDATE_PRIV_H
#define ORR_API_VALIDATE_PRIV_H

#include "sim/api/calibration.h"
#include "sim/api/validate.h"
#include "sim/cluster/cluster.h"
#include "workloads/published_names.h"

/* By name; filled before threads start and only read by them. */
typedef struct {
    GHashTable *clusters, *frameworks, *calibrations, *gpus;
    const char *calibration;
    OrrPublishedNames *names;
} OrrValidateShelf;

/* false with @error: the tables of names are missing or broken; to be cleared all the same. */
bool orr_validate__shelf_init(OrrValidateShelf *shelf, const char *calibration, GError **error);
void orr_validate__shelf_clear(OrrValidateShelf *shelf);
/* NULL with @error. */
const OrrCluster *orr_validate__cluster(OrrValidateShelf *shelf, const char *ref, GError **error);
const OrrFramework *orr_validate__framework(OrrValidateShelf *shelf, const char *name,
                                            GError **error);
/* *@calibration NULL: the GPU has none. */
bool orr_validate__calibration(OrrValidateShelf *shelf, const OrrGpu *gpu,
                               const OrrCalibration **calibration, GError **error);
const OrrGpu *orr_validate__gpu(OrrValidateShelf *shelf, const char *name, GError **error);

/* Add the rows of a kind to @v. */
bool orr_validate__calls(const OrrValidateRequest *q, OrrValidateShelf *shelf, OrrValidation *v,
                         GError **error);
bool orr_validate__kernels(const OrrPublished *facts, OrrValidateShelf *shelf, OrrValidation *v,
                           GError **error);

#endif
