#include "tests/near.h"

#include "tests/fold_random.h"

#include "sim/api/step_priv.h"
#include "sim/base/random.h"
#include "tests/step_helpers.h"

#include <glib.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    uint64_t seed;
    uint32_t drawn;
    bool has_perturbs;
    uint32_t n_ranks;
    bool is_wide; /* many replicas, so that whole runs of them are left out */
} Draws;

static uint32_t draw(Draws *d, uint32_t n) {
    return (uint32_t)orr_random_below(orr_random(d->seed, "fold"), d->drawn++, 0, n);
}

static const char *pick(Draws *d, const char *const *of) {
    uint32_t n = 0;
    while (of[n])
        n++;
    return of[draw(d, n)];
}

static char *draw_cluster(Draws *d, uint32_t n) {
    static const char *const kinds[] = {"fat_tree", "clos", "ethernet", NULL};
    static const char *const gpus[] = {"h100", "a100", "v100", "a10", NULL};
    static const char *const overs[] = {"1", "2", "7", NULL};
    static const char *const routings[] = {"spread", "ecmp-hash", NULL};
    const char *kind = pick(d, kinds);
    uint32_t node = 1u << draw(d, 4);
    while (n % node != 0)
        node /= 2;
    g_autoptr(GString) s = g_string_new(NULL);
    g_string_printf(s, "%s:%u node:%u gpu:%s", kind, n, node, pick(d, gpus));
    if (strcmp(kind, "ethernet") == 0) {
        g_string_append_printf(s, " nics:1 nic:%s", draw(d, 2) ? "10G" : "100G");
    } else {
        if (strcmp(kind, "clos") == 0)
            g_string_append_printf(s, " leaf:%u", node << draw(d, 3));
        g_string_append_printf(s, " oversub:%s routing:%s seed:%u", pick(d, overs),
                               pick(d, routings), draw(d, 5));
        if (draw(d, 2))
            g_string_append_printf(s, " nics:1 nic:%s", draw(d, 2) ? "1G" : "25G");
    }
    return g_string_free(g_steal_pointer(&s), FALSE);
}

/* Racks and pods that the stages straddle, or not. */
static char *draw_pods(Draws *d, uint32_t n) {
    static const char *const overs[] = {"1", "3", "7", NULL};
    static const char *const kinds[] = {"clos", "fat_tree", NULL};
    uint32_t node = 1u << draw(d, 3), leaf = node << draw(d, 2), pod = leaf * (1 + draw(d, 6));
    bool is_clos = draw(d, 2);
    g_autoptr(GString) s = g_string_new(NULL);
    while (n % node != 0)
        n++;
    g_string_printf(s, "%s:%u node:%u gpu:h100", kinds[!is_clos], n, node);
    if (is_clos)
        g_string_append_printf(s, " leaf:%u", leaf);
    g_string_append_printf(s, " oversub:%s", pick(d, overs));
    if (draw(d, 2))
        g_string_append(s, " nics:1 nic:25G");
    if (is_clos && draw(d, 4))
        g_string_append_printf(s, ";cluster.gpus_per_pod=%u GPUs;cluster.pod_oversubscription=%s",
                               pod, pick(d, overs));
    return g_string_free(g_steal_pointer(&s), FALSE);
}

/* Up to three things that are not as they should be. Not every draw is one that the job has: what
 * names a link or a NIC that is not there is refused on both sides. */
static char *draw_perturbs(Draws *d, uint32_t n_ranks) {
    static const char *const factors[] = {"0.25", "0.5", "0.9", NULL};
    g_autoptr(GString) s = g_string_new(NULL);
    for (uint32_t i = 0, n = draw(d, 4); i < n; i++) {
        uint32_t rank = draw(d, n_ranks), node = draw(d, 1 + n_ranks / 8);
        g_string_append_printf(s, ";perturb.p%u=", i);
        switch (draw(d, 6)) {
        case 0:
            g_string_append_printf(s, "gpu:%u:speed=%s", rank, pick(d, factors));
            break;
        case 1:
            g_string_append_printf(s, "gpu:%u-%u:speed=1.05", rank, n_ranks - 1);
            break;
        case 2:
            g_string_append(s, "gpu:*:speed~normal(1,0.02)");
            break;
        case 3:
            g_string_append_printf(s, "nic:%u:0:bandwidth=%s", node, pick(d, factors));
            break;
        case 4:
            g_string_append_printf(s, "nic:%u:0:bandwidth=0", node);
            break;
        case 5:
            g_string_append_printf(s, "link:leaf0/%s:bandwidth=0.3", draw(d, 2) ? "up" : "down");
            break;
        }
    }
    if (draw(d, 3) == 0)
        g_string_append_printf(s, ";network.placement=random;network.seed=%u", draw(d, 100));
    return g_string_free(g_steal_pointer(&s), FALSE);
}

static char *draw_job(Draws *d) {
    static const char *const frameworks[] = {"megatron-2021",
                                             "megatron-2022",
                                             "megatron-core-2024",
                                             "meta-llama3",
                                             "pytorch-fsdp",
                                             "deepspeed-zero3",
                                             NULL};
    static const char *const schedules[] = {
        "1f1b", "gpipe", "interleaved", "naive", "interleaved_padded", "zb_h1", NULL};
    static const char *const recomputes[] = {"none", "selective", "full", NULL};
    static const char *const orders[] = {"tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp", "dp-tp-cp-ep-pp",
                                         NULL};
    uint32_t tp = 1u << draw(d, 3), pp = 1 + draw(d, 4), dp = 1 + draw(d, 8);
    if (d->is_wide) {
        tp = 1u << draw(d, 2), pp = 1 + draw(d, 3);
        dp = (4 + draw(d, 5)) << draw(d, 3);
    }
    d->n_ranks = tp * pp * dp;
    const char *schedule = pick(d, schedules);
    uint32_t vpp = g_str_has_prefix(schedule, "interleaved") && pp > 1 ? 2 : 1;
    if (vpp == 1 && g_str_has_prefix(schedule, "interleaved"))
        schedule = "1f1b";
    uint32_t zero = draw(d, 4), m = pp * (1 + draw(d, 2)), mbs = 1 + draw(d, 2);
    if (strcmp(schedule, "interleaved") != 0)
        m = 1 + draw(d, 2 * pp);
    if (zero == 3 && pp > 1)
        zero = 1;
    bool flip = draw(d, 2);
    g_autofree char *cluster =
        d->is_wide ? draw_pods(d, tp * pp * dp) : draw_cluster(d, tp * pp * dp);
    g_autoptr(GString) s = g_string_new(NULL);
    g_string_printf(s,
                    "job.cluster=%s;job.framework=%s;layout.tp=%u;layout.pp=%u;layout.vpp=%u;"
                    "layout.dp=%u;layout.zero_stage=%u;layout.sequence_parallel=%s;"
                    "schedule.name=%s;batch.global=%u sequences;batch.micro=%u sequences;"
                    "recompute.policy=%s;layout.rank_order=%s;layout.ends=with_layers;"
                    "model.layers=%u",
                    cluster, pick(d, frameworks), tp, pp, vpp, dp, zero,
                    flip && tp > 1 ? "yes" : "no", schedule, m * mbs * dp, mbs, pick(d, recomputes),
                    pick(d, orders), pp * vpp * (1 + draw(d, 2)));
    g_string_append_printf(s, ";model.tied=%s", draw(d, 2) ? "yes" : "no");
    if (draw(d, 3) == 0)
        g_string_append_printf(s, ";nccl.NCCL_ALGO=%s", draw(d, 2) ? "Tree" : "Ring");
    if (draw(d, 2)) /* messages large enough to fill links */
        g_string_append(s, ";model.hidden=2048;model.ffn=8192;model.head_dim=256");
    if (zero == 3)
        g_string_append_printf(s, ";layout.reshard_after_forward=%s", draw(d, 2) ? "yes" : "no");
    if (zero == 3 && dp % 2 == 0 && draw(d, 2))
        g_string_append(s, ";layout.hsdp_shard=2 ranks");
    if (zero == 2) {
        static const char *const when[] = {"at_end", "each_micro_batch", "each_run", NULL};
        g_string_append_printf(s, ";framework.reduce_when=%s", pick(d, when));
    }
    if (d->has_perturbs) {
        g_autofree char *perturbs = draw_perturbs(d, d->n_ranks);
        g_string_append(s, perturbs);
    }
    return g_string_free(g_steal_pointer(&s), FALSE);
}

char *fold_draw_job(uint64_t seed, FoldKind kind) {
    Draws d = {.seed = seed, .has_perturbs = kind != FOLD_PLAIN, .is_wide = kind == FOLD_WIDE};
    return draw_job(&d);
}

/* The record without the counts of what was executed. */
static char *comparable(const Step *s) {
    char *json = step_json(s), *at = strstr(json, "\"simulation\"");
    assert_non_null(at);
    char *end = strchr(at, '}');
    memmove(at, end, strlen(end) + 1);
    return json;
}

static void show_difference(const char *sets, const char *a, const char *b) {
    g_auto(GStrv) x = g_strsplit(a, "\n", -1), y = g_strsplit(b, "\n", -1);
    print_message("fold differs: %s\n", sets);
    for (uint32_t i = 0, n = 0; x[i] && y[i] && n < 6; i++)
        if (strcmp(x[i], y[i]) != 0 && ++n)
            print_message("  folded %s | unfolded %s\n", x[i], y[i]);
}

/* @n_bound: as many ranks as were bound; 0: the job was refused. */
static bool compare(const char *sets, uint32_t *n_bound) {
    g_autoptr(GError) error = NULL;
    Step *folded = step_try("tiny-pipeline", sets, STEP_CHECKED, &error);
    *n_bound = folded ? folded->run->bound->n_ranks : 0;
    if (!folded) {
        if (g_getenv("FOLD_VERBOSE"))
            print_message("refused: %s: %s\n", sets, error->message);
        return true;
    }
    Step *whole = step_new("tiny-pipeline", sets, STEP_UNFOLDED | STEP_CHECKED);
    g_autofree char *a = comparable(folded), *b = comparable(whole);
    bool is_same = strcmp(a, b) == 0;
    if (!is_same)
        show_difference(sets, a, b);
    step_free(folded);
    step_free(whole);
    return is_same;
}

void fold_compare_random(uint64_t first, uint32_t n, FoldKind kind) {
    uint32_t n_run = 0, n_different = 0, n_cut = 0;
    for (uint32_t i = 0; i < n; i++) {
        Draws d = {
            .seed = first + i, .has_perturbs = kind != FOLD_PLAIN, .is_wide = kind == FOLD_WIDE};
        g_autofree char *sets = draw_job(&d);
        uint32_t n_bound;
        n_different += !compare(sets, &n_bound);
        n_run += n_bound > 0;
        n_cut += n_bound > 0 && n_bound < d.n_ranks;
    }
    print_message("folded and unfolded: %u jobs compared, %u of them bound in part, %u refused, "
                  "%u differ\n",
                  n_run, n_cut, n - n_run, n_different);
    assert_int_equal(n_different, 0);
    assert_true(n_run >= n / 3);
    assert_true(kind != FOLD_WIDE || n_cut >= n / 20);
}
