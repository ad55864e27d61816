#include "sim/facts/replay.h"

void orr_replay_free(OrrReplay *replay) {
    if (!replay)
        return;
    for (uint32_t i = 0; i < replay->n_nodes; i++)
        g_free(replay->nodes[i].name);
    g_free(replay->nodes);
    g_free(replay->deps);
    g_free(replay->name);
    g_free(replay->source);
    g_free(replay);
}
