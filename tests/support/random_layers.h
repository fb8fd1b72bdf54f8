/* SPDX-License-Identifier: Apache-2.0
 * More templates: for operators that are a whole layer, for detectors, signals, losses and integer
 * products. See random_ops.h, which lists them with the others. */
#ifndef TESTS_SUPPORT_RANDOM_LAYERS_H
#define TESTS_SUPPORT_RANDOM_LAYERS_H

#include "support/random_graph.h"

/* ---- sequences ---- */

/* Recurrent operators; both directions are concatenated, as in common networks: [T, D, B, H] to [T,
 * B, D * H]. */
static inline bool of_recurrent(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 3, 3);
  if (v < 0) return false;
  int64_t gates = strcmp(op, "LSTM") == 0 ? 4 : strcmp(op, "GRU") == 0 ? 3 : 1;
  const int64_t *x = shape_of(m, v)->dims;
  int64_t n = 1 + chance(m, 40), hidden = 1 + draw(m, 4);
  int64_t w_dims[3] = {n, gates * hidden, x[2]}, r_dims[3] = {n, gates * hidden, hidden};
  int64_t b_dims[2] = {n, 2 * gates * hidden}, h_dims[3] = {n, x[1], hidden};
  name w = stored_of(m, laci_shape_of(3, w_dims), ""),
       r = stored_of(m, laci_shape_of(3, r_dims), "");
  name b = stored_of(m, laci_shape_of(2, b_dims), ""),
       h = stored_of(m, laci_shape_of(3, h_dims), "");
  name y = fresh(m, 'v'), last = fresh(m, 'v'), t = fresh(m, 'v');
  add(m, "%s, %s = %s(%s, %s, %s, %s, _, %s) hidden_size=%lld direction=\"%s\"\n", y.text,
      chance(m, 30) ? last.text : "_", op, name_of(m, v), w.text, r.text,
      chance(m, 70) ? b.text : "_", chance(m, 40) ? h.text : "_", (long long)hidden,
      n == 2          ? "bidirectional"
      : chance(m, 30) ? "reverse"
                      : "forward");
  if (chance(m, 30)) return true;
  int64_t side[3] = {x[0], x[1], n * hidden};
  name shape = stored_ints(m, 3, side);
  add(m, "%s = Transpose(%s) perm=0,2,1,3\n%s = Reshape(%s, %s)\n", t.text, y.text,
      fresh(m, 'v').text, t.text, shape.text);
  return true;
}

static inline bool of_causal_conv(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 3, 3);
  if (v < 0) return false;
  const int64_t *x = shape_of(m, v)->dims;
  int64_t k = 2 + draw(m, 2), w_dims[3] = {x[1], 1, k}, s_dims[3] = {x[0], x[1], k - 1};
  name w = stored_of(m, laci_shape_of(3, w_dims), ""), b = stored_vector(m, x[1], "");
  name s = stored_of(m, laci_shape_of(3, s_dims), ""), y = fresh(m, 'v'), next = fresh(m, 'v');
  add(m, "%s, %s = %s(%s, %s, %s, %s) activation=\"%s\"\n", y.text, chance(m, 30) ? next.text : "_",
      op, name_of(m, v), w.text, chance(m, 60) ? b.text : "_", chance(m, 40) ? s.text : "_",
      chance(m, 50) ? "silu" : "none");
  return true;
}

/* Attention; queries, keys and values are projections of one value. */
static inline bool of_attention(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 3, 4);
  if (v < 0) return false;
  int rank = rank_of(m, v);
  bool shared = rank == 3 && chance(m, 30); /* two query heads share a head of keys and values */
  int64_t heads = 1 + draw(m, 2), size = 1 + draw(m, 3), own = 1 + draw(m, 3);
  int64_t in = shape_of(m, v)->dims[rank - 1], n = rank == 3 ? heads : 1;
  int64_t widths[3] = {n * size * (shared ? 2 : 1), n * size, n * own};
  name part[3], y = fresh(m, 'v');
  for (int i = 0; i < 3; i++) {
    int64_t dims[2] = {in, widths[i]};
    name w = stored_of(m, laci_shape_of(2, dims), "");
    part[i] = fresh(m, 'v');
    add(m, "%s = MatMul(%s, %s)\n", part[i].text, name_of(m, v), w.text);
  }
  add(m, "%s = %s(%s, %s, %s) is_causal=%d", y.text, op, part[0].text, part[1].text, part[2].text,
      (int)chance(m, 30));
  if (rank == 3) {
    add(m, " q_num_heads=%lld kv_num_heads=%lld", (long long)(n * (shared ? 2 : 1)), (long long)n);
  }
  if (chance(m, 20)) add(m, " softcap=2.0");
  add(m, "\n");
  return true;
}

static inline bool of_rotary(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 4, 4);
  if (v < 0) return false;
  const int64_t *x = shape_of(m, v)->dims;
  if (x[3] < 2 || x[3] % 2) return false;
  int64_t table[3] = {x[0], x[2], x[3] / 2};
  name c = stored_of(m, laci_shape_of(3, table), ""), s = stored_of(m, laci_shape_of(3, table), "");
  add(m, "%s = %s(%s, %s, %s) interleaved=%d\n", fresh(m, 'v').text, op, name_of(m, v), c.text,
      s.text, (int)chance(m, 50));
  return true;
}

static inline bool of_tensor_scatter(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 3, 4);
  if (v < 0) return false;
  laci_shape update = *shape_of(m, v);
  int axis = 1 + (int)draw(m, update.rank - 1);
  update.dims[axis] = 1 + draw(m, update.dims[axis]);
  name u = stored_of(m, update, "");
  add(m, "%s = %s(%s, %s) axis=%d mode=\"circular\"\n", fresh(m, 'v').text, op, name_of(m, v),
      u.text, axis);
  return true;
}

/* ---- norms and gates ---- */

static inline bool of_rms_norm(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 2, 5);
  if (v < 0) return false;
  int rank = rank_of(m, v), axis = rank - 1 - (int)draw(m, 2);
  laci_shape part = {0};
  for (int a = axis; a < rank; a++) part.dims[part.rank++] = shape_of(m, v)->dims[a];
  name scale = stored_of(m, part, "");
  add(m, "%s = %s(%s, %s) axis=%d\n", fresh(m, 'v').text, op, name_of(m, v), scale.text, axis);
  return true;
}

static inline bool of_mean_variance(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 3, 5);
  if (v < 0) return false;
  int rank = rank_of(m, v), first = (int)draw(m, rank), second = (first + 1) % rank;
  if (shape_of(m, v)->dims[first] * shape_of(m, v)->dims[second] == 1)
    return false; /* the result
                                                                                        would be all
                                                                                        0 */
  add(m, "%s = %s(%s) axes=%d,%d\n", fresh(m, 'v').text, op, name_of(m, v), first, second);
  return true;
}

static inline bool of_gated(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 1, 5);
  if (v < 0) return false;
  name scale = stored_of(m, smaller_shape(m, shape_of(m, v)), ""), gate = fresh(m, 'v');
  add(m, "%s = Mul(%s, %s)\n%s = %s(%s, %s)\n", gate.text, name_of(m, v), scale.text,
      fresh(m, 'v').text, op, gate.text, name_of(m, v));
  return true;
}

/* ---- images ---- */

static inline bool of_grid_sample(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 4, 4);
  if (v < 0) return false;
  int64_t dims[4] = {shape_of(m, v)->dims[0], 1 + draw(m, 3), 1 + draw(m, 3), 2};
  name grid = stored_of(m, laci_shape_of(4, dims), "");
  add(m, "%s = %s(%s, %s) padding_mode=\"%s\"\n", fresh(m, 'v').text, op, name_of(m, v), grid.text,
      chance(m, 50) ? "border" : "zeros");
  return true;
}

static inline bool of_deform_conv(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 4, 4);
  if (v < 0) return false;
  const int64_t *x = shape_of(m, v)->dims;
  int64_t group = x[1] % 2 == 0 && chance(m, 40) ? 2 : 1,
          sets = x[1] % 2 == 0 && chance(m, 40) ? 2 : 1;
  int64_t k = 1 + draw(m, 2), pad = draw(m, 2), step = 1 + draw(m, 2), wide = 1 + draw(m, 2);
  int64_t reach = (k - 1) * wide + 1, h = (x[2] + pad - reach) / step + 1,
          w = (x[3] + pad - reach) / step + 1, out = group * (1 + draw(m, 3));
  int64_t weight_dims[4] = {out, x[1] / group, k, k},
          offset_dims[4] = {x[0], 2 * sets * k * k, h, w},
          mask_dims[4] = {x[0], sets * k * k, h, w};
  if (h < 1 || w < 1 || x[2] + pad < reach || x[3] + pad < reach) return false;
  name weight = stored_of(m, laci_shape_of(4, weight_dims), ""), bias = stored_vector(m, out, ""),
       offset = stored_of(m, laci_shape_of(4, offset_dims), ""),
       mask = stored_of(m, laci_shape_of(4, mask_dims), "");
  add(m, "%s = %s(%s, %s, %s, %s, %s) group=%lld offset_group=%lld", fresh(m, 'v').text, op,
      name_of(m, v), weight.text, offset.text, chance(m, 50) ? bias.text : "_",
      chance(m, 50) ? mask.text : "_", (long long)group, (long long)sets);
  add(m, " pads=0,%lld,%lld,0 strides=%lld,%lld dilations=%lld,%lld\n", (long long)pad,
      (long long)pad, (long long)step, (long long)step, (long long)wide, (long long)wide);
  return true;
}

static inline bool of_affine_grid(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 4, 4);
  if (v < 0) return false;
  int64_t n = shape_of(m, v)->dims[0], dims[3] = {n, 2, 3}, size[4] = {n, 1, 2, 3};
  name theta = stored_of(m, laci_shape_of(3, dims), ""), list = stored_ints(m, 4, size);
  name grid = fresh(m, 'v');
  add(m, "%s = %s(%s, %s)\n%s = GridSample(%s, %s)\n", grid.text, op, theta.text, list.text,
      fresh(m, 'v').text, name_of(m, v), grid.text);
  return true;
}

static inline bool of_roi_align(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 4, 4);
  if (v < 0) return false;
  name regions = fresh(m, 'k'), images = fresh(m, 'k');
  add(m, "stored %s 2x4 = 0.1 0.2 1.7 1.9 0.0 0.4 2.2 1.3\nstored %s 2 i64 = 0 %lld\n",
      regions.text, images.text, (long long)draw(m, shape_of(m, v)->dims[0]));
  add(m, "%s = %s(%s, %s, %s) output_height=2 output_width=1 mode=\"%s\"\n", fresh(m, 'v').text, op,
      name_of(m, v), regions.text, images.text, chance(m, 30) ? "max" : "avg");
  return true;
}

static inline bool of_unpool(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 3, 3);
  if (v < 0) return false;
  name pooled = fresh(m, 'v'), places = fresh(m, 'v');
  add(m, "%s, %s = MaxPool(%s) kernel_shape=2,\n%s = %s(%s, %s) kernel_shape=2,\n", pooled.text,
      places.text, name_of(m, v), fresh(m, 'v').text, op, pooled.text, places.text);
  return true;
}

static inline bool of_col2_im(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 3, 3);
  if (v < 0) return false;
  int64_t image[2] = {2, shape_of(m, v)->dims[2] + 1}, block[2] = {2, 2};
  name sizes = stored_ints(m, 2, image), window = stored_ints(m, 2, block), four = fresh(m, 'v');
  add(m, "%s = Concat(%s, %s, %s, %s) axis=1\n", four.text, name_of(m, v), name_of(m, v),
      name_of(m, v), name_of(m, v));
  add(m, "%s = %s(%s, %s, %s)\n", fresh(m, 'v').text, op, four.text, sizes.text, window.text);
  return true;
}

static inline bool of_crop(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 1, 4);
  if (v < 0) return false;
  int64_t to[LACI_MAX_RANK];
  for (int a = 0; a < rank_of(m, v); a++) {
    int64_t size = shape_of(m, v)->dims[a];
    to[a] = chance(m, 60) ? size : 1 + draw(m, size + 2);
  }
  name sizes = stored_ints(m, rank_of(m, v), to);
  add(m, "%s = %s(%s, %s)\n", fresh(m, 'v').text, op, name_of(m, v), sizes.text);
  return true;
}

static inline bool of_compress(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 1, 4);
  if (v < 0) return false;
  int axis = (int)draw(m, rank_of(m, v));
  name which = fresh(m, 'k');
  add(m, "stored %s %lld bool = 1", which.text, (long long)shape_of(m, v)->dims[axis]);
  for (int64_t i = 1; i < shape_of(m, v)->dims[axis]; i++) add(m, " %d", (int)chance(m, 60));
  add(m, "\n%s = %s(%s, %s) axis=%d\n", fresh(m, 'v').text, op, name_of(m, v), which.text, axis);
  return true;
}

/* ---- signals and matrices ---- */

static inline bool of_dft(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 1, 3);
  if (v < 0) return false;
  char text[24];
  int64_t last_axis = rank_of(m, v);
  (void)snprintf(text, sizeof text, "%d", (int)draw(m, last_axis));
  name axes = stored_ints(m, 1, &last_axis), axis = scalar_of(m, "i64", text), real = fresh(m, 'v');
  add(m, "%s = Unsqueeze(%s, %s)\n%s = %s(%s, _, %s)\n", real.text, name_of(m, v), axes.text,
      fresh(m, 'v').text, op, real.text, axis.text);
  return true;
}

static inline bool of_taper(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 1, 4);
  if (v < 0) return false;
  char text[24];
  (void)snprintf(text, sizeof text, "%lld", (long long)shape_of(m, v)->dims[rank_of(m, v) - 1]);
  name size = scalar_of(m, "i64", text), taper = fresh(m, 'v');
  add(m, "%s = %s(%s)\n%s = Add(%s, %s)\n", taper.text, op, size.text, fresh(m, 'v').text,
      name_of(m, v), taper.text);
  return true;
}

static inline bool of_det(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 3, 4);
  if (v < 0) return false;
  int rank = rank_of(m, v);
  int64_t dims[2] = {shape_of(m, v)->dims[rank - 1], shape_of(m, v)->dims[rank - 2]};
  name right = stored_of(m, laci_shape_of(2, dims), ""), square = fresh(m, 'v');
  int64_t corner[2] = {dims[1], dims[1]};
  name more = stored_of(m, laci_shape_of(2, corner), ""), sum = fresh(m, 'v');
  add(m, "%s = MatMul(%s, %s)\n%s = Add(%s, %s)\n%s = %s(%s)\n", square.text, name_of(m, v),
      right.text, sum.text, square.text, more.text, fresh(m, 'v').text, op, sum.text);
  return true;
}

static inline bool of_stft(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 2, 2);
  if (v < 0) return false;
  int64_t size = shape_of(m, v)->dims[1], n = 1 + draw(m, size);
  name step = scalar_of(m, "i64", "1"), window = stored_vector(m, n, "");
  add(m, "%s = %s(%s, %s, %s)\n", fresh(m, 'v').text, op, name_of(m, v), step.text, window.text);
  return true;
}

/* ---- integers and losses ---- */

static inline bool of_bit_cast(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 1, 5);
  if (v < 0) return false;
  name bits = fresh(m, 'v');
  add(m, "%s = %s(%s) to=6\n%s = %s(%s) to=1\n", bits.text, op, name_of(m, v), fresh(m, 'v').text,
      op, bits.text);
  return true;
}

static inline bool of_dynamic_quantize(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 1, 5);
  if (v < 0) return false;
  name q = fresh(m, 'v'), scale = fresh(m, 'v'), zero = fresh(m, 'v');
  add(m, "%s, %s, %s = %s(%s)\n%s = DequantizeLinear(%s, %s, %s)\n", q.text, scale.text, zero.text,
      op, name_of(m, v), fresh(m, 'v').text, q.text, scale.text, zero.text);
  return true;
}

static inline bool of_integer_layer(builder *m, const char *op) {
  bool conv = strstr(op, "Conv") != NULL, again = op[0] == 'Q';
  int v = pick(m, WANT_FLOAT, conv ? 3 : 2, 4);
  if (v < 0) return false;
  int rank = rank_of(m, v);
  const int64_t *x = shape_of(m, v)->dims;
  laci_shape w = {.rank = conv ? rank : 2};
  for (int a = 2; a < w.rank; a++) w.dims[a] = 1;
  w.dims[0] = conv ? 1 + draw(m, 4) : x[rank - 1];
  w.dims[1] = conv ? x[1] : 1 + draw(m, 4);
  name scale = scalar_of(m, "f32", "0.05"), large = scalar_of(m, "f32", "0.7");
  name zero = scalar_of(m, "u8", "3"), none = scalar_of(m, "i8", "0"), weight = fresh(m, 'p');
  name q = fresh(m, 'v'), y = fresh(m, 'v');
  add(m, "stored %s ", weight.text);
  add_shape(m, &w);
  add(m, " i8\n%s = QuantizeLinear(%s, %s, %s)\n", q.text, name_of(m, v), scale.text, zero.text);
  if (again) {
    add(m, "%s = %s(%s, %s, %s, %s, %s, %s, %s, %s)\n", y.text, op, q.text, scale.text, zero.text,
        weight.text, scale.text, none.text, large.text, zero.text);
  } else {
    add(m, "%s = %s(%s, %s, %s)\n", y.text, op, q.text, weight.text, zero.text);
  }
  add(m, "%s = Cast(%s) to=1\n", fresh(m, 'v').text, y.text);
  return true;
}

static inline bool of_loss(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 2, 4);
  if (v < 0) return false;
  laci_shape shape = *shape_of(m, v);
  int64_t classes = shape.dims[1];
  for (int a = 1; a + 1 < shape.rank; a++) shape.dims[a] = shape.dims[a + 1];
  shape.rank--;
  name labels = fresh(m, 'k');
  add(m, "stored %s ", labels.text);
  add_shape(m, &shape);
  add(m, " i64 =");
  for (int64_t i = 0; i < laci_shape_count(&shape); i++)
    add(m, " %lld", (long long)draw(m, classes));
  add(m, "\n%s = %s(%s, %s) reduction=\"%s\"\n", fresh(m, 'v').text, op, name_of(m, v), labels.text,
      chance(m, 70) ? "none" : "mean");
  return true;
}

#endif
