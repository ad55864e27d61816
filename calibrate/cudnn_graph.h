/* Graphs of cuDNN's backend API, as far as attention needs them: tensors, operations, a plan by the
 * heuristics. The first failure is remembered; calls behind it do nothing.
 *
 * A plan can be made for a GPU that isn't there, from its properties; so graphs are tested without
 * one. */
#ifndef ORR_CALIBRATE_CUDNN_GRAPH_H
#define ORR_CALIBRATE_CUDNN_GRAPH_H

#include "sim/base/error.h"

#include <cudnn.h>

#define ORR_GRAPH_MAX_OPS 32
#define ORR_GRAPH_MAX_TENSORS 32

typedef cudnnBackendDescriptor_t OrrDescriptor;

typedef struct {
    cudnnHandle_t handle; /* NULL: plan only, for @device */
    OrrDescriptor device; /* of orr_graph_device; or NULL */
    GPtrArray *made;      /* all descriptors but @device */
    OrrDescriptor ops[ORR_GRAPH_MAX_OPS];
    int n_ops;
    int64_t ids[ORR_GRAPH_MAX_TENSORS]; /* of tensors with data */
    void *data[ORR_GRAPH_MAX_TENSORS];
    int n_bound;
    int64_t next_id;
    OrrDescriptor plan, pack;
    int64_t workspace_bytes;
    cudnnStatus_t status; /* of the first failure */
    char *why;            /* NULL: none */
} OrrGraph;

/* Four dimensions: batch, heads, rows, columns. */
typedef struct {
    int64_t size[4], stride[4];
    cudnnDataType_t type;
    bool is_by_value; /* data is on the host */
    void *data;       /* NULL: lives within the graph only */
} OrrTensor;

OrrGraph *orr_graph_new(cudnnHandle_t handle, OrrDescriptor device);
void orr_graph_free(OrrGraph *g);

OrrDescriptor orr_graph_tensor(OrrGraph *g, const OrrTensor *t);
/* y = x by mode, with @b and the mask @t where the mode has them, else NULL. */
void orr_graph_pointwise(OrrGraph *g, cudnnPointwiseMode_t mode, OrrDescriptor x, OrrDescriptor b,
                         OrrDescriptor t, OrrDescriptor y);
/* Number of each element along @axis. */
void orr_graph_index(OrrGraph *g, int64_t axis, OrrDescriptor like, OrrDescriptor y);
void orr_graph_matmul(OrrGraph *g, OrrDescriptor a, OrrDescriptor b, OrrDescriptor c);
void orr_graph_reduce(OrrGraph *g, cudnnReduceTensorOp_t op, OrrDescriptor x, OrrDescriptor y);
/* The same elements under other sizes and strides. */
void orr_graph_reshape(OrrGraph *g, OrrDescriptor x, OrrDescriptor y);
/* An operation that consists of tensors: @names and @tensors in pairs; NULL tensors are left out.
 */
void orr_graph_op(OrrGraph *g, cudnnBackendDescriptorType_t type,
                  const cudnnBackendAttributeName_t *names, const OrrDescriptor *tensors, int n);
/* Makes the plan of the first engine that takes the graph. ORR_ERROR_NO if none does. */
bool orr_graph_plan(OrrGraph *g, GError **error);
/* @workspace has workspace_bytes. */
bool orr_graph_bind(OrrGraph *g, void *workspace, GError **error);

/* A GPU from its properties as JSON (the text that cuDNN gives of a device); NULL with @error. */
OrrDescriptor orr_graph_device(const char *json, GError **error);

#endif
