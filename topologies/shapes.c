/* One-line shapes: see shapes.h. Defaults are those of NVIDIA's reference designs; what was not
 * said is told as an assumption. */
#include "topologies/shapes.h"

#include <string.h>

#include "sim/base/units.h"
#include "sim/base/words.h"
#include "topologies/loader_priv.h"

typedef struct {
    const char *name;
    OrrFabric fabric;
    OrrNet net;
    double nic_latency_ns, hop_latency_ns;
} ShapeKind;

/* Latencies: InfiniBand as in clusters/h100-ib.ini, RoCE as in clusters/h100-roce.ini. */
static const ShapeKind kinds[] = {
    {"fat_tree", ORR_FABRIC_RAIL, ORR_NET_IB, 1700, 300},
    {"rail", ORR_FABRIC_RAIL, ORR_NET_IB, 1700, 300},
    {"clos", ORR_FABRIC_CLOS, ORR_NET_ROCE, 2500, 800},
    {"flat", ORR_FABRIC_FLAT, ORR_NET_ROCE, 2500, 800},
    {"ethernet", ORR_FABRIC_FLAT, ORR_NET_ETHERNET, 25000, 1000},
};
static const char *const kind_names[] = {"fat_tree", "rail", "clos", "flat", "ethernet", NULL};

/* NIC of the DGX (or NVIDIA's data-center node) of each generation: DGX-1 EDR, DGX A100 HDR, DGX
 * H100 and B200 NDR, DGX B300 XDR (their datasheets). */
static const double nic_bytes_per_s[ORR_N_ARCHS] = {
    [ORR_ARCH_VOLTA] = 12.5e9,   [ORR_ARCH_AMPERE] = 25e9,           [ORR_ARCH_HOPPER] = 50e9,
    [ORR_ARCH_BLACKWELL] = 50e9, [ORR_ARCH_BLACKWELL_ULTRA] = 100e9,
};
#define MANAGEMENT_BYTES_PER_S 12.5e9 /* one 100 Gb/s Ethernet port, as on a DGX A100 and H100 */
#define NVLINK_LATENCY_NS 600.0       /* as in loader.c: NCCL's hardware latencies */
#define PCIE_LATENCY_NS 500.0

typedef struct {
    const ShapeKind *kind;
    uint32_t gpus, node, domain, nics, leaf, pod;
    uint64_t seed;
    double nic, oversub, pod_oversub;
    int nvlink, net, routing; /* -1: not said */
    char *gpu;
} Shape;

typedef enum { TOKEN_COUNT, TOKEN_RATIO, TOKEN_RATE, TOKEN_ENUM, TOKEN_TEXT, TOKEN_SEED } TokenKind;
typedef struct {
    const char *name;
    TokenKind kind;
    size_t offset;
    const char *const *names;
    double max;
} Token;

static const Token tokens[] = {
    {"node", TOKEN_COUNT, offsetof(Shape, node), NULL, 64},
    {"gpu", TOKEN_TEXT, offsetof(Shape, gpu), NULL, 0},
    {"nvlink", TOKEN_ENUM, offsetof(Shape, nvlink), orr_nvlink_names, 0},
    {"domain", TOKEN_COUNT, offsetof(Shape, domain), NULL, 1024},
    {"nics", TOKEN_COUNT, offsetof(Shape, nics), NULL, 128},
    {"nic", TOKEN_RATE, offsetof(Shape, nic), NULL, 0},
    {"net", TOKEN_ENUM, offsetof(Shape, net), orr_net_names, 0},
    {"leaf", TOKEN_COUNT, offsetof(Shape, leaf), NULL, 1 << 20},
    {"pod", TOKEN_COUNT, offsetof(Shape, pod), NULL, 1 << 24},
    {"oversub", TOKEN_RATIO, offsetof(Shape, oversub), NULL, 1000},
    {"pod_oversub", TOKEN_RATIO, offsetof(Shape, pod_oversub), NULL, 1000},
    {"routing", TOKEN_ENUM, offsetof(Shape, routing), orr_routing_names, 0},
    {"seed", TOKEN_SEED, offsetof(Shape, seed), NULL, 0},
};

static const ShapeKind *find_kind(const char *name) {
    for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++)
        if (!strcmp(kinds[i].name, name))
            return &kinds[i];
    return NULL;
}

/* Kinds that people know and we lack: refused as shapes, not as unknown clusters. */
static const char *const not_built[] = {"torus", "dragonfly", NULL};

bool orr_shape_is(const char *ref) {
    g_autofree char *head = g_strndup(ref, strcspn(ref, ": \t"));
    if (find_kind(head) || g_strv_contains(not_built, head))
        return true;
    return strchr(ref, ' ') && !strchr(ref, '/') && !g_str_has_suffix(ref, ".ini");
}

/* "400G", "400 Gb/s" without its space, "50GB/s". */
static bool read_rate(const char *text, double *rate, GError **error) {
    g_autofree char *plain = NULL;
    size_t length = strlen(text);
    if (length && (text[length - 1] == 'G' || text[length - 1] == 'g'))
        plain = g_strdup_printf("%.*s Gb/s", (int)length - 1, text);
    return orr_units_parse(plain ? plain : text, ORR_DIM_RATE, rate, error);
}

static bool read_enum(const Token *t, const char *value, int *at, GError **error) {
    for (int i = 0; t->names[i]; i++)
        if (!strcmp(t->names[i], value)) {
            *at = i;
            return true;
        }
    g_autofree char *list = orr_words_list(t->names);
    return orr_fail_input(error, "%s would do", list);
}

static bool read_value(const Token *t, const char *value, void *at, GError **error) {
    guint64 n;
    double x;
    char *end;
    switch (t->kind) {
    case TOKEN_COUNT:
        if (!g_ascii_string_to_unsigned(value, 10, 1, (guint64)t->max, &n, NULL))
            return orr_fail_input(error, "a whole number from 1 to %.0f would do", t->max);
        *(uint32_t *)at = (uint32_t)n;
        return true;
    case TOKEN_SEED:
        if (!g_ascii_string_to_unsigned(value, 10, 0, G_MAXUINT64, (guint64 *)at, NULL))
            return orr_fail_input(error, "a whole number would do");
        return true;
    case TOKEN_RATIO:
        x = g_ascii_strtod(value, &end);
        if (end == value || *end || !(x >= 1 && x <= t->max))
            return orr_fail_input(error, "a number from 1 to %.0f would do", t->max);
        *(double *)at = x;
        return true;
    case TOKEN_RATE:
        if (!read_rate(value, &x, error))
            return false;
        if (!(x >= 1e6 && x <= 1e12))
            return orr_fail_input(error, "a rate such as 400G (gigabits per second) would do");
        *(double *)at = x;
        return true;
    case TOKEN_ENUM:
        return read_enum(t, value, at, error);
    case TOKEN_TEXT:
        g_free(*(char **)at);
        *(char **)at = g_strdup(value);
        return *value || orr_fail_input(error, "a name would do");
    }
    g_assert_not_reached();
}

static bool fail_token(const char *word, GError **error) {
    const char *names[G_N_ELEMENTS(tokens) + 1] = {NULL};
    for (size_t i = 0; i < G_N_ELEMENTS(tokens); i++)
        names[i] = tokens[i].name;
    g_autofree char *name = g_strndup(word, strcspn(word, ":"));
    g_autofree char *hint = orr_words_hint(name, names);
    return orr_fail_input(error, "\"%s\" is not NAME:VALUE of a known name: %s", word, hint);
}

static bool read_token(Shape *s, const char *word, uint32_t *seen, GError **error) {
    const char *colon = strchr(word, ':');
    for (size_t i = 0; colon && i < G_N_ELEMENTS(tokens); i++) {
        const Token *t = &tokens[i];
        if (strlen(t->name) != (size_t)(colon - word) || strncmp(t->name, word, strlen(t->name)))
            continue;
        if (*seen & 1u << i)
            return orr_fail_input(error, "\"%s\": %s is said twice", word, t->name);
        *seen |= 1u << i;
        if (read_value(t, colon + 1, (char *)s + t->offset, error))
            return true;
        g_prefix_error(error, "\"%s\": ", word);
        return false;
    }
    return fail_token(word, error);
}

static bool read_head(Shape *s, const char *word, GError **error) {
    g_auto(GStrv) parts = g_strsplit(word, ":", 2);
    guint64 n;
    s->kind = find_kind(parts[0]);
    if (!s->kind) {
        g_autofree char *hint = orr_words_hint(parts[0], kind_names);
        if (g_strv_contains(not_built, parts[0]))
            return orr_fail_input(error,
                                  "%s is not built yet: fat_tree, rail, clos, flat or "
                                  "ethernet would do",
                                  parts[0]);
        return orr_fail_input(error, "\"%s\" is no kind of network: %s", parts[0], hint);
    }
    if (!parts[1] || !g_ascii_string_to_unsigned(parts[1], 10, 1, 1 << 24, &n, NULL))
        return orr_fail_input(error, "\"%s\": KIND:GPUS with 1 to %d GPUs would do, such as %s:256",
                              word, 1 << 24, parts[0]);
    s->gpus = (uint32_t)n;
    return true;
}

static bool parse(Shape *s, const char *text, GError **error) {
    g_auto(GStrv) words = g_strsplit_set(text, " \t", -1);
    bool has_head = false;
    uint32_t seen = 0;
    *s = (Shape){.node = 8,
                 .domain = 1,
                 .leaf = 32,
                 .oversub = 1,
                 .pod_oversub = 1,
                 .nvlink = -1,
                 .net = -1,
                 .routing = -1,
                 .seed = 1};
    for (char **w = words; *w; w++) {
        if (!**w)
            continue;
        if (has_head ? !read_token(s, *w, &seen, error) : !read_head(s, *w, error))
            return false;
        has_head = true;
    }
    if (!s->gpu)
        s->gpu = g_strdup("h100");
    return has_head || orr_fail_input(error, "empty; KIND:GPUS such as fat_tree:256 would do");
}

static OrrNode *build_node(const Shape *s, OrrGpu *gpu) {
    OrrNode *n = g_new0(OrrNode, 1);
    n->name = g_strdup("shape");
    n->source = g_strdup("one-line shape");
    n->gpu = gpu;
    n->gpus = s->node;
    n->nvlink = s->nvlink >= 0                 ? (OrrNvlink)s->nvlink
                : gpu->nvlink_bytes_per_s <= 0 ? ORR_NVLINK_NONE
                : gpu->arch == ORR_ARCH_VOLTA  ? ORR_NVLINK_MESH
                                               : ORR_NVLINK_SWITCH;
    n->domain_nodes = s->domain;
    n->has_nvls = n->nvlink == ORR_NVLINK_SWITCH && gpu->arch >= ORR_ARCH_HOPPER;
    n->mesh_link_bytes_per_s = s->node > 1 ? gpu->nvlink_bytes_per_s / (s->node - 1) : 1;
    n->nics = s->nics ? s->nics : s->node;
    n->nic_bytes_per_s = s->nic > 0 ? s->nic : nic_bytes_per_s[gpu->arch];
    n->net = s->net >= 0 ? (OrrNet)s->net : s->kind->net;
    n->pcie_bytes_per_s = gpu->pcie_bytes_per_s;
    n->management_bytes_per_s = MANAGEMENT_BYTES_PER_S;
    n->nvlink_latency_ns = NVLINK_LATENCY_NS;
    n->pcie_latency_ns = PCIE_LATENCY_NS;
    n->host_speed = 1;
    return n;
}

static void note(const OrrTopologyOptions *options, const char *key, char *take_value) {
    if (options && options->notes && options->notes->assumption)
        options->notes->assumption(options->notes->data, key, take_value, "default of the shape");
    g_free(take_value);
}

static void note_assumed(const Shape *s, const OrrNode *n, const OrrTopologyOptions *options) {
    if (s->nic <= 0)
        note(options, "node.nic", orr_units_rate(n->nic_bytes_per_s));
    if (!s->nics)
        note(options, "node.nics", g_strdup_printf("%u", n->nics));
    if (s->nvlink < 0)
        note(options, "node.nvlink", g_strdup(orr_nvlink_names[n->nvlink]));
    if (s->net < 0)
        note(options, "node.net", g_strdup(orr_net_names[n->net]));
    if (s->routing < 0)
        note(options, "cluster.routing", g_strdup(orr_routing_names[ORR_ROUTE_SPREAD]));
}

static OrrCluster *build(const Shape *s, const char *text, const OrrTopologyOptions *options,
                         GError **error) {
    OrrGpu *gpu = orr_topology_gpu(s->gpu, options, error);
    if (!gpu)
        return NULL;
    OrrClusterSpec spec = {.name = g_strdup(text),
                           .source = g_strdup("one-line shape"),
                           .node = build_node(s, gpu),
                           .n_gpus = s->gpus,
                           .max_gpus = s->gpus,
                           .fabric = s->kind->fabric,
                           .gpus_per_leaf = s->leaf,
                           .gpus_per_pod = s->pod,
                           .leaf_oversubscription = s->oversub,
                           .pod_oversubscription = s->pod_oversub,
                           .hop_latency_ns = s->kind->hop_latency_ns,
                           .nic_latency_ns = s->kind->nic_latency_ns,
                           .routing = s->routing > 0 ? (OrrRouting)s->routing : ORR_ROUTE_SPREAD,
                           .seed = s->seed};
    note_assumed(s, spec.node, options);
    if (!orr_topologies__set(&spec, text, options, error)) {
        orr_cluster_spec_clear(&spec);
        return NULL;
    }
    orr_topologies__default_uplinks(&spec);
    return orr_cluster_new(&spec, error);
}

OrrCluster *orr_shape_cluster(const char *shape, const OrrTopologyOptions *options,
                              GError **error) {
    Shape s = {0};
    OrrCluster *c = NULL;
    if (parse(&s, shape, error))
        c = build(&s, shape, options, error);
    else
        g_prefix_error(error, "shape \"%s\": ", shape);
    g_free(s.gpu);
    return c;
}
