/* All-to-all: a rank sends to the domains after its own, one after another, and in each of them to
 * all ranks, beginning with that in its own place: so in every round each rank has one sender (the
 * schedule of NCCL, src/enqueue.cc). Every rank has two senders, one for peers of its domain and
 * one for the network, each with one message at a time; receivers take what comes, and those who
 * send to one NIC at once share it. A further message over the network is posted
 * message_ns after the one before has left. */
#include "sim/detail/detail_priv.h"

#include <math.h>

typedef struct {
    uint32_t domain, place; /* steps from the rank's own to the receiver's of the message in hand */
    uint32_t peer;
    OrrUse uses[ORR_MAX_ROUTE];
} Sender;

typedef struct {
    const OrrDetailCase *c;
    const OrrCollPlan *plan;
    OrrClock clock;
    Sender *senders; /* [2 n_ranks]: 2 r inside the domain, 2 r + 1 over the network */
    OrrDomains domains;
    uint32_t *number; /* [links of the cluster] that of the clock, or ORR_NONE: can't be filled */
    uint64_t bytes;   /* of a message */
    uint64_t cap[2];  /* of the two kinds of sender */
    int64_t transfer_ns[2];
    int64_t gap_ns;
    int64_t last_ns;
    uint64_t n_flows;
} Run;

/* Before the first message. */
static void rewind_sender(Sender *s, bool is_net) {
    s->domain = is_net ? 1 : 0;
    s->place = is_net ? UINT32_MAX : 0; /* the next is one on; none goes to itself */
}

/* Moves on to the sender's next message; false: there is none. */
static bool find_next(Run *x, uint32_t sender) {
    Sender *s = &x->senders[sender];
    const OrrDomains *d = &x->domains;
    uint32_t r = sender / 2, own = d->of[r], last = sender % 2 ? d->n - 1 : 0;
    while (s->domain <= last) {
        uint32_t domain = (own + s->domain) % d->n;
        uint32_t size = d->start[domain + 1] - d->start[domain];
        if (++s->place < size) {
            s->peer = d->start[domain] + (r - d->start[own] + s->place) % size;
            return true;
        }
        s->domain++;
        s->place = UINT32_MAX;
    }
    return false;
}

static uint32_t route(const Run *x, uint32_t sender, uint32_t peer, OrrUse *uses) {
    uint32_t r = sender / 2;
    return sender % 2 ? orr_detail__net_uses(x->c->cluster, r, peer, uses)
                      : orr_detail__inside_uses(x->c->cluster, r, peer, uses);
}

/* Which links could be filled if every sender that ever uses one did so at once. */
static uint64_t *find_shared(Run *x, uint32_t *n_shared) {
    const OrrCluster *c = x->c->cluster;
    uint32_t n_links = orr_cluster_n_links(c), n = x->c->n_ranks;
    g_autofree OrrWide *demand = g_new0(OrrWide, n_links + 1);
    g_autofree uint32_t *seen =
        g_new0(uint32_t, n_links + 1); /* sender + 1 that was counted last */
    for (uint32_t s = 0; s < 2 * n; s++)
        for (rewind_sender(&x->senders[s], s % 2); find_next(x, s);) {
            OrrUse uses[ORR_MAX_ROUTE];
            uint32_t n_uses = route(x, s, x->senders[s].peer, uses);
            for (uint32_t u = 0; u < n_uses; u++) {
                if (seen[uses[u].constraint] == s + 1)
                    continue;
                seen[uses[u].constraint] = s + 1;
                demand[uses[u].constraint] += (OrrWide)uses[u].coef * x->cap[s % 2];
            }
        }
    uint64_t *capacity = g_new(uint64_t, n_links + 1);
    for (uint32_t l = 0; l < n_links; l++) {
        uint64_t bytes_per_s = (uint64_t)orr_cluster_link_bytes_per_s(c, l);
        bool can_fill = demand[l] > (OrrWide)bytes_per_s * ORR_COEF_ONE;
        x->number[l] = can_fill ? *n_shared : ORR_NONE;
        if (can_fill)
            capacity[(*n_shared)++] = bytes_per_s;
    }
    return capacity;
}

/* A message has left: when it can be used, and when the next is due. */
static void sent(Run *x, uint32_t sender, int64_t end_ns) {
    uint32_t r = sender / 2;
    uint32_t peer = x->senders[sender].peer;
    int64_t used_ns =
        end_ns + (sender % 2 ? orr_detail__hop_ns(x->c->cluster, x->plan, r, peer) : 0);
    x->last_ns = MAX(x->last_ns, used_ns);
    x->n_flows++;
    if (find_next(x, sender))
        orr_queue_push(&x->clock.queue, end_ns + (sender % 2 ? x->gap_ns : 0), ORR_DETAIL_START, 0,
                       sender);
}

static void begin(Run *x, uint32_t sender) {
    Sender *s = &x->senders[sender];
    OrrUse *uses = s->uses;
    uint32_t n = route(x, sender, s->peer, uses), kept = 0;
    for (uint32_t u = 0; u < n; u++) {
        uint32_t number = x->number[uses[u].constraint];
        if (number != ORR_NONE)
            uses[kept++] = (OrrUse){number, uses[u].coef, 1};
    }
    if (kept == 0) {
        sent(x, sender, x->clock.now_ns + x->transfer_ns[sender % 2]);
        return;
    }
    OrrFlow flow = {.uses = uses,
                    .n_uses = kept,
                    .weight = 1,
                    .cap_bytes_per_s = x->cap[sender % 2],
                    .bytes = x->bytes,
                    .owner = sender};
    orr_detail__begin(&x->clock, sender, &flow);
}

static void handle(void *data, uint32_t class, uint32_t sender, uint32_t tag) {
    Run *x = data;
    (void)tag;
    if (class == ORR_DETAIL_START)
        begin(x, sender);
    else
        sent(x, sender, x->clock.now_ns);
}

/* The plan's terms: rounds inside a domain overlap, log2 of them follow one another (pairwise.c).
 */
static int64_t set_terms(Run *x) {
    uint32_t n = x->c->n_ranks, per_domain = 1;
    orr_detail__domains_init(&x->domains, x->c->cluster, n);
    for (uint32_t d = 0; d < x->domains.n; d++)
        per_domain = MAX(per_domain, x->domains.start[d + 1] - x->domains.start[d]);
    x->bytes = ((uint64_t)x->c->bytes + n - 1) / n;
    x->cap[0] = (uint64_t)fmax(1, x->plan->inside_bytes_per_s);
    x->cap[1] = orr_detail__net_share(x->plan, per_domain);
    for (int k = 0; k < 2; k++)
        x->transfer_ns[k] = orr_detail__transfer_ns(x->bytes, x->cap[k]);
    x->gap_ns = (int64_t)ceil(x->plan->message_ns);
    return (int64_t)ceil(x->plan->start_ns + log2(MAX(2, per_domain)) * x->plan->hop_ns);
}

void orr_detail__run_pairs(const OrrDetailCase *c, const OrrCollPlan *plan,
                           OrrDetailResult *result) {
    Run x = {.c = c, .plan = plan};
    int64_t start_ns = set_terms(&x);
    uint32_t n_shared = 0;
    x.senders = g_new0(Sender, 2 * (gsize)c->n_ranks);
    x.number = g_new(uint32_t, orr_cluster_n_links(c->cluster) + 1);
    g_autofree uint64_t *capacity = find_shared(&x, &n_shared);
    orr_detail__clock_init(&x.clock, 2 * c->n_ranks, capacity, n_shared);
    x.clock.handle = handle;
    x.clock.data = &x;
    for (uint32_t s = 0; s < 2 * c->n_ranks; s++) {
        rewind_sender(&x.senders[s], s % 2);
        if (find_next(&x, s))
            orr_queue_push(&x.clock.queue, start_ns, ORR_DETAIL_START, 0, s);
    }
    orr_detail__clock_run(&x.clock);
    result->time_ns = x.last_ns;
    result->n_flows = x.n_flows;
    result->n_shared = x.clock.n_shared;
    result->n_events = x.clock.n_events;
    OrrFluidStats stats = {0};
    if (x.clock.fluid)
        orr_fluid_stats(x.clock.fluid, &stats);
    result->n_solves = stats.solves;
    orr_detail__clock_clear(&x.clock);
    g_free(x.senders);
    orr_detail__domains_clear(&x.domains);
    g_free(x.number);
}
