/* orrery show: one thing at a time, by kind. */
#include "sim/cli/commands.h"

#include "sim/base/words.h"
#include "sim/cli/run.h"
#include "sim/cli/show.h"

#include <string.h>

static const struct {
    const char *name;
    guint n_arguments; /* with the kind; more only for collective */
    bool (*write)(const OrrCli *cli, OrrOut *out, GError **error);
} tables[] = {
    {"cluster", 2, orr_cli_show_cluster},
    {"node", 2, orr_cli_show_node},
    {"gpu", 2, orr_cli_show_gpu},
    {"model", 2, orr_cli_show_model},
    {"framework", 2, orr_cli_show_framework},
    {"job", 2, orr_cli_show_job},
    {"collective", 64, orr_cli_show_collective},
    {"schedule", 2, orr_cli_show_schedule},
    {"program", 2, orr_cli_show_program},
    {"shapes", 2, orr_cli_show_shapes},
    {"run", 2, orr_cli_show_run},
    {"failure", 2, orr_cli_show_failure},
    {"price", 2, orr_cli_show_price},
    {"share", 2, orr_cli_show_share},
};
static const char *const kinds[] = {"cluster", "node",       "gpu",      "model",   "framework",
                                    "job",     "collective", "schedule", "program", "shapes",
                                    "run",     "failure",    "price",    "share",   NULL};
_Static_assert(G_N_ELEMENTS(kinds) == G_N_ELEMENTS(tables) + 1, "kinds are the names of tables");

static const OrrOption options[] = {
    {"svg", 0, "FILE", false, "cluster: draw it as SVG too"},
    {"cluster", 'c', "CLUSTER", false, "collective: a cluster's name, NAME:GPUS or a shape"},
    {"gpus", 'n', "N", false, "collective: over the first N GPUs; default: all"},
    {"detailed", 0, NULL, false, "collective: every message as a flow of its own, over the links"},
    {"dtype", 0, "TYPE", false, "collective: of the elements (fp32); model: of the peak (bf16)"},
    {"sequence", 0, "TOKENS", false, "model: length of a sequence (2048)"},
    {"tokens-per-s", 0, "RATE", false,
     "model: measured tokens/s per GPU, for the MFU by each formula"},
    {"gpu", 0, "NAME", false, "model: whose peak is the denominator"},
    {"stages", 0, "P", false, "schedule: pipeline stages (4)"},
    {"micro-batches", 0, "M", false, "schedule: micro-batches a step (8)"},
    {"chunks", 0, "V", false, "schedule: model chunks a stage (1)"},
    ORR_RUN_OPTIONS,
    {"log", 0, NULL, false, "collective: a log as nccl-tests prints it"},
    {"json", 0, NULL, false, "collective: JSON instead of text"},
    {"csv", 0, NULL, false, "collective: CSV instead of text"},
    ORR_OPTION_OUTPUT,
    ORR_OPTION_HELP,
    ORR_OPTION_END,
};

static bool run(OrrCli *cli, GError **error) {
    const char *kind = orr_cli_argument(cli, 0);
    for (guint t = 0; t < G_N_ELEMENTS(tables); t++) {
        if (strcmp(tables[t].name, kind) != 0)
            continue;
        const char *extra = orr_cli_argument(cli, tables[t].n_arguments);
        if (extra)
            return orr_fail_usage(error, "orrery show %s: '%s' is one word too many", kind, extra);
        g_autoptr(OrrOut) out = orr_cli_output(cli, error);
        return out && tables[t].write(cli, out, error) && orr_out_commit(out, error);
    }
    g_autofree char *hint = orr_words_hint(kind, kinds);
    return orr_fail_usage(error, "orrery show: unknown kind '%s'; %s", kind, hint);
}

const OrrCommand orr_cmd_show = {
    .name = "show",
    .summary = "a cluster, GPU, model, schedule, ... and what follows from it",
    .synopsis = "KIND NAME",
    .description =
        "cluster, node, gpu, model, framework and job take a name (see orrery list) or the path of "
        "a "
        "file. A cluster is NAME, NAME:GPUS or a one-line shape.\n\n"
        "collective KIND SIZE[..SIZE] [NCCL_NAME=VALUE ...]: time, algbw and busbw by size as "
        "nccl-tests prints them, with the algorithm and protocol that NCCL would take or that the "
        "variables force. With --detailed every hop of a ring and every message of an all-to-all "
        "is a flow of its own, over the links of the cluster; --set cluster.KEY=VALUE changes "
        "them.\n\n"
        "schedule NAME: the order of a pipeline drawn in text, its bubble and what it holds.\n\n"
        "model NAME: parameters, and FLOPs a token by every formula; with a measured rate the MFU "
        "that each formula makes of it.\n\n"
        "run, failure, price, share NAME: a run file; rates of failures, of a unit, per thousand "
        "node-days and of jobs of some sizes; what a GPU-hour costs and when buying is cheaper.\n\n"
        "program JOB: what the job is lowered to, role by role; --set and the like apply.\n\n"
        "shapes JOB: its kernels as a CSV of shapes, for orrery-calibrate --shapes.\n\n"
        "  orrery show cluster meta-24k-roce:16384 --svg cluster.svg\n"
        "  orrery show cluster 'fat_tree:256 node:8 gpu:h100'\n"
        "  orrery show collective all_reduce 1MiB..1GiB --cluster h100-ib --gpus 64\n"
        "  orrery show collective all_reduce 1GiB -c h100-ib:16 NCCL_ALGO=Ring NCCL_PROTO=Simple\n"
        "  orrery show collective all_to_all 64MiB -c h100-ib:64 --detailed --set "
        "cluster.routing=ecmp-hash\n"
        "  orrery show schedule interleaved --stages 4 --micro-batches 8 --chunks 2\n"
        "  orrery show model llama2-7b --sequence 4096 --tokens-per-s 9600 --gpu h100",
    .kinds = kinds,
    .min_arguments = 2,
    .max_arguments = 64,
    .options = options,
    .run = run,
};
