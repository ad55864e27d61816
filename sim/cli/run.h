/* What step, trace, plot and show program share: a RUN on the command line becomes a prepared step.
 */
#ifndef ORR_CLI_RUN_H
#define ORR_CLI_RUN_H

#include "sim/api/step.h"
#include "sim/cli/command.h"

/* The options that orr_cli_run_prepare understands; put them into the command's table. */
#define ORR_RUN_OPTIONS                                                                            \
    ORR_OPTION_SET, ORR_OPTION_PERTURB, ORR_OPTION_JITTER, ORR_OPTION_SEED,                        \
        ORR_OPTION_CALIBRATION, ORR_OPTION_UNFOLD, ORR_OPTION_SELF_CHECK, ORR_OPTION_STATS

#define ORR_CLI_MAX_SEEDS 1000000 /* ours: of a step */

typedef struct {
    OrrStepRequest request;
    OrrStepRun *run;
    char *job;         /* name or path of the job */
    GArray *overrides; /* OrrOverride; their texts are in `texts` */
    GPtrArray *texts;
    int64_t n_seeds; /* of the percentiles of the saved record; 0: it has none */
    bool is_varied;  /* the saved record has a sensitivity */
    int64_t begin_us, prepared_us;
} OrrCliRun;

/**
 * orr_cli_run_prepare: @ref is a job's name or path, or a saved record (a file that ends in .json
 * or .json.gz), whose job, overrides and seed are taken; files that changed since are told on
 * stderr. The options of ORR_RUN_OPTIONS apply. NULL with @error.
 */
OrrCliRun *orr_cli_run_prepare(const OrrCli *cli, const char *ref, GError **error);
/* The same up to the request: nothing of the job is read, run is NULL. */
OrrCliRun *orr_cli_run_request(const OrrCli *cli, const char *ref, GError **error);
void orr_cli_run_free(OrrCliRun *run);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OrrCliRun, orr_cli_run_free)

/* Executes; with --stats says afterwards on stderr what it took. @probe may be NULL. */
bool orr_cli_run_execute(OrrCliRun *run, const OrrCli *cli, const OrrProbe *probe,
                         const uint32_t *ranks, uint32_t n_ranks, GError **error);

/* "GROUP.KEY=VALUE" of @option (--set), as in @example; the value may hold anything, '=' too. The
 * texts of @out are kept in @texts, whose free function is g_free. Errors: ORR_ERROR_USAGE. */
bool orr_cli_parse_set(const char *option, const char *example, const char *text, GPtrArray *texts,
                       OrrOverride *out, GError **error);

#endif
