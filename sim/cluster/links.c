/* What a link number stands for: kind, capacity, name, and back from a name. */
#include "sim/cluster/cluster_priv.h"

#include <stdio.h>
#include <string.h>

#include "sim/base/words.h"

const char *const orr_link_kind_names[] = {
    [ORR_LINK_NVLINK_OUT] = "nvlink_out", [ORR_LINK_NVLINK_IN] = "nvlink_in",
    [ORR_LINK_MESH] = "nvlink_mesh",      [ORR_LINK_PCIE_OUT] = "pcie_out",
    [ORR_LINK_PCIE_IN] = "pcie_in",       [ORR_LINK_NIC_OUT] = "nic_out",
    [ORR_LINK_NIC_IN] = "nic_in",         [ORR_LINK_LEAF_UP] = "leaf_up",
    [ORR_LINK_LEAF_DOWN] = "leaf_down",   [ORR_LINK_SPINE_UP] = "spine_up",
    [ORR_LINK_SPINE_DOWN] = "spine_down", [ORR_LINK_MGMT_OUT] = "mgmt_out",
    [ORR_LINK_MGMT_IN] = "mgmt_in",       [ORR_N_LINK_KINDS] = NULL,
};

/* A link number taken apart. @owner: node, leaf or pod; @index: GPU, NIC, mesh link or uplink. */
typedef struct {
    OrrLinkKind kind;
    uint32_t owner, index;
} LinkPlace;

static LinkPlace place_in_tier(const OrrTier *t, uint32_t link, OrrLinkKind up, OrrLinkKind down) {
    uint32_t at = link - t->first_link, rest = at % (2 * t->width);
    return (LinkPlace){rest < t->width ? up : down, at / (2 * t->width), rest % t->width};
}

static LinkPlace place_of(const OrrCluster *c, uint32_t link) {
    const OrrNode *n = c->spec.node;
    g_assert(link < c->n_links);
    if (c->pod.has_links && link >= c->pod.first_link)
        return place_in_tier(&c->pod, link, ORR_LINK_SPINE_UP, ORR_LINK_SPINE_DOWN);
    if (link >= c->n_nodes * c->node_links)
        return place_in_tier(&c->leaf, link, ORR_LINK_LEAF_UP, ORR_LINK_LEAF_DOWN);
    uint32_t node = link / c->node_links, at = link % c->node_links;
    if (at >= c->at_mgmt)
        return (LinkPlace){at == c->at_mgmt ? ORR_LINK_MGMT_OUT : ORR_LINK_MGMT_IN, node, 0};
    if (at >= c->at_nic) {
        at -= c->at_nic;
        return (LinkPlace){at < n->nics ? ORR_LINK_NIC_OUT : ORR_LINK_NIC_IN, node, at % n->nics};
    }
    if (at >= c->at_pcie) {
        at -= c->at_pcie;
        return (LinkPlace){at < n->gpus ? ORR_LINK_PCIE_OUT : ORR_LINK_PCIE_IN, node, at % n->gpus};
    }
    if (n->nvlink == ORR_NVLINK_MESH)
        return (LinkPlace){ORR_LINK_MESH, node, at};
    return (LinkPlace){at < n->gpus ? ORR_LINK_NVLINK_OUT : ORR_LINK_NVLINK_IN, node, at % n->gpus};
}

uint32_t orr_cluster_n_links(const OrrCluster *c) {
    return c->n_links;
}

OrrLinkKind orr_cluster_link_kind(const OrrCluster *c, uint32_t link) {
    return place_of(c, link).kind;
}

void orr_cluster_link_owner(const OrrCluster *c, uint32_t link, uint32_t *owner, uint32_t *index) {
    LinkPlace p = place_of(c, link);
    *owner = p.owner;
    *index = p.index;
}

uint32_t orr_cluster_nic_link(const OrrCluster *c, uint32_t node, uint32_t index, bool is_out) {
    return node * c->node_links + c->at_nic + (is_out ? 0 : c->spec.node->nics) + index;
}

/* Links of a tier for one set of its GPUs: all the rails of a leaf, or a pod. */
static uint32_t links_of_set(const OrrCluster *c, const OrrTier *t) {
    bool has_rails = t == &c->leaf && c->spec.fabric == ORR_FABRIC_RAIL;
    return 2 * t->width * (has_rails ? c->spec.node->nics : 1);
}

/* The tier of a link and how many nodes each part of it serves; NULL: a link of a node. */
static const OrrTier *tier_of(const OrrCluster *c, uint32_t link, uint32_t *nodes) {
    *nodes = 1;
    if (link < c->n_nodes * c->node_links)
        return NULL;
    bool is_pod = c->pod.has_links && link >= c->pod.first_link;
    *nodes = is_pod ? c->nodes_per_pod : c->nodes_per_leaf;
    return is_pod ? &c->pod : &c->leaf;
}

void orr_cluster_link_gpus(const OrrCluster *c, uint32_t link, uint32_t *first, uint32_t *n) {
    uint32_t nodes, g = c->spec.node->gpus;
    const OrrTier *t = tier_of(c, link, &nodes);
    uint32_t set = t ? (link - t->first_link) / links_of_set(c, t) : link / c->node_links;
    *first = set * nodes * g;
    *n = nodes * g;
}

uint32_t orr_cluster_link_shift(const OrrCluster *c, uint32_t link, int64_t shift) {
    uint32_t nodes;
    const OrrTier *t = tier_of(c, link, &nodes);
    int64_t sets = shift / ((int64_t)nodes * c->spec.node->gpus);
    return (uint32_t)(link + sets * (t ? links_of_set(c, t) : c->node_links));
}

static double mesh_bytes_per_s(const OrrCluster *c, uint32_t index) {
    const OrrNode *n = c->spec.node;
    return n->mesh_link_bytes_per_s * (n->mesh_links ? n->mesh_links[c->mesh_pair[index]] : 1);
}

double orr_cluster_link_bytes_per_s(const OrrCluster *c, uint32_t link) {
    const OrrNode *n = c->spec.node;
    LinkPlace p = place_of(c, link);
    switch (p.kind) {
    case ORR_LINK_NVLINK_OUT:
    case ORR_LINK_NVLINK_IN:
        return n->gpu->nvlink_bytes_per_s;
    case ORR_LINK_MESH:
        return mesh_bytes_per_s(c, p.index);
    case ORR_LINK_PCIE_OUT:
    case ORR_LINK_PCIE_IN:
        return n->pcie_bytes_per_s;
    case ORR_LINK_NIC_OUT:
    case ORR_LINK_NIC_IN:
        return n->nic_pcie_bytes_per_s > 0 ? MIN(n->nic_bytes_per_s, n->nic_pcie_bytes_per_s)
                                           : n->nic_bytes_per_s;
    case ORR_LINK_LEAF_UP:
    case ORR_LINK_LEAF_DOWN:
        return c->leaf.bytes_per_s;
    case ORR_LINK_SPINE_UP:
    case ORR_LINK_SPINE_DOWN:
        return c->pod.bytes_per_s;
    case ORR_LINK_MGMT_OUT:
    case ORR_LINK_MGMT_IN:
        return n->management_bytes_per_s;
    case ORR_N_LINK_KINDS:
        break;
    }
    g_assert_not_reached();
}

/* How a kind is written: owner, then the part of it, then the direction. */
typedef struct {
    const char *owner, *part, *way;
} LinkWords;
static const LinkWords words[] = {
    [ORR_LINK_NVLINK_OUT] = {"node", "/gpu", "/nvlink-out"},
    [ORR_LINK_NVLINK_IN] = {"node", "/gpu", "/nvlink-in"},
    [ORR_LINK_MESH] = {"node", "/gpu", "/nvlink"},
    [ORR_LINK_PCIE_OUT] = {"node", "/gpu", "/pcie-out"},
    [ORR_LINK_PCIE_IN] = {"node", "/gpu", "/pcie-in"},
    [ORR_LINK_NIC_OUT] = {"node", "/nic", "/out"},
    [ORR_LINK_NIC_IN] = {"node", "/nic", "/in"},
    [ORR_LINK_LEAF_UP] = {"leaf", "/up", ""},
    [ORR_LINK_LEAF_DOWN] = {"leaf", "/down", ""},
    [ORR_LINK_SPINE_UP] = {"pod", "/up", ""},
    [ORR_LINK_SPINE_DOWN] = {"pod", "/down", ""},
    [ORR_LINK_MGMT_OUT] = {"node", "/mgmt", "/out"},
    [ORR_LINK_MGMT_IN] = {"node", "/mgmt", "/in"},
};

/* Bundles and the management link have no number of their own. */
static bool is_numbered(const OrrCluster *c, OrrLinkKind kind) {
    bool is_tier = kind == ORR_LINK_LEAF_UP || kind == ORR_LINK_LEAF_DOWN ||
                   kind == ORR_LINK_SPINE_UP || kind == ORR_LINK_SPINE_DOWN;
    if (is_tier)
        return c->spec.routing == ORR_ROUTE_ECMP_HASH;
    return kind != ORR_LINK_MGMT_OUT && kind != ORR_LINK_MGMT_IN;
}

char *orr_cluster_link_name(const OrrCluster *c, uint32_t link) {
    LinkPlace p = place_of(c, link);
    const LinkWords *w = &words[p.kind];
    if (p.kind == ORR_LINK_MESH) {
        uint32_t g = c->spec.node->gpus, pair = c->mesh_pair[p.index];
        return g_strdup_printf("node%u/gpu%u-gpu%u/nvlink", p.owner, pair / g, pair % g);
    }
    if (!is_numbered(c, p.kind))
        return g_strdup_printf("%s%u%s%s", w->owner, p.owner, w->part, w->way);
    return g_strdup_printf("%s%u%s%u%s", w->owner, p.owner, w->part, p.index, w->way);
}

/* Reads @word and then a number (no sign, no leading zero) from *@at. */
static bool take(const char **at, const char *word, uint32_t *number) {
    size_t length = strlen(word);
    if (strncmp(*at, word, length))
        return false;
    *at += length;
    if (!number)
        return true;
    if (!g_ascii_isdigit(**at) || (**at == '0' && g_ascii_isdigit((*at)[1])))
        return false;
    char *end;
    guint64 value = g_ascii_strtoull(*at, &end, 10);
    *at = end;
    *number = (uint32_t)value;
    return value < UINT32_MAX;
}

static uint32_t tier_link(const OrrTier *t, const LinkPlace *p, bool is_up) {
    if (!t->has_links || p->owner >= t->n || p->index >= t->width)
        return ORR_NONE;
    return t->first_link + (2 * p->owner + (is_up ? 0 : 1)) * t->width + p->index;
}

/* The inverse of place_of; ORR_NONE if there is no such link. For a mesh @index is a pair. */
static uint32_t link_at(const OrrCluster *c, const LinkPlace *p) {
    const OrrNode *n = c->spec.node;
    if (p->kind == ORR_LINK_LEAF_UP || p->kind == ORR_LINK_LEAF_DOWN)
        return tier_link(&c->leaf, p, p->kind == ORR_LINK_LEAF_UP);
    if (p->kind == ORR_LINK_SPINE_UP || p->kind == ORR_LINK_SPINE_DOWN)
        return tier_link(&c->pod, p, p->kind == ORR_LINK_SPINE_UP);
    if (p->owner >= c->n_nodes)
        return ORR_NONE;
    uint32_t first = p->owner * c->node_links;
    if (p->kind == ORR_LINK_MESH)
        return n->nvlink == ORR_NVLINK_MESH && c->mesh_link[p->index]
                   ? first + c->mesh_link[p->index] - 1
                   : ORR_NONE;
    if (p->kind == ORR_LINK_MGMT_OUT || p->kind == ORR_LINK_MGMT_IN)
        return first + c->at_mgmt + (p->kind == ORR_LINK_MGMT_IN);
    if (p->kind == ORR_LINK_NIC_OUT || p->kind == ORR_LINK_NIC_IN)
        return p->index >= n->nics
                   ? ORR_NONE
                   : first + c->at_nic + (p->kind == ORR_LINK_NIC_IN) * n->nics + p->index;
    if (p->index >= n->gpus)
        return ORR_NONE;
    if (p->kind == ORR_LINK_PCIE_OUT || p->kind == ORR_LINK_PCIE_IN)
        return first + c->at_pcie + (p->kind == ORR_LINK_PCIE_IN) * n->gpus + p->index;
    return n->nvlink != ORR_NVLINK_SWITCH
               ? ORR_NONE
               : first + (p->kind == ORR_LINK_NVLINK_IN) * n->gpus + p->index;
}

static bool parse_place(const OrrCluster *c, const char *name, OrrLinkKind kind, LinkPlace *p) {
    const LinkWords *w = &words[kind];
    uint32_t other, g = c->spec.node->gpus;
    *p = (LinkPlace){.kind = kind};
    if (!take(&name, w->owner, &p->owner) ||
        !take(&name, w->part, is_numbered(c, kind) ? &p->index : NULL))
        return false;
    if (kind == ORR_LINK_MESH) {
        if (!take(&name, "-gpu", &other) || p->index >= g || other >= g)
            return false;
        p->index = p->index * g + other;
    }
    return !strcmp(name, w->way);
}

bool orr_cluster_link_find(const OrrCluster *c, const char *name, uint32_t *link) {
    for (int kind = 0; kind < ORR_N_LINK_KINDS; kind++) {
        LinkPlace p;
        if (!parse_place(c, name, (OrrLinkKind)kind, &p))
            continue;
        *link = link_at(c, &p);
        if (*link != ORR_NONE)
            return true;
    }
    return false;
}

/* A name with each number as one sign. */
static char *pattern_of(const char *name) {
    GString *pattern = g_string_new(NULL);
    for (; *name; name++)
        if (!g_ascii_isdigit(*name))
            g_string_append_c(pattern, *name);
        else if (pattern->len == 0 || pattern->str[pattern->len - 1] != '#')
            g_string_append_c(pattern, '#');
    return g_string_free(pattern, FALSE);
}

static void append_run(const OrrCluster *c, uint32_t first, uint32_t last, GString *text) {
    g_autofree char *from = orr_cluster_link_name(c, first), *to = orr_cluster_link_name(c, last);
    g_string_append_printf(text, "%s to %s", from, to);
}

char *orr_cluster_link_hint(const OrrCluster *c, const char *name) {
    uint32_t first[ORR_N_LINK_KINDS], last[ORR_N_LINK_KINDS], n = 0;
    bool is_known[ORR_N_LINK_KINDS] = {false};
    char *patterns[ORR_N_LINK_KINDS + 1] = {NULL};
    for (uint32_t link = 0; link < c->n_links; link++) {
        OrrLinkKind kind = orr_cluster_link_kind(c, link);
        first[kind] = is_known[kind] ? first[kind] : link;
        last[kind] = link;
        is_known[kind] = true;
    }
    for (int kind = 0; kind < ORR_N_LINK_KINDS; kind++) {
        if (!is_known[kind])
            continue;
        g_autofree char *example = orr_cluster_link_name(c, first[kind]);
        patterns[n] = pattern_of(example);
        first[n] = first[kind], last[n++] = last[kind];
    }
    g_autofree char *asked = pattern_of(name);
    const char *near = orr_words_nearest(asked, (const char *const *)patterns);
    GString *text = g_string_new(near ? "did you mean one of " : "known are ");
    for (uint32_t i = 0, shown = 0; i < n; i++) {
        if (near && near != patterns[i])
            continue;
        g_string_append(text, shown++ > 0 ? "; " : "");
        append_run(c, first[i], last[i], text);
    }
    g_string_append(text, near ? "?" : "");
    for (uint32_t i = 0; i < n; i++)
        g_free(patterns[i]);
    return g_string_free(text, FALSE);
}
