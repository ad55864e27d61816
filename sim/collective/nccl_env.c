/* Names, ranges and list syntax: NCCL documentation, "Environment variables"; src/graph/tuning.cc
 * (lists, ^, per-function prefixes since 2.24), src/misc/param.cc. Variables that change nothing in
 * this model are accepted and ignored by name; unknown ones are errors. */
#include "sim/collective/nccl_env.h"

#include <string.h>

#include "sim/collective/algorithms.h"
#include "sim/collective/constants.h"

typedef struct {
    OrrNcclEnv *env;
    const OrrNode *node;
    const char *name, *value;
    GString *faults;
} Parse;

typedef struct {
    const char *name;
    unsigned bit;
} Word;

/* NCCL's names, then ours for what NCCL has not. */
static const Word algo_words[] = {
    {"ring", ORR_BIT(ORR_ALGO_RING)},
    {"tree", ORR_BIT(ORR_ALGO_TREE)},
    {"collnetdirect", ORR_BIT(ORR_ALGO_COLLNET_DIRECT)},
    {"collnetchain", ORR_BIT(ORR_ALGO_COLLNET_CHAIN)},
    {"collnet", ORR_BIT(ORR_ALGO_COLLNET_DIRECT) | ORR_BIT(ORR_ALGO_COLLNET_CHAIN)},
    {"nvls", ORR_BIT(ORR_ALGO_NVLS)},
    {"nvlstree", ORR_BIT(ORR_ALGO_NVLS_TREE)},
    {"pat", 0}};
static const Word proto_words[] = {{"ll", ORR_BIT(ORR_PROTO_LL)},
                                   {"ll128", ORR_BIT(ORR_PROTO_LL128)},
                                   {"simple", ORR_BIT(ORR_PROTO_SIMPLE)}};
static const Word function_words[] = {{"allreduce", ORR_ALL_REDUCE},
                                      {"allgather", ORR_ALL_GATHER},
                                      {"reducescatter", ORR_REDUCE_SCATTER},
                                      {"broadcast", ORR_BROADCAST},
                                      {"reduce", ORR_REDUCE}};

static void G_GNUC_PRINTF(2, 3) complain(Parse *p, const char *format, ...) {
    va_list args;
    va_start(args, format);
    g_string_append_printf(p->faults, "%s%s = %s: ", p->faults->len ? "\n" : "", p->name, p->value);
    g_string_append_vprintf(p->faults, format, args);
    va_end(args);
}

static const Word *find_word(const Word *words, size_t n, const char *text) {
    for (size_t i = 0; i < n; i++)
        if (!g_ascii_strcasecmp(words[i].name, text))
            return &words[i];
    return NULL;
}

static char *join_words(const Word *words, size_t n) {
    GString *s = g_string_new(NULL);
    for (size_t i = 0; i < n; i++)
        g_string_append_printf(s, "%s%s", i ? ", " : "", words[i].name);
    return g_string_free(s, FALSE);
}

/* "Tree,Ring" leaves those, "^NVLS" all others. */
static unsigned parse_list(Parse *p, const char *text, const Word *words, size_t n, unsigned all) {
    bool exclude = *text == '^';
    g_auto(GStrv) parts = g_strsplit(text + exclude, ",", -1);
    unsigned named = 0;
    for (char **part = parts; *part; part++) {
        const Word *word = find_word(words, n, g_strstrip(*part));
        if (!word) {
            g_autofree char *would = join_words(words, n);
            complain(p, "there is no \"%s\"; %s would do, and ^ before a list to leave it out",
                     *part, would);
            return 0;
        }
        named |= word->bit;
    }
    unsigned left = exclude ? all & ~named : named;
    if (!left)
        complain(p, "leaves nothing that this model has");
    return left;
}

/* "allreduce:tree;allgather:ring", or one list for all functions. */
static void parse_lists(Parse *p, const Word *words, size_t n, unsigned all, uint32_t *masks) {
    g_auto(GStrv) clauses = g_strsplit(p->value, ";", -1);
    for (char **clause = clauses; *clause; clause++) {
        char *colon = strchr(*clause, ':');
        if (!colon) {
            unsigned mask = parse_list(p, *clause, words, n, all);
            for (int k = 0; k < ORR_N_COLLECTIVES; k++)
                masks[k] = mask;
            continue;
        }
        *colon = '\0';
        const Word *f =
            find_word(function_words, G_N_ELEMENTS(function_words), g_strstrip(*clause));
        if (!f) {
            g_autofree char *would = join_words(function_words, G_N_ELEMENTS(function_words));
            complain(p, "there is no function \"%s\"; %s would do", *clause, would);
            return;
        }
        masks[f->bit] = parse_list(p, colon + 1, words, n, all);
    }
}

static void parse_algo(Parse *p) {
    /* Ours by name: one alone, for what-if questions, where it can serve. */
    for (int a = 0; a < ORR_N_ALGOS; a++) {
        const OrrAlgorithm *ours = orr_algorithm((OrrAlgo)a);
        if (ours->is_nccl || g_ascii_strcasecmp(p->value, ours->name))
            continue;
        for (int k = 0; k < ORR_N_COLLECTIVES; k++)
            if (ours->collectives & ORR_BIT(k))
                p->env->force.algos[k] = ORR_BIT(a);
        return;
    }
    parse_lists(p, algo_words, G_N_ELEMENTS(algo_words), (1u << ORR_N_ALGOS) - 1,
                p->env->force.algos);
}

static void parse_proto(Parse *p) {
    parse_lists(p, proto_words, G_N_ELEMENTS(proto_words), (1u << ORR_N_PROTOS) - 1,
                p->env->force.protos);
}

static int64_t parse_int(Parse *p, int64_t min, int64_t max) {
    gint64 value;
    GError *error = NULL;
    if (g_ascii_string_to_signed(p->value, 10, min, max, &value, &error))
        return value;
    g_clear_error(&error);
    complain(p, "must be a whole number from %" G_GINT64_FORMAT " to %" G_GINT64_FORMAT, min, max);
    return min;
}

static void parse_threads(Parse *p) {
    int64_t n = parse_int(p, 64, 640);
    if (n % 32)
        complain(p, "must be a multiple of 32, a warp");
    p->env->force.n_threads = (uint32_t)n;
}

static void parse_max_channels(Parse *p) {
    p->env->force.max_channels = (uint32_t)parse_int(p, 1, 64);
}

static void parse_min_channels(Parse *p) {
    p->env->force.min_channels = (uint32_t)parse_int(p, 1, 64);
}

static void parse_nvls(Parse *p) {
    p->env->force.nvls_off = parse_int(p, 0, 2) == 0;
}

static void parse_collnet(Parse *p) {
    p->env->force.sharp_on = parse_int(p, 0, 1) == 1;
}

static void parse_p2p(Parse *p) {
    p->env->force.p2p_off = parse_int(p, 0, 1) == 1;
}

static void parse_buffer(Parse *p) {
    p->env->force.buffer_bytes = (double)parse_int(p, 4096, INT64_C(1) << 30);
}

static void parse_sockets(Parse *p) {
    p->env->force.sockets_per_thread = (uint32_t)parse_int(p, 1, 64);
}

static void parse_socket_threads(Parse *p) {
    p->env->force.socket_threads = (uint32_t)parse_int(p, 1, 16);
}

static void fall_back(Parse *p, const char *why) {
    p->env->is_fallback = p->env->force.use_sockets = true;
    g_free(p->env->warning);
    p->env->warning =
        g_strdup_printf("%s = %s: %s; NCCL falls back to sockets over the management network",
                        p->name, p->value, why);
}

static void parse_ib_disable(Parse *p) {
    if (parse_int(p, 0, 1) == 1)
        fall_back(p, "InfiniBand and RoCE are off");
}

static void parse_net(Parse *p) {
    if (!g_ascii_strcasecmp(p->value, "socket"))
        fall_back(p, "asks for sockets");
}

/* Whether "mlx5_1" or "mlx5_1:1" is among the items: equal, or by prefix unless @exact. */
static bool hca_matches(char **items, const char *name, bool exact) {
    for (char **item = items; *item; item++) {
        g_auto(GStrv) halves = g_strsplit(g_strstrip(*item), ":", 2);
        if (halves[0] && *halves[0] &&
            (exact ? !strcmp(halves[0], name) : g_str_has_prefix(name, halves[0])))
            return true;
    }
    return false;
}

static void parse_hca(Parse *p) {
    const char *text = p->value;
    bool exclude = *text == '^';
    text += exclude;
    bool exact = *text == '=';
    text += exact;
    if (!p->node || p->node->net == ORR_NET_EFA || p->node->net == ORR_NET_TCPXO)
        return; /* those networks are not chosen by this variable */
    g_auto(GStrv) items = g_strsplit(text, ",", -1);
    uint32_t left = 0;
    for (uint32_t i = 0; i < p->node->nics; i++) {
        g_autofree char *name = g_strdup_printf("mlx5_%u", i);
        left += hca_matches(items, name, exact) != exclude;
    }
    if (left == 0)
        fall_back(p, "names no NIC of the node (mlx5_0 and so on)");
    else if (left < p->node->nics)
        p->env->force.nics_per_node = left;
}

static void parse_version(Parse *p) {
    g_auto(GStrv) parts = g_strsplit(p->value, ".", 3);
    uint64_t v[3] = {0, 0, 0};
    for (int i = 0; i < 3 && parts[i]; i++)
        if (!g_ascii_string_to_unsigned(parts[i], 10, 0, 99, &v[i], NULL))
            v[0] = 0;
    if (v[0] < 2)
        complain(p, "must be a version such as 2.27.6, from 2.0 on");
    p->env->force.version = (uint32_t)(v[0] * 10000 + v[1] * 100 + v[2]);
}

static const struct {
    const char *name;
    void (*parse)(Parse *p); /* NULL: without effect here */
} variables[] = {{"NCCL_ALGO", parse_algo},
                 {"NCCL_PROTO", parse_proto},
                 {"NCCL_NTHREADS", parse_threads},
                 {"NCCL_MAX_NCHANNELS", parse_max_channels},
                 {"NCCL_MIN_NCHANNELS", parse_min_channels},
                 {"NCCL_MAX_CTAS", parse_max_channels},
                 {"NCCL_MIN_CTAS", parse_min_channels},
                 {"NCCL_NVLS_ENABLE", parse_nvls},
                 {"NCCL_COLLNET_ENABLE", parse_collnet},
                 {"NCCL_P2P_DISABLE", parse_p2p},
                 {"NCCL_BUFFSIZE", parse_buffer},
                 {"NCCL_NSOCKS_PERTHREAD", parse_sockets},
                 {"NCCL_SOCKET_NTHREADS", parse_socket_threads},
                 {"NCCL_IB_HCA", parse_hca},
                 {"NCCL_IB_DISABLE", parse_ib_disable},
                 {"NCCL_NET", parse_net},
                 {"NCCL_VERSION", parse_version},
                 {"NCCL_ASYNC_ERROR_HANDLING", NULL},
                 {"NCCL_CROSS_NIC", NULL},
                 {"NCCL_CUMEM_ENABLE", NULL},
                 {"NCCL_DEBUG", NULL},
                 {"NCCL_DEBUG_FILE", NULL},
                 {"NCCL_DEBUG_SUBSYS", NULL},
                 {"NCCL_IB_ADAPTIVE_ROUTING", NULL},
                 {"NCCL_IB_GID_INDEX", NULL},
                 {"NCCL_IB_PCI_RELAXED_ORDERING", NULL},
                 {"NCCL_IB_QPS_PER_CONNECTION", NULL},
                 {"NCCL_IB_RETRY_CNT", NULL},
                 {"NCCL_IB_SL", NULL},
                 {"NCCL_IB_SPLIT_DATA_ON_QPS", NULL},
                 {"NCCL_IB_TC", NULL},
                 {"NCCL_IB_TIMEOUT", NULL},
                 {"NCCL_LAUNCH_MODE", NULL},
                 {"NCCL_NET_GDR_LEVEL", NULL},
                 {"NCCL_NET_GDR_READ", NULL},
                 {"NCCL_NET_PLUGIN", NULL},
                 {"NCCL_PXN_DISABLE", NULL},
                 {"NCCL_SHM_DISABLE", NULL},
                 {"NCCL_SOCKET_FAMILY", NULL},
                 {"NCCL_SOCKET_IFNAME", NULL},
                 {"NCCL_TIMEOUT", NULL},
                 {"NCCL_TOPO_DUMP_FILE", NULL},
                 {"NCCL_TOPO_FILE", NULL},
                 {"NCCL_TUNER_PLUGIN", NULL}};

static void parse_one(Parse *p) {
    for (size_t i = 0; i < G_N_ELEMENTS(variables); i++)
        if (!strcmp(variables[i].name, p->name)) {
            if (variables[i].parse)
                variables[i].parse(p);
            return;
        }
    GString *would = g_string_new(NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(variables) && variables[i].parse; i++)
        g_string_append_printf(would, "%s%s", i ? ", " : "", variables[i].name);
    complain(p, "unknown variable; those with an effect here: %s", would->str);
    g_string_free(would, TRUE);
}

bool orr_nccl_env_parse(const char *const *names, const char *const *values, const OrrNode *node,
                        OrrNcclEnv *env, GError **error) {
    g_autoptr(GString) faults = g_string_new(NULL);
    *env = (OrrNcclEnv){.force = {.algo = ORR_N_ALGOS, .proto = ORR_N_PROTOS}};
    for (size_t i = 0; names && names[i]; i++) {
        Parse p = {
            .env = env, .node = node, .name = names[i], .value = values[i], .faults = faults};
        parse_one(&p);
    }
    const OrrNcclForce *f = &env->force;
    if (f->min_channels && f->max_channels && f->min_channels > f->max_channels)
        g_string_append_printf(faults, "%sNCCL_MIN_NCHANNELS = %u is above NCCL_MAX_NCHANNELS = %u",
                               faults->len ? "\n" : "", f->min_channels, f->max_channels);
    if (faults->len == 0)
        return true;
    orr_nccl_env_clear(env);
    return orr_fail_input(error, "%s", faults->str);
}

void orr_nccl_env_clear(OrrNcclEnv *env) {
    g_clear_pointer(&env->warning, g_free);
}
