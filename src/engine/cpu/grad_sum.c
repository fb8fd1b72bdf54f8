/* SPDX-License-Identifier: Apache-2.0
 * Sums over all axes but the channels: what a bias gets back.
 *
 * oneDNN's reduction is its slow definition of right here. The channels are shared out among the
 * threads, so that their number changes no bit; sums are f32 lanes for an image, double over them.
 */
#include "engine/cpu/net_in.h"
#include "tensor/bf16.h"

typedef struct sums {
  int64_t n, channels, pixels; /* pixels of an image */
  int64_t block;               /* channels that lie together: 16, or 1 for row-major */
  bool bf16;
} sums;

typedef struct sums_work {
  const sums *s;
  const void *x;
  float *y;
} sums_work;

enum { LANES = LACI_NET_BLOCK };

/** lanes[k] = sum of x[k], x[k + 16] ... of n floats. */
static void add_floats(const float *x, int64_t n, float lanes[LANES]) {
  int64_t whole = n - n % LANES;
  for (int64_t at = 0; at < whole; at += LANES) {
    for (int k = 0; k < LANES; k++) lanes[k] += x[at + k];
  }
  for (int64_t at = whole; at < n; at++) lanes[at - whole] += x[at];
}

static void add_halves(const uint16_t *x, int64_t n, float lanes[LANES]) {
  int64_t whole = n - n % LANES;
  for (int64_t at = 0; at < whole; at += LANES) {
    for (int k = 0; k < LANES; k++) lanes[k] += laci_bf16_value(x[at + k]);
  }
  for (int64_t at = whole; at < n; at++) lanes[at - whole] += laci_bf16_value(x[at]);
}

/** A block of channels, or one channel, over all images. */
static void sum_some(int64_t begin, int64_t end, void *context) {
  const sums_work *w = context;
  const sums *s = w->s;
  int64_t run = s->pixels * s->block;
  for (int64_t part = begin; part < end; part++) {
    double total[LANES] = {0};
    for (int64_t n = 0; n < s->n; n++) {
      int64_t at = (n * (s->channels / s->block) + part) * run;
      float lanes[LANES] = {0};
      if (s->bf16) add_halves((const uint16_t *)w->x + at, run, lanes);
      else add_floats((const float *)w->x + at, run, lanes);
      for (int k = 0; k < LANES; k++) total[k] += (double)lanes[k];
    }
    for (int k = 1; k < LANES && s->block == 1; k++) total[0] += total[k];
    for (int64_t k = 0; k < s->block; k++) w->y[part * s->block + k] = (float)total[k];
  }
}

static lac_status run_sums(laci_net *net, laci_net_step *step, lac_error *err) {
  const sums *s = step->context;
  sums_work w = {
      .s = s, .x = laci_net_data(net, step->tensors[0]), .y = laci_net_data(net, step->tensors[1])};
  (void)err;
  laci_pool_for(net->pool, s->channels / s->block, 1, sum_some, &w);
  return LAC_OK;
}

bool laci_net_channel_sums(laci_net *net, const laci_net_layer *layer, const bool *axes) {
  const laci_node *node = &net->graph->nodes[layer->node];
  const laci_shape *x = laci_net_shape(net, node->inputs[0]);
  for (int axis = 0; axis < x->rank; axis++) {
    if (axes[axis] != (axis != 1)) return false;
  }
  int from = laci_net_read(net, node->inputs[0]);
  if (x->rank < 3 || from < 0 || !net->tensors[from].md) return false;
  dnnl_data_type_t dt = net->tensors[from].dt;
  bool blocks = laci_net_in_blocks(net, from);
  if (!blocks) from = laci_net_as_dense(net, from, dt);
  laci_shape y = laci_shape_of(1, &x->dims[1]);
  laci_md md = laci_net_dense(net, &y, dnnl_f32);
  int to = md ? laci_net_result(net, &y, dnnl_f32, md) : -1;
  laci_md_drop(md);
  sums *s = laci_net_new(net, 1, sizeof *s);
  laci_net_step *step = laci_net_step_code(net, node, run_sums, 2, (int[]){from, to});
  if (!s || !step) return true;
  *s = (sums){.n = x->dims[0],
              .channels = x->dims[1],
              .pixels = laci_shape_count_range(x, 2, x->rank),
              .block = blocks ? LACI_NET_BLOCK : 1,
              .bf16 = dt == dnnl_bf16};
  step->context = s;
  step->kernel = "channel sums";
  step->shown = to;
  laci_net_bind_shaped(net, layer->output, to);
  return true;
}
