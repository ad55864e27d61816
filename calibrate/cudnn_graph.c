/* Descriptors of cuDNN's backend API: NVIDIA cuDNN API reference, cudnn_graph library. */
#include "calibrate/cudnn_graph.h"

#include <string.h>

static void note(OrrGraph *g, cudnnStatus_t status, const char *what) {
    if (status == CUDNN_STATUS_SUCCESS || g->why)
        return;
    char detail[256] = "";
    cudnnGetLastErrorString(detail, sizeof detail);
    g->status = status;
    g->why = g_strdup_printf("%s: %s%s%s", what, cudnnGetErrorString(status), *detail ? ", " : "",
                             detail);
}

static OrrDescriptor make(OrrGraph *g, cudnnBackendDescriptorType_t type) {
    OrrDescriptor d = NULL;
    if (g->why)
        return NULL;
    note(g, cudnnBackendCreateDescriptor(type, &d), "cudnnBackendCreateDescriptor");
    if (d)
        g_ptr_array_add(g->made, d);
    return d;
}

static void set(OrrGraph *g, OrrDescriptor d, cudnnBackendAttributeName_t name,
                cudnnBackendAttributeType_t type, int64_t n, const void *values) {
    if (!g->why)
        note(g, cudnnBackendSetAttribute(d, name, type, n, values), "cudnnBackendSetAttribute");
}

static void link_to(OrrGraph *g, OrrDescriptor d, cudnnBackendAttributeName_t name,
                    OrrDescriptor other) {
    if (other)
        set(g, d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &other);
}

static void finish(OrrGraph *g, OrrDescriptor d, const char *what) {
    if (!g->why)
        note(g, cudnnBackendFinalize(d), what);
}

static void add_op(OrrGraph *g, OrrDescriptor op, const char *what) {
    finish(g, op, what);
    g_assert(g->n_ops < ORR_GRAPH_MAX_OPS);
    g->ops[g->n_ops++] = op;
}

static void destroy(gpointer d) {
    cudnnBackendDestroyDescriptor(d);
}

OrrGraph *orr_graph_new(cudnnHandle_t handle, OrrDescriptor device) {
    OrrGraph *g = g_new0(OrrGraph, 1);
    g->handle = handle;
    g->device = device;
    g->made = g_ptr_array_new_with_free_func(destroy);
    g->next_id = 1;
    return g;
}

void orr_graph_free(OrrGraph *g) {
    if (!g)
        return;
    g_ptr_array_unref(g->made);
    g_free(g->why);
    g_free(g);
}

OrrDescriptor orr_graph_tensor(OrrGraph *g, const OrrTensor *t) {
    OrrDescriptor d = make(g, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    int64_t id = g->next_id++, alignment = t->is_by_value ? 4 : 16;
    bool is_virtual = !t->data, is_by_value = t->is_by_value;
    set(g, d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id);
    set(g, d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &t->type);
    set(g, d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
    set(g, d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, t->size);
    set(g, d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, t->stride);
    set(g, d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
    if (is_by_value)
        set(g, d, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &is_by_value);
    finish(g, d, "a tensor");
    if (t->data) {
        g_assert(g->n_bound < ORR_GRAPH_MAX_TENSORS);
        g->ids[g->n_bound] = id;
        g->data[g->n_bound++] = t->data;
    }
    return d;
}

static OrrDescriptor pointwise_mode(OrrGraph *g, cudnnPointwiseMode_t mode, const int64_t *axis) {
    OrrDescriptor d = make(g, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    cudnnDataType_t precision = CUDNN_DATA_FLOAT;
    set(g, d, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    set(g, d, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &precision);
    if (axis)
        set(g, d, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1, axis);
    finish(g, d, "a pointwise mode");
    return d;
}

static void pointwise(OrrGraph *g, OrrDescriptor mode, OrrDescriptor x, OrrDescriptor b,
                      OrrDescriptor t, OrrDescriptor y) {
    OrrDescriptor op = make(g, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    link_to(g, op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, mode);
    link_to(g, op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    link_to(g, op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
    link_to(g, op, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, t);
    link_to(g, op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    add_op(g, op, "a pointwise operation");
}

void orr_graph_pointwise(OrrGraph *g, cudnnPointwiseMode_t mode, OrrDescriptor x, OrrDescriptor b,
                         OrrDescriptor t, OrrDescriptor y) {
    pointwise(g, pointwise_mode(g, mode, NULL), x, b, t, y);
}

void orr_graph_index(OrrGraph *g, int64_t axis, OrrDescriptor like, OrrDescriptor y) {
    pointwise(g, pointwise_mode(g, CUDNN_POINTWISE_GEN_INDEX, &axis), like, NULL, NULL, y);
}

void orr_graph_matmul(OrrGraph *g, OrrDescriptor a, OrrDescriptor b, OrrDescriptor c) {
    OrrDescriptor how = make(g, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    cudnnDataType_t precision = CUDNN_DATA_FLOAT;
    set(g, how, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &precision);
    finish(g, how, "a product's precision");
    OrrDescriptor op = make(g, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    link_to(g, op, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
    link_to(g, op, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
    link_to(g, op, CUDNN_ATTR_OPERATION_MATMUL_CDESC, c);
    link_to(g, op, CUDNN_ATTR_OPERATION_MATMUL_DESC, how);
    add_op(g, op, "a product");
}

void orr_graph_reduce(OrrGraph *g, cudnnReduceTensorOp_t kind, OrrDescriptor x, OrrDescriptor y) {
    OrrDescriptor how = make(g, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    cudnnDataType_t precision = CUDNN_DATA_FLOAT;
    set(g, how, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &kind);
    set(g, how, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &precision);
    finish(g, how, "a reduction's kind");
    OrrDescriptor op = make(g, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    link_to(g, op, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
    link_to(g, op, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y);
    link_to(g, op, CUDNN_ATTR_OPERATION_REDUCTION_DESC, how);
    add_op(g, op, "a reduction");
}

void orr_graph_reshape(OrrGraph *g, OrrDescriptor x, OrrDescriptor y) {
    OrrDescriptor op = make(g, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
    link_to(g, op, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x);
    link_to(g, op, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y);
    add_op(g, op, "a reshape");
}

void orr_graph_op(OrrGraph *g, cudnnBackendDescriptorType_t type,
                  const cudnnBackendAttributeName_t *names, const OrrDescriptor *tensors, int n) {
    OrrDescriptor op = make(g, type);
    for (int i = 0; i < n; i++)
        link_to(g, op, names[i], tensors[i]);
    add_op(g, op, "attention");
}

static OrrDescriptor finish_ops(OrrGraph *g) {
    OrrDescriptor d = make(g, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    set(g, d, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, g->n_ops, g->ops);
    if (g->handle)
        set(g, d, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &g->handle);
    finish(g, d, "the graph");
    return d;
}

/* Configurations of engines, best first. */
#define MAX_CONFIGURATIONS 16

static int64_t ask_heuristics(OrrGraph *g, OrrDescriptor graph, cudnnBackendHeurMode_t mode,
                              OrrDescriptor *found) {
    OrrDescriptor d = make(g, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    set(g, d, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph);
    set(g, d, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
#if CUDNN_VERSION >= 90800
    if (!g->handle)
        link_to(g, d, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, g->device);
#endif
    finish(g, d, "the heuristics");
    for (int i = 0; i < MAX_CONFIGURATIONS; i++)
        found[i] = make(g, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    int64_t n = 0;
    if (!g->why)
        note(g,
             cudnnBackendGetAttribute(d, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                      CUDNN_TYPE_BACKEND_DESCRIPTOR, MAX_CONFIGURATIONS, &n, found),
             "the heuristics");
    return g->why ? 0 : n;
}

static bool try_plan(OrrGraph *g, OrrDescriptor configuration) {
    OrrDescriptor d = make(g, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    if (g->handle)
        set(g, d, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &g->handle);
#if CUDNN_VERSION >= 90800
    else
        link_to(g, d, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, g->device);
#endif
    link_to(g, d, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
    if (g->why || cudnnBackendFinalize(d) != CUDNN_STATUS_SUCCESS)
        return false;
    int64_t n = 0;
    note(g,
         cudnnBackendGetAttribute(d, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1,
                                  &n, &g->workspace_bytes),
         "the workspace");
    g->plan = d;
    return !g->why;
}

static bool refuse(const OrrGraph *g, GError **error) {
    g_set_error(error, ORR_ERROR, ORR_ERROR_NO, "cuDNN: %s",
                g->why ? g->why : "no engine takes this graph");
    return false;
}

bool orr_graph_plan(OrrGraph *g, GError **error) {
    OrrDescriptor graph = finish_ops(g), found[MAX_CONFIGURATIONS];
    const cudnnBackendHeurMode_t modes[] = {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK};
    for (guint m = 0; m < G_N_ELEMENTS(modes) && !g->plan && !g->why; m++) {
        int64_t n = ask_heuristics(g, graph, modes[m], found);
        for (int64_t i = 0; i < n && !g->plan && !g->why; i++)
            try_plan(g, found[i]);
    }
    return g->plan && !g->why ? true : refuse(g, error);
}

bool orr_graph_bind(OrrGraph *g, void *workspace, GError **error) {
    g->pack = make(g, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    set(g, g->pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, g->n_bound, g->ids);
    set(g, g->pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, g->n_bound,
        g->data);
    set(g, g->pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
    finish(g, g->pack, "the buffers");
    return !g->why ? true : refuse(g, error);
}

OrrDescriptor orr_graph_device(const char *json, GError **error) {
    OrrDescriptor d = NULL;
#if CUDNN_VERSION >= 90800
    cudnnStatus_t status = cudnnBackendCreateDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &d);
    if (status == CUDNN_STATUS_SUCCESS)
        status = cudnnBackendSetAttribute(d, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
                                          CUDNN_TYPE_CHAR, (int64_t)strlen(json) + 1, json);
    if (status == CUDNN_STATUS_SUCCESS)
        status = cudnnBackendFinalize(d);
    if (status == CUDNN_STATUS_SUCCESS)
        return d;
    if (d)
        cudnnBackendDestroyDescriptor(d);
#endif
    (void)json;
    g_set_error(error, ORR_ERROR, ORR_ERROR_NO, "cuDNN takes no such device");
    return NULL;
}
