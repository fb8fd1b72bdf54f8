/* SPDX-License-Identifier: Apache-2.0 */
#include "calibrate/change.h"

#include <math.h>

#include "base/error.h"
#include "base/memory.h"
#include "calibrate/layer_in.h"
#include "calibrate/moments.h"

/* The two terms of the variance, and the mean, of one output channel. */
typedef struct sums {
  double mean, apart, together;
} sums;

typedef struct prediction {
  const laci_changed_layer *layer;
  int64_t rows, columns, taps, n_inputs;
  double *share; /* [taps] s[t] */
  double *root;  /* [taps] its square root */
} prediction;

/* ---- Shares of positions ---- */

/* Returns the share of output positions at which the tap reads the input along one axis. */
static double share_of_axis(const laci_unfold_axis *axis, int64_t tap) {
  int64_t n = 0;
  if (axis->in < 1 || axis->out < 1) return 1;
  for (int64_t o = 0; o < axis->out; o++) {
    const int64_t at = o * axis->stride - axis->pad + tap * axis->dilation;
    n += at >= 0 && at < axis->in;
  }
  return (double)n / (double)axis->out;
}

static void compute_shares(const laci_unfold *u, prediction *p) {
  const laci_unfold_axis *a = u->axis;
  for (int64_t t = 0; t < p->taps; t++) {
    const int64_t x = t % a[2].kernel, y = t / a[2].kernel % a[1].kernel;
    const int64_t z = t / a[2].kernel / a[1].kernel;
    p->share[t] = share_of_axis(&a[0], z) * share_of_axis(&a[1], y) * share_of_axis(&a[2], x);
    p->root[t] = sqrt(p->share[t]);
  }
}

/* ---- Sums over a row ---- */

static sums add_up_row(const prediction *p, const double *weight, int64_t row) {
  const laci_channel_moments *in = p->layer->inputs;
  const int64_t n_groups = in->n / p->columns, first = row / (p->rows / n_groups) * p->columns;
  sums s = {0, 0, 0};
  for (int64_t c = 0; c < p->columns; c++) {
    const double *w = weight + (row * p->columns + c) * p->taps;
    double mean = 0, sum = 0, squares = 0;
    for (int64_t t = 0; t < p->taps; t++) {
      mean += w[t] * p->share[t];
      sum += w[t] * p->root[t];
      squares += w[t] * w[t] * p->share[t];
    }
    s.mean += mean * in->mean[first + c];
    s.apart += squares * in->variance[first + c];
    s.together += sum * sum * in->variance[first + c];
  }
  return s;
}

/* ---- The factors of the variance ---- */

/* The normal equations of least squares for 1 = (a * apart + b * together) / variance. */
typedef struct equations {
  double aa, ab, bb, a, b;
} equations;

/* Solves them for factors that are not negative. */
static void solve_factors(const equations *e, double *a, double *b) {
  const double det = e->aa * e->bb - e->ab * e->ab;
  *a = *b = -1;
  if (det > 1e-9 * e->aa * e->bb) {
    *a = (e->a * e->bb - e->b * e->ab) / det;
    *b = (e->b * e->aa - e->a * e->ab) / det;
  }
  if (*a >= 0 && *b >= 0) return;
  /* one of them is 0: the other alone explains e->a^2 / e->aa, or e->b^2 / e->bb */
  const double of_a = e->aa > 0 ? e->a * e->a / e->aa : 0;
  const double of_b = e->bb > 0 ? e->b * e->b / e->bb : 0;
  *a = of_a >= of_b && e->aa > 0 ? e->a / e->aa : 0;
  *b = of_a >= of_b || !(e->bb > 0) ? 0 : e->b / e->bb;
}

static void add_equation(equations *e, const sums *s, double variance) {
  if (!(variance > 0)) return;
  const double a = s->apart / variance, b = s->together / variance;
  e->aa += a * a;
  e->ab += a * b;
  e->bb += b * b;
  e->a += a;
  e->b += b;
}

/* ---- The change ---- */

static void predict_rows(const prediction *p, sums *before, laci_output_change *change) {
  const laci_changed_layer *l = p->layer;
  equations e = {0, 0, 0, 0, 0};
  double a, b, wrong = 0, all = 0;
  for (int64_t row = 0; row < p->rows; row++) {
    before[row] = add_up_row(p, l->before, row);
    if (!l->variance) continue;
    add_equation(&e, &before[row], l->variance[row]);
    if (!(l->variance[row] > 0)) continue;
    const double bias = l->bias ? l->bias[row] : 0;
    const double off = before[row].mean + bias - l->mean[row];
    wrong += off * off / l->variance[row];
    all += l->mean[row] * l->mean[row] / l->variance[row];
  }
  change->unexplained = all > 0 ? wrong / all : 0;
  solve_factors(&e, &a, &b);
  for (int64_t row = 0; row < p->rows; row++) {
    const sums after = add_up_row(p, l->after, row);
    const double from = a * before[row].apart + b * before[row].together;
    const double to = a * after.apart + b * after.together;
    change->mean[row] = after.mean - before[row].mean;
    change->ratio[row] = l->variance && from > 0 ? to / from : 1;
  }
}

lac_status laci_predict_change(const laci_changed_layer *layer, laci_output_change *change,
                               lac_error *err) {
  const laci_node *node = &layer->graph->nodes[layer->node];
  const laci_shape *weight = &layer->graph->values[node->inputs[1]].type.shape;
  laci_unfold u = {.images = 1};
  for (int i = 0; i < LACI_UNFOLD_AXES; i++) u.axis[i] = (laci_unfold_axis){1, 1, 1, 1, 1, 0};
  const char *why =
      laci_describe_windows(node, &layer->graph->values[node->inputs[0]].type.shape,
                            &layer->graph->values[node->outputs[0]].type.shape, weight, &u);
  if (why) return laci_fail(err, LAC_UNSUPPORTED, "%s: %s", node->name, why);
  prediction p = {.layer = layer,
                  .rows = weight->dims[0],
                  .columns = weight->dims[1],
                  .taps = laci_shape_count_range(weight, 2, weight->rank)};
  sums *before = laci_alloc((size_t)p.rows + 1, sizeof *before);
  p.share = laci_alloc(2 * (size_t)p.taps + 1, sizeof *p.share);
  lac_status st = before && p.share ? LAC_OK : laci_fail_memory(err, "moments of channels");
  if (!st) {
    p.root = p.share + p.taps;
    compute_shares(&u, &p);
    predict_rows(&p, before, change);
  }
  laci_free(before);
  laci_free(p.share);
  return st;
}
