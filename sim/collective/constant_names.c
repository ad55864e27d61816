#include "sim/collective/constant_names.h"

#include <stddef.h>
#include <string.h>

typedef struct {
    const char *key;
    size_t offset;
} Member;

static const Member law_members[] = {
    {"launch_ns", offsetof(OrrCollLaw, launch_ns)},
    {"step_ns", offsetof(OrrCollLaw, step_ns)},
    {"eff_frac", offsetof(OrrCollLaw, eff_frac)},
    {"full_ratio", offsetof(OrrCollLaw, full_frac)},
    {"full_bytes", offsetof(OrrCollLaw, full_bytes)},
};
static const Member arch_members[] = {
    {"copy_bytes_per_s", offsetof(OrrCollArch, copy_bytes_per_s)},
    {"pair_copy_bytes_per_s", offsetof(OrrCollArch, pair_copy_bytes_per_s)},
    {"reduce_copy_ratio", offsetof(OrrCollArch, reduce_copy_frac)},
    {"nvls_tree_two_frac", offsetof(OrrCollArch, nvls_tree_frac[0])},
    {"nvls_tree_more_frac", offsetof(OrrCollArch, nvls_tree_frac[1])},
    {"nvls_channels", offsetof(OrrCollArch, nvls_channels)},
};
static const Member net_members[] = {
    {"step_ns.ll", offsetof(OrrCollNet, step_ns[ORR_PROTO_LL])},
    {"step_ns.ll128", offsetof(OrrCollNet, step_ns[ORR_PROTO_LL128])},
    {"step_ns.simple", offsetof(OrrCollNet, step_ns[ORR_PROTO_SIMPLE])},
    {"tree_step_ns.ll", offsetof(OrrCollNet, tree_step_ns[ORR_PROTO_LL])},
    {"tree_step_ns.ll128", offsetof(OrrCollNet, tree_step_ns[ORR_PROTO_LL128])},
    {"tree_step_ns.simple", offsetof(OrrCollNet, tree_step_ns[ORR_PROTO_SIMPLE])},
    {"launch_ns", offsetof(OrrCollNet, launch_ns)},
    {"message_ns", offsetof(OrrCollNet, message_ns)},
    {"eff_frac", offsetof(OrrCollNet, eff_frac)},
    {"ll_bytes_per_s", offsetof(OrrCollNet, ll_bytes_per_s)},
};
static const Member common_members[] = {
    {"tree.eff_frac", offsetof(OrrCollConstants, tree_eff_frac)},
    {"send.eff_frac", offsetof(OrrCollConstants, send_eff_frac)},
    {"lone.eff_frac", offsetof(OrrCollConstants, lone_eff_frac)},
    {"sharp.eff_frac", offsetof(OrrCollConstants, sharp_eff_frac)},
    {"host.launch_ns", offsetof(OrrCollConstants, host_launch_ns)},
    {"host.channel_ns", offsetof(OrrCollConstants, host_channel_ns)},
};

static double *member(void *base, const Member *table, guint n, const char *key) {
    for (guint i = 0; i < n; i++)
        if (strcmp(table[i].key, key) == 0)
            return (double *)((char *)base + table[i].offset);
    return NULL;
}

static double *of_law(OrrCollLaw *law, const char *key) {
    return member(law, law_members, G_N_ELEMENTS(law_members), key);
}

/* Number in @names of the first word of @text, or -1; *@rest is what follows its dot. */
static int first_word(const char *text, const char *const *names, const char **rest) {
    for (int i = 0; names[i]; i++) {
        size_t n = strlen(names[i]);
        if (strncmp(text, names[i], n) == 0 && text[n] == '.') {
            *rest = text + n + 1;
            return i;
        }
    }
    return -1;
}

static double *of_arch(OrrCollArch *arch, const char *name) {
    static const char *const laws[] = {"ring", "nvls", "pairs_ll", "pairs", NULL};
    const char *rest;
    int law = first_word(name, laws, &rest);
    if (law < 0)
        return member(arch, arch_members, G_N_ELEMENTS(arch_members), name);
    if (law == 0) {
        int proto = first_word(rest, orr_proto_names, &rest);
        return proto < 0 ? NULL : of_law(&arch->ring[proto], rest);
    }
    return of_law(law == 1 ? &arch->nvls : law == 2 ? &arch->pairs_ll : &arch->pairs, rest);
}

double *orr_coll_constant(OrrCollConstants *constants, const char *name) {
    static const char *const pcie[] = {"pcie", NULL};
    const char *rest;
    int at = first_word(name, orr_arch_names, &rest);
    if (at >= 0)
        return of_arch(&constants->arch[at], rest);
    at = first_word(name, orr_net_names, &rest);
    if (at >= 0)
        return member(&constants->net[at], net_members, G_N_ELEMENTS(net_members), rest);
    if (first_word(name, pcie, &rest) == 0) {
        at = first_word(rest, orr_proto_names, &rest);
        return at < 0 ? NULL : of_law(&constants->pcie[at], rest);
    }
    return member(constants, common_members, G_N_ELEMENTS(common_members), name);
}

OrrDim orr_coll_constant_dim(const char *name) {
    if (g_str_has_suffix(name, "bytes_per_s"))
        return ORR_DIM_RATE;
    if (g_str_has_suffix(name, "_bytes"))
        return ORR_DIM_BYTES;
    if (g_str_has_suffix(name, "_frac"))
        return ORR_DIM_FRACTION;
    bool is_bare = g_str_has_suffix(name, "_ratio") || g_str_has_suffix(name, "_channels");
    return is_bare ? ORR_DIM_NONE : ORR_DIM_TIME;
}

const char *orr_coll_constant_unit(const char *name) {
    OrrDim dim = orr_coll_constant_dim(name);
    return dim == ORR_DIM_RATE    ? " B/s"
           : dim == ORR_DIM_BYTES ? " B"
           : dim == ORR_DIM_TIME  ? " ns"
                                  : "";
}
