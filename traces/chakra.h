/* Chakra execution traces in: the protobuf form (*.et: a GlobalMetadata message, then a Node each)
 * and the JSON form that PyTorch's ExecutionTraceObserver writes (schemas 1.0.1 to 1.1).
 *
 * Where there are data_deps, they alone order execution (ctrl_deps then name callers); else
 * ctrl_deps do. Durations are the attribute duration_ns where a trace of ours has it, else
 * duration_micros. A file that is cut is refused, not shortened: what is missing may be what others
 * wait for. Cycles are refused with their node. Left out: tensors.
 *
 * Source: mlcommons/chakra schema/protobuf/et_def.proto (0.0.4); pytorch
 * torch/csrc/profiler/standalone/execution_trace_observer.cpp. */
#ifndef TRACES_CHAKRA_H
#define TRACES_CHAKRA_H

#include "sim/facts/replay.h"
#include "sim/io/importer.h"

/* Numbers of et_def.proto. */
typedef enum {
    ORR_CHAKRA_METADATA = 1,
    ORR_CHAKRA_MEM_LOAD,
    ORR_CHAKRA_MEM_STORE,
    ORR_CHAKRA_COMP,
    ORR_CHAKRA_SEND,
    ORR_CHAKRA_RECV,
    ORR_CHAKRA_COLL
} OrrChakraType;

/* CollectiveCommType of a kind of ours, and back; 255 and ORR_N_COLLECTIVES: there is none. */
uint8_t orr_chakra_comm_type(OrrCollective kind);
OrrCollective orr_chakra_collective(uint64_t comm_type);

/* Free with orr_replay_free; NULL with @error. */
OrrReplay *orr_chakra_read(const OrrImport *import, GError **error);
/* As orr_chakra_read, from memory; import->path stands for the file. */
OrrReplay *orr_chakra_parse(const OrrImport *import, const char *text, gsize length,
                            GError **error);
/* A row a node as CSV; g_free. */
char *orr_chakra_format(const OrrReplay *replay);

extern const OrrImporter orr_importer_chakra;

#endif
