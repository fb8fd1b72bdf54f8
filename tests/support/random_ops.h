/* SPDX-License-Identifier: Apache-2.0
 * One template for each declared operator: it appends lines that make a node of the operator, with
 * random parameters, on existing values.
 *
 * A template returns false where no value is suitable; keep() drops nodes with invalid parameters.
 * Operators of one family share a template. Next: random_graph.h (the builder), random_net.h (whole
 * networks). */
#ifndef TESTS_SUPPORT_RANDOM_OPS_H
#define TESTS_SUPPORT_RANDOM_OPS_H

#include "graph/op.h"
#include "support/random_graph.h"
#include "support/random_layers.h"
#include "support/random_microsoft.h"
#include "support/random_quantized.h"

typedef bool template_fn(builder *m, const char *op);

static inline bool add_unary(builder *m, const char *op, int v, const char *attributes) {
  if (v < 0) return false;
  add(m, "%s = %s(%s) %s\n", fresh(m, 'v').text, op, name_of(m, v), attributes);
  return true;
}

static inline bool of_float(builder *m, const char *op) {
  return add_unary(m, op, pick(m, WANT_FLOAT, 0, 5), "");
}
static inline bool of_bool(builder *m, const char *op) {
  return add_unary(m, op, pick(m, WANT_BOOL, 0, 5), "");
}
static inline bool of_int(builder *m, const char *op) {
  return add_unary(m, op, pick(m, WANT_INT, 0, 5), "");
}

static inline bool of_guarded(builder *m, const char *op, const char *guard) {
  int v = pick(m, WANT_FLOAT, 0, 5);
  if (v < 0) return false;
  name safe = fresh(m, 'v');
  add(m, "%s = %s(%s)\n%s = %s(%s)\n", safe.text, guard, name_of(m, v), fresh(m, 'v').text, op,
      safe.text);
  return true;
}
/* Functions that are defined on (0, 1) only, and on [1, inf) only. */
static inline bool of_unit(builder *m, const char *op) { return of_guarded(m, op, "Sigmoid"); }
static inline bool of_large(builder *m, const char *op) { return of_guarded(m, op, "Cosh"); }
/* Functions that grow fast. */
static inline bool of_small(builder *m, const char *op) { return of_guarded(m, op, "Tanh"); }

static inline bool of_two(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 0, 5);
  if (v < 0) return false;
  bool slope =
      strcmp(op, "PRelu") == 0; /* the slope is not read where nothing is negative, so it is not
                                   shared with other nodes */
  name other = slope ? stored_of(m, smaller_shape(m, shape_of(m, v)), "") : partner(m, v),
       out = fresh(m, 'v');
  const char *attributes = strcmp(op, "Mod") == 0 ? "fmod=1" : "";
  bool swapped = chance(m, 30) && !slope;
  add(m, "%s = %s(%s, %s) %s\n", out.text, op, swapped ? other.text : name_of(m, v),
      swapped ? name_of(m, v) : other.text, attributes);
  return true;
}

static inline bool of_power(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 0, 5);
  if (v < 0) return false;
  name base = fresh(m, 'v'), other = stored_of(m, smaller_shape(m, shape_of(m, v)), "positive");
  add(m, "%s = Sigmoid(%s)\n%s = %s(%s, %s)\n", base.text, name_of(m, v), fresh(m, 'v').text, op,
      base.text, other.text);
  return true;
}

static inline bool of_many(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 0, 5);
  if (v < 0) return false;
  name a = partner(m, v), b = partner(m, v);
  add(m, "%s = %s(%s, %s, %s)\n", fresh(m, 'v').text, op, a.text, name_of(m, v), b.text);
  return true;
}

static inline bool of_bools(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 0, 5), old = pick(m, WANT_BOOL, 0, 5);
  if (v < 0) return false;
  name zero = scalar_of(m, "f32", "0.1"), a = fresh(m, 'v'), other = partner(m, v),
       b = fresh(m, 'v');
  add(m, "%s = Greater(%s, %s)\n%s = Less(%s, %s)\n", a.text, name_of(m, v), zero.text, b.text,
      other.text, zero.text);
  add(m, "%s = %s(%s, %s)\n", fresh(m, 'v').text, op, a.text,
      old >= 0 && chance(m, 30) ? name_of(m, old) : b.text);
  return true;
}

static inline name add_integers(builder *m, int v, int type) {
  name scale = scalar_of(m, "f32", "9.5"), big = fresh(m, 'v'), out = fresh(m, 'v'),
       abs = fresh(m, 'v');
  add(m, "%s = Abs(%s)\n%s = Mul(%s, %s)\n%s = Cast(%s) to=%d\n", abs.text, name_of(m, v), big.text,
      abs.text, scale.text, out.text, big.text, type);
  return out;
}

static inline bool of_integers(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 0, 5);
  if (v < 0) return false;
  bool shift = strcmp(op, "BitShift") == 0;
  name a = add_integers(m, v, shift ? 12 : 7), b = add_integers(m, v, shift ? 12 : 7);
  add(m, "%s = %s(%s, %s) %s\n", fresh(m, 'v').text, op, a.text, b.text,
      shift ? "direction=\"LEFT\"" : "");
  return true;
}

static inline bool of_where(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 0, 5);
  if (v < 0) return false;
  name limit = partner(m, v), test = fresh(m, 'v'), other = partner(m, v);
  add(m, "%s = Less(%s, %s)\n", test.text, name_of(m, v), limit.text);
  add(m, "%s = %s(%s, %s, %s)\n", fresh(m, 'v').text, op, test.text, name_of(m, v), other.text);
  return true;
}

static inline bool of_clip(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 0, 5);
  if (v < 0) return false;
  name low = scalar_of(m, "f32", "-0.6"), high = scalar_of(m, "f32", "0.7");
  add(m, "%s = %s(%s, %s, %s)\n", fresh(m, 'v').text, op, name_of(m, v), low.text, high.text);
  return true;
}

static inline bool of_cast(builder *m, const char *op) {
  int v = pick(m, chance(m, 30) ? WANT_BOOL : WANT_FLOAT, 0, 5), like = pick(m, WANT_FLOAT, 0, 5);
  if (v < 0 || like < 0) return false;
  if (strcmp(op, "CastLike") == 0) {
    add(m, "%s = CastLike(%s, %s)\n", fresh(m, 'v').text, name_of(m, v), name_of(m, like));
    return true;
  }
  return add_unary(m, op, v, chance(m, 80) ? "to=1" : chance(m, 50) ? "to=7" : "to=9");
}

static inline bool of_quantize(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 1, 5);
  if (v < 0) return false;
  int axis = (int)draw(m, rank_of(m, v));
  bool along = chance(m, 60), dequantize = strcmp(op, "DequantizeLinear") == 0;
  name scale = along ? stored_vector(m, shape_of(m, v)->dims[axis], "positive")
                     : scalar_of(m, "f32", "0.05");
  name q = fresh(m, 'v');
  if (dequantize && chance(m, 60)) { /* a stored integer weight */
    laci_shape shape = *shape_of(m, v);
    name w = fresh(m, 'p');
    add(m, "stored %s ", w.text);
    add_shape(m, &shape);
    add(m, " i8\n%s = DequantizeLinear(%s, %s) axis=%d\n", q.text, w.text, scale.text, axis);
    add(m, "%s = Add(%s, %s)\n", fresh(m, 'v').text, name_of(m, v), q.text);
    return true;
  }
  add(m, "%s = QuantizeLinear(%s, %s) axis=%d\n", q.text, name_of(m, v), scale.text, axis);
  add(m, "%s = DequantizeLinear(%s, %s) axis=%d\n", fresh(m, 'v').text, q.text, scale.text, axis);
  return true;
}

/* ---- reductions and normalizations ---- */

static inline bool of_reduce(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 1, 5);
  if (v < 0) return false;
  int rank = rank_of(m, v), n = 1 + (int)draw(m, rank > 1 ? 2 : 1), first = (int)draw(m, rank);
  int64_t axes[2] = {first, (first + 1) % rank};
  if (n == 2 && axes[0] == axes[1]) n = 1;
  name safe = fresh(m, 'v'), list = stored_ints(m, n, axes), out = fresh(m, 'v');
  add(m, "%s = %s(%s)\n", safe.text, strstr(op, "Log") ? "Sigmoid" : "Identity", name_of(m, v));
  add(m, "%s = %s(%s, %s) keepdims=%d\n", out.text, op, safe.text, list.text, (int)chance(m, 60));
  return true;
}

static inline bool of_softmax(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 1, 5);
  if (v < 0) return false;
  char text[32];
  (void)snprintf(text, sizeof text, "axis=%d", (int)draw(m, rank_of(m, v)));
  bool old = chance(m, 25); /* before opset 13, all axes from `axis` on are reduced together */
  if (old) add(m, "opset 12\n");
  add_unary(m, op, v, text);
  if (old) add(m, "opset 22\n");
  return true;
}

static inline bool of_batch_norm(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 2, 5);
  if (v < 0) return false;
  int64_t c = shape_of(m, v)->dims[1];
  name a = stored_vector(m, c, ""), b = stored_vector(m, c, ""), mean = stored_vector(m, c, ""),
       variance = stored_vector(m, c, "positive");
  add(m, "%s = %s(%s, %s, %s, %s, %s)\n", fresh(m, 'v').text, op, name_of(m, v), a.text, b.text,
      mean.text, variance.text);
  return true;
}

static inline bool of_instance_norm(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 3, 5);
  if (v < 0 || laci_shape_count_range(shape_of(m, v), 2, rank_of(m, v)) == 1)
    return false; /* x - mean would be 0 */
  int64_t c = shape_of(m, v)->dims[1];
  name a = stored_vector(m, c, ""), b = stored_vector(m, c, "");
  add(m, "%s = %s(%s, %s, %s)\n", fresh(m, 'v').text, op, name_of(m, v), a.text, b.text);
  return true;
}

static inline bool of_group_norm(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 3, 5);
  if (v < 0) return false;
  int64_t c = shape_of(m, v)->dims[1], groups = c % 2 == 0 && chance(m, 70) ? 2 : 1;
  bool old = chance(m, 30);
  name a = stored_vector(m, old ? groups : c, ""), b = stored_vector(m, old ? groups : c, "");
  if (old) add(m, "opset 18\n");
  add(m, "%s = %s(%s, %s, %s) num_groups=%lld\n", fresh(m, 'v').text, op, name_of(m, v), a.text,
      b.text, (long long)groups);
  if (old) add(m, "opset 22\n");
  return true;
}

static inline bool of_layer_norm(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 2, 5);
  if (v < 0) return false;
  int rank = rank_of(m, v), axis = rank - 1 - (int)draw(m, 2);
  laci_shape part = {0};
  for (int a = axis; a < rank; a++) part.dims[part.rank++] = shape_of(m, v)->dims[a];
  name scale = stored_of(m, part, ""), bias = stored_of(m, part, "");
  add(m, "%s = %s(%s, %s, %s) axis=%d\n", fresh(m, 'v').text, op, name_of(m, v), scale.text,
      chance(m, 70) ? bias.text : "_", axis);
  return true;
}

static inline bool of_axis(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 1, 5);
  char text[32];
  if (v < 0) return false;
  (void)snprintf(text, sizeof text, "axis=%d", (int)draw(m, rank_of(m, v)));
  return add_unary(m, op, v, text);
}

static inline bool of_lrn(builder *m, const char *op) {
  return add_unary(m, op, pick(m, WANT_FLOAT, 3, 4), "size=3");
}

static inline bool of_top_k(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 1, 5);
  if (v < 0) return false;
  int64_t k = 1 + draw(m, 2);
  name count = stored_ints(m, 1, &k);
  add(m, "%s, %s = %s(%s, %s) axis=%d\n", fresh(m, 'v').text,
      chance(m, 50) ? "_" : fresh(m, 'v').text, op, name_of(m, v), count.text,
      (int)draw(m, rank_of(m, v)));
  return true;
}

static inline bool of_cumsum(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 1, 5);
  if (v < 0) return false;
  char text[32];
  (void)snprintf(text, sizeof text, "%d", (int)draw(m, rank_of(m, v)));
  name axis = scalar_of(m, "i64", text);
  add(m, "%s = %s(%s, %s)\n", fresh(m, 'v').text, op, name_of(m, v), axis.text);
  return true;
}

/* ---- windows and layers ---- */

static inline bool of_pool(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 3, 4);
  if (v < 0) return false;
  bool flat = rank_of(m, v) == 3, indices = strcmp(op, "MaxPool") == 0 && chance(m, 15);
  name out = fresh(m, 'v'), places = fresh(m, 'v');
  add(m, "%s%s%s = %s(%s) kernel_shape=%s", out.text, indices ? ", " : "",
      indices ? places.text : "", op, name_of(m, v), flat ? "2," : "2,2");
  if (chance(m, 50)) add(m, " strides=%s", flat ? "2," : "2,2");
  if (chance(m, 30)) add(m, " pads=%s", flat ? "1,0" : "1,0,1,0");
  add(m, "\n");
  return true;
}

static inline bool of_image(builder *m, const char *op) {
  return add_unary(m, op, pick(m, WANT_FLOAT, 3, 4), "");
}

static inline int64_t a_divisor(builder *m, int64_t n) {
  int64_t d = 1 + draw(m, n);
  while (n % d) d = 1 + draw(m, n);
  return d;
}

/* Adds a weight. Sometimes it is computed: by Identity, by two Transposes, or as a constant of
 * equal numbers. */
static inline name weight_of(builder *m, laci_shape shape) {
  name out = fresh(m, 'v');
  int kind = (int)draw(m, 100);
  if (kind < 4) {
    name dims = stored_ints(m, shape.rank, shape.dims);
    add(m, "%s = ConstantOfShape(%s)\n", out.text, dims.text);
    return out;
  }
  name stored = stored_of(m, shape, "");
  if (kind >= 12) return stored;
  if (kind < 8) add(m, "%s = Identity(%s)\n", out.text, stored.text);
  else
    add(m, "%s = Mul(%s, %s)\n", out.text, stored.text,
        stored_of(m, smaller_shape(m, &shape), "").text);
  return out;
}

static inline void add_layer(builder *m, const char *op, int v, name weight, int64_t channels_out,
                             const char *rest) {
  name bias = stored_vector(m, channels_out, ""), out = fresh(m, 'v');
  add(m, "%s = %s(%s, %s, %s) %s\n", out.text, op, name_of(m, v), weight.text,
      chance(m, 60) ? bias.text : "_", rest);
}

static inline bool of_conv(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 3, 4);
  if (v < 0) return false;
  const laci_shape *x = shape_of(m, v);
  bool transposed = strcmp(op, "ConvTranspose") == 0;
  int64_t c = x->dims[1], groups = chance(m, 55) ? 1 : chance(m, 50) ? c : a_divisor(m, c);
  int64_t out = groups * (1 + draw(m, groups > 1 ? 3 : 6)), kernel = 1 + 2 * draw(m, 2);
  laci_shape w = {.rank = x->rank};
  w.dims[0] = transposed ? c : out;
  w.dims[1] = transposed ? out / groups : c / groups;
  for (int a = 2; a < x->rank; a++) w.dims[a] = kernel;
  char rest[80];
  const char *pads = x->rank == 3 ? "pads=1,1" : "pads=1,1,1,1";
  (void)snprintf(rest, sizeof rest, "group=%lld %s %s", (long long)groups, kernel == 3 ? pads : "",
                 !transposed && chance(m, 15) ? x->rank == 3 ? "strides=2," : "strides=2,2" : "");
  add_layer(m, op, v, weight_of(m, w), out, rest);
  return true;
}

static inline bool of_gemm(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 2, 2);
  if (v < 0) return false;
  int trans_a = chance(m, 15), trans_b = chance(m, 50);
  int64_t k = shape_of(m, v)->dims[trans_a ? 0 : 1], n = 1 + draw(m, 6);
  int64_t dims[2] = {trans_b ? n : k, trans_b ? k : n};
  char rest[64];
  (void)snprintf(rest, sizeof rest, "transA=%d transB=%d alpha=0.5", trans_a, trans_b);
  add_layer(m, op, v, weight_of(m, laci_shape_of(2, dims)), n, rest);
  return true;
}

/* MatMul of a value with a stored tensor on either side, or with its own transpose. */
static inline bool of_matmul(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 2, 5);
  if (v < 0) return false;
  int rank = rank_of(m, v), kind = (int)draw(m, 10);
  const laci_shape *x = shape_of(m, v);
  int64_t dims[LACI_MAX_RANK] = {x->dims[rank - 1], 1 + draw(m, 6)};
  name out = fresh(m, 'v');
  if (kind < 2) {
    name transposed = fresh(m, 'v');
    add(m, "%s = Transpose(%s) perm=", transposed.text, name_of(m, v));
    for (int a = 0; a < rank; a++) add(m, "%d,", a < rank - 2 ? a : rank - 1 - (a - (rank - 2)));
    add(m, "\n%s = %s(%s, %s)\n", out.text, op, kind ? transposed.text : name_of(m, v),
        kind ? name_of(m, v) : transposed.text);
    return true;
  }
  if (kind == 2) { /* the stored tensor is on the left */
    dims[0] = 1 + draw(m, 6);
    dims[1] = x->dims[rank - 2];
    name left = stored_of(m, laci_shape_of(2, dims), "");
    add(m, "%s = %s(%s, %s)\n", out.text, op, left.text, name_of(m, v));
    return true;
  }
  if (kind == 3 && rank > 2) { /* a separate weight for each index of the axis before */
    int64_t batched[3] = {x->dims[rank - 3], dims[0], dims[1]};
    name right = stored_of(m, laci_shape_of(3, batched), "");
    add(m, "%s = %s(%s, %s)\n", out.text, op, name_of(m, v), right.text);
    return true;
  }
  name right = kind == 4 ? stored_vector(m, dims[0], "") : weight_of(m, laci_shape_of(2, dims));
  add(m, "%s = %s(%s, %s)\n", out.text, op, name_of(m, v), right.text);
  return true;
}

static inline bool of_resize(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 3, 4);
  if (v < 0) return false;
  name scales = fresh(m, 'k');
  add(m, "stored %s %d = 1 1", scales.text, rank_of(m, v));
  for (int a = 2; a < rank_of(m, v); a++) add(m, " 2");
  bool upsample = strcmp(op, "Upsample") == 0;
  if (upsample) add(m, "\nopset 9");
  add(m, "\n%s = %s(%s, %s%s) mode=\"nearest\"\n", fresh(m, 'v').text, op, name_of(m, v),
      upsample ? "" : "_, ", scales.text);
  if (upsample) add(m, "opset 22\n");
  return true;
}

static inline bool of_einsum(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 3, 3);
  if (v < 0) return false;
  int64_t dims[2] = {shape_of(m, v)->dims[2], 1 + draw(m, 5)};
  name w = stored_of(m, laci_shape_of(2, dims), "");
  add(m, "%s = %s(%s, %s) equation=\"abc,cd->abd\"\n", fresh(m, 'v').text, op, name_of(m, v),
      w.text);
  return true;
}

/* ---- moving data ---- */

static inline bool of_reshape(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 1, 5);
  if (v < 0) return false;
  const laci_shape *x = shape_of(m, v);
  int64_t to[LACI_MAX_RANK + 2], n = 0;
  int at = (int)draw(m, x->rank);
  bool merge = x->rank > 1 && chance(m, 45);
  if (merge && at == x->rank - 1) at--;
  for (int a = 0; a < x->rank; a++) {
    int64_t size = x->dims[a];
    if (a == at && merge) to[n++] = size * x->dims[++a];
    else if (a == at) {
      int64_t part = a_divisor(m, size);
      to[n++] = part;
      to[n++] = size / part;
    } else to[n++] = size;
  }
  if (n > 6) return false;
  if (chance(m, 20)) to[draw(m, n)] = -1;
  name shape = stored_ints(m, (int)n, to);
  add(m, "%s = %s(%s, %s)\n", fresh(m, 'v').text, op, name_of(m, v), shape.text);
  return true;
}

static inline bool of_flatten(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 2, 5);
  return add_unary(m, op, v, chance(m, 70) ? "axis=1" : "axis=2");
}

static inline bool of_unsqueeze(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 1, 4);
  if (v < 0) return false;
  int64_t axis = draw(m, rank_of(m, v) + 1);
  name axes = stored_ints(m, 1, &axis), out = fresh(m, 'v');
  bool squeeze = strcmp(op, "Squeeze") == 0;
  add(m, "%s = Unsqueeze(%s, %s)\n", out.text, name_of(m, v), axes.text);
  if (squeeze) add(m, "%s = Squeeze(%s, %s)\n", fresh(m, 'v').text, out.text, axes.text);
  return true;
}

static inline bool of_transpose(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 2, 5);
  if (v < 0) return false;
  int rank = rank_of(m, v), perm[LACI_MAX_RANK];
  for (int a = 0; a < rank; a++) {
    int b = (int)draw(m, a + 1);
    perm[a] = perm[b];
    perm[b] = a;
  }
  add(m, "%s = %s(%s) perm=", fresh(m, 'v').text, op, name_of(m, v));
  for (int a = 0; a < rank; a++) add(m, "%d,", perm[a]);
  add(m, "\n");
  return true;
}

static inline bool of_concat(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 1, 5);
  if (v < 0) return false;
  int axis = (int)draw(m, rank_of(m, v)), other = v;
  for (int o = 0; o < m->graph->n_values && !chance(m, 20); o++) {
    if (!fits(m, o, WANT_FLOAT, 1, 5) || o == v || m->graph->values[o].stored >= 0) continue;
    laci_shape a = *shape_of(m, o), b = *shape_of(m, v);
    if (a.rank != b.rank) continue;
    a.dims[axis] = b.dims[axis];
    if (laci_shape_equal(&a, &b)) other = o;
  }
  name third = {""};
  if (other == v && chance(m, 50)) third = stored_of(m, *shape_of(m, v), "");
  add(m, "%s = %s(%s, %s%s%s) axis=%d\n", fresh(m, 'v').text, op, name_of(m, v), name_of(m, other),
      third.text[0] ? ", " : "", third.text, axis);
  return true;
}

static inline bool of_split(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 1, 5);
  if (v < 0) return false;
  int axis = (int)draw(m, rank_of(m, v));
  int64_t size = shape_of(m, v)->dims[axis], sizes[2];
  if (size < 2) return false;
  sizes[0] = size % 2 == 0 && chance(m, 60) ? size / 2 : 1 + draw(m, size - 1);
  sizes[1] = size - sizes[0];
  name list = stored_ints(m, 2, sizes), a = fresh(m, 'v'), b = fresh(m, 'v');
  add(m, "%s, %s = %s(%s, %s) axis=%d\n", a.text, b.text, op, name_of(m, v), list.text, axis);
  if (sizes[0] == sizes[1] && chance(m, 50))
    add(m, "%s = Mul(%s, %s)\n", fresh(m, 'v').text, a.text, b.text);
  else if (chance(m, 30))
    add(m, "%s = %s(%s, %s) axis=%d\n", fresh(m, 'v').text, "Concat", b.text, a.text, axis);
  return true;
}

static inline bool of_slice(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 1, 5);
  if (v < 0) return false;
  int64_t axis = draw(m, rank_of(m, v)), size = shape_of(m, v)->dims[axis], begin = draw(m, size),
          step = 1 + draw(m, 2);
  int64_t end = begin + 1 + draw(m, size - begin);
  if (chance(m, 20)) begin = size - 1, end = -size - 1, step = -step;
  name a = stored_ints(m, 1, &begin), b = stored_ints(m, 1, &end), c = stored_ints(m, 1, &axis),
       d = stored_ints(m, 1, &step);
  add(m, "%s = %s(%s, %s, %s, %s, %s)\n", fresh(m, 'v').text, op, name_of(m, v), a.text, b.text,
      c.text, d.text);
  return true;
}

static inline bool of_gather(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 1, 5);
  if (v < 0) return false;
  int axis = (int)draw(m, rank_of(m, v));
  int64_t size = shape_of(m, v)->dims[axis], list[RANDOM_MAX_SIZE];
  char text[24];
  (void)snprintf(text, sizeof text, "%lld", (long long)draw(m, size));
  if (chance(m, 30)) {
    name at = scalar_of(m, "i64", text);
    add(m, "%s = %s(%s, %s) axis=%d\n", fresh(m, 'v').text, op, name_of(m, v), at.text, axis);
    return true;
  }
  int n = chance(m, 60) ? (int)size : 1 + (int)draw(m, size);
  bool reorder = chance(m, 60);
  for (int i = 0; i < n; i++) {
    list[i] = draw(m, size);
    if (!reorder || n != size) continue;
    int64_t j = draw(m, i + 1);
    list[i] = list[j];
    list[j] = i;
  }
  name indices = stored_ints(m, n, list);
  add(m, "%s = %s(%s, %s) axis=%d\n", fresh(m, 'v').text, op, name_of(m, v), indices.text, axis);
  return true;
}

static inline bool of_gather_elements(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 1, 4);
  if (v < 0) return false;
  int axis = (int)draw(m, rank_of(m, v));
  name zeros = fresh(m, 'v'), k = fresh(m, 'v'), none = scalar_of(m, "f32", "0.0");
  add(m, "%s = Mul(%s, %s)\n%s = Cast(%s) to=7\n", zeros.text, name_of(m, v), none.text, k.text,
      zeros.text);
  add(m, "%s = %s(%s, %s) axis=%d\n", fresh(m, 'v').text, op, name_of(m, v), k.text, axis);
  return true;
}

static inline bool of_gather_nd(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 2, 4);
  if (v < 0) return false;
  name at = fresh(m, 'k');
  add(m, "stored %s 2x1 i64 = 0 %lld\n", at.text, (long long)draw(m, shape_of(m, v)->dims[0]));
  add(m, "%s = %s(%s, %s)\n", fresh(m, 'v').text, op, name_of(m, v), at.text);
  return true;
}

static inline bool of_scatter(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 2, 4);
  if (v < 0) return false;
  laci_shape shape = *shape_of(m, v);
  bool nd = strcmp(op, "ScatterND") == 0;
  shape.dims[0] = 1;
  name at = fresh(m, 'k'), updates = stored_of(m, shape, "");
  add(m, "stored %s ", at.text);
  if (nd) add(m, "1x1");
  else add_shape(m, &shape);
  add(m, " i64 =");
  for (int64_t i = 0; i < (nd ? 1 : laci_shape_count(&shape)); i++) add(m, " 0");
  add(m, "\n%s = %s(%s, %s, %s)\n", fresh(m, 'v').text, op, name_of(m, v), at.text, updates.text);
  return true;
}

static inline bool of_pad(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 1, 4);
  if (v < 0) return false;
  int rank = rank_of(m, v);
  int64_t pads[2 * LACI_MAX_RANK] = {0}, axis = draw(m, rank);
  pads[axis] = draw(m, 3);
  pads[axis + rank] = draw(m, 3);
  name list = stored_ints(m, 2 * rank, pads), value = scalar_of(m, "f32", "0.3");
  const char *mode = chance(m, 75) ? "constant" : chance(m, 50) ? "edge" : "reflect";
  add(m, "%s = %s(%s, %s%s%s) mode=\"%s\"\n", fresh(m, 'v').text, op, name_of(m, v), list.text,
      mode[0] == 'c' ? ", " : "", mode[0] == 'c' ? value.text : "", mode);
  return true;
}

static inline bool of_expand(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 1, 4);
  if (v < 0) return false;
  int rank = rank_of(m, v);
  int64_t to[LACI_MAX_RANK + 1] = {2}, extra = chance(m, 30);
  for (int a = 0; a < rank; a++) {
    int64_t size = shape_of(m, v)->dims[a];
    to[a + extra] = size == 1 && chance(m, 70) ? 1 + draw(m, 5) : size;
    if (strcmp(op, "Tile") == 0) to[a + extra] = chance(m, 70) ? 1 : 2;
  }
  name shape = stored_ints(m, rank + (int)extra, to);
  add(m, "%s = %s(%s, %s)\n", fresh(m, 'v').text, op, name_of(m, v), shape.text);
  return true;
}

static inline bool of_blocks(builder *m, const char *op) {
  return add_unary(m, op, pick(m, WANT_FLOAT, 4, 4),
                   strcmp(op, "DepthToSpace") != 0 ? "blocksize=2"
                   : chance(m, 50)                 ? "blocksize=2 mode=\"DCR\""
                                                   : "blocksize=2 mode=\"CRD\"");
}

static inline bool of_trilu(builder *m, const char *op) {
  return add_unary(m, op, pick(m, WANT_FLOAT, 2, 4), chance(m, 50) ? "upper=1" : "upper=0");
}

static inline bool of_reverse_sequence(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 2, 4);
  if (v < 0) return false;
  name lengths = fresh(m, 'k');
  add(m, "stored %s %lld i64 =", lengths.text, (long long)shape_of(m, v)->dims[0]);
  for (int64_t i = 0; i < shape_of(m, v)->dims[0]; i++) {
    add(m, " %lld", (long long)(1 + draw(m, shape_of(m, v)->dims[1])));
  }
  add(m, "\n%s = %s(%s, %s) batch_axis=0 time_axis=1\n", fresh(m, 'v').text, op, name_of(m, v),
      lengths.text);
  return true;
}

/* ---- shapes and constants ---- */

static inline bool of_shape(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 1, 5);
  if (v < 0) return false;
  name shape = fresh(m, 'v');
  add(m, "%s = %s(%s)\n", shape.text, op, name_of(m, v));
  if (strcmp(op, "Shape") == 0 && chance(m, 70)) {
    add(m, "%s = Reshape(%s, %s)\n", fresh(m, 'v').text, name_of(m, v), shape.text);
  }
  return true;
}

/* Makes a tensor by its shape, and may concatenate it with a value of the same shape. */
static inline bool of_constant(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 1, 4);
  if (v < 0) return false;
  name shape = stored_ints(m, rank_of(m, v), shape_of(m, v)->dims), out = fresh(m, 'v');
  add(m, "%s = %s(%s)\n", out.text, op, shape.text);
  if (chance(m, 60))
    add(m, "%s = Concat(%s, %s) axis=0\n", fresh(m, 'v').text, name_of(m, v), out.text);
  return true;
}

static inline bool of_range(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 1, 4);
  if (v < 0) return false;
  char text[24];
  (void)snprintf(text, sizeof text, "%lld.0", (long long)shape_of(m, v)->dims[rank_of(m, v) - 1]);
  name first = scalar_of(m, "f32", "0.0"), last = scalar_of(m, "f32", text),
       step = scalar_of(m, "f32", "1.0"), out = fresh(m, 'v');
  add(m, "%s = %s(%s, %s, %s)\n", out.text, op, first.text, last.text, step.text);
  add(m, "%s = Add(%s, %s)\n", fresh(m, 'v').text, name_of(m, v), out.text);
  return true;
}

static inline bool of_eye(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 2, 2);
  if (v < 0) return false;
  name out = fresh(m, 'v');
  add(m, "%s = %s(%s)\n%s = Add(%s, %s)\n", out.text, op, name_of(m, v), fresh(m, 'v').text,
      name_of(m, v), out.text);
  return true;
}

static inline bool of_one_hot(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 1, 3);
  if (v < 0) return false;
  name depth = scalar_of(m, "i64", "5"), values = fresh(m, 'k'), out = fresh(m, 'v'),
       k = add_integers(m, v, 7);
  add(m, "stored %s 2 = 0.1 1.3\n%s = %s(%s, %s, %s) axis=-1\n", values.text, out.text, op, k.text,
      depth.text, values.text);
  return true;
}

/* Draws nothing, for operators whose output has a length that is known only in a run;
 * random_forms.h has forms of some of them. */
static inline bool of_non_zero(builder *m, const char *op) { return (void)m, (void)op, false; }

typedef struct op_template {
  const char *op;
  template_fn *make;
} op_template;

static const op_template op_templates[] = {
#define TEMPLATE(op, make) {#op, make},
#include "support/random_ops.def"
#undef TEMPLATE
};

typedef struct op_key {
  char text[80];
} op_key;

/* Returns the operator's name with its domain: "Conv", "com.microsoft.Gelu". */
static inline op_key key_of(const laci_op *op) {
  op_key key;
  (void)snprintf(key.text, sizeof key.text, "%s%s%s", op->domain ? op->domain : "",
                 op->domain ? "." : "", op->name);
  return key;
}

static inline template_fn *find_template(const char *op) {
  for (size_t i = 0; i < sizeof op_templates / sizeof *op_templates; i++) {
    if (strcmp(op_templates[i].op, op) == 0) return op_templates[i].make;
  }
  return NULL;
}

#endif
