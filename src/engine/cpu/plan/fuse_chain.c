/* SPDX-License-Identifier: Apache-2.0
 * The rules by which nodes are fused to the node before them; fuse.c has the table.
 *
 *     Conv -> batch norm or constants along the channels      into weights and bias
 *          -> Relu, Clip, x * number + number ...             functions
 *          -> swish, gelu (fuse_formula.c), hard swish        one function
 *          -> + another value                                 a sum */
#include <math.h>

#include "base/memory.h"
#include "engine/cpu/plan/plan.h"
#include "graph/ops.h"

/** Returns the only reader of the fused node's output, if it reads it once; -1: there is none that
 * can be fused. */
static int find_only_reader(const laci_cpu_plan *plan, const laci_fused *fused) {
  if (!laci_plan_is_float(plan, fused->output)) return -1;
  return laci_plan_find_only_reader(plan, fused->output);
}

/** Finds the two readers of the fused node's output, each of which reads it once. */
static bool find_two_readers(const laci_cpu_plan *plan, const laci_fused *fused, int readers[2]) {
  return laci_plan_is_float(plan, fused->output) &&
         laci_plan_find_readers(plan, fused->output, readers) == 2 &&
         laci_plan_count_uses(plan, fused->output) == 2;
}

/* ---- Scales and shifts of channels ---- */

typedef struct affine {
  float *scale, *shift; /* [channels] the result y becomes scale * y + shift */
} affine;

bool laci_plan_read_norm_scales(laci_cpu_plan *plan, const laci_node *node, int64_t channels,
                                float *scales, float *shifts) {
  const float *p[5] = {0};
  for (int at = 1; at < 5; at++) {
    if (!laci_plan_has_input(node, at) || laci_plan_shape(plan, node->inputs[at])->rank != 1)
      return false;
    if (laci_plan_shape(plan, node->inputs[at])->dims[0] != channels) return false;
    p[at] = laci_plan_constant_floats(plan, node->inputs[at]);
    if (!p[at]) return false;
  }
  double epsilon = laci_node_float(node, "epsilon", 1e-5f);
  for (int64_t c = 0; c < channels; c++) {
    double scale = p[1][c] / sqrt((double)p[4][c] + epsilon);
    scales[c] = (float)scale;
    shifts[c] = (float)(p[2][c] - p[3][c] * scale);
  }
  return true;
}

/** Is the constant one number, or one number for each channel of axis `axis` of `rank`? */
static bool is_along_channels(const laci_cpu_plan *plan, int value, int rank, int axis,
                              int64_t channels) {
  const laci_shape *s = laci_plan_shape(plan, value);
  int64_t count = laci_shape_count(s);
  if (s->rank > rank) return false;
  if (count == 1) return true;
  int at = axis - (rank - s->rank);
  return at >= 0 && count == channels && s->dims[at] == channels;
}

/** Finds scale and shift of y = x op c, or c op x if not `left`, for one channel. False: y is no
 * scaled and shifted x. */
static bool find_affine_of_number(const laci_op *op, bool left, float c, float *scale,
                                  float *shift) {
  *scale = 1;
  *shift = 0;
  if (op == &laci_op_add) *shift = c;
  if (op == &laci_op_mul) *scale = c;
  if (op == &laci_op_div) *scale = 1 / c;
  if (op == &laci_op_sub) {
    *scale = left ? 1 : -1;
    *shift = left ? -c : c;
  }
  return op != &laci_op_div || (left && c != 0);
}

/** Finds scales and shifts of y = x op c or c op x, for a constant c along the channels. */
static bool find_affine_of_constant(laci_cpu_plan *plan, const laci_node *node,
                                    const laci_fused *fused, int axis, affine *out) {
  const laci_op *op = node->op;
  bool known = op == &laci_op_add || op == &laci_op_sub || op == &laci_op_mul || op == &laci_op_div;
  int rank = laci_plan_shape(plan, fused->output)->rank;
  if (!known || node->n_inputs != 2) return false;
  bool left = node->inputs[0] == fused->output; /* x is the left operand */
  int other = node->inputs[left];
  if (op == &laci_op_div && !left) return false;
  if (!laci_plan_is_constant(plan, other)) return false;
  if (!is_along_channels(plan, other, rank, axis, fused->channels)) return false;
  const float *c = laci_plan_constant_floats(plan, other);
  if (!c) return false;
  bool single = plan->values[other].constant->count == 1;
  for (int64_t at = 0; at < fused->channels; at++) {
    float x = c[single ? 0 : at];
    if (!find_affine_of_number(op, left, x, &out->scale[at], &out->shift[at])) return false;
  }
  return true;
}

bool laci_plan_is_inference_norm(const laci_node *node) {
  if (node->op != &laci_op_batch_normalization || node->n_inputs < 5) return false;
  if (node->version < 9 && laci_node_int(node, "spatial", 1) == 0) return false;
  if (node->version >= 14 && laci_node_int(node, "training_mode", 0) != 0) return false;
  for (int at = 1; at < node->n_outputs; at++) {
    if (node->outputs[at] >= 0) return false;
  }
  return true;
}

int laci_plan_channel_axis(const laci_node *node, int rank) {
  const bool convolution = node->op == &laci_op_conv || node->op == &laci_op_conv_transpose;
  return convolution && rank > 1 ? 1 : rank - 1;
}

static bool fuse_channel_scale(laci_cpu_plan *plan, laci_fused *fused, const laci_node *next) {
  const laci_node *node = &plan->graph->nodes[fused->node];
  int rank = laci_plan_shape(plan, fused->output)->rank;
  int axis = laci_plan_channel_axis(node, rank);
  size_t n = (size_t)fused->channels;
  affine a = {.scale = laci_alloc(n, sizeof(float)), .shift = laci_alloc(n, sizeof(float))};
  bool whole = a.scale && a.shift, fits = whole && axis >= 0;
  if (!whole)
    laci_plan_fail_no_memory(plan); /* the plan fails, since an unfused sum would be rounded
                                       differently */
  if (fits && laci_plan_is_inference_norm(next)) {
    fits = axis == 1 && next->inputs[0] == fused->output &&
           laci_plan_read_norm_scales(plan, next, fused->channels, a.scale, a.shift);
  } else if (fits) {
    fits = find_affine_of_constant(plan, next, fused, axis, &a);
  }
  if (fits && !fused->scale) {
    fused->scale = laci_plan_alloc(plan, n, sizeof(float));
    fused->shift = laci_plan_alloc(plan, n, sizeof(float));
    fits = fused->scale && fused->shift;
    for (size_t at = 0; fits && at < n; at++) fused->scale[at] = 1;
  }
  for (size_t at = 0; fits && at < n; at++) {
    fused->scale[at] *= a.scale[at];
    fused->shift[at] = fused->shift[at] * a.scale[at] + a.shift[at];
  }
  laci_free(a.scale);
  laci_free(a.shift);
  return fits;
}

bool laci_fuse_scale(laci_cpu_plan *plan, laci_fused *fused) {
  int next = find_only_reader(plan, fused);
  if (next < 0 || fused->channels < 1 || fused->n_posts > 0) return false;
  if (!fuse_channel_scale(plan, fused, &plan->graph->nodes[next])) return false;
  laci_fused_append(plan, fused, next);
  return true;
}

/* ---- Functions ---- */

/** Is there another post of the same kind? oneDNN 2.6 then applies the parameters of the first to
 * both. */
static bool has_other_post_of_kind(const laci_fused *fused, const laci_function *f) {
  for (int at = 0; at < fused->n_posts; at++) {
    const laci_function *have = &fused->posts[at].function;
    if (fused->posts[at].value >= 0 || have->kind != f->kind) continue;
    if (have->alpha != f->alpha || have->beta != f->beta) return true;
  }
  return false;
}

/** Is it a function that oneDNN 2.6's convolutions on 64-bit ARM omit as a post? As a primitive of
 * its own it is correct. */
static bool is_omitted_by_onednn(const laci_function *f) {
#ifdef __aarch64__
  return f->kind == LACI_FUNCTION_HARDSWISH;
#else
  (void)f;
  return false;
#endif
}

bool laci_fused_append_functions(laci_fused *fused, int n, const laci_function *functions) {
  laci_fused longer = *fused;
  for (int at = 0; at < n; at++) {
    laci_function f = functions[at];
    laci_post *last = longer.n_posts > 0 ? &longer.posts[longer.n_posts - 1] : NULL;
    if (last && last->value < 0 && last->function.kind == LACI_FUNCTION_LINEAR &&
        f.kind == LACI_FUNCTION_LINEAR) {
      f.beta += f.alpha * last->function.beta;
      f.alpha *= last->function.alpha;
      longer.n_posts--;
    }
    if (longer.n_posts == LACI_FUSED_MAX_POSTS || has_other_post_of_kind(&longer, &f)) return false;
    if (is_omitted_by_onednn(&f)) return false;
    longer.posts[longer.n_posts++] = (laci_post){.value = -1, .function = f};
  }
  *fused = longer;
  return true;
}

bool laci_fuse_function(laci_cpu_plan *plan, laci_fused *fused) {
  int next = find_only_reader(plan, fused), input;
  laci_function f[2];
  if (next < 0) return false;
  const laci_node *node = &plan->graph->nodes[next];
  int n = laci_find_node_functions(plan, node, &input, f);
  if (n == 0 || node->inputs[input] != fused->output) return false;
  if (!laci_shape_equal(laci_plan_shape(plan, fused->output),
                        laci_plan_shape(plan, node->outputs[0])))
    return false;
  if (!laci_fused_append_functions(fused, n, f)) return false;
  laci_fused_append(plan, fused, next);
  return true;
}

/** Is the node the product of both values? */
static bool is_product_of(const laci_node *node, int a, int b) {
  return node->op == &laci_op_mul && node->n_inputs == 2 &&
         ((node->inputs[0] == a && node->inputs[1] == b) ||
          (node->inputs[0] == b && node->inputs[1] == a));
}

/** Fuses x * hardsigmoid(x): two readers of x, one of which reads the other's result. */
bool laci_fuse_gate(laci_cpu_plan *plan, laci_fused *fused) {
  static const laci_function hard_swish = {LACI_FUNCTION_HARDSWISH, 1.0f / 6, 0.5f};
  int readers[2], inner[2];
  if (!find_two_readers(plan, fused, readers)) return false;
  const laci_node *gate = &plan->graph->nodes[readers[0]];
  if (gate->op != &laci_op_hard_sigmoid ||
      fabsf(laci_node_float(gate, "alpha", 0.2f) * 6 - 1) >= 1e-5f ||
      laci_node_float(gate, "beta", 0.5f) != 0.5f)
    return false;
  if (laci_plan_is_fused(plan, readers[0]) || laci_plan_is_fused(plan, readers[1])) return false;
  const int y = gate->outputs[0];
  if (laci_plan_count_uses(plan, y) != 1 || laci_plan_find_readers(plan, y, inner) != 1)
    return false;
  if (!is_product_of(&plan->graph->nodes[readers[1]], fused->output, y)) return false;
  if (!laci_fused_append_functions(fused, 1, &hard_swish)) return false;
  laci_fused_append(plan, fused, readers[0]);
  laci_fused_append(plan, fused, readers[1]);
  return true;
}

/** Is the node's only function this one, of that input? */
static bool is_only_function_of_value(laci_cpu_plan *plan, int node, int value,
                                      laci_function wanted) {
  laci_function f[2];
  int input;
  return laci_find_node_functions(plan, &plan->graph->nodes[node], &input, f) == 1 &&
         plan->graph->nodes[node].inputs[input] == value && f[0].kind == wanted.kind &&
         fabsf(f[0].alpha - wanted.alpha) < 1e-6f && fabsf(f[0].beta - wanted.beta) < 1e-6f;
}

/** Fuses x * min(max(x + 3, 0), 6) / 6, with the division before or after the product. */
bool laci_fuse_hard_swish(laci_cpu_plan *plan, laci_fused *fused) {
  static const laci_function plus_3 = {LACI_FUNCTION_LINEAR, 1, 3},
                             clip = {LACI_FUNCTION_CLIP, 0, 6},
                             sixth = {LACI_FUNCTION_LINEAR, 1.0f / 6, 0};
  static const laci_function hard_swish = {LACI_FUNCTION_HARDSWISH, 1.0f / 6, 0.5f};
  int readers[2], at[4], y[4], next[2];
  if (!find_two_readers(plan, fused, readers)) return false;
  at[0] = readers[0];
  for (int step = 0; step < 4; step++) { /* follows the nodes, each of which must have one reader */
    if (plan->graph->nodes[at[step]].n_outputs != 1 || laci_plan_is_fused(plan, at[step])) {
      return false;
    }
    y[step] = plan->graph->nodes[at[step]].outputs[0];
    if (step == 3) break;
    if (laci_plan_count_uses(plan, y[step]) != 1) return false;
    if (laci_plan_find_readers(plan, y[step], next) != 1) return false;
    at[step + 1] = next[0];
  }
  const laci_node *third = &plan->graph->nodes[at[2]], *fourth = &plan->graph->nodes[at[3]];
  const bool before = is_only_function_of_value(plan, at[2], y[1], sixth) &&
                      is_product_of(fourth, fused->output, y[2]) && readers[1] == at[3];
  const bool after = is_product_of(third, fused->output, y[1]) && readers[1] == at[2] &&
                     is_only_function_of_value(plan, at[3], y[2], sixth);
  if (!is_only_function_of_value(plan, at[0], fused->output, plus_3) ||
      !is_only_function_of_value(plan, at[1], y[0], clip) || (!before && !after)) {
    return false;
  }
  if (!laci_fused_append_functions(fused, 1, &hard_swish)) return false;
  for (int step = 0; step < 4; step++) laci_fused_append(plan, fused, at[step]);
  return true;
}

/* ---- A sum ---- */

/** Fuses x + another value of the same shape. */
bool laci_fuse_sum(laci_cpu_plan *plan, laci_fused *fused) {
  int next = find_only_reader(plan, fused);
  if (next < 0) return false;
  const laci_node *node = &plan->graph->nodes[next];
  if ((node->op != &laci_op_add && node->op != &laci_op_sum) || node->n_inputs != 2) return false;
  int other = node->inputs[node->inputs[0] == fused->output];
  if (other == fused->output || laci_plan_is_constant(plan, other)) return false;
  if (!laci_shape_equal(laci_plan_shape(plan, other), laci_plan_shape(plan, fused->output)))
    return false;
  for (int at = 0; at < fused->n_posts; at++) {
    if (fused->posts[at].value >= 0) return false;
  }
  if (fused->n_posts == LACI_FUSED_MAX_POSTS) return false;
  fused->posts[fused->n_posts++] = (laci_post){.value = other};
  laci_fused_append(plan, fused, next);
  return true;
}

/* ---- A Relu after a batch norm of training ---- */

static int output_or_none(const laci_node *node, int port) {
  return port < node->n_outputs ? node->outputs[port] : -1;
}

/** Returns the only computed node that reads a value that is no output, or NULL. */
static const laci_node *find_only_reading_node(const laci_cpu_plan *plan, int value) {
  const laci_value *v = &plan->graph->values[value];
  const laci_node *reader = NULL;
  if (laci_plan_count_uses(plan, value) != 1) return NULL;
  for (int at = 0; at < v->n_readers; at++) {
    if (plan->computed[v->readers[at]]) reader = &plan->graph->nodes[v->readers[at]];
  }
  return reader;
}

static bool can_fuse_relu_to_norm(const laci_cpu_plan *plan, const laci_node *norm,
                                  const laci_node *relu) {
  const laci_value *y = &plan->graph->values[relu->outputs[0]];
  int n_grads = 0, n_fit = 0;
  if (norm->op != &laci_op_batch_norm_train ||
      find_only_reading_node(plan, norm->outputs[0]) != relu)
    return false;
  for (int at = 0; at < y->n_readers; at++) {
    const laci_node *grad = &plan->graph->nodes[y->readers[at]];
    if (!plan->computed[y->readers[at]] || grad->op != &laci_op_relu_grad) continue;
    if (grad->inputs[1] != relu->outputs[0]) continue;
    const laci_node *next = find_only_reading_node(plan, grad->outputs[0]);
    n_grads++;
    n_fit += next && next->op == &laci_op_batch_norm_train_grad &&
             next->inputs[0] == grad->outputs[0] && next->inputs[1] == norm->inputs[0] &&
             next->inputs[3] == output_or_none(norm, 1);
  }
  return n_grads == n_fit && n_grads <= 1;
}

bool laci_fuse_norm_relu(laci_cpu_plan *plan, laci_fused *fused) {
  int next = find_only_reader(plan, fused);
  const laci_node *nodes = plan->graph->nodes;
  if (next < 0 || nodes[next].op != &laci_op_relu) return false;
  return can_fuse_relu_to_norm(plan, &nodes[fused->node], &nodes[next]) &&
         laci_fuse_function(plan, fused);
}
