/* SPDX-License-Identifier: Apache-2.0
 * Concat: copies its inputs, the parts of the result, one after the other along an axis.
 *
 * oneDNN can copy parts in any layout. If all parts are row-major, or in blocks of 8 or 16
 * channels, a part is one run of bytes in each image, and copying runs is quicker. Some networks
 * concatenate the same parts again with one more after them (DenseNet). Then the bytes of the first
 * Concat stay and only the new part is copied: it is concatenated in place.
 *
 *     Concat(a, b)       [ a | b ]
 *     Concat(a, b, c)    [ a | b | c ]      the same bytes, or Concat(Concat(a, b), c) */
#include <string.h>

#include "engine/cpu/lower/concat.h"
#include "engine/cpu/native/values.h"
#include "engine/cpu/native/native.h"
#include "graph/ops.h"
#include "cpu/pool.h"
#include "engine/cpu/onednn/onednn.h"

/* Maximum number of chunks into which a run of bytes is divided for the threads. */
enum { CHUNKS = 8 };

/* ---- Runs of bytes ---- */

/** A Concat as copies of bytes: an image of the result is one run of bytes of each part. */
typedef struct concat_parts {
  int n; /* number of parts */
  int64_t n_images;
  size_t image;           /* bytes of one image of the result */
  size_t *bytes, *offset; /* [n] bytes: size of one image of each part; offset: where it begins in
                             the image of the result */
} concat_parts;

typedef struct work {
  const laci_net *net;
  const laci_net_step *step;
} work;

static void copy_contiguous_parts(int64_t begin, int64_t end, void *context) {
  const work *w = context;
  const concat_parts *r = w->step->context;
  char *to = laci_net_tensor_data(w->net, w->step->tensors[r->n]);
  for (int64_t at = begin; at < end; at++) {
    int64_t chunk = at % CHUNKS, part = at / CHUNKS % r->n, image = at / CHUNKS / r->n;
    const char *from = laci_net_tensor_data(w->net, w->step->tensors[part]);
    size_t bytes = r->bytes[part], first = bytes / CHUNKS * (size_t)chunk;
    size_t n = chunk == CHUNKS - 1 ? bytes - first : bytes / CHUNKS;
    memcpy(to + (size_t)image * r->image + r->offset[part] + first,
           from + (size_t)image * bytes + first, n);
  }
}

static lac_status run_concat_by_copying(laci_net *net, laci_net_step *step, lac_error *err) {
  const concat_parts *r = step->context;
  work w = {.net = net, .step = step};
  (void)err;
  laci_pool_for(net->pool, r->n_images * r->n * CHUNKS, CHUNKS, copy_contiguous_parts, &w);
  return LAC_OK;
}

/* ---- A Concat that extends another ---- */

int64_t laci_concat_axis(const laci_net *net, const laci_node *node) {
  int64_t axis = laci_node_int(node, "axis", 1);
  return axis < 0 ? axis + laci_plan_shape(&net->plan, node->outputs[0])->rank : axis;
}

/** Returns how many inputs of the Concat `longer` are those that the Concat `shorter` joins; 0:
 * `longer` does not begin with all of these. */
static int count_shared_inputs(const laci_net *net, const laci_node *longer,
                               const laci_node *shorter) {
  if (longer->op != &laci_op_concat || shorter->op != &laci_op_concat) return 0;
  if (longer == shorter || laci_concat_axis(net, longer) != laci_concat_axis(net, shorter))
    return 0;
  if (longer->inputs[0] == shorter->outputs[0]) return 1;
  if (longer->n_inputs <= shorter->n_inputs) return 0;
  for (int at = 0; at < shorter->n_inputs; at++) {
    if (longer->inputs[at] != shorter->inputs[at]) return 0;
  }
  return shorter->n_inputs;
}

/** Returns the next node after node n that reads the value and is a Concat that extends n's result;
 * -1: there is none. In a recomputation that node must be recomputed, too. */
static int find_extending_reader(const laci_net *net, int n, int value) {
  const laci_graph *graph = net->plan.graph;
  const laci_value *v = &graph->values[value];
  int found = -1;
  for (int at = 0; at < v->n_readers; at++) {
    int reader = v->readers[at];
    if (reader <= n || !net->plan.computed[reader] || (found >= 0 && reader >= found)) continue;
    if (net->recomputing && !net->plan.fused[reader].recomputed) continue;
    if (count_shared_inputs(net, &graph->nodes[reader], &graph->nodes[n])) found = reader;
  }
  return found;
}

static int find_extending_concat(const laci_net *net, int n) {
  const laci_node *node = &net->plan.graph->nodes[n];
  int a = find_extending_reader(net, n, node->inputs[0]),
      b = find_extending_reader(net, n, node->outputs[0]);
  return a < 0 || (b >= 0 && b < a) ? b : a;
}

/** Returns the result tensor of the Concat whose buffer node n extends, and in *there how many of
 * n's inputs are in that buffer; -1: there is none. */
static int find_concat_to_extend(const laci_net *net, int n, int *there) {
  const laci_graph *graph = net->plan.graph;
  const laci_node *node = &graph->nodes[n];
  const laci_value *first = &graph->values[node->inputs[0]];
  for (int at = -1; at < first->n_readers; at++) {
    int earlier = at < 0 ? first->producer : first->readers[at];
    if (earlier < 0 || earlier >= n || !net->plan.computed[earlier]) continue;
    *there = count_shared_inputs(net, node, &graph->nodes[earlier]);
    if (*there == 0) continue;
    int tensor = net->plan.values[graph->nodes[earlier].outputs[0]].tensor;
    if (tensor >= 0 && net->buffers[net->tensors[tensor].buffer].continued_by == n + 1)
      return tensor;
  }
  *there = 0;
  return -1;
}

/* ---- Layouts of parts ---- */

/* Numbers of channels that a block of the result may have; 1: row-major. The functions below return
 * 0 for other layouts. */
static const int block_sizes[] = {LACI_NET_BLOCK, LACI_NET_BLOCK / 2, 1};
enum { N_BLOCK_SIZES = sizeof block_sizes / sizeof *block_sizes };

/** Makes a layout with blocks of `together` channels. NULL: the number of channels is no multiple
 * of that, or after a failure. */
static laci_layout *make_block_layout(laci_net *net, const laci_shape *shape, int together) {
  laci_layout *md = NULL;
  if (shape->rank != 4 || shape->dims[1] % together != 0) return NULL;
  if (together == 1) return laci_net_dense_layout(net, shape, laci_net_float_element(net));
  if (net->plan.status) return NULL;
  if (!laci_layout_create_blocks(&md, shape->dims, together, laci_net_float_element(net)))
    laci_plan_fail_no_memory(&net->plan);
  return md;
}

static int find_block_channels(laci_net *net, const laci_layout *md, const laci_shape *shape) {
  int together = 0;
  for (int at = 0; at < N_BLOCK_SIZES && together == 0; at++) {
    laci_layout *wanted = make_block_layout(net, shape, block_sizes[at]);
    if (wanted && md && laci_layout_equal(wanted, md)) together = block_sizes[at];
    laci_layout_destroy(wanted);
  }
  return together;
}

/** Returns the number of channels in a block of the layout md, to which native values (layouts of
 * our own kernels) are converted for reading; 0: md is no such layout. Frees md. */
static int find_native_block_channels(laci_net *net, laci_layout *md, const laci_shape *shape) {
  const int together = find_block_channels(net, md, shape);
  laci_layout_destroy(md);
  return together;
}

static int find_input_block_channels(laci_net *net, int tensor) {
  if (net->plan.status || tensor < 0) return 0;
  const laci_net_tensor t = net->tensors[tensor];
  if (t.native)
    return find_native_block_channels(net, laci_native_onednn_layout(net, tensor), &t.shape);
  return t.partial ? 0 : find_block_channels(net, t.md, &t.shape);
}

/** Does some reader read the value in a native layout (of our own kernels)? */
static bool is_read_in_native_layout(const laci_net *net, int value) {
  const laci_value *v = &net->plan.graph->values[value];
  for (int at = 0; at < v->n_readers; at++) {
    const int written = net->plan.fused[v->readers[at]].output;
    if (written >= 0 && laci_native_is_value_used(net, written)) return true;
  }
  return false;
}

/** How a Concat's result is stored. */
typedef struct join_plan {
  int waiting;  /* tensor of an earlier Concat whose buffer the result extends; -1: none */
  int there;    /* number of inputs that are in the buffer of that tensor already */
  int together; /* number of channels in a block of the result; 0: parts have different layouts, or
                   some part cannot have that layout */
} join_plan;

static int tensor_of_input(const laci_net *net, const laci_node *node, int at) {
  return net->plan.values[node->inputs[at]].tensor;
}

/** Chooses the number of channels in a block of a new result: that which native readers need, or
 * that of the first part in a layout of oneDNN, or that to which native parts are converted. */
static int choose_block_channels(laci_net *net, const laci_node *node, bool to_native) {
  int from_native = 0;
  if (to_native) {
    const laci_shape *shape = laci_plan_shape(&net->plan, node->outputs[0]);
    return find_native_block_channels(net, laci_native_onednn_layout_of_shape(net, shape), shape);
  }
  for (int at = 0; at < node->n_inputs; at++) {
    const int part = tensor_of_input(net, node, at),
              together = find_input_block_channels(net, part);
    if (part < 0 || !net->tensors[part].native) return together;
    if (at == 0) from_native = together;
  }
  return from_native;
}

/** Decides how the result of node n is stored. The inputs may be reordered if they come from native
 * layouts, if the result is read in one, or if it extends that of another Concat. */
static join_plan plan_result_storage(laci_net *net, int n) {
  const laci_node *node = &net->plan.graph->nodes[n];
  join_plan j = {.there = 0};
  j.waiting = find_concat_to_extend(net, n, &j.there);
  const bool to_native = is_read_in_native_layout(net, node->outputs[0]);
  const bool reorders = j.waiting >= 0 || to_native;
  j.together = j.waiting >= 0 ? find_input_block_channels(net, j.waiting)
                              : choose_block_channels(net, node, to_native);
  for (int at = j.there; at < node->n_inputs && j.together > 0; at++) {
    const int part = tensor_of_input(net, node, at);
    const laci_shape *shape = laci_plan_shape(&net->plan, node->inputs[at]);
    const bool fits = part >= 0 && shape->rank == 4 && shape->dims[1] % j.together == 0;
    const bool same_layout = fits && (reorders || net->tensors[part].native ||
                                      find_input_block_channels(net, part) == j.together);
    if (!same_layout) j.together = 0;
  }
  return j;
}

/* ---- Building ---- */

/** Returns the tensor of the result, in a new buffer or in that of j->waiting, which is extended in
 * place. */
static int make_result_tensor(laci_net *net, int n, const join_plan *j) {
  const laci_shape *y = laci_plan_shape(&net->plan, net->plan.graph->nodes[n].outputs[0]);
  laci_layout *md = make_block_layout(net, y, j->together);
  size_t bytes = md ? laci_layout_bytes(md) : 0;
  int buffer = j->waiting >= 0 ? net->tensors[j->waiting].buffer
                               : laci_net_buffer_new(net, LACI_PLACE_ARENA, bytes);
  int to = laci_net_tensor_new(net, y, laci_net_float_element(net), md, buffer);
  if (to < 0) return -1;
  net->buffers[buffer].bytes = bytes;
  net->buffers[buffer].continued_by = y->dims[0] == 1 ? find_extending_concat(net, n) + 1 : 0;
  return to;
}

/** Adds a step that copies the inputs from number j->there on, which all have the result's layout,
 * to their places after the inputs that are in the buffer already. */
static void add_copy_step(laci_net *net, const laci_fused *fused, const int *parts,
                          const join_plan *j) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  int n = node->n_inputs - j->there;
  concat_parts *r = laci_plan_alloc(&net->plan, 1, sizeof *r);
  int *tensors = laci_plan_alloc(&net->plan, (size_t)n + 1, sizeof *tensors);
  int to = make_result_tensor(net, fused->node, j);
  if (net->plan.status) return;
  const laci_shape *y = &net->tensors[to].shape;
  *r = (concat_parts){.n = n, .n_images = y->dims[0]};
  r->image = laci_layout_bytes(net->tensors[to].md) / (size_t)y->dims[0];
  r->bytes = laci_plan_alloc(&net->plan, (size_t)n, sizeof *r->bytes);
  r->offset = laci_plan_alloc(&net->plan, (size_t)n, sizeof *r->offset);
  if (net->plan.status) return;
  size_t offset = 0;
  if (j->waiting >= 0) offset = laci_layout_bytes(net->tensors[j->waiting].md);
  for (int at = 0; at < n; at++) {
    tensors[at] = parts[j->there + at];
    r->bytes[at] = laci_layout_bytes(net->tensors[tensors[at]].md) / (size_t)r->n_images;
    r->offset[at] = offset;
    offset += r->bytes[at];
  }
  tensors[n] = to;
  laci_net_step *step = laci_net_step_add_code(net, node, run_concat_by_copying, n + 1, tensors);
  if (!step) return;
  step->what = j->waiting >= 0 ? "Concat, new parts" : "Concat";
  step->context = r;
  step->shown = to;
  laci_net_bind_value(net, fused->output, to);
}

static void add_concat_step(laci_net *net, const laci_fused *fused, int axis, const int *parts) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  size_t n = (size_t)node->n_inputs;
  const laci_layout **sources = laci_plan_alloc(&net->plan, n, sizeof *sources);
  int(*args)[2] = laci_plan_alloc(&net->plan, n + 1, sizeof *args);
  laci_primitive *pd = NULL;
  laci_layout *md = NULL;
  if (net->plan.status) return;
  for (size_t at = 0; at < n; at++) {
    args[at][0] = LACI_ARG_MULTIPLE_SRC + (int)at;
    args[at][1] = parts[at];
    sources[at] = net->tensors[parts[at]].md;
  }
  lac_status st = laci_primitive_describe_concat(&pd, net->onednn, (int)n, axis, sources);
  if (!laci_net_check_status(net, st, "concatenation")) return;
  const laci_layout *dst = laci_primitive_layout(pd, LACI_ARG_DST);
  if (!laci_layout_create_copy(&md, dst)) laci_plan_fail_no_memory(&net->plan);
  int to = laci_net_tensor_new(net, laci_plan_shape(&net->plan, fused->output),
                               laci_net_float_element(net), md,
                               laci_net_buffer_new(net, LACI_PLACE_ARENA, laci_layout_bytes(dst)));
  args[n][0] = LACI_ARG_DST;
  args[n][1] = to;
  laci_net_step_add(net, fused, pd, (int)n + 1, (const int(*)[2])args);
  laci_net_bind_value(net, fused->output, to);
}

static bool has_float_inputs(const laci_net *net, const laci_fused *fused) {
  return laci_plan_is_float(&net->plan, fused->output) &&
         laci_plan_shape(&net->plan, fused->output)->rank >= 1;
}

static bool can_lower_concat_by_copying(laci_net *net, const laci_fused *fused, const char **why) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  *why = "parts in different layouts";
  if (!has_float_inputs(net, fused) || laci_concat_axis(net, node) != 1) return false;
  return plan_result_storage(net, fused->node).together > 0;
}

static bool can_lower_concat_by_onednn(laci_net *net, const laci_fused *fused, const char **why) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  *why = has_float_inputs(net, fused) ? "more inputs than oneDNN joins" : "integers";
  return has_float_inputs(net, fused) && node->n_inputs <= LACI_MOST_SOURCES;
}

/** Returns the tensors of the inputs [first, n_inputs). A tensor that is a part of another one is
 * copied first. NULL after a failure. */
static int *read_input_tensors(laci_net *net, const laci_node *node, int first) {
  int *parts = laci_plan_alloc(&net->plan, (size_t)node->n_inputs, sizeof *parts);
  for (int at = first; at < node->n_inputs && parts; at++) {
    parts[at] = laci_net_make_whole_tensor(net, laci_net_read_value(net, node->inputs[at]));
  }
  return net->plan.status ? NULL : parts;
}

static void lower_concat_by_copying(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  const join_plan j = plan_result_storage(net, fused->node);
  int *parts = read_input_tensors(net, node, j.there);
  for (int at = j.there; at < node->n_inputs && parts; at++) {
    laci_layout *md =
        make_block_layout(net, laci_plan_shape(&net->plan, node->inputs[at]), j.together);
    parts[at] = laci_net_convert_tensor(net, parts[at], md, laci_net_float_element(net));
    laci_layout_destroy(md);
  }
  if (parts && !net->plan.status) add_copy_step(net, fused, parts, &j);
}

static void lower_concat_by_onednn(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  int *parts = read_input_tensors(net, node, 0);
  if (parts) add_concat_step(net, fused, (int)laci_concat_axis(net, node), parts);
}

const laci_implementation laci_implementations_concat[] = {
    {"sparse kernels", LACI_FUSIBLE_NOTHING, laci_can_lower_native, laci_lower_native},
    {"runs of bytes", LACI_FUSIBLE_NOTHING, can_lower_concat_by_copying, lower_concat_by_copying},
    {"short rows", LACI_FUSIBLE_NOTHING, laci_can_lower_concat_rows, laci_lower_concat_rows},
    {"oneDNN's", LACI_FUSIBLE_NOTHING, can_lower_concat_by_onednn, lower_concat_by_onednn},
    {.name = NULL},
};
