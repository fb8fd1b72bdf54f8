/* SPDX-License-Identifier: Apache-2.0
 * Pads of zeros, and the convolutions and pools that they are merged into.
 *
 * Some exporters write the padding of a convolution as a separate node before it. The convolution
 * can have the pads in its own window, at no cost. The plan then uses a copy of the graph, in which
 * the convolution reads what the Pad reads. The Pad stays in the copy, but is not computed. This is
 * also done where a quantized network rounds the Pad's output with the same scale as its input, and
 * for a MaxPool over values that are never below zero. */
#include <string.h>

#include "base/error.h"
#include "engine/cpu/plan/plan.h"
#include "graph/ops.h"
#include "tensor/buf.h"

/* ---- Pads of a Pad node ---- */

/** Reads the pads of a Pad, whatever it fills with; false: they are not constant. */
static bool read_pad_list(laci_cpu_plan *plan, const laci_node *node, bool inputs, int rank,
                          laci_pads *pads) {
  size_t n = 0;
  const int64_t *list = inputs ? NULL : laci_node_ints(node, "pads", &n);
  laci_buf *buf = NULL;
  if (inputs && laci_plan_has_input(node, 1)) {
    buf = laci_plan_copy_constant(plan, node->inputs[1]);
    list = buf ? buf->i : NULL;
    n = buf ? (size_t)buf->count : 0;
  }
  bool known = list && n == 2 * (size_t)rank;
  for (int axis = 0; axis < rank && known; axis++) {
    pads->before[axis] = list[axis];
    pads->after[axis] = list[axis + rank];
  }
  laci_buf_destroy(buf);
  return known;
}

bool laci_plan_read_pads(laci_cpu_plan *plan, const laci_node *node, laci_pads *pads) {
  const bool inputs = node->version >= 11 || node->version == 0;
  return !laci_plan_has_input(node, 3) &&
         read_pad_list(plan, node, inputs, laci_plan_shape(plan, node->inputs[0])->rank, pads);
}

bool laci_plan_read_zero_pads(laci_cpu_plan *plan, const laci_node *node, laci_pads *pads) {
  const int rank = laci_plan_shape(plan, node->inputs[0])->rank;
  const bool inputs = node->version >= 11 || node->version == 0;
  double fill = inputs ? 0 : laci_node_float(node, "value", 0);
  if (strcmp(laci_node_text(node, "mode", "constant"), "constant") != 0 || rank < 1) return false;
  if (!laci_plan_is_float(plan, node->inputs[0]) || laci_plan_has_input(node, 3)) return false;
  if (inputs && laci_plan_has_input(node, 2) &&
      !laci_plan_read_scalar(plan, node->inputs[2], &fill))
    return false;
  return fill == 0 && read_pad_list(plan, node, inputs, rank, pads);
}

/* ---- Windows on pads alone ---- */

bool laci_plan_window_may_be_all_padding(const laci_cpu_plan *plan, const laci_node *node) {
  if (node->outputs[0] < 0) return false;
  const laci_shape *x = laci_plan_shape(plan, node->inputs[0]);
  const laci_shape *y = laci_plan_shape(plan, node->outputs[0]);
  size_t n_pads, n_kernel, n;
  const int64_t *pads = laci_node_ints(node, "pads", &n_pads);
  const int64_t *kernel = laci_node_ints(node, "kernel_shape", &n_kernel);
  const int64_t *dilations = laci_node_ints(node, "dilations", &n);
  const int64_t *strides = laci_node_ints(node, "strides", &n);
  const bool given = strcmp(laci_node_text(node, "auto_pad", "NOTSET"), "NOTSET") == 0;
  for (int at = 0; kernel && at < (int)n_kernel && at + 2 < x->rank; at++) {
    const int64_t in = x->dims[at + 2], step = dilations ? dilations[at] : 1;
    const int64_t before = given && pads ? pads[at] : 0, stride = strides ? strides[at] : 1;
    const int64_t reach = (kernel[at] - 1) * step + 1;
    if (before >= reach || (y->dims[at + 2] - 1) * stride - before >= in) return true;
    if (step > in && kernel[at] > 1)
      return true; /* the dilation is larger than the image, so that
                                                     all elements of the window may be outside */
  }
  return false;
}

/* ---- Windows that can include the pads ---- */

static bool is_observed(const laci_cpu_plan *plan, int value) {
  for (int at = 0; at < plan->observer.n_values; at++) {
    if (plan->observer.values[at] == value) return true;
  }
  return plan->graph->values[value].is_output;
}

/** Returns the rows and columns of the node's window; NULL: not known. */
static const int64_t *find_window_size(const laci_cpu_plan *plan, const laci_node *node,
                                       int n_spatial) {
  size_t n = 0;
  if (node->op == &laci_op_conv) return laci_plan_shape(plan, node->inputs[1])->dims + 2;
  const int64_t *kernel = laci_node_ints(node, "kernel_shape", &n);
  return n == (size_t)n_spatial ? kernel : NULL;
}

/** Adds `pads` to the window's own pads, as the attribute "pads"; false: pads are along other axes,
 * or wider than the window. */
static bool add_to_window_pads(const laci_cpu_plan *plan, const laci_node *node,
                               const laci_pads *pads, int64_t sums[2 * LACI_MAX_RANK]) {
  const int n_spatial = laci_plan_shape(plan, node->inputs[0])->rank - 2;
  const char *automatic = laci_node_text(node, "auto_pad", "NOTSET");
  size_t n;
  const int64_t *own = laci_node_ints(node, "pads", &n);
  const int64_t *dilations = laci_node_ints(node, "dilations", &n);
  const int64_t *kernel = find_window_size(plan, node, n_spatial);
  if (strcmp(automatic, "VALID") == 0) own = NULL;
  else if (strcmp(automatic, "NOTSET") != 0) return false;
  if (pads->before[0] || pads->after[0] || pads->before[1] || pads->after[1]) return false;
  for (int at = 0; at < n_spatial; at++) {
    if (!kernel) return false;
    const int64_t reach = (kernel[at] - 1) * (dilations ? dilations[at] : 1) + 1;
    const int64_t added[] = {pads->before[at + 2], pads->after[at + 2]};
    for (int end = 0; end < 2; end++) {
      int64_t *sum = &sums[at + end * n_spatial];
      *sum = own ? own[at + end * n_spatial] : 0;
      if (*sum < 0 || *sum >= reach || added[end] < 0 || added[end] >= reach - *sum) return false;
      *sum += added[end];
    }
  }
  return true;
}

/** Does the node read the value as the data of a convolution, and as nothing else? */
static bool is_convolution_data(const laci_node *node, int value) {
  bool only = node->op == &laci_op_conv && node->inputs[0] == value;
  for (int at = 1; at < node->n_inputs; at++) only = only && node->inputs[at] != value;
  return only;
}

/** Is the value never below zero, as the result of a Relu or Clip? */
static bool is_nonnegative(laci_cpu_plan *plan, int value) {
  const int producer = plan->graph->values[value].producer;
  const laci_node *node = producer < 0 ? NULL : &plan->graph->nodes[producer];
  laci_function clip;
  if (!node) return false;
  if (node->op == &laci_op_relu || node->op == &laci_op_sigmoid) return true;
  return node->op == &laci_op_clip && laci_function_from_clip(plan, node, 1, &clip) &&
         clip.alpha >= 0;
}

/** Is it a MaxPool whose results do not change if zeros around values that are never below zero
 * become its own padding? Every window then covers a pixel, since no pads are as wide as the
 * window. */
static bool can_pool_with_pads(laci_cpu_plan *plan, const laci_node *node, int from) {
  size_t n = 0;
  const int64_t *dilations = laci_node_ints(node, "dilations", &n);
  for (size_t at = 0; dilations && at < n; at++) {
    if (dilations[at] != 1) return false;
  }
  const bool alone = node->n_outputs < 2 || node->outputs[1] < 0;
  return node->op == &laci_op_max_pool && alone && laci_node_int(node, "ceil_mode", 0) == 0 &&
         is_nonnegative(plan, from);
}

/** Returns the only reader of a value that is neither an output nor observed; NULL: there is
 * none. */
static const laci_node *find_only_reader(const laci_cpu_plan *plan, int value) {
  const laci_value *v = value < 0 ? NULL : &plan->graph->values[value];
  if (!v || v->n_readers != 1 || is_observed(plan, value)) return NULL;
  return &plan->graph->nodes[v->readers[0]];
}

/** If the Pad's result is quantized again with the parameters with which its input was dequantized,
 * returns the value that is dequantized after that: it has the same numbers and zeros. Else returns
 * the Pad's result. */
static int find_value_after_quantization(laci_cpu_plan *plan, const laci_node *pad) {
  const int out = pad->outputs[0], before = plan->graph->values[pad->inputs[0]].producer;
  const laci_node *from = before < 0 ? NULL : &plan->graph->nodes[before];
  const laci_node *to = find_only_reader(plan, out);
  if (!from || from->op != &laci_op_dequantize_linear || !to ||
      to->op != &laci_op_quantize_linear || to->inputs[0] != out) {
    return out;
  }
  const laci_node *again = find_only_reader(plan, to->outputs[0]);
  if (!again || again->op != &laci_op_dequantize_linear || again->inputs[0] != to->outputs[0] ||
      again->outputs[0] < 0) {
    return out;
  }
  const lac_dtype dtype = plan->values[from->inputs[0]].type.dtype;
  const bool same = plan->values[to->outputs[0]].type.dtype == dtype &&
                    laci_plan_is_same_quantization(plan, from, to) &&
                    laci_plan_is_same_quantization(plan, to, again);
  return same ? again->outputs[0] : out;
}

/** A Pad that can be merged into the windows that read it. */
typedef struct joinable_pad {
  laci_pads pads;
  int from, to; /* values: `from` is what the Pad reads, `to` what the windows read */
} joinable_pad;

/** Is the Pad read only by windows into which it can be merged? */
static bool can_merge_pad(laci_cpu_plan *plan, const laci_node *node, joinable_pad *j) {
  const laci_graph *graph = plan->graph;
  int64_t sums[2 * LACI_MAX_RANK];
  if (node->op != &laci_op_pad || node->outputs[0] < 0) return false;
  *j = (joinable_pad){.from = node->inputs[0], .to = find_value_after_quantization(plan, node)};
  const laci_value *to = &graph->values[j->to];
  if (is_observed(plan, j->to) || laci_plan_is_constant(plan, j->to) || to->n_readers == 0 ||
      !laci_plan_has_elements(plan, node) || !laci_plan_read_zero_pads(plan, node, &j->pads)) {
    return false;
  }
  for (int at = 0; at < to->n_readers; at++) {
    const laci_node *reader = &graph->nodes[to->readers[at]];
    if (!is_convolution_data(reader, j->to) && !can_pool_with_pads(plan, reader, j->from))
      return false;
    if (reader->body != node->body || !add_to_window_pads(plan, reader, &j->pads, sums))
      return false;
  }
  return true;
}

/* ---- The copy ---- */

static laci_graph *copy_graph(laci_cpu_plan *plan) {
  const laci_graph *graph = plan->graph;
  laci_graph *copy = laci_plan_alloc(plan, 1, sizeof *copy);
  laci_node *nodes = laci_plan_alloc(plan, (size_t)graph->n_nodes, sizeof *nodes);
  laci_value *values = laci_plan_alloc(plan, (size_t)graph->n_values, sizeof *values);
  if (plan->status) return NULL;
  *copy = *graph;
  copy->nodes = memcpy(nodes, graph->nodes, (size_t)graph->n_nodes * sizeof *nodes);
  copy->values = memcpy(values, graph->values, (size_t)graph->n_values * sizeof *values);
  return copy;
}

/** Replaces the node's attribute "pads". */
static void set_pads_attribute(laci_cpu_plan *plan, laci_node *node, int n, const int64_t *sums) {
  laci_attr *attrs = laci_plan_alloc(plan, (size_t)node->n_attrs + 1, sizeof *attrs);
  int64_t *pads = laci_plan_alloc(plan, (size_t)n, sizeof *pads);
  int n_attrs = 0;
  if (plan->status) return;
  for (int at = 0; at < node->n_attrs; at++) {
    const char *name = node->attrs[at].name;
    if (strcmp(name, "pads") == 0 || strcmp(name, "auto_pad") == 0) continue;
    attrs[n_attrs++] = node->attrs[at];
  }
  attrs[n_attrs++] = laci_attr_ints("pads", n, memcpy(pads, sums, (size_t)n * sizeof *pads));
  node->attrs = attrs;
  node->n_attrs = n_attrs;
}

static void replace_input(laci_cpu_plan *plan, laci_node *node, int value) {
  int *inputs = laci_plan_alloc(plan, (size_t)node->n_inputs, sizeof *inputs);
  if (plan->status) return;
  memcpy(inputs, node->inputs, (size_t)node->n_inputs * sizeof *inputs);
  inputs[0] = value;
  node->inputs = inputs;
}

/** Makes the readers of `from` readers of `to`. The list stays sorted, with each reader once. */
static void move_readers(laci_cpu_plan *plan, laci_value *to, laci_value *from) {
  int *readers =
      laci_plan_alloc(plan, (size_t)to->n_readers + (size_t)from->n_readers, sizeof *readers);
  int n = 0, a = 0, b = 0;
  if (plan->status) return;
  while (a < to->n_readers || b < from->n_readers) {
    bool first = b == from->n_readers || (a < to->n_readers && to->readers[a] <= from->readers[b]);
    int reader = first ? to->readers[a++] : from->readers[b++];
    if (n == 0 || readers[n - 1] != reader) readers[n++] = reader;
  }
  to->readers = readers;
  to->n_readers = n;
  from->n_readers = 0;
}

static void merge_pad(laci_cpu_plan *plan, laci_graph *graph, const joinable_pad *j) {
  laci_value *to = &graph->values[j->to];
  for (int at = 0; at < to->n_readers && !plan->status; at++) {
    laci_node *node = &graph->nodes[to->readers[at]];
    int64_t sums[2 * LACI_MAX_RANK];
    if (!add_to_window_pads(plan, node, &j->pads, sums)) continue;
    set_pads_attribute(plan, node, 2 * (laci_plan_shape(plan, j->from)->rank - 2), sums);
    replace_input(plan, node, j->from);
  }
  move_readers(plan, &graph->values[j->from], to);
}

lac_status laci_plan_merge_pads(laci_cpu_plan *plan, lac_error *err) {
  laci_graph *copy = NULL;
  joinable_pad j;
  for (int n = 0; n < plan->graph->n_nodes && !plan->status; n++) {
    if (!can_merge_pad(plan, &plan->graph->nodes[n], &j)) continue;
    if (!copy) copy = copy_graph(plan);
    if (!copy) return laci_fail_memory(err, "the plan's copy of the network");
    merge_pad(plan, copy, &j);
    plan->graph = copy;
  }
  return plan->status;
}
