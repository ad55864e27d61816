#include "tests/collective_rows.h"

#include <string.h>
#include <zlib.h>

#include "sim/collective/constants.h"

#define MAX_COLUMNS 32

/* Splits one CSV line in place (RFC 4180 quotes, no line breaks inside). Returns the columns. */
static int split(char *line, char *column[MAX_COLUMNS]) {
    int n = 0;
    char *in = line;
    g_strchomp(line);
    while (n < MAX_COLUMNS) {
        char *out = in;
        bool quoted = *in == '"';
        in += quoted;
        column[n++] = out;
        while (*in && (quoted || *in != ',')) {
            if (quoted && *in == '"') {
                if (in[1] != '"') {
                    quoted = false;
                    in++;
                    continue;
                }
                in++;
            }
            *out++ = *in++;
        }
        bool last = !*in;
        in++;
        *out = '\0';
        if (last)
            break;
    }
    return n;
}

static int find(char *const header[], int n, const char *name) {
    for (int i = 0; i < n; i++)
        if (!strcmp(header[i], name))
            return i;
    g_error("no column %s", name);
}

static bool parse_kind(const char *text, OrrCollective *kind) {
    static const struct {
        const char *text;
        OrrCollective kind;
    } names[] = {{"all_reduce", ORR_ALL_REDUCE},
                 {"all_gather", ORR_ALL_GATHER},
                 {"reduce_scatter", ORR_REDUCE_SCATTER},
                 {"alltoall", ORR_ALL_TO_ALL},
                 {"sendrecv", ORR_SEND_RECV}};
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
        if (!strcmp(text, names[i].text)) {
            *kind = names[i].kind;
            return true;
        }
    return false;
}

static uint32_t parse_version(const char *text) {
    char **parts = g_strsplit(text, ".", 3);
    uint32_t v = 0;
    for (int i = 0; i < 3; i++) {
        uint32_t part = parts[0] && (i < 1 || parts[1]) && (i < 2 || (parts[1] && parts[2]))
                            ? (uint32_t)g_ascii_strtoull(parts[i], NULL, 10)
                            : 0;
        v = v * 100 + part;
    }
    g_strfreev(parts);
    return v;
}

typedef struct {
    const char *prefix;
    OrrArch arch;
    double nvlink_bytes_per_s;
    bool has_nvls;
} Gpu;

/* Datasheets: NVLink per GPU and direction. */
static const Gpu gpus[] = {{"V100", ORR_ARCH_VOLTA, 150e9, false},
                           {"A100", ORR_ARCH_AMPERE, 300e9, false},
                           {"a100", ORR_ARCH_AMPERE, 300e9, false},
                           {"H100", ORR_ARCH_HOPPER, 450e9, true},
                           {"h100", ORR_ARCH_HOPPER, 450e9, true},
                           {"H200", ORR_ARCH_HOPPER, 450e9, true},
                           {"h200", ORR_ARCH_HOPPER, 450e9, true},
                           {"H800", ORR_ARCH_HOPPER, 200e9, true},
                           {"B200", ORR_ARCH_BLACKWELL, 900e9, true},
                           {"b200", ORR_ARCH_BLACKWELL, 900e9, true},
                           {"GB200", ORR_ARCH_BLACKWELL, 900e9, true},
                           {"gb200", ORR_ARCH_BLACKWELL, 900e9, true},
                           {"b300", ORR_ARCH_BLACKWELL_ULTRA, 900e9, true},
                           {"gb300", ORR_ARCH_BLACKWELL_ULTRA, 900e9, true}};

static bool node_place(const char *gpu, uint32_t n, OrrCommPlace *p) {
    for (size_t i = 0; i < G_N_ELEMENTS(gpus); i++) {
        if (!g_str_has_prefix(gpu, gpus[i].prefix))
            continue;
        *p = (OrrCommPlace){.n_ranks = n,
                            .n_domains = 1,
                            .min_per_domain = n,
                            .max_per_domain = n,
                            .n_nodes = 1,
                            .max_per_node = n,
                            .arch = gpus[i].arch,
                            .nvlink = ORR_NVLINK_SWITCH,
                            .has_nvls = gpus[i].has_nvls,
                            .nvlink_bytes_per_s = gpus[i].nvlink_bytes_per_s,
                            .pcie_bytes_per_s = 32e9,
                            .gpus_per_nic = 1};
        if (p->arch == ORR_ARCH_VOLTA) { /* rings in the cube mesh, both ways, 25 GB/s each */
            static const double rings[9] = {0, 0, 1, 2, 4, 1.65, 2, 4, 6};
            p->nvlink = ORR_NVLINK_MESH;
            p->nvlink_bytes_per_s = 25e9 * rings[n];
        }
        return true;
    }
    return false;
}

/* Networks of the published machines, from the rows' own interconnect column. */
static const struct {
    const char *system;
    uint32_t domains;
    double nic_bytes_per_s, nics_per_domain, latency_ns;
    OrrNet net;
    bool has_sharp;
} machines[] = {{"HGX H100 x8 nodes", 8, 50e9, 8, 2500, ORR_NET_IB, false},
                {"GB200 NVL72, 2 Racks", 2, 50e9, 72, 2500, ORR_NET_IB, false},
                {"GB200 NVL72, 20 Racks", 20, 50e9, 72, 3000, ORR_NET_IB, false},
                {"GCP a3-megagpu-8g x2", 2, 25e9, 8, 13000, ORR_NET_TCPXO, false},
                {"8x 8 H800", 8, 50e9, 8, 2500, ORR_NET_IB, false}};

static void add_network(const char *system, OrrCommPlace *p) {
    for (size_t i = 0; i < G_N_ELEMENTS(machines); i++) {
        if (strcmp(system, machines[i].system))
            continue;
        p->n_domains = p->n_nodes = machines[i].domains;
        p->min_per_domain = p->max_per_domain = p->max_per_node = p->n_ranks / p->n_domains;
        p->net = machines[i].net;
        p->nic_bytes_per_s = machines[i].nic_bytes_per_s;
        p->nics_per_domain = machines[i].nics_per_domain;
        p->net_latency_ns = machines[i].latency_ns;
        p->has_sharp = machines[i].has_sharp;
    }
}

static char **read_lines(const char *shared, const char *name, char **text) {
    g_autofree char *path = g_build_filename(shared, name, NULL);
    return g_file_get_contents(path, text, NULL, NULL) ? g_strsplit(*text, "\n", -1) : NULL;
}

bool coll_rows_one_node(const char *shared, GArray *rows) {
    g_autofree char *text = NULL;
    g_auto(GStrv) lines = read_lines(shared, "kernels/nccl_one_node.csv", &text);
    if (!lines)
        return false;
    for (char **l = lines + 1; *l && **l; l++) {
        char *c[MAX_COLUMNS];
        CollRow row = {.algo = ORR_N_ALGOS};
        split(*l, c); /* gpu,table,op,gpus,bytes,dtype,time_us,runs,spread_frac */
        g_strlcpy(row.system, c[0], sizeof(row.system));
        g_strlcpy(row.series, c[1], sizeof(row.series));
        if (!parse_kind(c[2], &row.kind) ||
            !node_place(c[0], (uint32_t)g_ascii_strtoull(c[3], NULL, 10), &row.place))
            g_error("unknown row: %s %s", c[0], c[2]);
        row.dtype = strcmp(c[5], "int8") ? ORR_FP16 : ORR_INT8;
        row.version = parse_version(c[1]);
        row.bytes = g_ascii_strtoll(c[4], NULL, 10);
        row.us = g_ascii_strtod(c[6], NULL);
        g_array_append_val(rows, row);
    }
    return true;
}

bool coll_rows_published(const char *shared, GArray *rows) {
    g_autofree char *text = NULL;
    g_auto(GStrv) lines = read_lines(shared, "published/H_collectives.csv", &text);
    if (!lines)
        return false;
    char *h[MAX_COLUMNS], *c[MAX_COLUMNS];
    int n = split(lines[0], h);
    int system = find(h, n, "system"), gpu = find(h, n, "gpu"), n_gpus = find(h, n, "gpus"),
        kind = find(h, n, "collective"), algo = find(h, n, "algo"), size = find(h, n, "size_bytes"),
        us = find(h, n, "time_us"), version = find(h, n, "nccl_version"),
        link = find(h, n, "interconnect"), source = find(h, n, "source");
    for (char **l = lines + 1; *l && **l; l++) {
        CollRow row = {.algo = ORR_N_ALGOS, .dtype = ORR_FP32};
        split(*l, c);
        row.bytes = g_ascii_strtoll(c[size], NULL, 10);
        row.us = g_ascii_strtod(c[us], NULL);
        if (!parse_kind(c[kind], &row.kind) || row.bytes <= 0 || row.us <= 0 ||
            !node_place(c[gpu], (uint32_t)g_ascii_strtoull(c[n_gpus], NULL, 10), &row.place))
            continue;
        add_network(c[system], &row.place);
        g_strlcpy(row.system, c[system], sizeof(row.system));
        g_strlcpy(row.series, c[link], sizeof(row.series));
        if (strstr(c[source], "all_reduce_bench"))
            row.timed = ORR_TIMED_TORCH;
        else if (row.place.n_domains == 1 &&
                 (strstr(c[source], "nccl-tests") || strstr(c[source], "vTrain")))
            row.timed = ORR_TIMED_ONE_PROCESS;
        row.version = *c[version] ? parse_version(c[version]) : 0;
        if (!strcmp(c[algo], "Ring"))
            row.algo = ORR_ALGO_RING;
        if (!strcmp(c[algo], "NVLS"))
            row.algo = ORR_ALGO_NVLS;
        g_array_append_val(rows, row);
    }
    return true;
}

bool coll_rows_vtrain(const char *shared, GArray *rows) {
    g_autofree char *path =
        g_build_filename(shared, "published/raw/vtrain_allreduce_lut.csv.gz", NULL);
    if (!g_file_test(path, G_FILE_TEST_EXISTS))
        return false;
    gzFile file = gzopen(path, "rb");
    char line[256], *c[MAX_COLUMNS];
    while (gzgets(file, line, sizeof(line))) {
        CollRow row = {.algo = ORR_N_ALGOS,
                       .kind = ORR_ALL_REDUCE,
                       .dtype = ORR_FP32,
                       .timed = ORR_TIMED_ONE_PROCESS};
        split(line, c); /* gpu,gpus,size_bytes,time_ns,... */
        if (!g_ascii_isdigit(c[1][0]) ||
            !node_place(c[0], (uint32_t)g_ascii_strtoull(c[1], NULL, 10), &row.place))
            continue;
        row.bytes = g_ascii_strtoll(c[2], NULL, 10);
        if ((row.bytes & (row.bytes - 1)) != 0) /* powers of two are enough */
            continue;
        row.us = g_ascii_strtod(c[3], NULL) / 1e3;
        g_snprintf(row.system, sizeof(row.system), "vtrain %s", c[0]);
        g_array_append_val(rows, row);
    }
    gzclose(file);
    return true;
}

/* The logs whose machine is known; what they say not stands in the shared README. */
static const struct {
    const char *file, *gpu;
    OrrCollective kind;
    uint32_t version, n_ranks, domains;
    double nic_bytes_per_s, nics_per_domain, latency_ns;
    OrrNet net;
} logs[] = {
    {"aws-1.log", "A100", ORR_ALL_REDUCE, 0, 16, 2, 12.5e9, 4, 10000, ORR_NET_EFA},
    {"aws-3.log", "H100", ORR_ALL_REDUCE, 0, 16, 2, 50e9, 8, 10000, ORR_NET_EFA},
    {"oci-1.log", "H100", ORR_ALL_REDUCE, 22304, 16, 2, 50e9, 8, 3000, ORR_NET_ROCE},
    {"h100-8gpu-sweep-1.log", "H100", ORR_ALL_REDUCE, 0, 8, 1, 0, 0, 0, ORR_NET_NONE},
    {"issue-tree-2node-4nic.log", "H100", ORR_ALL_REDUCE, 0, 2, 2, 50e9, 1, 2500, ORR_NET_IB},
    {"old-2.8-a100-allreduce.log", "A100", ORR_ALL_REDUCE, 20800, 8, 1, 0, 0, 0, ORR_NET_NONE},
    {"old-2.8-a100-allgather.log", "A100", ORR_ALL_GATHER, 20800, 8, 1, 0, 0, 0, ORR_NET_NONE},
    {"old-2.8-a100-reducescatter.log", "A100", ORR_REDUCE_SCATTER, 20800, 8, 1, 0, 0, 0,
     ORR_NET_NONE},
    {"old-2.8-a100-broadcast.log", "A100", ORR_BROADCAST, 20800, 8, 1, 0, 0, 0, ORR_NET_NONE}};

/* One line of nccl-tests: size, count, type, [redop], [root], time, ...; false for others. */
static bool parse_line(char *line, CollRow *row) {
    char *text = strchr(line, ':');
    char *colon = strrchr(line, ':');
    g_auto(GStrv) words = g_regex_split_simple("\\s+", g_strstrip(text ? colon + 1 : line), 0, 0);
    guint n = g_strv_length(words);
    if (n < 6 || !g_ascii_isdigit(words[0][0]) || g_ascii_strtoll(words[0], NULL, 10) <= 0)
        return false;
    for (guint i = 3; i < n; i++)
        if (strchr(words[i], '.')) { /* the first figure with a point, or long times: before it */
            bool is_rate = i > 3 && g_ascii_isdigit(words[i - 1][0]) && strlen(words[i - 1]) > 3;
            row->us = g_ascii_strtod(words[is_rate ? i - 1 : i], NULL);
            break;
        }
    row->bytes = g_ascii_strtoll(words[0], NULL, 10);
    return row->us > 0;
}

bool coll_rows_logs(const char *shared, GArray *rows) {
    for (size_t i = 0; i < G_N_ELEMENTS(logs); i++) {
        g_autofree char *text = NULL;
        g_autofree char *name = g_strdup_printf("files/nccl-tests-logs/%s", logs[i].file);
        g_auto(GStrv) lines = read_lines(shared, name, &text);
        if (!lines)
            return false;
        for (char **l = lines; *l; l++) {
            CollRow row = {.algo = ORR_N_ALGOS,
                           .dtype = ORR_FP32,
                           .kind = logs[i].kind,
                           .timed = g_str_has_prefix(logs[i].file, "old-2.8")
                                        ? ORR_TIMED_ONE_PROCESS
                                        : ORR_TIMED_RANKS,
                           .version = logs[i].version};
            if (!parse_line(*l, &row) || !node_place(logs[i].gpu, logs[i].n_ranks, &row.place))
                continue;
            g_strlcpy(row.system, logs[i].file, sizeof(row.system));
            row.place.n_domains = row.place.n_nodes = logs[i].domains;
            row.place.min_per_domain = row.place.max_per_domain = row.place.max_per_node =
                logs[i].n_ranks / logs[i].domains;
            row.place.net = logs[i].net;
            row.place.nic_bytes_per_s = logs[i].nic_bytes_per_s;
            row.place.nics_per_domain = logs[i].nics_per_domain;
            row.place.net_latency_ns = logs[i].latency_ns;
            g_array_append_val(rows, row);
        }
    }
    return true;
}

char *coll_rows_shared(void) {
    const char *env = g_getenv("ORRERY_SHARED");
    return env ? g_strdup(env) : g_build_filename(ORR_SRCDIR, "..", "shared", NULL);
}

double coll_row_model_us(const CollRow *row, const struct OrrCollConstants *constants,
                         OrrCollPlan *plan) {
    OrrNcclForce force = {
        .algo = row->algo, .proto = ORR_N_PROTOS, .version = row->version, .constants = constants};
    GError *error = NULL;
    if (!orr_collective_plan(row->kind, row->bytes, row->dtype, &row->place, &force, plan, &error))
        g_error("%s: %s", row->system, error->message);
    return orr_collective_timed_ns(plan, row->bytes, &row->place, row->timed, constants) / 1e3;
}
