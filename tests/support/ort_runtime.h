/* SPDX-License-Identifier: Apache-2.0
 * An ONNX Runtime as its provider sees it: tables of functions over a small network, in memory.
 * Every call of a function that returns a status may be the one that fails, and what the provider
 * is given, and has to give back, is counted.
 *
 * The network: u -> Conv (w0, 2:4) -> Relu -> Conv (w1, 2:4) -> r; If (c) -> then: r + small, else:
 * Neg r -> s; ConstantOfShape (Shape s) -> z; Add s z -> y. */
#ifndef TESTS_ORT_RUNTIME_H
#define TESTS_ORT_RUNTIME_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../plugins/ort/options.h"
#include "../../plugins/ort/ort.h"
#include "../../plugins/ort/table.h"

/* The real malloc, for memory of this imitated runtime: the test makes the provider's calls of
 * malloc fail. */
void *__real_malloc(size_t n);

enum { CHANNELS = 32, SIDE = 4, MOST_SLOTS = 400, MOST_TAKEN = 16, OF_FLOAT = 1, OF_I64 = 7 };

struct ort_status {
  int code;
  char text[600];
};
struct ort_shape {
  int dtype;
  size_t rank;
  const int64_t *sizes;
  const char *const *symbols;
};
struct ort_type {
  ort_shape shape;
};
struct ort_value {
  ort_shape shape;
  void *data;
};
struct ort_value_info {
  const char *name;
  ort_type type;
  const ort_value *constant;
  bool output;
};
struct ort_attribute {
  const char *name;
  int type;
  const void *data;
  size_t size;
  ort_value *tensor;
};
struct ort_graph {
  const ort_node *const *nodes;
  size_t n_nodes;
  const ort_value_info *inputs[2], *outputs[1], *initializers[2];
  size_t n_inputs, n_outputs, n_initializers;
  const ort_node *parent;
};
struct ort_node {
  const char *op;
  const ort_value_info *inputs[3], *implicit[2], *outputs[1];
  size_t n_inputs, n_implicit, n_outputs;
  const ort_attribute *attributes[3];
  size_t n_attributes;
  const ort_graph *bodies[2];
  size_t n_bodies;
};
struct ort_kernel {
  const ort_value *inputs[2];
  ort_value output;
};
struct ort_session_options {
  const char *keys[2], *values[2]; /* NULL: none */
};
struct ort_support {
  const ort_node *nodes[MOST_TAKEN];
  size_t n, n_parts;
};
struct ort_device {
  int kind;
};
struct ort_ep_device {
  int unused;
};
struct ort_event {
  int64_t begin_us, us;
};
struct ort_events {
  size_t n;
  int64_t last_us; /* end of the latest event, in microseconds */
};
struct ort_logger {
  int n_lines;
};

static struct {
  long n_calls, fail_at; /* number of calls so far, and number of the call that fails; 0: no call
                            fails */
  long n_held;           /* statuses, shapes, values and devices that were not given back */
  ort_slot table[MOST_SLOTS], for_providers[80];
} runtime;

static ort_status *make_status(int code, const char *text) {
  ort_status *status = __real_malloc(sizeof *status);
  if (!status) abort();
  status->code = code;
  (void)snprintf(status->text, sizeof status->text, "%s", text);
  runtime.n_held++;
  return status;
}

#define MAY_FAIL()                          \
  if (++runtime.n_calls == runtime.fail_at) \
  return make_status(LAC_ORT_FAILS,         \
                     "a fault of the "      \
                     "test")
/* Fails, as ONNX Runtime does, a call that is given no object. */
#define WANT(thing) \
  if (!(thing)) return make_status(LAC_ORT_BAD_ARGUMENT, "nothing was given")

/* ---- The network ---- */

static const int64_t image_sizes[] = {-1, CHANNELS, SIDE, SIDE};
static const int64_t weight_sizes[] = {CHANNELS, CHANNELS, 3, 3}, one_size[] = {1};
static const char *const image_symbols[] = {"n", "", "", ""}, *const no_symbols[] = {"", "", "",
                                                                                     ""};
static const int64_t four_ones[] = {1, 1, 1, 1};
static float weights[2][CHANNELS * CHANNELS * 9], small_value[] = {0.5f}, fill_value[] = {2};

static ort_value w0 = {{OF_FLOAT, 4, weight_sizes, no_symbols}, weights[0]};
static ort_value w1 = {{OF_FLOAT, 4, weight_sizes, no_symbols}, weights[1]};
static ort_value small = {{OF_FLOAT, 1, one_size, no_symbols}, small_value};
static ort_value fill_with = {{OF_FLOAT, 1, one_size, no_symbols}, fill_value};

#define IMAGE                                   \
  {                                             \
    { OF_FLOAT, 4, image_sizes, image_symbols } \
  }
static const ort_value_info i_u = {.name = "u", .type = IMAGE}, i_a = {.name = "a", .type = IMAGE},
                            i_b = {.name = "b", .type = IMAGE}, i_r = {.name = "r", .type = IMAGE},
                            i_s = {.name = "s", .type = IMAGE}, i_z = {.name = "z", .type = IMAGE},
                            i_y = {.name = "y", .type = IMAGE, .output = true},
                            i_t = {.name = "t", .type = IMAGE, .output = true},
                            i_e = {.name = "e", .type = IMAGE, .output = true};
static const ort_value_info i_c = {.name = "c", .type = {{9, 0, image_sizes, no_symbols}}};
static const ort_value_info i_shape = {.name = "shape",
                                       .type = {{OF_I64, 1, (const int64_t[]){4}, no_symbols}}};
static const ort_value_info i_w0 = {"w0", {{OF_FLOAT, 4, weight_sizes, no_symbols}}, &w0, false};
static const ort_value_info i_w1 = {"w1", {{OF_FLOAT, 4, weight_sizes, no_symbols}}, &w1, false};
static const ort_value_info i_small = {
    "small", {{OF_FLOAT, 1, one_size, no_symbols}}, &small, false};

static const ort_attribute pads = {"pads", LAC_ORT_INTS, four_ones, sizeof four_ones, NULL};
static const ort_attribute auto_pad = {"auto_pad", LAC_ORT_STRING, "NOTSET", 6, NULL};
static const ort_attribute value = {"value", LAC_ORT_ATTRIBUTE_TENSOR, NULL, 0, &fill_with};

static const ort_node conv0 = {.op = "Conv",
                               .inputs = {&i_u, &i_w0},
                               .n_inputs = 2,
                               .outputs = {&i_a},
                               .n_outputs = 1,
                               .attributes = {&pads, &auto_pad},
                               .n_attributes = 2};
static const ort_node relu = {
    .op = "Relu", .inputs = {&i_a}, .n_inputs = 1, .outputs = {&i_b}, .n_outputs = 1};
static const ort_node conv1 = {.op = "Conv",
                               .inputs = {&i_b, &i_w1, NULL},
                               .n_inputs = 3,
                               .outputs = {&i_r},
                               .n_outputs = 1,
                               .attributes = {&pads},
                               .n_attributes = 1};
static const ort_node add_small = {
    .op = "Add", .inputs = {&i_r, &i_small}, .n_inputs = 2, .outputs = {&i_t}, .n_outputs = 1};
static const ort_node negate = {
    .op = "Neg", .inputs = {&i_r}, .n_inputs = 1, .outputs = {&i_e}, .n_outputs = 1};
static const ort_node branch; /* declared here, since its bodies point to it */
static const ort_node *const then_nodes[] = {&add_small}, *const else_nodes[] = {&negate};
static const ort_graph then_body = {.nodes = then_nodes,
                                    .n_nodes = 1,
                                    .outputs = {&i_t},
                                    .n_outputs = 1,
                                    .initializers = {&i_small},
                                    .n_initializers = 1,
                                    .parent = &branch};
static const ort_graph else_body = {
    .nodes = else_nodes, .n_nodes = 1, .outputs = {&i_e}, .n_outputs = 1, .parent = &branch};
static const ort_attribute then_is = {"then_branch", LAC_ORT_GRAPH, NULL, 0, NULL};
static const ort_attribute else_is = {"else_branch", LAC_ORT_GRAPH, NULL, 0, NULL};
static const ort_node branch = {.op = "If",
                                .inputs = {&i_c},
                                .n_inputs = 1,
                                .implicit = {&i_r},
                                .n_implicit = 1,
                                .outputs = {&i_s},
                                .n_outputs = 1,
                                .attributes = {&then_is, &else_is},
                                .n_attributes = 2,
                                .bodies = {&then_body, &else_body},
                                .n_bodies = 2};
static const ort_node shape_of = {
    .op = "Shape", .inputs = {&i_s}, .n_inputs = 1, .outputs = {&i_shape}, .n_outputs = 1};
static const ort_node filled = {.op = "ConstantOfShape",
                                .inputs = {&i_shape},
                                .n_inputs = 1,
                                .outputs = {&i_z},
                                .n_outputs = 1,
                                .attributes = {&value},
                                .n_attributes = 1};
static const ort_node sum = {
    .op = "Add", .inputs = {&i_s, &i_z}, .n_inputs = 2, .outputs = {&i_y}, .n_outputs = 1};
static const ort_node *const all_nodes[] = {&conv0,    &relu,   &conv1, &branch,
                                            &shape_of, &filled, &sum};
static const ort_graph network = {.nodes = all_nodes,
                                  .n_nodes = 7,
                                  .inputs = {&i_u, &i_c},
                                  .n_inputs = 2,
                                  .outputs = {&i_y},
                                  .n_outputs = 1,
                                  .initializers = {&i_w0, &i_w1},
                                  .n_initializers = 2};
/* The node that stands for the nodes that the provider has taken. */
static const ort_node fused = {
    .op = "Part", .inputs = {&i_u, &i_c}, .n_inputs = 2, .outputs = {&i_y}, .n_outputs = 1};

static void fill_weights(void) {
  unsigned seed = 1;
  for (size_t k = 0; k < sizeof weights / sizeof(float); k++) {
    seed = seed * 1664525u + 1013904223u;
    bool kept = k / 9 % 4 < 2; /* the first two of every four input channels are kept */
    (&weights[0][0])[k] = kept ? (float)(seed >> 8) / (1 << 27) - 0.06f : 0;
  }
}

/* ---- Functions ---- */

static ort_status *host_create_status(int code, const char *text) {
  return make_status(code, text);
}
static const char *host_error_text(const ort_status *status) { return status->text; }
static void host_release_status(ort_status *status) {
  if (status) runtime.n_held--;
  free(status);
}

static ort_status *host_tensor_data(const ort_value *of, void **data) {
  MAY_FAIL();
  WANT(of);
  *data = of->data;
  return NULL;
}
static ort_status *host_tensor_of_type(const ort_type *type, const ort_shape **shape) {
  MAY_FAIL();
  WANT(type);
  *shape = &type->shape;
  return NULL;
}
static ort_status *host_kind_of_type(const ort_type *type, int *kind) {
  MAY_FAIL();
  WANT(type);
  *kind = LAC_ORT_TENSOR;
  return NULL;
}
static ort_status *host_element_type(const ort_shape *shape, int *type) {
  MAY_FAIL();
  WANT(shape);
  *type = shape->dtype;
  return NULL;
}
static ort_status *host_rank(const ort_shape *shape, size_t *rank) {
  MAY_FAIL();
  WANT(shape);
  *rank = shape->rank;
  return NULL;
}
static ort_status *host_sizes(const ort_shape *shape, int64_t *sizes, size_t n) {
  MAY_FAIL();
  WANT(shape && n <= shape->rank);
  memcpy(sizes, shape->sizes, n * sizeof *sizes);
  return NULL;
}
static ort_status *host_symbols(const ort_shape *shape, const char **names, size_t n) {
  MAY_FAIL();
  WANT(shape && n <= shape->rank);
  for (size_t k = 0; k < n; k++) names[k] = shape->symbols[k];
  return NULL;
}
static ort_status *host_tensor_shape(const ort_value *of, ort_shape **shape) {
  MAY_FAIL();
  WANT(of);
  *shape = __real_malloc(sizeof **shape);
  if (!*shape) return make_status(LAC_ORT_FAILS, "no memory of the host's");
  **shape = of->shape;
  runtime.n_held++;
  return NULL;
}
static void host_release_shape(ort_shape *shape) {
  if (shape) runtime.n_held--;
  free(shape);
}
static void host_release_value(ort_value *of) {
  if (of) runtime.n_held--;
}
static ort_status *host_kernel_input(const ort_kernel *kernel, size_t at, const ort_value **in) {
  MAY_FAIL();
  WANT(kernel && at < 2);
  *in = kernel->inputs[at];
  return NULL;
}
static ort_status *host_kernel_output(ort_kernel *kernel, size_t at, const int64_t *sizes,
                                      size_t rank, ort_value **out) {
  MAY_FAIL();
  WANT(kernel && at == 0 && rank == 4);
  size_t n = sizeof(float);
  for (size_t k = 0; k < rank; k++) n *= (size_t)sizes[k];
  free(kernel->output.data);
  kernel->output.data = __real_malloc(n);
  if (!kernel->output.data) return make_status(LAC_ORT_FAILS, "no memory of the host's");
  *out = &kernel->output;
  return NULL;
}
static const char *find_entry(const ort_session_options *options, const char *key) {
  for (int k = 0; k < 2; k++)
    if (options->keys[k] && strcmp(key, options->keys[k]) == 0) return options->values[k];
  return NULL;
}
static ort_status *host_has_entry(const ort_session_options *options, const char *key, int *has) {
  MAY_FAIL();
  WANT(options);
  *has = find_entry(options, key) != NULL;
  return NULL;
}
static ort_status *host_entry(const ort_session_options *options, const char *key, char *to,
                              size_t *n) {
  MAY_FAIL();
  WANT(options && find_entry(options, key));
  const char *found = find_entry(options, key);
  if (to) (void)snprintf(to, *n, "%s", found);
  *n = strlen(found) + 1;
  return NULL;
}
static ort_status *host_log(const ort_logger *logger, int level, const char *text, const char *file,
                            int line, const char *function) {
  MAY_FAIL();
  (void)level;
  (void)line;
  WANT(logger && text && file && function);
  return NULL;
}
static ort_status *host_read_attribute(const ort_attribute *attribute, int type, void *data,
                                       size_t size, size_t *needed) {
  MAY_FAIL();
  WANT(attribute && attribute->type == type);
  *needed = attribute->size;
  if (size < attribute->size) return make_status(LAC_ORT_BAD_ARGUMENT, "more room is needed");
  memcpy(data, attribute->data, attribute->size);
  return NULL;
}
static ort_status *host_parallel_for(const ort_kernel *kernel, void (*part)(void *, size_t),
                                     size_t n, size_t n_batches, void *context) {
  MAY_FAIL();
  (void)n_batches;
  WANT(kernel);
  for (size_t k = 0; k < n; k++) part(context, k);
  return NULL;
}
static ort_status *host_value_name(const ort_value_info *of, const char **name) {
  MAY_FAIL();
  WANT(of);
  *name = of->name;
  return NULL;
}
static ort_status *host_value_type(const ort_value_info *of, const ort_type **type) {
  MAY_FAIL();
  WANT(of);
  *type = &of->type;
  return NULL;
}
static int host_device_kind(const ort_device *device) { return device->kind; }
static const ort_slot *host_ep_table(void) { return runtime.for_providers; }
static ort_status *host_initializer(const ort_value_info *of, const ort_value **tensor) {
  MAY_FAIL();
  WANT(of);
  *tensor = of->constant;
  return NULL;
}
static ort_status *host_external(const ort_value_info *of, ort_external **where) {
  MAY_FAIL();
  WANT(of);
  *where = NULL;
  return NULL;
}
static ort_status *host_is_output(const ort_value_info *of, bool *is) {
  MAY_FAIL();
  WANT(of);
  *is = of->output;
  return NULL;
}
static ort_status *host_is_constant(const ort_value_info *of, bool *is) {
  MAY_FAIL();
  WANT(of);
  *is = of->constant != NULL;
  return NULL;
}
static ort_status *host_model_path(const ort_graph *graph, const char **path) {
  MAY_FAIL();
  WANT(graph);
  *path = NULL;
  return NULL;
}
static ort_status *host_ir_version(const ort_graph *graph, int64_t *version) {
  MAY_FAIL();
  WANT(graph);
  *version = 9;
  return NULL;
}
static ort_status *host_opsets(const ort_graph *graph, const char **domains, int64_t *versions,
                               size_t n) {
  MAY_FAIL();
  WANT(graph && n == 1);
  domains[0] = "";
  versions[0] = 17;
  return NULL;
}
static ort_status *host_parent(const ort_graph *graph, const ort_node **node) {
  MAY_FAIL();
  WANT(graph);
  *node = graph->parent;
  return NULL;
}

#define COUNT(name, owner, number)                             \
  static ort_status *host_##name(const owner *of, size_t *n) { \
    MAY_FAIL();                                                \
    WANT(of);                                                  \
    *n = number;                                               \
    return NULL;                                               \
  }
#define LIST(name, owner, item, from, number)                                  \
  static ort_status *host_##name(const owner *of, const item **to, size_t n) { \
    MAY_FAIL();                                                                \
    WANT(of &&n <= (number));                                                  \
    for (size_t k = 0; k < n; k++) to[k] = (from)[k];                          \
    return NULL;                                                               \
  }
#define COUNT_AND_LIST(name, owner, item, field) \
  COUNT(n_##name, owner, of->n_##field)          \
  LIST(name, owner, item, of->field, of->n_##field)
COUNT(n_opsets, ort_graph, 1)
COUNT_AND_LIST(inputs, ort_graph, ort_value_info, inputs)
COUNT_AND_LIST(outputs, ort_graph, ort_value_info, outputs)
COUNT_AND_LIST(initializers, ort_graph, ort_value_info, initializers)
COUNT_AND_LIST(nodes, ort_graph, ort_node, nodes)
COUNT_AND_LIST(node_inputs, ort_node, ort_value_info, inputs)
COUNT_AND_LIST(node_outputs, ort_node, ort_value_info, outputs)
COUNT_AND_LIST(node_implicit, ort_node, ort_value_info, implicit)
COUNT_AND_LIST(attributes, ort_node, ort_attribute, attributes)
COUNT(n_bodies, ort_node, of->n_bodies)

#define TEXT_OF_NODE(name, text)                                        \
  static ort_status *host_##name(const ort_node *of, const char **to) { \
    MAY_FAIL();                                                         \
    WANT(of);                                                           \
    *to = text;                                                         \
    return NULL;                                                        \
  }
TEXT_OF_NODE(node_name, of->op)
TEXT_OF_NODE(node_op, of->op)
TEXT_OF_NODE(node_domain, "")
TEXT_OF_NODE(node_provider, NULL)

static ort_status *host_bodies(const ort_node *node, const ort_graph **graphs, size_t n,
                               const char **attributes) {
  MAY_FAIL();
  WANT(node && n <= node->n_bodies);
  for (size_t k = 0; k < n; k++) {
    graphs[k] = node->bodies[k];
    attributes[k] = node->attributes[k]->name;
  }
  return NULL;
}
static ort_status *host_attribute_tensor(const ort_attribute *attribute, ort_value **tensor) {
  MAY_FAIL();
  WANT(attribute);
  *tensor = attribute->tensor;
  if (*tensor) runtime.n_held++;
  return NULL;
}
static ort_status *host_attribute_type(const ort_attribute *attribute, int *type) {
  MAY_FAIL();
  WANT(attribute);
  *type = attribute->type;
  return NULL;
}
static ort_status *host_attribute_name(const ort_attribute *attribute, const char **name) {
  MAY_FAIL();
  WANT(attribute);
  *name = attribute->name;
  return NULL;
}
/* Functions about weights in files; this network has none. */
static void host_release_external(ort_external *where) { (void)where; }
static const char *host_external_path(const ort_external *where) {
  (void)where;
  return NULL;
}
static int64_t host_external_offset(const ort_external *where) {
  (void)where;
  return 0;
}
static size_t host_external_size(const ort_external *where) {
  (void)where;
  return 0;
}

static ort_status *host_create_device(ort_factory *factory, const ort_device *device,
                                      const ort_pairs *metadata, const ort_pairs *options,
                                      ort_ep_device **made) {
  MAY_FAIL();
  (void)metadata;
  (void)options;
  WANT(factory && device);
  *made = __real_malloc(sizeof **made);
  runtime.n_held++;
  return *made ? NULL : make_status(LAC_ORT_FAILS, "no memory of the host's");
}
static void host_release_device(ort_ep_device *device) {
  if (device) runtime.n_held--;
  free(device);
}
static ort_status *host_fuse_nodes(ort_support *support, const ort_node *const *nodes, size_t n,
                                   const ort_fusion *how) {
  MAY_FAIL();
  WANT(support && how && n <= MOST_TAKEN);
  for (size_t k = 0; k < n; k++) support->nodes[k] = nodes[k];
  support->n = n;
  support->n_parts++;
  return NULL;
}
static ort_status *host_create_event(int kind, int32_t process, int32_t thread, const char *name,
                                     int64_t begin_us, int64_t us, const char *const *keys,
                                     const char *const *values, size_t n, ort_event **made) {
  MAY_FAIL();
  WANT(kind == LAC_ORT_KERNEL && process && thread && name && n == 4);
  for (size_t k = 0; k < n; k++) WANT(keys[k] && values[k]);
  *made = __real_malloc(sizeof **made);
  if (!*made) return make_status(LAC_ORT_FAILS, "no memory of the host's");
  **made = (ort_event){begin_us, us};
  runtime.n_held++;
  return NULL;
}
static void host_release_event(ort_event *event) {
  if (event) runtime.n_held--;
  free(event);
}
static ort_status *host_add_events(ort_events *to, const ort_event *const *events, size_t n) {
  MAY_FAIL();
  WANT(to && events);
  for (size_t k = 0; k < n; k++) to->last_us = events[k]->begin_us + events[k]->us;
  to->n += n;
  return NULL;
}
static bool host_has_shape(const ort_shape *shape) { return shape != NULL; }

/* ---- The tables ---- */

static const ort_slot *get_api(uint32_t version) {
  return version <= LAC_ORT_API ? runtime.table : NULL;
}
static const char *get_runtime_version(void) { return "1.32.0"; }
static const ort_base host = {get_api, get_runtime_version};

#define PUT(table, place, function) \
  memcpy(&(table)[place], &(ort_slot){(ort_slot)(function)}, sizeof(ort_slot))

static void start_runtime(void) {
  fill_weights();
#define LAC_ORT_SLOT(place, name, result, arguments) \
  {                                                  \
    result(*typed) arguments = host_##name;          \
    PUT(runtime.table, place, typed);                \
  }
#include "../../plugins/ort/slots.def"
#undef LAC_ORT_SLOT
  PUT(runtime.table, 390, host_has_shape);
  PUT(runtime.for_providers, 0, host_create_device);
  PUT(runtime.for_providers, 1, host_release_device);
  PUT(runtime.for_providers, 2, host_fuse_nodes);
  PUT(runtime.for_providers, 65, host_create_event);
  PUT(runtime.for_providers, 66, host_release_event);
  PUT(runtime.for_providers, 72, host_add_events);
  runtime.fail_at = runtime.n_calls = runtime.n_held = 0;
}

#endif
