#include "sim/cli/importers.h"

#include <stddef.h>

#include "calibrate/nccl_tests.h"
#include "calibrate/run_log.h"
#include "topologies/import_topology.h"
#include "traces/chakra.h"
#include "traces/kineto.h"
#include "workloads/import_config.h"
#include "workloads/import_failures.h"
#include "workloads/import_hf.h"

/* clang-format off */
const OrrImporter *const orr_importers[] = {
    &orr_importer_hf,
    &orr_importer_nccl_tests,
    &orr_importer_log,
    &orr_importer_topology,
    &orr_importer_kineto,
    &orr_importer_chakra,
    &orr_importer_config,
    &orr_importer_failures,
    NULL,
};

/* checked against the table by tests/test_import_files.c */
const char *const orr_importer_names[] = {
    "hf",
    "nccl-tests",
    "log",
    "topology",
    "kineto",
    "chakra",
    "config",
    "failures",
    NULL,
};
/* clang-format on */
