/* SPDX-License-Identifier: Apache-2.0
 * Which layers are done by sparse kernels: those that together take the least time by a rule.
 *
 * A layer's time either way is estimated in multiply-adds of the peak, from its shape, the share of
 * weights that are kept, and what code streams from memory; so is that of a reorder where a value
 * goes from dense kernels to sparse ones or back. Layers are then turned one by one, and two
 * neighbours at a time, as long as the sum becomes less. docs/sparse-kernels.md has the
 * measurements that the numbers come from. */
#include "base/divide.h"
#include "cpu/cpu.h"
#include "engine/cpu/lower/conv.h"
#include "engine/cpu/lower/pictures.h"
#include "engine/cpu/lower/sparse.h"

enum {
  NEIGHBOURS = 3,           /* layers behind one that are turned together with it */
  LEAST_GAIN = 1000 * 1000, /* multiply-adds: with less to be gained, no layer is sparse */
};

/* ---- Estimates, in multiply-adds of the peak of one core ---- */

static const double winograd_cost = 0.7;   /* of direct's, where oneDNN has it */
static const double generated_share = 0.8; /* of the peak that generated code reaches */
static const double compiled_share = 0.22;
static const double reorder_cost = 40; /* a float */
static const double stream_cost =
    50; /* what the 12 bytes of a weight and its code take from the last cache */
static const double held_weights = 60e3; /* weights whose code a core's second cache holds */

static double results(const laci_sparse_layer *layer) {
  return (double)layer->n_images * (double)layer->window.channels_out *
         (double)(layer->window.out_h * layer->window.out_w);
}

static double weights_each(const laci_sparse_window *g) {
  return (double)(g->channels_in / g->groups * g->kernel_h * g->kernel_w);
}

static double dense_cost(const laci_net *net, const laci_sparse_layer *layer) {
  const double products = results(layer) * weights_each(&layer->window);
  return laci_conv_gains_by_winograd(net, layer->fused) ? products * winograd_cost : products;
}

static double sparse_cost(const laci_net *net, const laci_sparse_layer *layer) {
  enum { CHUNK = 64 }; /* tiles that go through all code before the next ones */
  const laci_sparse_window *g = &layer->window;
  const bool by_images = laci_pictures_by_images(layer->n_images);
  const double kept = (double)g->channels_out * weights_each(g) * layer->kept;
  const int64_t pixels = g->out_h * g->out_w;
  const int64_t pictures =
      by_images ? laci_ceil_div(layer->n_images, LACI_SPARSE_LANES) : layer->n_images;
  const int64_t tiles = pictures * (by_images ? pixels : laci_ceil_div(pixels, LACI_SPARSE_LANES));
  const double share = net->sparse->isa == LACI_JIT_NONE ? compiled_share : generated_share;
  const double streamed = kept > held_weights ? kept * (double)laci_ceil_div(tiles, CHUNK) : 0;
  return kept * (double)(tiles * LACI_SPARSE_LANES) / share + streamed * stream_cost;
}

/* ---- The sum ---- */

/** What is known of a value that layers read or write. */
typedef struct node_value {
  bool made;  /* by a chosen layer */
  bool lies;  /* a chosen layer reads or adds it as it lies in pictures */
  int n_read; /* reads by chosen layers */
  double floats;
} node_value;

typedef struct choice {
  laci_net *net;
  node_value *values;     /* [n_values] */
  double *dense, *sparse; /* [n_layers] */
} choice;

static void read_value(choice *c, int value, bool lies) {
  c->values[value].n_read++;
  c->values[value].lies = c->values[value].lies || lies;
}

/** A copy that only this layer reads. */
static double private_copy(const choice *c, const laci_sparse_layer *layer) {
  const laci_sparse_window *g = &layer->window;
  if (layer->reading == LACI_SPARSE_AS_IT_LIES) return 0;
  const double floats = c->values[layer->input].floats;
  const double thin = floats / (double)(g->stride_h * g->stride_w);
  return reorder_cost * (layer->reading == LACI_SPARSE_THINNED ? thin : floats);
}

static double reorders(const choice *c, int value) {
  const node_value *v = &c->values[value];
  const bool read_by_others = laci_plan_uses(&c->net->plan, value) > v->n_read;
  return (v->made ? read_by_others : v->lies) ? v->floats * reorder_cost : 0;
}

static double total(choice *c) {
  const laci_sparse_net *sparse = c->net->sparse;
  double sum = 0;
  for (int v = 0; v < c->net->plan.graph->n_values; v++) {
    c->values[v].made = c->values[v].lies = false;
    c->values[v].n_read = 0;
  }
  for (int at = 0; at < sparse->n_layers; at++) {
    const laci_sparse_layer *layer = &sparse->layers[at];
    sum += layer->chosen ? c->sparse[at] + private_copy(c, layer) : c->dense[at];
    if (!layer->chosen) continue;
    c->values[layer->output].made = true;
    read_value(c, layer->input, layer->reading == LACI_SPARSE_AS_IT_LIES);
    if (layer->residual >= 0) read_value(c, layer->residual, true);
  }
  for (int v = 0; v < c->net->plan.graph->n_values; v++) sum += reorders(c, v);
  return sum;
}

/* ---- Turning ---- */

static void turn(laci_sparse_net *sparse, int layer) {
  sparse->layers[layer].chosen = !sparse->layers[layer].chosen;
}

/** Turns two layers, or one where they are the same, if that is better than `best`. */
static bool try_turn(choice *c, int first, int second, double *best) {
  laci_sparse_net *sparse = c->net->sparse;
  turn(sparse, first);
  if (second != first) turn(sparse, second);
  const double sum = total(c);
  if (sum < *best) {
    *best = sum;
    return true;
  }
  turn(sparse, first);
  if (second != first) turn(sparse, second);
  return false;
}

/** From where it stands to where no turn makes it better. */
static double improve(choice *c) {
  const laci_sparse_net *sparse = c->net->sparse;
  double best = total(c);
  for (bool better = true; better;) {
    better = false;
    for (int at = 0; at < sparse->n_layers; at++) {
      for (int to = at; to <= at + NEIGHBOURS && to < sparse->n_layers; to++) {
        better = try_turn(c, at, to, &best) || better;
      }
    }
  }
  return best;
}

static void choose_all(laci_sparse_net *sparse, bool chosen) {
  for (int at = 0; at < sparse->n_layers; at++) sparse->layers[at].chosen = chosen;
}

/** The better of what comes from all and from none. */
static void choose(choice *c) {
  laci_sparse_net *sparse = c->net->sparse;
  choose_all(sparse, false);
  const double without = total(c);
  const double from_none = improve(c);
  choose_all(sparse, true);
  if (improve(c) > from_none) {
    choose_all(sparse, false);
    (void)improve(c);
  }
  if (total(c) > without - LEAST_GAIN) choose_all(sparse, false);
}

static bool may_be_sparse(const laci_net *net) {
  if (net->plan.status || net->plan.bf16) return false;
  if (net->sparse_use == LACI_SPARSE_USE_FASTER) return laci_cpu() != LACI_CPU_ANY;
  return net->sparse_use == LACI_SPARSE_USE_ALL;
}

static bool set_costs(choice *c) {
  laci_net *net = c->net;
  const laci_sparse_net *sparse = net->sparse;
  const int n_values = net->plan.graph->n_values;
  c->values = laci_plan_new(&net->plan, (size_t)n_values, sizeof *c->values);
  c->dense = laci_plan_new(&net->plan, (size_t)sparse->n_layers, sizeof *c->dense);
  c->sparse = laci_plan_new(&net->plan, (size_t)sparse->n_layers, sizeof *c->sparse);
  if (!c->values || !c->dense || !c->sparse) return false;
  for (int at = 0; at < sparse->n_layers; at++) {
    const laci_sparse_layer *layer = &sparse->layers[at];
    const laci_sparse_window *g = &layer->window;
    c->dense[at] = dense_cost(net, layer);
    c->sparse[at] = sparse_cost(net, layer);
    c->values[layer->output].floats = results(layer);
    c->values[layer->input].floats =
        (double)layer->n_images * (double)g->channels_in * (double)(g->h * g->w);
    if (layer->residual >= 0) c->values[layer->residual].floats = results(layer);
  }
  return true;
}

void laci_sparse_choose(laci_net *net) {
  choice c = {.net = net};
  if (!may_be_sparse(net)) return;
  laci_sparse_find_layers(net);
  laci_sparse_net *sparse = net->sparse;
  if (!sparse) return;
  sparse->isa = laci_jit_isa_allowed();
  sparse->places =
      laci_plan_new(&net->plan, (size_t)net->plan.graph->n_values, sizeof *sparse->places);
  if (!sparse->places || !set_costs(&c)) return;
  if (net->sparse_use == LACI_SPARSE_USE_ALL) choose_all(sparse, true);
  else choose(&c);
  laci_sparse_lay_out(net);
}
