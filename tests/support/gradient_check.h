/* SPDX-License-Identifier: Apache-2.0
 * Compares gradients with central differences. The loss is the sum of the first output of a network
 * (text as in graph_build.h) times fixed random numbers. Every element of every float input and
 * stored tensor is changed a little up and down, and the loss is computed again, in double.
 *
 * Values whose names begin with "c_" are constants: they are not differentiated. Networks are in
 * f64, so that constants in gradient rules are not rounded. */
#ifndef TESTS_SUPPORT_GRADIENT_CHECK_H
#define TESTS_SUPPORT_GRADIENT_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "cpu/pool.h"
#include "graph/gradient.h"
#include "graph/op.h"
#include "support/graph_run.h"
#include "support/walk.h"

typedef struct gradient_case {
  const char *about, *net;
} gradient_case;

enum { MAX_PARAMS = 16 };

typedef struct gradient_net {
  laci_graph *graph;
  int loss, n_params;
  int params[MAX_PARAMS], grads[MAX_PARAMS];
  laci_buf *content[MAX_PARAMS];
} gradient_net;

static inline lac_status net_add(laci_graph *graph, const char *line, lac_error *err) {
  net_state state = {.opset = 22};
  return net_node(graph, line, &state, err);
}

/** Adds the loss to the graph: the sum of output 0 times generic numbers. */
static inline lac_status add_probe(laci_graph *graph, int *loss, lac_error *err) {
  char line[512], dims[128] = "";
  const laci_value *y = &graph->values[graph->outputs[0]];
  for (int axis = 0, used = 0; axis < y->type.shape.rank; axis++)
    used += snprintf(dims + used, sizeof dims - (size_t)used, "%s%lld", axis ? "x" : "",
                     (long long)y->type.shape.dims[axis]);
  (void)snprintf(line, sizeof line, "c_probe %s f64", y->type.shape.rank ? dims : "\"\"");
  lac_status st = net_stored(graph, line, err);
  (void)snprintf(line, sizeof line, "c_product = Mul(%s, c_probe)", y->name);
  if (!st) st = net_add(graph, line, err);
  if (!st) st = net_add(graph, "c_loss = ReduceSum(c_product) keepdims=0", err);
  *loss = laci_graph_find_value(graph, "c_loss");
  if (!st) st = laci_graph_finish(graph, err);
  return st ? st : laci_graph_infer(graph, NULL, 0, err);
}

static inline bool is_param(const laci_graph *graph, int value) {
  const laci_value *v = &graph->values[value];
  bool source = v->producer < 0 && (v->is_input || v->stored >= 0);
  return source && laci_dtype_is_float(v->type.dtype) && strncmp(v->name, "c_", 2) != 0;
}

/** Makes the network with its loss and gradients, and loads the parameters' contents. */
static inline lac_status gradient_net_make(const char *text, gradient_net *net, lac_error *err) {
  *net = (gradient_net){.n_params = 0};
  lac_status st = net_read(text, &net->graph, err);
  if (!st) st = add_probe(net->graph, &net->loss, err);
  for (int v = 0; !st && v < net->graph->n_values; v++) {
    if (!is_param(net->graph, v)) continue;
    net->params[net->n_params] = v;
    net->content[net->n_params++] = run_source(net->graph, v);
  }
  if (!st)
    st = laci_gradient_build(net->graph, net->loss, net->n_params, net->params, net->grads, err);
  if (!st) st = laci_graph_add_output(net->graph, "c_loss", err);
  for (int at = 0; !st && at < net->n_params; at++) { /* outputs of the graph stay in memory until a
                                                         run ends */
    const laci_value *grad = &net->graph->values[net->grads[at]];
    if (!grad->is_output) st = laci_graph_add_output(net->graph, grad->name, err);
  }
  return st;
}

static inline void gradient_net_clear(gradient_net *net) {
  for (int at = 0; at < net->n_params; at++) laci_buf_destroy(net->content[at]);
  laci_graph_destroy(net->graph);
}

/** Runs the network with the current contents and returns the loss; grads[at] are copies of the
 * gradients (NULL: they are not needed). */
static inline double gradient_net_run(const gradient_net *net, int n_threads, const char *about,
                                      laci_buf **grads) {
  lac_error err = {0};
  laci_pool *pool = NULL;
  laci_stepper *run = NULL;
  assert_int_equal(laci_pool_create(n_threads, &pool, &err), LAC_OK);
  assert_int_equal(walk_open(net->graph, pool, &run, &err), LAC_OK);
  for (int i = 0; i < net->graph->n_inputs; i++)
    laci_stepper_set_value(run, net->graph->inputs[i],
                           run_source(net->graph, net->graph->inputs[i]));
  for (int at = 0; at < net->n_params; at++)
    laci_stepper_set_value(run, net->params[at], buf_copy(net->content[at]));
  lac_status st = LAC_OK;
  for (int n = 0; n < net->graph->n_nodes && !st; n++) {
    st = laci_stepper_step(run, n, &err);
    if (!grads && !st && laci_stepper_value(run, net->loss)) break;
  }
  if (st) fail_msg("%s: %s", about, err.text);
  double loss = laci_stepper_value(run, net->loss)->f[0];
  for (int at = 0; grads && at < net->n_params; at++)
    grads[at] = buf_copy(laci_stepper_value(run, net->grads[at]));
  laci_stepper_destroy(run);
  laci_pool_destroy(pool);
  return loss;
}

static inline void check_element(const gradient_net *net, int at, int64_t i, double got,
                                 const char *about) {
  const double step = 1e-5;
  double *x = &net->content[at]->f[i], kept = *x;
  *x = kept + step;
  double above = gradient_net_run(net, 1, about, NULL);
  *x = kept - step;
  double below = gradient_net_run(net, 1, about, NULL);
  *x = kept;
  double want = (above - below) / (2 * step);
  if (!(fabs(got - want) <= 2e-7 * (1 + fabs(want))))
    fail_msg("%s: d loss / d %s[%lld] is %.12g, differences say %.12g", about,
             net->graph->values[net->params[at]].name, (long long)i, got, want);
}

static inline void check_gradient(const gradient_case *one) {
  lac_error err = {0};
  gradient_net net;
  laci_buf *grads[MAX_PARAMS], *again[MAX_PARAMS];
  lac_status st = gradient_net_make(one->net, &net, &err);
  if (st) fail_msg("%s: %s", one->about, err.text);
  assert_true(net.n_params > 0);
  (void)gradient_net_run(&net, 1, one->about, grads);
  (void)gradient_net_run(&net, 3, one->about, again);
  for (int at = 0; at < net.n_params; at++) {
    if (!laci_shape_equal(&grads[at]->shape, &net.content[at]->shape))
      fail_msg("%s: a gradient of another shape", one->about);
    for (int64_t i = 0; i < grads[at]->count; i++) {
      if (grads[at]->f[i] != again[at]->f[i]) fail_msg("%s: other bits with 3 threads", one->about);
      check_element(&net, at, i, grads[at]->f[i], one->about);
    }
    laci_buf_destroy(grads[at]);
    laci_buf_destroy(again[at]);
  }
  gradient_net_clear(&net);
}

static inline int count_type(const laci_graph *graph, const char *type) {
  int n = 0;
  for (int at = 0; at < graph->n_nodes; at++) n += strcmp(graph->nodes[at].type, type) == 0;
  return n;
}

#endif
