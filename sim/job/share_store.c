/* The store of checkpoints: one link that all jobs share. Max-min over its connections, which all
 * have the same cap, so each gets the lesser of the cap and of an even part; a job has one
 * connection a node, or as many as it says. */
#include "sim/job/share_priv.h"

static uint32_t writers_of(const Share *h, uint32_t job) {
    const OrrShareJob *j = &h->spec->jobs[job];
    return j->writers > 0 ? j->writers : MAX(h->turns[job].grant.n, 1);
}

/* Bytes a second of @writers when @all have connections; INT64_MAX: no limit. */
static int64_t rate_of(const OrrShareSpec *s, uint32_t writers, uint64_t all) {
    int64_t rate = INT64_MAX;
    if (s->store_bytes_per_s > 0)
        rate = (int64_t)((__int128)s->store_bytes_per_s * writers / (__int128)all);
    if (s->writer_bytes_per_s > 0)
        rate = (int64_t)MIN((__int128)rate, (__int128)s->writer_bytes_per_s * writers);
    return MAX(rate, 1);
}

int64_t orr_share__save_alone_ns(const Share *h, uint32_t job) {
    const OrrShareJob *j = &h->spec->jobs[job];
    uint32_t n = writers_of(h, job);
    int64_t rate = rate_of(h->spec, n, n), bytes = (int64_t)j->save_bytes;
    if (bytes == 0 || rate == INT64_MAX)
        return j->save_takes_ns;
    __int128 ns = ((__int128)bytes * 1000000000 + rate - 1) / rate + j->save_takes_ns;
    return (int64_t)MIN(ns, (__int128)INT64_MAX);
}

void orr_share__flow(Share *h, uint32_t job, bool begins) {
    uint32_t n = writers_of(h, job);
    for (uint32_t i = 0; i < h->n_on; i++) /* at the rates that held until now */
        if (h->turns[h->on[i]].is_flowing)
            orr_share__settle(h, h->on[i]);
    orr_share__settle(h, job);
    h->turns[job].is_flowing = begins;
    h->n_writers = begins ? h->n_writers + n : h->n_writers - n;
    for (uint32_t i = 0; i < h->n_on; i++) {
        uint32_t other = h->on[i];
        if (!h->turns[other].is_flowing)
            continue;
        h->turns[other].bytes_per_s = rate_of(h->spec, writers_of(h, other), h->n_writers);
        orr_share__plan(h, other);
    }
}
