/* What `orrery calibrate fit` is made of: the machine that was measured, and the files that come
 * out. */
#ifndef ORR_CLI_CALIBRATE_PARTS_H
#define ORR_CLI_CALIBRATE_PARTS_H

#include "calibrate/fit_records.h"
#include "sim/cli/command.h"
#include "sim/cluster/cluster.h"
#include "sim/judge/fit.h"

/* All that was read and fitted; members are NULL where there was nothing of the kind. */
typedef struct {
    OrrRecordRows *records;
    OrrRecordFit *kernels;
    double *shipped_frac; /* of each residual: the error of the model as it ships */
    OrrGpu *gpu;          /* of the records; owned unless the cluster has it */
    bool owns_gpu;
    OrrCluster *cluster;
    char *cluster_name; /* for provenance */
    GPtrArray *logs;    /* OrrMeasuredTables */
    GArray *tables;     /* OrrFitTable, borrowing from logs */
    OrrFit *collectives;
    guint n_apart; /* rows of collectives that are not fitted: crowds, in place, beside products */
} OrrCalibrateFit;

/* calibrate_machine.c */
/* The GPU of the records: --gpu, or by its name, or as the records tell it. */
bool orr_cli_fit_gpu(const OrrCli *cli, OrrCalibrateFit *f, GError **error);
/* The cluster: --cluster, or what the records and the GPU tell. */
bool orr_cli_fit_cluster(const OrrCli *cli, OrrCalibrateFit *f, GError **error);
/* The rows of collectives as tables, placed on the cluster. */
void orr_cli_fit_tables(OrrCalibrateFit *f);

/* calibrate_shipped.c */
/* Median absolute error of the shipped model of this GPU for each of f->kernels->residuals, NAN
 * where it has none for the series (copies); g_free. NULL with @error: a table of ours is broken.
 */
double *orr_cli_fit_shipped(const OrrCalibrateFit *f, GError **error);

/* calibrate_write.c */
/* The calibration file. */
void orr_cli_fit_write(const OrrCli *cli, const OrrCalibrateFit *f, OrrOut *out);
/* gpu.ini, node.ini and cluster.ini in @folder. @calibration: its path, or NULL. */
bool orr_cli_fit_skeletons(const OrrCalibrateFit *f, const char *folder, const char *calibration,
                           GError **error);
/* Measured against fitted: calibration_kernels and calibration_collectives, as CSV, script, PNG and
 * SVG in @folder. */
bool orr_cli_fit_plot(const OrrCalibrateFit *f, const char *folder, GError **error);

#endif
