/* What the readers of both forms of Chakra share. */
#ifndef TRACES_CHAKRA_PRIV_H
#define TRACES_CHAKRA_PRIV_H

#include "traces/chakra.h"

/* A trace in the making: dependencies by id. */
typedef struct {
    const OrrImport *import;
    GArray *nodes;   /* OrrReplayNode; first_dep and n_deps index dep_ids */
    GArray *dep_ids; /* uint64_t */
    char *version;
    int32_t rank;
    GByteArray *is_ctrl; /* of each dependency: it stands in ctrl_deps */
} OrrChakraDraft;

/* The node of type @type (OrrChakraType) goes in; what communication its attributes tell with it.
 */
void orr_traces__chakra_add(OrrChakraDraft *draft, OrrReplayNode node, uint64_t type,
                            uint64_t comm_type);
bool orr_traces__chakra_json(OrrChakraDraft *draft, const char *text, gsize length, GError **error);

#endif
