/* SPDX-License-Identifier: Apache-2.0
 * Compares a value with the same value of the reordered network, without copying it.
 *
 * orders.h maps runs of elements of one tensor to their positions in the other. The work is cut
 * into parts of equal size. Each part finds its largest difference, and parts are merged in order,
 * so the result does not depend on the threads. */
#include "cpu/cpu.h"
#include "verify/verify_in.h"

#include <float.h>
#include <math.h>

#include "cpu/pool.h"
#include "permute/orders.h"
#include "tensor/buf.h"

enum { CHUNK = 1 << 14, MAX_PARTS = 64, SOURCES_AT_ONCE = 256, GLANCE = 256 };

/* A comparison. A run of elements is compared in chunks of at most CHUNK; chunks are numbered
 * through all runs. */
typedef struct comparison {
  const laci_buf *wanted, *got;
  const laci_order_walk *walk;
  int64_t chunks_a_run, n_chunks, chunks_a_part;
  laci_difference parts[MAX_PARTS];
} comparison;

/* Records an element that differs more than any before, or is not finite. Few elements are like
 * that. */
static void record_larger_difference(laci_difference *part, double wanted, double got, double apart,
                                     int64_t at) {
  if (part->kind_differs || wanted == got || (isnan(wanted) && isnan(got))) return;
  if (!isfinite(wanted) || !isfinite(got)) {
    part->kind_differs = true;
    part->at = at;
  } else if (apart > part->largest) {
    part->largest = apart;
    part->at = at;
  }
}

/* Do all n elements differ by at most `largest`, and are all wanted ones at most `scale`? False if
 * one is not finite. Mostly true, so it is tested first, without branches. */
static inline LACI_WIDE_BODY bool are_within_limits_body(const double *wanted, const double *got,
                                                         int64_t n, double largest, double scale) {
  int64_t n_news = 0;
  for (int64_t i = 0; i < n; i++) {
    n_news += !(fabs(wanted[i] - got[i]) <= largest);
    n_news += !(fabs(wanted[i]) <= scale);
  }
  return n_news == 0;
}

static bool are_within_limits_any(const double *wanted, const double *got, int64_t n,
                                  double largest, double scale) {
  return are_within_limits_body(wanted, got, n, largest, scale);
}

LACI_WIDE static bool are_within_limits_avx2(const double *wanted, const double *got, int64_t n,
                                             double largest, double scale) {
  return are_within_limits_body(wanted, got, n, largest, scale);
}

static void compare_floats(laci_difference *part, const double *wanted, const double *got,
                           int64_t n, int64_t at) {
  double scale = part->any_finite ? part->scale : -1;
  bool (*are_within)(const double *, const double *, int64_t, double, double) =
      laci_cpu_level_in_force() >= LACI_WIDE_LEVEL ? are_within_limits_avx2 : are_within_limits_any;
  for (int64_t begin = 0; begin < n; begin += GLANCE) {
    int64_t end = n - begin < GLANCE ? n : begin + GLANCE;
    if (are_within(wanted + begin, got + begin, end - begin, part->largest, scale)) continue;
    for (int64_t i = begin; i < end; i++) {
      double apart = fabs(wanted[i] - got[i]), size = fabs(wanted[i]);
      if (!(apart <= part->largest))
        record_larger_difference(part, wanted[i], got[i], apart, at + i);
      if (size > scale && size <= DBL_MAX) scale = size;
    }
  }
  part->any_finite = scale >= 0;
  part->scale = part->any_finite ? scale : 0;
}

static void compare_integers(laci_difference *part, const int64_t *wanted, const int64_t *got,
                             int64_t n, int64_t at) {
  for (int64_t i = 0; i < n; i++) {
    double size = fabs((double)wanted[i]);
    if (size > part->scale) part->scale = size;
    if (wanted[i] == got[i]) continue;
    double apart = fabs((double)wanted[i] - (double)got[i]);
    record_larger_difference(part, 0, 1, fmax(apart, 1),
                             at + i); /* large integers may be equal as doubles and still differ */
  }
  part->any_finite = part->any_finite || n > 0;
}

static void compare_consecutive(const comparison *c, laci_difference *part, int64_t from,
                                int64_t to, int64_t n) {
  if (c->wanted->f) compare_floats(part, c->wanted->f + from, c->got->f + to, n, to);
  else compare_integers(part, c->wanted->i + from, c->got->i + to, n, to);
}

/* Compares n elements that are not adjacent in the first network. They are gathered first, from the
 * positions `sources`. to: position in the second network. */
static void compare_gathered(const comparison *c, laci_difference *part, const int64_t *sources,
                             int64_t n, int64_t to) {
  double near[SOURCES_AT_ONCE];
  for (int64_t i = 0; i < n; i++) near[i] = c->wanted->f[sources[i]];
  compare_floats(part, near, c->got->f + to, n, to);
}

static void compare_chunk(comparison *c, int64_t number) {
  int64_t run = c->walk->run, sources[SOURCES_AT_ONCE];
  int64_t chunk = number * c->chunks_a_part, end = chunk + c->chunks_a_part;
  laci_difference *part = &c->parts[number];
  *part = (laci_difference){.at = -1};
  if (end > c->n_chunks) end = c->n_chunks;
  while (chunk < end) {
    if (c->chunks_a_run > 1) { /* runs are longer than a chunk */
      int64_t begin = chunk % c->chunks_a_run * CHUNK, first = chunk / c->chunks_a_run;
      laci_order_walk_list_offsets(c->walk, first, 1, sources);
      compare_consecutive(c, part, sources[0] + begin, first * run + begin,
                          run - begin < CHUNK ? run - begin : CHUNK);
      chunk++;
      continue;
    }
    int64_t n = end - chunk < SOURCES_AT_ONCE ? end - chunk : SOURCES_AT_ONCE;
    laci_order_walk_list_offsets(c->walk, chunk, n, sources);
    if (run == 1 && c->wanted->f) compare_gathered(c, part, sources, n, chunk);
    else
      for (int64_t i = 0; i < n; i++)
        compare_consecutive(c, part, sources[i], (chunk + i) * run, run);
    chunk += n;
  }
}

static void compare_chunks(int64_t begin, int64_t end, void *context) {
  for (int64_t number = begin; number < end; number++) compare_chunk(context, number);
}

/* Merges the result of `other`, a later part of the work, into *to. */
static void merge_differences(laci_difference *to, const laci_difference *other) {
  to->any_finite = to->any_finite || other->any_finite;
  if (other->scale > to->scale) to->scale = other->scale;
  bool first_kind = other->kind_differs && !to->kind_differs;
  if (first_kind || (!to->kind_differs && other->largest > to->largest)) to->at = other->at;
  to->kind_differs = to->kind_differs || other->kind_differs;
  if (other->largest > to->largest) to->largest = other->largest;
}

lac_status laci_compare_reordered_values(const laci_buf *wanted, const laci_value_orders *orders,
                                         const laci_buf *got, laci_pool *pool,
                                         laci_difference *difference, lac_error *err) {
  laci_order_walk walk;
  *difference = (laci_difference){.at = -1};
  lac_status st = laci_order_walk_init(&walk, &wanted->shape, orders, err);
  if (st || wanted->count == 0) goto out;
  comparison c = {.wanted = wanted, .got = got, .walk = &walk};
  c.chunks_a_run = (walk.run + CHUNK - 1) / CHUNK;
  c.n_chunks = c.chunks_a_run * walk.n_runs;
  int64_t chunk_size = walk.run < CHUNK ? walk.run : CHUNK;
  c.chunks_a_part = (c.n_chunks + MAX_PARTS - 1) / MAX_PARTS;
  if (c.chunks_a_part * chunk_size < CHUNK) c.chunks_a_part = CHUNK / chunk_size;
  int64_t n_parts = (c.n_chunks + c.chunks_a_part - 1) / c.chunks_a_part;
  laci_pool_for(pool, n_parts, 1, compare_chunks, &c);
  for (int64_t number = 0; number < n_parts; number++)
    merge_differences(difference, &c.parts[number]);
out:
  laci_order_walk_clear(&walk);
  return st;
}

lac_status laci_buf_reorder(const laci_buf *in, const laci_value_orders *orders, laci_buf **out,
                            lac_error *err) {
  *out = NULL;
  lac_status st = laci_buf_create(in->dtype, &in->shape, out, err);
  if (st) return st;
  const void *from = in->f ? (const void *)in->f : (const void *)in->i;
  void *to = (*out)->f ? (void *)(*out)->f : (void *)(*out)->i;
  st = laci_reorder(&in->shape, sizeof(double), orders, from, to, err);
  if (!st) return LAC_OK;
  laci_buf_destroy(*out);
  *out = NULL;
  return st;
}
