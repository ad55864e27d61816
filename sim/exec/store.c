/* Blocks: what belongs to the members of an island lies together.
 *
 * Events of an island come in bursts, and nothing of it is in the cache any more when the next one
 * comes. So what they touch is packed by kind, all members side by side, and all kinds of an island
 * are in one block: lines of one page of memory come twice as fast as the same number of lines out
 * of arrays over all islands (8 and 16 ns a line where all are missed, on the machine of
 * doc/models/execution.md). */
#include "sim/base/large.h"
#include "sim/exec/exec_priv.h"

#include <stdlib.h>

/* Room for @n entries of @size in the block. Returns where. */
static uint32_t add(uint32_t *bytes, gsize n, gsize size) {
    uint32_t at = *bytes;
    *bytes += (uint32_t)((n * size + ORR_LINE - 1) / ORR_LINE * ORR_LINE);
    return at;
}

/* Returns the bytes of a block. */
static uint32_t lay_out(OrrStore *st, uint32_t n_members) {
    uint32_t bytes = 0, n = st->n_slots;
    st->lanes = add(&bytes, n, sizeof(OrrLane));
    st->free_ns = add(&bytes, n, sizeof(int64_t));
    st->start_ns = add(&bytes, n, sizeof(int64_t));
    st->arrived_ns = add(&bytes, n, sizeof(int64_t));
    st->preds = add(&bytes, n, sizeof(OrrPredecessor));
    st->ended = add(&bytes, n, sizeof(OrrEnded));
    st->blockers = add(&bytes, 2 * (gsize)n, sizeof(OrrBlocker));
    st->causes = add(&bytes, n, sizeof(OrrLaneCause));
    st->waiting = add(&bytes, n, sizeof(uint16_t));
    st->generations = add(&bytes, n, sizeof(uint32_t));
    st->idle_from_ns = add(&bytes, n_members, sizeof(int64_t));
    st->host_base_ns = add(&bytes, n_members, sizeof(int64_t));
    st->outer = add(&bytes, n_members, 2 * sizeof(uint32_t));
    st->n_synced = add(&bytes, n_members, sizeof(uint32_t));
    st->owner_ns = add(&bytes, (gsize)ORR_N_OWNERS * n_members, sizeof(int64_t));
    return bytes;
}

/* Streams that the program uses have rows of their own, the others share the first. Returns how
 * many. */
static uint32_t find_rows(OrrExec *x) {
    uint32_t n_rows = 1;
    for (uint32_t i = 0; i < x->bound->program->n_roles; i++) {
        const OrrCompiledRole *role = &x->compiled->roles[i];
        for (uint32_t s = 0; s < ORR_N_STREAMS; s++)
            if (role->rows[role->n_calls].base[s] > 0 && x->row_at[s] == 0)
                x->row_at[s] = n_rows++ * x->n_members;
    }
    return n_rows;
}

void orr_exec__store_new(OrrExec *x, const OrrBoundGroup *tp) {
    OrrStore *st = &x->store;
    uint32_t most = 1, n_ranks = x->bound->n_ranks;
    for (uint32_t i = 0; tp && i < tp->n_groups; i++)
        most = MAX(most, tp->first_member[i + 1] - tp->first_member[i]);
    for (x->n_members = 1; x->n_members < most;)
        x->n_members *= 2;
    st->n_slots = find_rows(x) * x->n_members;
    uint32_t bytes = st->block_bytes = lay_out(st, x->n_members);
    st->homes = orr_large_new((n_ranks + 1) * sizeof *st->homes);
    for (uint32_t r = 0; r < n_ranks; r++)
        st->homes[r].line = x->island_of[r] * (bytes / ORR_LINE);
    for (uint32_t i = 0; tp && i < tp->n_groups; i++)
        for (uint32_t m = tp->first_member[i]; m < tp->first_member[i + 1]; m++)
            st->homes[tp->members[m]].member = m - tp->first_member[i];
    st->bytes = orr_large_new(((gsize)x->n_islands + 1) * bytes);
    for (uint32_t i = 0; i < x->n_islands; i++) {
        OrrLane *lanes = (OrrLane *)(void *)(st->bytes + (gsize)i * bytes + st->lanes);
        for (uint32_t k = 0; k < st->n_slots; k++)
            lanes[k] = (OrrLane){.blocked_on = ORR_N_STREAMS, .is_apart = 1};
    }
}

void orr_exec__store_clear(OrrExec *x) {
    free(x->store.homes);
    free(x->store.bytes);
}
