/* orrery import: files of other programs into ours. The forms are in importers.c. */
#include "sim/cli/commands.h"

#include "sim/base/units.h"
#include "sim/base/words.h"
#include "sim/cli/importers.h"

#include <stdio.h>
#include <string.h>

static const OrrOption options[] = {
    ORR_OPTION_OUTPUT,
    {"op", 0, "NAMES", false, "nccl-tests: the collective, or one a table, comma-separated"},
    {"ranks", 0, "N", false,
     "nccl-tests: how many ranks took part, if the file does not say; failures: the GPUs"},
    {"gpu", 0, "NAME", false, "topology: the GPU (orrery list gpus), if the file does not name it"},
    {"nic", 0, "RATE", false, "topology: rate of a NIC such as 400G, if the file does not say"},
    {"nodes", 0, "N", false, "topology: how many such nodes the cluster has"},
    {"window", 0, "TIME", false, "failures: how long they were counted, such as 54d"},
    {"set", 0, "NAME=VALUE", true,
     "config: a key of the job file (job.cluster=a100-ib:64) or a variable of the script"},
    ORR_OPTION_HELP,
    ORR_OPTION_END,
};

static const OrrImporter *find(const char *name, GError **error) {
    for (int i = 0; orr_importers[i]; i++)
        if (strcmp(orr_importers[i]->name, name) == 0)
            return orr_importers[i];
    g_autofree char *hint = orr_words_hint(name, orr_importer_names);
    orr_fail_usage(error, "orrery import: unknown kind '%s'; %s", name, hint);
    return NULL;
}

static bool take_window(const OrrCli *cli, double *window_ns, GError **error) {
    g_autoptr(GError) flaw = NULL;
    const char *text = orr_cli_value(cli, "window");
    if (!orr_units_parse(text, ORR_DIM_TIME, window_ns, &flaw))
        return orr_fail_usage(error, "orrery import: --window %s: %s", text, flaw->message);
    if (!(*window_ns >= 1 && *window_ns <= 1e19))
        return orr_fail_usage(error,
                              "orrery import: --window %s: a time above 0, such as 54d, would "
                              "do",
                              text);
    return true;
}

static bool run(OrrCli *cli, GError **error) {
    const OrrImporter *importer = find(orr_cli_argument(cli, 0), error);
    int64_t n_ranks = 0, n_nodes = 0;
    if (!importer || !orr_cli_int(cli, "ranks", 1, 10000000, &n_ranks, error) ||
        !orr_cli_int(cli, "nodes", 1, 100000, &n_nodes, error))
        return false;
    double window_ns = 0;
    if (orr_cli_has(cli, "window") && !take_window(cli, &window_ns, error))
        return false;
    g_autofree const char **sets = g_new0(const char *, orr_cli_n_values(cli, "set") + 1);
    for (guint i = 0; i < orr_cli_n_values(cli, "set"); i++)
        sets[i] = orr_cli_nth_value(cli, "set", i);
    g_autoptr(GString) notes = g_string_new(NULL);
    OrrImport import = {
        .path = orr_cli_argument(cli, 1),
        .op = orr_cli_value(cli, "op"),
        .n_ranks = (guint)n_ranks,
        .gpu = orr_cli_value(cli, "gpu"),
        .nic = orr_cli_value(cli, "nic"),
        .n_nodes = (guint)n_nodes,
        .window_ns = window_ns,
        .sets = sets,
        .notes = notes,
    };
    g_autofree char *text = importer->run(&import, error);
    fputs(notes->str, stderr);
    if (!text)
        return false;
    g_autoptr(OrrOut) out = orr_cli_output(cli, error);
    if (!out)
        return false;
    orr_out_puts(out, text);
    return orr_out_commit(out, error);
}

const OrrCommand orr_cmd_import = {
    .name = "import",
    .summary = "turn a file of another program into one of ours",
    .synopsis = "KIND FILE",
    .description =
        "hf: a Hugging Face config.json of a dense decoder becomes a model file. Keys that "
        "are absent take the defaults of their architecture, which are told on stderr. What "
        "cannot be modelled is refused by name.\n\n"
        "nccl-tests: output of nccl-tests or rccl-tests (text of any version, JSON) or of "
        "PyTorch's all_reduce_bench becomes a CSV table of collectives. Rows that are cut, have "
        "no time or wrong values are left out and told.\n\n"
        "log: a training log of Megatron, Megatron-DeepSpeed, DeepSpeed, NeMo or torchtitan "
        "becomes a measured run: the medians of its steady steps, their spread, and what the "
        "log says of layout and batch.\n\n"
        "topology: NCCL topology XML, a table of nvidia-smi topo -m or rocm-smi, hwloc XML or "
        "a listing of ibnetdiscover becomes a cluster file with its node in it. PCIe links that "
        "are slower than others of their kind are told.\n\n"
        "failures: a table of counts (component, count; with --ranks and --window), a table of "
        "events "
        "(time_h, component), or sacct -P becomes a file of failure rates.\n\n"
        "kineto: a trace of the PyTorch profiler becomes a CSV table: kernels by name and "
        "stream, collectives by size and group, and how the window divides.\n\n"
        "chakra: a Chakra execution trace (protobuf or JSON) becomes a CSV table, a row an "
        "operation; orrery step runs the trace itself.\n\n"
        "config: a launch script with Megatron arguments, a Megatron, NeMo or nanotron YAML, a "
        "DeepSpeed JSON or a torchtitan TOML becomes a job file. Experts are written down, though "
        "step can't simulate them yet. What it does not say, such as the cluster, is said "
        "with --set; what is missing is told all at once.\n\n"
        "  orrery import config train.slurm --set job.cluster=jean-zay-a100:384 -o my-job.ini\n"
        "  orrery import hf config.json -o my-model.ini\n"
        "  orrery import failures counts.csv --ranks 16384 --window 54d -o my-failures.ini\n"
        "  orrery show model ./my-model.ini\n"
        "  orrery import topology topo.xml --nodes 4 -o my-cluster.ini\n"
        "  orrery import nccl-tests all_reduce.log -o all_reduce.csv",
    .kinds = orr_importer_names,
    .min_arguments = 2,
    .max_arguments = 2,
    .options = options,
    .run = run,
};
