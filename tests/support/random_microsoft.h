/* SPDX-License-Identifier: Apache-2.0
 * Templates for operators of ONNX Runtime; see random_ops.h, which lists them with the others. */
#ifndef TESTS_SUPPORT_RANDOM_MICROSOFT_H
#define TESTS_SUPPORT_RANDOM_MICROSOFT_H

#include "support/random_graph.h"

/* ---- element by element, norms ---- */

static inline int64_t last_of(const builder *m, int v) {
  return shape_of(m, v)->dims[rank_of(m, v) - 1];
}

static inline bool of_bias(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 1, 5);
  if (v < 0) return false;
  name bias = stored_vector(m, last_of(m, v), "");
  bool without = strstr(op, "Fast") && chance(m, 30);
  add(m, "%s = %s(%s, %s)\n", fresh(m, 'v').text, op, name_of(m, v), without ? "_" : bias.text);
  return true;
}

static inline bool of_bias_add(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 2, 5);
  if (v < 0) return false;
  name bias = stored_vector(m, last_of(m, v), ""), skip = stored_of(m, *shape_of(m, v), "");
  add(m, "%s = %s(%s, %s, %s)\n", fresh(m, 'v').text, op, name_of(m, v), bias.text, skip.text);
  return true;
}

static inline bool of_skip_norm(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 2, 4);
  if (v < 0 || last_of(m, v) < 2) return false;
  bool simple = strstr(op, "Simplified") != NULL;
  name skip = partner(m, v), y = fresh(m, 'v'), sum = fresh(m, 'v'), mean = fresh(m, 'v');
  name scale = stored_vector(m, last_of(m, v), ""), shift = stored_vector(m, last_of(m, v), "");
  name bias = stored_vector(m, last_of(m, v), "");
  add(m, "%s, %s, _, %s = %s(%s, %s, %s, %s%s%s)\n", y.text,
      chance(m, 20) && !simple ? mean.text : "_", chance(m, 50) ? sum.text : "_", op, name_of(m, v),
      skip.text, scale.text,
      simple          ? ""
      : chance(m, 70) ? shift.text
                      : "_",
      simple ? "" : ", ", chance(m, 50) ? bias.text : "_");
  return true;
}

/* Embedding layers; the row indices are constants. */
static inline bool of_embedding(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 3, 3);
  if (v < 0 || last_of(m, v) < 2) return false;
  const int64_t *x = shape_of(m, v)->dims;
  int64_t words[2] = {4, x[2]}, places[2] = {x[1] + 1, x[2]};
  name ids = fresh(m, 'k'), y = fresh(m, 'v'), sum = fresh(m, 'v');
  name table = stored_of(m, laci_shape_of(2, words), ""),
       place = stored_of(m, laci_shape_of(2, places), "");
  name kinds = stored_of(m, laci_shape_of(2, words), "");
  name scale = stored_vector(m, x[2], ""), shift = stored_vector(m, x[2], "");
  bool kind = chance(m, 50);
  add(m, "stored %s %lldx%lld i32 =", ids.text, (long long)x[0], (long long)x[1]);
  for (int64_t i = 0; i < x[0] * x[1]; i++) add(m, " %lld", (long long)draw(m, 4));
  add(m, "\n%s, _, %s = %s(%s, %s, %s, %s, %s, %s, %s)\n", y.text, chance(m, 40) ? sum.text : "_",
      op, ids.text, kind ? ids.text : "_", table.text, place.text, kind ? kinds.text : "_",
      scale.text, shift.text);
  add(m, "%s = Add(%s, %s)\n", fresh(m, 'v').text, name_of(m, v), y.text);
  return true;
}

/* ---- layers ---- */

static inline const char *an_activation(builder *m) {
  static const char *const names[] = {"", "activation=\"Relu\"", "activation=\"Tanh\"",
                                      "activation=\"LeakyRelu\""};
  return names[draw(m, 4)];
}

static inline bool of_fused_conv(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 3, 4);
  if (v < 0) return false;
  laci_shape y = *shape_of(m, v), w = {.rank = y.rank};
  int64_t c = y.dims[1], groups = chance(m, 55) ? 1 : chance(m, 50) ? c : c % 2 ? 1 : 2;
  w.dims[0] = y.dims[1] = groups * (1 + draw(m, groups > 1 ? 3 : 6));
  w.dims[1] = c / groups;
  for (int a = 2; a < w.rank; a++) w.dims[a] = 1 + 2 * draw(m, 2);
  for (int a = 3; a < w.rank; a++) w.dims[a] = w.dims[2];
  name weight = stored_of(m, w, ""), bias = stored_vector(m, w.dims[0], "");
  name sum = stored_of(m, y, "");
  const char *pads = w.dims[2] == 1 ? "" : w.rank == 3 ? "pads=1,1" : "pads=1,1,1,1";
  add(m, "%s = %s(%s, %s, %s, %s) group=%lld %s %s\n", fresh(m, 'v').text, op, name_of(m, v),
      weight.text, chance(m, 60) ? bias.text : "_", chance(m, 50) ? sum.text : "_",
      (long long)groups, pads, an_activation(m));
  return true;
}

static inline bool of_nhwc_conv(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 3, 4);
  if (v < 0) return false;
  laci_shape y = *shape_of(m, v), w = {.rank = y.rank};
  w.dims[1] = last_of(m, v);
  w.dims[0] = y.dims[y.rank - 1] = 1 + draw(m, 6);
  for (int a = 2; a < w.rank; a++) w.dims[a] = 1;
  name weight = stored_of(m, w, ""), bias = stored_vector(m, w.dims[0], "");
  name sum = stored_of(m, y, "");
  add(m, "%s = %s(%s, %s, %s, %s) %s\n", fresh(m, 'v').text, op, name_of(m, v), weight.text,
      chance(m, 60) ? bias.text : "_", chance(m, 50) ? sum.text : "_", an_activation(m));
  return true;
}

static inline bool of_fused_gemm(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 2, 2);
  if (v < 0) return false;
  int trans_a = chance(m, 15), trans_b = chance(m, 50);
  int64_t k = shape_of(m, v)->dims[trans_a ? 0 : 1], n = 1 + draw(m, 6);
  int64_t dims[2] = {trans_b ? n : k, trans_b ? k : n};
  name weight = stored_of(m, laci_shape_of(2, dims), ""), bias = stored_vector(m, n, "");
  add(m, "%s = %s(%s, %s, %s) transA=%d transB=%d alpha=0.5 %s\n", fresh(m, 'v').text, op,
      name_of(m, v), weight.text, chance(m, 60) ? bias.text : "_", trans_a, trans_b,
      an_activation(m));
  return true;
}

/* FusedMatMul of a value with a stored tensor, sometimes of the same rank, or with itself. */
static inline bool of_fused_matmul(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 2, 4);
  if (v < 0) return false;
  const laci_shape *x = shape_of(m, v);
  int rank = x->rank, trans_b = chance(m, 50);
  if (chance(m, 20)) {
    add(m, "%s = %s(%s, %s) transB=1 alpha=0.5\n", fresh(m, 'v').text, op, name_of(m, v),
        name_of(m, v));
    return true;
  }
  bool trans_a = chance(m, 20), first = rank > 2 && chance(m, 30);
  int64_t k = trans_a ? x->dims[first ? 0 : rank - 2] : x->dims[rank - 1], n = 1 + draw(m, 5);
  int64_t dims[2] = {trans_b ? n : k, trans_b ? k : n};
  name w = stored_of(m, laci_shape_of(2, dims), "");
  add(m, "%s = %s(%s, %s) transA=%d transB=%d transBatchA=%d alpha=0.5\n", fresh(m, 'v').text, op,
      name_of(m, v), w.text, (int)trans_a, trans_b, (int)first);
  return true;
}

static inline bool of_matmul_n_bits(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 2, 4);
  if (v < 0) return false;
  long long k = (long long)last_of(m, v), n = 1 + (long long)draw(m, 4), blocks = (k + 15) / 16;
  name w = fresh(m, 'p'), scales = stored_vector(m, n * blocks, ""), bias = stored_vector(m, n, "");
  add(m, "stored %s %lldx%lldx8 u8\n", w.text, n, blocks);
  add(m, "%s = %s(%s, %s, %s, _, _, %s) K=%lld N=%lld bits=4 block_size=16\n", fresh(m, 'v').text,
      op, name_of(m, v), w.text, scales.text, chance(m, 50) ? bias.text : "_", k, n);
  return true;
}

/* ---- attention ---- */

static inline bool of_packed_attention(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 3, 3);
  if (v < 0) return false;
  int64_t heads = 1 + draw(m, 2), size = 1 + draw(m, 3),
          own = chance(m, 50) ? size : 1 + draw(m, 3);
  int64_t q = heads * size, width = 2 * q + heads * own, dims[2] = {last_of(m, v), width};
  name w = stored_of(m, laci_shape_of(2, dims), ""), b = stored_vector(m, width, "");
  add(m, "%s = %s(%s, %s, %s) num_heads=%lld unidirectional=%d qkv_hidden_sizes=%lld,%lld,%lld\n",
      fresh(m, 'v').text, op, name_of(m, v), w.text, chance(m, 70) ? b.text : "_", (long long)heads,
      (int)chance(m, 30), (long long)q, (long long)q, (long long)(heads * own));
  return true;
}

/* Adds n projections of one value, of the given widths. */
static inline void project(builder *m, int v, int n, const int64_t *widths, name *parts) {
  for (int i = 0; i < n; i++) {
    int64_t dims[2] = {last_of(m, v), widths[i]};
    name w = stored_of(m, laci_shape_of(2, dims), "");
    parts[i] = fresh(m, 'v');
    add(m, "%s = MatMul(%s, %s)\n", parts[i].text, name_of(m, v), w.text);
  }
}

static inline bool of_heads(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 3, 3);
  if (v < 0) return false;
  int64_t heads = 1 + draw(m, 2), size = 1 + draw(m, 3), own = 1 + draw(m, 3);
  int64_t widths[3] = {heads * size, heads * size, heads * own};
  name parts[3], bias = stored_vector(m, heads * (2 * size + own), "");
  project(m, v, 3, widths, parts);
  add(m, "%s = %s(%s, %s, %s, %s) num_heads=%lld unidirectional=%d\n", fresh(m, 'v').text, op,
      parts[0].text, parts[1].text, parts[2].text, chance(m, 60) ? bias.text : "_",
      (long long)heads, (int)chance(m, 30));
  return true;
}

static inline bool of_grouped_queries(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 3, 3);
  if (v < 0) return false;
  const int64_t *x = shape_of(m, v)->dims;
  long long kv = 1 + (long long)draw(m, 2), q = kv * (1 + (long long)draw(m, 2));
  long long batch = (long long)x[0], tokens = (long long)x[1], size = 2 + (long long)draw(m, 2);
  bool packed = chance(m, 40), rotation = size == 2 && chance(m, 40);
  int64_t widths[3] = {packed ? (q + 2 * kv) * size : q * size, kv * size, kv * size};
  int64_t table[2] = {tokens, 1};
  name parts[3] = {{""}, {"_"}, {"_"}}, lengths = fresh(m, 'k'), total = fresh(m, 'k');
  project(m, v, packed ? 1 : 3, widths, parts);
  add(m, "stored %s %lld i32 =", lengths.text, batch);
  for (long long b = 0; b < batch; b++) add(m, " %lld", tokens - 1);
  add(m, "\nstored %s 1 i32 = %lld\n", total.text, tokens);
  name c = stored_of(m, laci_shape_of(2, table), ""), s = stored_of(m, laci_shape_of(2, table), "");
  add(m,
      "%s = %s(%s, %s, %s, _, _, %s, %s, %s, %s) num_heads=%lld kv_num_heads=%lld do_rotary=%d\n",
      fresh(m, 'v').text, op, parts[0].text, parts[1].text, parts[2].text, lengths.text, total.text,
      rotation ? c.text : "_", rotation ? s.text : "_", q, kv, (int)rotation);
  return true;
}

static inline bool of_angles(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 3, 4);
  if (v < 0) return false;
  int64_t size = last_of(m, v), tokens = shape_of(m, v)->dims[rank_of(m, v) - 2];
  if (size % 2) return false;
  int64_t table[2] = {tokens, size / 2}, zero = 0;
  name c = stored_of(m, laci_shape_of(2, table), ""), s = stored_of(m, laci_shape_of(2, table), "");
  name start = stored_ints(m, 1, &zero);
  add(m, "%s = %s(%s, %s, %s, %s) interleaved=%d\n", fresh(m, 'v').text, op, name_of(m, v),
      start.text, c.text, s.text, (int)chance(m, 50));
  return true;
}

#endif
