/* SPDX-License-Identifier: Apache-2.0
 * Attention over rows, and its masks; see attend_in.h. Users: microsoft/ms_attention.c,
 * ms_multi_head_attention.c, ms_group_query_attention.c. */
#include "graph/ops/shared/attend_in.h"
#include "tensor/buf.h"

#include <math.h>

#include "base/error.h"
#include "base/memory.h"

typedef struct job {
  const laci_row_attention *a;
  double *work; /* scratch memory: a row of n_keys scores for each query */
} job;

static const double *row_of_head_and_token(const laci_rows *rows, int64_t batch, int64_t head,
                                           int64_t token) {
  return rows->x + batch * rows->batch + head * rows->head + token * rows->token;
}

/* Replaces row by softmax(row); by zeros where every score is minus infinity. */
static void softmax_row(double *row, int64_t n, const double *sink) {
  double largest = sink ? *sink : -INFINITY, sum = 0;
  for (int64_t i = 0; i < n; i++) largest = fmax(largest, row[i]);
  bool any = largest > -INFINITY;
  for (int64_t i = 0; i < n && any; i++) sum += row[i] = exp(row[i] - largest);
  if (any && sink) sum += exp(*sink - largest);
  for (int64_t i = 0; i < n; i++) row[i] = any ? row[i] / sum : 0;
}

static void attend_rows(int64_t begin, int64_t end, void *context) {
  const job *j = context;
  const laci_row_attention *a = j->a;
  for (int64_t at = begin; at < end; at++) {
    laci_pair_place place = {.query = at % a->n_queries,
                             .head = at / a->n_queries % a->n_heads,
                             .batch = at / a->n_queries / a->n_heads};
    int64_t shared = place.head / (a->n_heads / a->n_shared);
    const double *q = row_of_head_and_token(&a->q, place.batch, place.head, place.query);
    double *row = j->work + at * a->n_keys;
    double *y =
        a->y + ((place.batch * a->n_queries + place.query) * a->n_heads + place.head) * a->size_v;
    for (place.key = 0; place.key < a->n_keys; place.key++) {
      const double *k = row_of_head_and_token(&a->k, place.batch, shared, place.key);
      double sum = 0;
      for (int64_t i = 0; i < a->size; i++) sum += q[i] * k[i];
      sum *= a->scale;
      if (a->softcap > 0) sum = a->softcap * tanh(sum / a->softcap);
      row[place.key] = sum + (a->bias ? a->bias(a, place) : 0);
    }
    softmax_row(row, a->n_keys, a->sink ? a->sink + place.head : NULL);
    for (int64_t key = 0; key < a->n_keys; key++) {
      const double *v = row_of_head_and_token(&a->v, place.batch, shared, key);
      for (int64_t i = 0; i < a->size_v && row[key] != 0; i++) y[i] += row[key] * v[i];
    }
  }
}

lac_status laci_attention_run(const laci_eval *eval, const laci_row_attention *attend) {
  int64_t n = attend->n_batch * attend->n_heads * attend->n_queries;
  job j = {.a = attend};
  j.work = laci_alloc((size_t)n * (size_t)attend->n_keys, sizeof *j.work);
  if (!j.work) return laci_fail_memory(eval->err, eval->node->name);
  laci_eval_parallel(eval, n, attend_rows, &j);
  laci_free(j.work);
  return LAC_OK;
}

void laci_join_past_rows(const laci_joined *joined, double *out) {
  const laci_joined *j = joined;
  int64_t total = j->n_past + j->n_now;
  for (int64_t row = 0; row < j->n_batch * j->n_heads * total; row++) {
    int64_t token = row % total, at = row / total;
    const double *from =
        token < j->n_past
            ? j->past + (at * j->n_past + token) * j->size
            : row_of_head_and_token(&j->now, at / j->n_heads, at % j->n_heads, token - j->n_past);
    memcpy(out + row * j->size, from, (size_t)j->size * sizeof *out);
  }
}

/* ---- Masks ---- */

static bool is_masked_out(const laci_row_attention *a, const laci_buf *mask, laci_pair_place p) {
  switch (mask->shape.rank) {
    case 3: return mask->i[(p.batch * a->n_queries + p.query) * a->n_keys + p.key] <= 0;
    case 2: return mask->i[p.batch * a->n_keys + p.key] <= 0;
    default: break;
  }
  bool has_starts = mask->count == 2 * a->n_batch;
  return p.key >= mask->i[p.batch] || (has_starts && p.key < mask->i[a->n_batch + p.batch]);
}

double laci_key_mask_compute_bias(const laci_row_attention *attend, laci_pair_place place) {
  const laci_key_mask *m = attend->context;
  double sum = 0;
  if (m->causal && place.key > m->n_past + place.query) return -INFINITY;
  if (m->mask && is_masked_out(attend, m->mask, place)) sum += m->filter;
  if (m->bias) {
    const int64_t *dims = m->bias->shape.dims;
    int64_t batch = dims[0] == 1 ? 0 : place.batch, head = dims[1] == 1 ? 0 : place.head;
    sum +=
        m->bias->f[((batch * dims[1] + head) * attend->n_queries + place.query) * attend->n_keys +
                   place.key];
  }
  return sum;
}

bool laci_key_mask_has_fitting_shape(const laci_key_mask *mask, const laci_row_attention *attend) {
  const laci_row_attention *a = attend;
  if (mask->mask) {
    const laci_shape *shape = &mask->mask->shape;
    int64_t wide[3] = {a->n_batch, a->n_queries, a->n_keys}, narrow[2] = {a->n_batch, a->n_keys};
    laci_shape whole = laci_shape_of(3, wide), keys = laci_shape_of(2, narrow);
    bool lengths =
        shape->rank == 1 && (shape->dims[0] == a->n_batch || shape->dims[0] == 2 * a->n_batch);
    if (!mask->mask->i ||
        !(lengths || laci_shape_equal(shape, &whole) || laci_shape_equal(shape, &keys)))
      return false;
  }
  if (!mask->bias) return true;
  const int64_t *dims = mask->bias->shape.dims;
  return mask->bias->f && mask->bias->shape.rank == 4 && (dims[0] == 1 || dims[0] == a->n_batch) &&
         (dims[1] == 1 || dims[1] == a->n_heads) && dims[2] == a->n_queries && dims[3] == a->n_keys;
}
