/* Nodes that fail and are repaired, and spot nodes that their owner takes back: each node by
 * itself, exponential, drawn by (seed, node, how many draws it has had). */
#include "sim/job/share_priv.h"

#include "sim/base/random.h"

typedef enum { FAILS, GETS_NOTICE, IS_GONE, IS_BACK } NodeEvent; /* also their order at one time */

static int64_t draw_ns(const Share *h, uint32_t node, double mean_ns) {
    if (!(mean_ns > 0))
        return INT64_MAX;
    OrrRandom random = orr_random(h->options->seed, "share node");
    double ns = orr_random_exponential(random, node, h->nodes[node].n_draws++) * mean_ns;
    return ns < 4e18 ? h->now + (int64_t)ns : INT64_MAX; /* a century: never */
}

/* Enters what happens to the node next. Without memory, so drawn anew in each state. */
static void enter(Share *h, uint32_t i) {
    const OrrShareSpec *s = h->spec;
    Node *n = &h->nodes[i];
    n->generation++;
    int64_t fails = INT64_MAX, other = n->back_ns;
    NodeEvent event = IS_BACK;
    if (n->state == NODE_UP || n->state == NODE_LEAVING)
        fails = draw_ns(h, i, s->node_mtbf_ns);
    if (n->state == NODE_UP) {
        event = GETS_NOTICE;
        other = orr_share_node_is_spot(s, i) ? draw_ns(h, i, s->reclaim_mtbf_ns) : INT64_MAX;
    } else if (n->state == NODE_LEAVING) {
        event = IS_GONE;
        other = n->gone_ns;
    }
    if (fails < other)
        event = FAILS;
    if (MIN(fails, other) < INT64_MAX)
        orr_queue_push(&h->node_events, MIN(fails, other), event, n->generation, i);
}

void orr_share__nodes_begin(Share *h) {
    orr_queue_init(&h->node_events);
    h->nodes = g_new0(Node, h->spec->n_nodes + 1);
    for (uint32_t i = 0; orr_share_is_drawn(h->spec) && i < h->spec->n_nodes; i++)
        enter(h, i);
}

static bool is_stale(const Share *h, const OrrEvent *e) {
    return orr_event_generation(e) != (h->nodes[e->id].generation & ORR_GENERATION_MASK);
}

int64_t orr_share__nodes_next(Share *h) {
    while (h->node_events.n > 0) {
        OrrEvent e = orr_queue_pop(&h->node_events);
        if (is_stale(h, &e))
            continue;
        orr_queue_push(&h->node_events, e.time_ns, orr_event_class(&e), orr_event_generation(&e),
                       e.id);
        return e.time_ns;
    }
    return INT64_MAX;
}

/* Jobs that hold something of the node, in order. */
static uint32_t *jobs_on(const Share *h, uint32_t node, uint32_t *n) {
    uint32_t *jobs = g_new(uint32_t, h->n_on + 1);
    *n = 0;
    for (uint32_t i = 0; i < h->n_on; i++) {
        const Grant *g = &h->turns[h->on[i]].grant;
        for (uint32_t k = 0; k < g->n; k++)
            if (g->nodes[k] == node) {
                jobs[(*n)++] = h->on[i];
                break;
            }
    }
    return jobs;
}

static void happen(Share *h, uint32_t i, NodeEvent event) {
    const OrrShareSpec *s = h->spec;
    Node *n = &h->nodes[i];
    uint32_t n_jobs;
    g_autofree uint32_t *jobs = jobs_on(h, i, &n_jobs);
    h->floor.is_out[i] = event != IS_BACK;
    h->has_changed = true;
    switch (event) {
    case FAILS:
        n->state = NODE_DOWN;
        n->back_ns = h->now + s->repair_ns;
        h->account->node_failures++;
        orr_share__tell(h, ORR_SHARE_NODE_FAILED, ORR_SHARE_NONE, i);
        for (uint32_t k = 0; k < n_jobs; k++)
            orr_share__fail(h, jobs[k]);
        break;
    case GETS_NOTICE:
        n->state = NODE_LEAVING;
        n->gone_ns = h->now + s->reclaim_notice_ns;
        n->back_ns = n->gone_ns + s->reclaim_wait_ns;
        orr_share__tell(h, ORR_SHARE_NODE_NOTICE, ORR_SHARE_NONE, i);
        for (uint32_t k = 0; k < n_jobs; k++)
            orr_share__notice(h, jobs[k], s->reclaim_notice_ns, ORR_SHARE_NODE_RECLAIMED);
        break;
    case IS_GONE:
        n->state = NODE_AWAY;
        h->account->node_reclaims++;
        orr_share__tell(h, ORR_SHARE_NODE_RECLAIMED, ORR_SHARE_NONE, i);
        for (uint32_t k = 0; k < n_jobs; k++)
            orr_share__leave(h, jobs[k]);
        break;
    case IS_BACK:
        n->state = NODE_UP;
        orr_share__tell(h, ORR_SHARE_NODE_BACK, ORR_SHARE_NONE, i);
        break;
    }
    enter(h, i);
}

void orr_share__nodes_step(Share *h) {
    while (orr_share__nodes_next(h) == h->now) {
        OrrEvent e = orr_queue_pop(&h->node_events);
        happen(h, e.id, (NodeEvent)orr_event_class(&e));
    }
}
