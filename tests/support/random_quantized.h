/* SPDX-License-Identifier: Apache-2.0
 * Templates for operators on quantized operands of ONNX Runtime's format; see random_ops.h, which
 * lists them with the others. */
#ifndef TESTS_SUPPORT_RANDOM_QUANTIZED_H
#define TESTS_SUPPORT_RANDOM_QUANTIZED_H

#include "support/random_graph.h"
#include "support/random_microsoft.h"

/** A value of integers with its scale and zero point, as operands of a node: "q, scale, zero". */
typedef struct quantized {
  char operands[160];
  name scale, zero;
} quantized;

/** Adds a QuantizeLinear after a value of floats. */
static inline quantized quantize_value(builder *m, const char *value) {
  quantized made = {.scale = scalar_of(m, "f32", chance(m, 50) ? "0.06" : "0.11"),
                    .zero = scalar_of(m, "u8", chance(m, 50) ? "3" : "121")};
  name q = fresh(m, 'v');
  add(m, "%s = QuantizeLinear(%s, %s, %s)\n", q.text, value, made.scale.text, made.zero.text);
  (void)snprintf(made.operands, sizeof made.operands, "%s, %s, %s", q.text, made.scale.text,
                 made.zero.text);
  return made;
}

/** Adds a DequantizeLinear after the integers `y`, with the scale and zero point of `like`. */
static inline void dequantize_value(builder *m, name y, const quantized *like) {
  add(m, "%s = DequantizeLinear(%s, %s, %s)\n", fresh(m, 'v').text, y.text, like->scale.text,
      like->zero.text);
}

/** Adds a stored matrix of i8, and returns it. */
static inline name stored_bytes(builder *m, laci_shape shape) {
  name made = fresh(m, 'p');
  add(m, "stored %s ", made.text);
  add_shape(m, &shape);
  add(m, " i8\n");
  return made;
}

/* Of one operand, and sometimes moved in between. */
static inline bool of_quantized_one(builder *m, const char *op) {
  const bool pool = strstr(op, "Pool") != NULL;
  int v = pick(m, WANT_FLOAT, pool ? 3 : 1, 4);
  if (v < 0) return false;
  const int rank = rank_of(m, v);
  quantized x = quantize_value(m, name_of(m, v)), y = x;
  name out = fresh(m, 'v');
  const char *attrs = "";
  if (strstr(op, "Softmax")) attrs = "axis=-1 opset=13";
  if (strstr(op, "QLinearAveragePool")) attrs = rank == 3 ? "kernel_shape=1" : "kernel_shape=1,1";
  if (strstr(op, "Leaky")) attrs = "alpha=0.2";
  if (chance(m, 50)) {
    y.scale = scalar_of(m, "f32", "0.07");
    y.zero = scalar_of(m, "u8", "17");
  }
  add(m, "%s = %s(%s, %s, %s) %s\n", out.text, op, x.operands, y.scale.text, y.zero.text, attrs);
  if (rank > 1 && chance(m, 30)) {
    name moved = fresh(m, 'v');
    add(m, "%s = Transpose(%s)\n", moved.text, out.text);
    out = moved;
  }
  dequantize_value(m, out, &y);
  return true;
}

/* A convolution, or a pool, of images whose channels are the last axis. */
static inline bool of_channels_last(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 3, 4);
  if (v < 0) return false;
  const bool conv = strstr(op, "Conv") != NULL, last = !conv || chance(m, 60);
  laci_shape w = {.rank = rank_of(m, v)};
  w.dims[0] = 1 + draw(m, 4);
  for (int a = 2; a < w.rank; a++) w.dims[a] = 1;
  w.dims[1] = last ? last_of(m, v) : shape_of(m, v)->dims[1];
  quantized x = quantize_value(m, name_of(m, v));
  name out = fresh(m, 'v');
  if (conv) {
    name weight = stored_bytes(m, w), none = scalar_of(m, "i8", "0");
    add(m, "%s = %s(%s, %s, %s, %s, %s, %s) channels_last=%d\n", out.text, op, x.operands,
        weight.text, x.scale.text, none.text, x.scale.text, x.zero.text, (int)last);
  } else {
    add(m, "%s = %s(%.*s) kernel_shape=%s\n", out.text, op, (int)strcspn(x.operands, ","),
        x.operands, w.rank == 3 ? "1" : "1,1");
  }
  dequantize_value(m, out, &x);
  return true;
}

static inline bool of_quantized_lstm(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 3, 3);
  if (v < 0) return false;
  const int64_t n = 1 + chance(m, 40), hidden = 1 + draw(m, 4);
  const int64_t w_dims[3] = {n, last_of(m, v), 4 * hidden}, r_dims[3] = {n, hidden, 4 * hidden};
  name w = stored_bytes(m, laci_shape_of(3, w_dims)), r = stored_bytes(m, laci_shape_of(3, r_dims));
  name scale = stored_vector(m, n, " = 0.1"), zero = fresh(m, 'p');
  add(m, "stored %s %lld i8 =%s\n", zero.text, (long long)n, n == 1 ? " 0" : " 0 0");
  add(m, "%s = %s(%s, %s, %s, _, _, _, _, _, %s, %s, %s, %s) hidden_size=%lld direction=\"%s\"\n",
      fresh(m, 'v').text, op, name_of(m, v), w.text, r.text, scale.text, zero.text, scale.text,
      zero.text, (long long)hidden, n == 2 ? "bidirectional" : "forward");
  return true;
}

static inline bool of_quantized_two(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 1, 4);
  if (v < 0) return false;
  const bool concat = strstr(op, "Concat") != NULL, where = strstr(op, "Where") != NULL;
  name other = partner(m, v), out = fresh(m, 'v'), mask = fresh(m, 'v');
  quantized a = quantize_value(m, name_of(m, v));
  quantized b = quantize_value(m, concat ? name_of(m, v) : other.text);
  if (where) add(m, "%s = Less(%s, %s)\n", mask.text, name_of(m, v), other.text);
  if (concat) {
    add(m, "%s = %s(%s, %s, %s, %s) axis=%d\n", out.text, op, a.scale.text, a.zero.text, a.operands,
        b.operands, (int)draw(m, rank_of(m, v)));
  } else {
    add(m, "%s = %s(%s%s%s, %s, %s, %s)\n", out.text, op, where ? mask.text : "", where ? ", " : "",
        a.operands, b.operands, a.scale.text, a.zero.text);
  }
  dequantize_value(m, out, &a);
  return true;
}

static inline bool of_quantized_gemm(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 2, 2);
  if (v < 0) return false;
  const int trans_b = chance(m, 50), quantizes = chance(m, 60);
  const int64_t k = shape_of(m, v)->dims[1], n = 1 + draw(m, 6);
  const int64_t dims[2] = {trans_b ? n : k, trans_b ? k : n};
  quantized a = quantize_value(m, name_of(m, v));
  name w = stored_bytes(m, laci_shape_of(2, dims)), scales = stored_vector(m, n, "positive");
  name zeros = stored_bytes(m, laci_shape_of(1, &n)), bias = fresh(m, 'p'), out = fresh(m, 'v');
  add(m, "stored %s %lld i32\n", bias.text, (long long)n);
  add(m, "%s = %s(%s, %s, %s, %s, %s%s%s%s%s) transB=%d\n", out.text, op, a.operands, w.text,
      scales.text, zeros.text, chance(m, 60) ? bias.text : "_", quantizes ? ", " : "",
      quantizes ? a.scale.text : "", quantizes ? ", " : "", quantizes ? a.zero.text : "", trans_b);
  if (quantizes) dequantize_value(m, out, &a);
  return true;
}

/* Makes a MatMulIntegerToFloat or DynamicQuantizeMatMul, whose result is of floats. */
static inline bool of_quantized_product(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 2, 4);
  if (v < 0) return false;
  const int64_t n = 1 + draw(m, 5), dims[2] = {last_of(m, v), n};
  const bool dynamic = strstr(op, "Dynamic") != NULL, list = chance(m, 50);
  name w = stored_bytes(m, laci_shape_of(2, dims)), bias = stored_vector(m, n, "");
  name scales = list ? stored_vector(m, n, "positive") : scalar_of(m, "f32", "0.03");
  name zeros = list ? stored_bytes(m, laci_shape_of(1, &n)) : scalar_of(m, "i8", "5");
  const char *sum = chance(m, 60) ? bias.text : "_";
  if (dynamic) {
    add(m, "%s = %s(%s, %s, %s, %s, %s)\n", fresh(m, 'v').text, op, name_of(m, v), w.text,
        scales.text, chance(m, 60) ? zeros.text : "_", sum);
    return true;
  }
  name q = fresh(m, 'v'), scale = fresh(m, 'v'), zero = fresh(m, 'v');
  add(m, "%s, %s, %s = DynamicQuantizeLinear(%s)\n", q.text, scale.text, zero.text, name_of(m, v));
  add(m, "%s = %s(%s, %s, %s, %s, %s, %s, %s)\n", fresh(m, 'v').text, op, q.text, w.text,
      scale.text, scales.text, zero.text, chance(m, 60) ? zeros.text : "_", sum);
  return true;
}

static inline bool of_quantized_attention(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 3, 3);
  if (v < 0) return false;
  const int64_t heads = 1 + draw(m, 2), size = 1 + draw(m, 3), width = 3 * heads * size;
  const int64_t dims[2] = {last_of(m, v), width};
  quantized x = quantize_value(m, name_of(m, v));
  name w = stored_bytes(m, laci_shape_of(2, dims)), b = stored_vector(m, width, "");
  name scale = scalar_of(m, "f32", "0.02"), zero = scalar_of(m, "i8", "-3");
  char first[64];
  (void)snprintf(first, sizeof first, "%.*s", (int)strcspn(x.operands, ","), x.operands);
  add(m, "%s = %s(%s, %s, %s, %s, %s, _, %s, %s) num_heads=%lld unidirectional=%d\n",
      fresh(m, 'v').text, op, first, w.text, b.text, x.scale.text, scale.text, x.zero.text,
      zero.text, (long long)heads, (int)chance(m, 30));
  return true;
}

static inline bool of_quantized_embedding(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 3, 3);
  if (v < 0 || last_of(m, v) < 2) return false;
  const int64_t *x = shape_of(m, v)->dims;
  const int64_t words[2] = {4, x[2]}, places[2] = {x[1] + 1, x[2]};
  name ids = fresh(m, 'k'), y = fresh(m, 'v'), s = scalar_of(m, "f32", "0.02");
  name z = scalar_of(m, "i8", "2"), table = stored_bytes(m, laci_shape_of(2, words));
  name place = stored_bytes(m, laci_shape_of(2, places));
  name scale = stored_bytes(m, laci_shape_of(1, &x[2])),
       shift = stored_bytes(m, laci_shape_of(1, &x[2]));
  add(m, "stored %s %lldx%lld i32 =", ids.text, (long long)x[0], (long long)x[1]);
  for (int64_t i = 0; i < x[0] * x[1]; i++) add(m, " %lld", (long long)draw(m, 4));
  add(m, "\n%s = %s(%s, _, %s, %s, _, %s, %s, _, %s, %s, _, %s, %s, %s, %s, _, %s, %s)\n", y.text,
      op, ids.text, table.text, place.text, scale.text, shift.text, s.text, s.text, s.text, s.text,
      z.text, z.text, z.text, z.text);
  add(m, "%s = Add(%s, %s)\n", fresh(m, 'v').text, name_of(m, v), y.text);
  return true;
}

#endif
