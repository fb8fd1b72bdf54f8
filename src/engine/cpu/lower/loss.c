/* SPDX-License-Identifier: Apache-2.0
 * The loss, from which all gradients start: softmax cross-entropy over rows of f32 logits. Sums are
 * double and in the order of the rows, so that the result does not depend on the number of
 * threads. */
#include <math.h>

#include "engine/cpu/net_in.h"
#include "engine/cpu/onednn/onednn.h"

/** The size of the logits [n, classes]: a row for each of n predictions, with a number for each
 * class. */
typedef struct rows {
  int64_t n, classes;
} rows;

/** Returns the log of the sum of exp over a row. */
static double log_sum_exp(const float *row, int64_t n) {
  double top = (double)row[0], sum = 0;
  for (int64_t c = 1; c < n; c++) { /* not by fmax: gcc 12 for 64-bit ARM fails with an internal
                                       error */
    if ((double)row[c] > top) top = (double)row[c];
  }
  for (int64_t c = 0; c < n; c++) sum += exp((double)row[c] - top);
  return top + log(sum);
}

/* Runs the loss. step->tensors: logits, labels, loss */
static lac_status run_loss(laci_net *net, laci_net_step *step, lac_error *err) {
  const rows *r = step->context;
  const float *logits = laci_net_tensor_data(net, step->tensors[0]);
  const float *labels = laci_net_tensor_data(net, step->tensors[1]);
  double loss = 0;
  (void)err;
  for (int64_t n = 0; n < r->n; n++) {
    const float *x = logits + n * r->classes, *p = labels + n * r->classes;
    double all = log_sum_exp(x, r->classes);
    for (int64_t c = 0; c < r->classes; c++) {
      if (p[c] != 0) loss -= (double)p[c] * ((double)x[c] - all);
    }
  }
  *(float *)laci_net_tensor_data(net, step->tensors[2]) = (float)(loss / (double)r->n);
  return LAC_OK;
}

/* Runs the gradient of the loss. step->tensors: d loss, logits, labels, d logits */
static lac_status run_loss_gradient(laci_net *net, laci_net_step *step, lac_error *err) {
  const rows *r = step->context;
  const float *logits = laci_net_tensor_data(net, step->tensors[1]);
  const float *labels = laci_net_tensor_data(net, step->tensors[2]);
  float *gradient = laci_net_tensor_data(net, step->tensors[3]);
  double factor =
      (double)*(const float *)laci_net_tensor_data(net, step->tensors[0]) / (double)r->n;
  (void)err;
  for (int64_t n = 0; n < r->n; n++) {
    const float *x = logits + n * r->classes, *p = labels + n * r->classes;
    double all = log_sum_exp(x, r->classes), mass = 0;
    for (int64_t c = 0; c < r->classes; c++) mass += (double)p[c];
    for (int64_t c = 0; c < r->classes; c++) {
      double soft = exp((double)x[c] - all);
      gradient[n * r->classes + c] = (float)(factor * (mass * soft - (double)p[c]));
    }
  }
  return LAC_OK;
}

static bool can_lower_loss(laci_net *net, const laci_fused *fused, const char **why) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  *why = "logits that are not [N, classes]";
  return laci_plan_shape(&net->plan, node->inputs[node->n_inputs - 2])->rank == 2;
}

static void add_loss_step(laci_net *net, const laci_fused *fused, laci_net_code *code, int n_in) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  const laci_shape *logits = laci_plan_shape(&net->plan, node->inputs[n_in - 2]);
  const laci_shape *y = laci_plan_shape(&net->plan, fused->output);
  int tensors[4];
  for (int at = 0; at < n_in; at++) {
    tensors[at] = laci_net_convert_to_dense(net, laci_net_read_value(net, node->inputs[at]),
                                            LACI_ELEMENT_F32);
  }
  laci_layout *md = laci_net_dense_layout(net, y, LACI_ELEMENT_F32);
  tensors[n_in] = md ? laci_net_new_result(net, y, LACI_ELEMENT_F32, md) : -1;
  laci_layout_destroy(md);
  rows *r = laci_plan_alloc(&net->plan, 1, sizeof *r);
  laci_net_step *step = laci_net_step_add_code(net, node, code, n_in + 1, tensors);
  if (!step || !r) return;
  *r = (rows){.n = logits->dims[0], .classes = logits->dims[1]};
  step->context = r;
  step->shown = tensors[n_in];
  laci_net_bind_value(net, fused->output, tensors[n_in]);
}

static void lower_loss(laci_net *net, const laci_fused *fused) {
  add_loss_step(net, fused, run_loss, 2);
}

static void lower_loss_gradient(laci_net *net, const laci_fused *fused) {
  add_loss_step(net, fused, run_loss_gradient, 3);
}

const laci_implementation laci_implementations_cross_entropy[] = {
    {"rows", LACI_FUSIBLE_NOTHING, can_lower_loss, lower_loss},
    {.name = NULL},
};
const laci_implementation laci_implementations_cross_entropy_grad[] = {
    {"rows", LACI_FUSIBLE_NOTHING, can_lower_loss, lower_loss_gradient},
    {.name = NULL},
};
