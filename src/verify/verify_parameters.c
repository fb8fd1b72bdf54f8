/* SPDX-License-Identifier: Apache-2.0
 * Loads the stored tensors for the verification's two runs: with their own content, or with random
 * content.
 *
 * Random content is other numbers with the same mean and deviation. So a layer that is switched off
 * (a gamma of 0) or saturated has an effect, and signals keep their size. Tensors that are no
 * parameters stay unchanged: single numbers, bounds, masks, and all that shapes depend on. */
#include "cpu/cpu.h"
#include "verify/verify_in.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/acquire.h"
#include "base/memory.h"
#include "cpu/pool.h"
#include "graph/op.h"
#include "permute/orders.h"
#include "tensor/buf.h"

enum { MAX_WALK = 8, SMALL = 64 };
static const double least_spread = 0.1, bound = 1e6; /* numbers above `bound` stand for infinity */

typedef struct rule {
  enum { UNDECIDED, KEEP, EVENLY } kind;
  double low, high;
} rule;

struct laci_parameters {
  const laci_graph *graph;
  laci_pool *pool;
  uint64_t seed;
  rule *rules; /* [n_stored] how each tensor is drawn, set when it is first read */
};

lac_status laci_parameters_create(const laci_graph *graph, uint64_t seed, laci_pool *pool,
                                  laci_parameters **parameters, lac_error *err) {
  *parameters = NULL;
  laci_parameters *made = laci_alloc(1, sizeof *made);
  rule *rules = laci_alloc((size_t)graph->n_stored, sizeof *rules);
  if (!made || !rules) {
    laci_free(made);
    laci_free(rules);
    return laci_fail_memory(err, "the verification");
  }
  *made = (laci_parameters){.graph = graph, .pool = pool, .seed = seed, .rules = rules};
  *parameters = made;
  return LAC_OK;
}

void laci_parameters_destroy(laci_parameters *parameters) {
  if (!parameters) return;
  laci_free(parameters->rules);
  laci_free(parameters);
}

/* Does a shape depend on the value? Examples are a Resize's scales, or floats that are cast to
 * integers. */
static bool is_shape_deciding(const laci_graph *graph, int value, int depth) {
  const laci_value *v = &graph->values[value];
  for (int i = 0; i < v->n_readers; i++) {
    const laci_node *reader = &graph->nodes[v->readers[i]];
    bool resizes = strcmp(reader->type, "Resize") == 0 || strcmp(reader->type, "Upsample") == 0;
    if (resizes && reader->inputs[0] != value) return true;
    for (int o = 0; o < reader->n_outputs; o++) {
      int out = reader->outputs[o];
      if (out < 0) continue;
      const laci_type *type = &graph->values[out].type;
      int64_t count = laci_shape_count(&type->shape);
      if (count < 0 || count > SMALL) continue;
      if (laci_dtype_is_integer(type->dtype)) return true;
      if (depth < MAX_WALK && is_shape_deciding(graph, out, depth + 1)) return true;
    }
  }
  return false;
}

static bool is_quantized_weight(const laci_graph *graph, int value) {
  const laci_value *v = &graph->values[value];
  for (int i = 0; i < v->n_readers; i++) {
    const laci_node *reader = &graph->nodes[v->readers[i]];
    bool whole = strcmp(reader->type, "DequantizeLinear") == 0 && reader->inputs[0] == value;
    if (!whole) return false;
  }
  return v->n_readers > 0;
}

static rule choose_draw_rule_of_floats(const laci_buf *buf) {
  double sum = 0, squares = 0, largest = 0;
  bool positive = true;
  for (int64_t e = 0; e < buf->count; e++) {
    double x = buf->f[e];
    if (!(fabs(x) <= bound)) return (rule){.kind = KEEP};
    positive = positive && x >= 0;
    largest = fmax(largest, fabs(x));
    sum += x;
    squares += x * x;
  }
  double n = (double)buf->count, mean = sum / n;
  if (positive) {
    double middle = fmax(mean, largest > 0 ? largest * 1e-3 : least_spread);
    return (rule){.kind = EVENLY, .low = 0.5 * middle, .high = 1.5 * middle};
  }
  double spread = sqrt(fmax(squares / n - mean * mean, 0));
  if (spread < 1e-3 * fabs(mean)) spread = least_spread * fabs(mean);
  double half = sqrt(3) * spread; /* numbers drawn uniformly from mean - half to mean + half have
                                     this deviation */
  return (rule){.kind = EVENLY, .low = mean - half, .high = mean + half};
}

static rule choose_draw_rule_of_integers(const laci_buf *buf) {
  int64_t low = buf->i[0], high = buf->i[0];
  for (int64_t e = 1; e < buf->count; e++) {
    if (buf->i[e] < low) low = buf->i[e];
    if (buf->i[e] > high) high = buf->i[e];
  }
  return (rule){.kind = EVENLY, .low = (double)low, .high = (double)high + 1};
}

static rule choose_draw_rule(const laci_graph *graph, int stored, const laci_buf *buf) {
  int value = graph->stored[stored].value;
  if (buf->count < 2 || (buf->count <= SMALL && is_shape_deciding(graph, value, 0)))
    return (rule){.kind = KEEP};
  if (buf->f) return choose_draw_rule_of_floats(buf);
  bool bytes = buf->dtype != LAC_DTYPE_BOOL && laci_dtype_bits(buf->dtype) <= 8;
  return bytes && is_quantized_weight(graph, value) ? choose_draw_rule_of_integers(buf)
                                                    : (rule){.kind = KEEP};
}

static lac_status read_reordered(const laci_stored *from, const uint8_t *bytes,
                                 const laci_value_orders *orders, laci_buf **buf, lac_error *err) {
  laci_type type = {.dtype = from->dtype, .shape = from->shape};
  if (!orders) return laci_buf_from_bytes(&type, bytes, from->size_bytes, buf, err);
  /* reorders the tensor in its stored type, which takes a half or a quarter of the memory of
   * doubles */
  uint8_t *moved = laci_alloc(from->size_bytes, 1);
  if (!moved) return laci_fail_memory(err, from->name);
  lac_status st =
      laci_reorder(&from->shape, lac_dtype_size(from->dtype), orders, bytes, moved, err);
  if (!st) st = laci_buf_from_bytes(&type, moved, from->size_bytes, buf, err);
  laci_free(moved);
  return st;
}

static lac_status read_stored(const laci_graph *graph, const laci_stored *from,
                              const laci_value_orders *orders, laci_buf **buf, lac_error *err) {
  laci_acquired_bytes held;
  lac_status st = laci_stored_acquire(graph, from, &held, err);
  if (!st) st = read_reordered(from, held.bytes, orders, buf, err);
  laci_bytes_release(&held);
  return st;
}

static lac_status draw_parameter(const laci_parameters *parameters, int stored,
                                 const laci_value_orders *orders, laci_buf **buf, lac_error *err) {
  const laci_stored *from = &parameters->graph->stored[stored];
  const rule *how = &parameters->rules[stored];
  laci_draw draw = {.seed = parameters->seed, .stream = (uint64_t)stored, .pool = parameters->pool};
  laci_order_walk walk;
  lac_status st = laci_order_walk_init(&walk, &from->shape, orders, err);
  if (!st) st = laci_buf_create(from->dtype, &from->shape, buf, err);
  if (!st) laci_draw_uniform(*buf, &draw, how->low, how->high, &walk);
  laci_order_walk_clear(&walk);
  return st;
}

lac_status laci_parameters_load_tensor(laci_parameters *parameters, int stored, bool anew,
                                       const laci_value_orders *orders, laci_buf **buf,
                                       lac_error *err) {
  const laci_stored *from = &parameters->graph->stored[stored];
  rule *how = &parameters->rules[stored];
  *buf = NULL;
  if (orders && laci_orders_are_identity(orders)) orders = NULL;
  if (anew && how->kind == UNDECIDED) {
    laci_buf *real = NULL;
    lac_status st = read_stored(parameters->graph, from, NULL, &real, err);
    if (st) return st;
    *how = choose_draw_rule(parameters->graph, stored, real);
    laci_buf_destroy(real);
  }
  return anew && how->kind == EVENLY ? draw_parameter(parameters, stored, orders, buf, err)
                                     : read_stored(parameters->graph, from, orders, buf, err);
}

/* ---- Weights of products, a slab at a time ---- */

typedef struct reading {
  const laci_stored *from;
  const laci_order_walk *walk;
  const laci_slab *slab;
  uint32_t key;
  bool whole;
  float *out;
} reading;

/* Computes the pseudorandom integers of n positions in a tensor: first, first + 1, ...; if sources
 * is not NULL, sources[0], sources[1], ... */
static inline LACI_WIDE_BODY void compute_random_integers_body(uint32_t key, int64_t first,
                                                               const int64_t *sources, int64_t n,
                                                               float *out) {
  if (sources) {
    for (int64_t i = 0; i < n; i++) out[i] = laci_random_integer_at(key, sources[i]);
  } else {
    for (int64_t i = 0; i < n; i++) out[i] = laci_random_integer_at(key, first + i);
  }
}

static void compute_random_integers_any(uint32_t key, int64_t first, const int64_t *sources,
                                        int64_t n, float *out) {
  compute_random_integers_body(key, first, sources, n, out);
}

LACI_WIDE static void compute_random_integers_avx2(uint32_t key, int64_t first,
                                                   const int64_t *sources, int64_t n, float *out) {
  compute_random_integers_body(key, first, sources, n, out);
}

static void compute_random_integers(uint32_t key, int64_t first, const int64_t *sources, int64_t n,
                                    float *out) {
  if (laci_cpu_level_in_force() >= LACI_WIDE_LEVEL)
    compute_random_integers_avx2(key, first, sources, n, out);
  else compute_random_integers_any(key, first, sources, n, out);
}

/* Reads n consecutive elements of the stored tensor, from index `source` on. */
static void read_consecutive_elements(const reading *r, int64_t source, int64_t n, float *out) {
  enum { PART = 256 };
  double part[PART];
  if (r->whole) {
    compute_random_integers(r->key, source, NULL, n, out);
    return;
  }
  if (r->from->dtype == LAC_DTYPE_F32) {
    memcpy(out, r->slab->bytes + (size_t)source * sizeof *out, (size_t)n * sizeof *out);
    return;
  }
  for (int64_t at = 0; at < n; at += PART) {
    int64_t now = n - at < PART ? n - at : PART;
    laci_read_f64(r->from->dtype, r->slab->bytes, source + at, now, part);
    for (int64_t i = 0; i < now; i++) out[at + i] = (float)part[i];
  }
}

/* Reads the n elements of the stored tensor at the indices sources[]. */
static void read_elements_at_places(const reading *r, const int64_t *sources, int64_t n,
                                    float *out) {
  if (r->whole) {
    compute_random_integers(r->key, 0, sources, n, out);
  } else if (r->from->dtype == LAC_DTYPE_F32) {
    for (int64_t i = 0; i < n; i++) {
      memcpy(&out[i], r->slab->bytes + (size_t)sources[i] * sizeof *out, sizeof *out);
    }
  } else {
    for (int64_t i = 0; i < n; i++) read_consecutive_elements(r, sources[i], 1, &out[i]);
  }
}

/* Reads elements begin to end - 1 of a slab: whole runs of the order, but perhaps parts of the
 * first and the last. */
static void read_range(int64_t begin, int64_t end, void *context) {
  enum { SOURCES = 256 };
  const reading *r = context;
  int64_t sources[SOURCES], run = r->walk->run;
  while (begin < end) {
    int64_t element = r->slab->first + begin, first = element / run, within = element % run;
    int64_t last = (r->slab->first + end - 1) / run, n = last - first + 1;
    if (n > SOURCES) n = SOURCES;
    laci_order_walk_list_offsets(r->walk, first, n, sources);
    if (run == 1) {
      read_elements_at_places(r, sources, n, r->out + begin);
      begin += n;
      continue;
    }
    for (int64_t i = 0; i < n; i++) {
      int64_t now = run - within < end - begin ? run - within : end - begin;
      read_consecutive_elements(r, sources[i] + within, now, r->out + begin);
      begin += now;
      within = 0;
    }
  }
}

lac_status laci_parameters_read_floats(const laci_products_options *options, int stored,
                                       const laci_slab *slab, float *out, lac_error *err) {
  enum { AT_ONCE = 1 << 15 };
  const laci_stored *from = &options->graph->stored[stored];
  laci_order_walk walk;
  lac_status st = laci_order_walk_init(
      &walk, &from->shape, options->orders ? &options->orders->values[from->value] : NULL, err);
  reading r = {
      .from = from,
      .walk = &walk,
      .slab = slab,
      .key = (uint32_t)((options->seed + (uint64_t)stored + 1) * 0x9E3779B97F4A7C15u >> 32),
      .whole = options->integers,
      .out = out};
  if (!st) laci_pool_for(options->pool, slab->n, AT_ONCE, read_range, &r);
  laci_order_walk_clear(&walk);
  return st;
}

const float *laci_parameters_view_floats(const laci_products_options *options, int stored,
                                         const laci_slab *slab) {
  const laci_stored *from = &options->graph->stored[stored];
  bool aligned = (uintptr_t)slab->bytes % sizeof(float) == 0;
  if (from->dtype != LAC_DTYPE_F32 || !aligned || options->integers) return NULL;
  if (options->orders && !laci_orders_are_identity(&options->orders->values[from->value])) {
    return NULL;
  }
  return (const float *)(const void *)slab->bytes + slab->first;
}
