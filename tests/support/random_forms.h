/* SPDX-License-Identifier: Apache-2.0
 * Templates for forms of operators (random_forms.def) that their templates in random_ops.h and
 * random_layers.h do not make, and changes of attributes of any node (random_attrs.def). keep()
 * drops what is not valid. */
#ifndef TESTS_SUPPORT_RANDOM_FORMS_H
#define TESTS_SUPPORT_RANDOM_FORMS_H

#include "graph/op.h"
#include "support/random_ops.h"

/** Adds a stored tensor of integers, each below `limit`; some are negative, counted from the end.
 */
static inline name random_ints(builder *m, const laci_shape *shape, int64_t limit) {
  name made = fresh(m, 'k');
  bool back = chance(m, 25);
  add(m, "stored %s ", made.text);
  add_shape(m, shape);
  add(m, " i64 =");
  for (int64_t i = 0; i < laci_shape_count(shape); i++)
    add(m, " %lld", (long long)(draw(m, limit) - (back ? limit : 0)));
  add(m, "\n");
  return made;
}

static inline const char *either(builder *m, const char *text) {
  return chance(m, 50) ? text : "_";
}

/* ---- element by element ---- */

static inline bool form_plain(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 4, 4);
  return add_unary(m, op, strcmp(op, "Transpose") == 0 ? pick(m, WANT_FLOAT, 2, 4) : v, "");
}

static inline bool form_one(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 0, 5);
  if (v < 0) return false;
  if (chance(m, 30)) return add_unary(m, op, v, "");
  name other = partner(m, v);
  add(m, "%s = %s(%s, %s)\n", fresh(m, 'v').text, op, other.text, name_of(m, v));
  return true;
}

static inline bool form_casts(builder *m, const char *op) {
  static const char *const types[] = {"16", "10", "11", "6"};
  int v = pick(m, WANT_FLOAT, 0, 5);
  if (v < 0) return false;
  name other = fresh(m, 'v');
  add(m, "%s = %s(%s) to=%s\n%s = %s(%s) to=1\n", other.text, op, name_of(m, v), types[draw(m, 4)],
      fresh(m, 'v').text, op, other.text);
  return true;
}

static inline bool form_clip(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 0, 5);
  if (v < 0) return false;
  if (chance(m, 40)) {
    add(m, "opset 10\n%s = %s(%s) min=-0.%lld max=0.%lld\nopset 22\n", fresh(m, 'v').text, op,
        name_of(m, v), (long long)draw(m, 9), (long long)(1 + draw(m, 8)));
    return true;
  }
  bool low = chance(m, 50);
  name limit = scalar_of(m, "f32", low ? "-0.3" : "0.4");
  add(m, "%s = %s(%s, %s%s)\n", fresh(m, 'v').text, op, name_of(m, v), low ? "" : "_, ",
      limit.text);
  return true;
}

static inline bool form_mod(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 0, 5);
  if (v < 0) return false;
  name a = add_integers(m, v, 7), three = scalar_of(m, "i64", "3");
  add(m, "%s = %s(%s, %s) fmod=0\n", fresh(m, 'v').text, op, a.text, three.text);
  return true;
}

static inline bool form_pow(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 0, 5);
  if (v < 0) return false;
  name power = scalar_of(m, chance(m, 50) ? "f32" : "i64", chance(m, 50) ? "2" : "3");
  add(m, "%s = %s(%s, %s)\n", fresh(m, 'v').text, op, name_of(m, v), power.text);
  return true;
}

/* Where, with a condition that broadcasts, or a stored one. */
static inline bool form_where(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 1, 5);
  if (v < 0) return false;
  laci_shape part = smaller_shape(m, shape_of(m, v));
  name test = fresh(m, 'k'), other = partner(m, v);
  add(m, "stored %s ", test.text);
  add_shape(m, &part);
  add(m, " bool =");
  for (int64_t i = 0; i < laci_shape_count(&part); i++) add(m, " %d", (int)chance(m, 50));
  bool swapped = chance(m, 50);
  add(m, "\n%s = %s(%s, %s, %s)\n", fresh(m, 'v').text, op, test.text,
      swapped ? other.text : name_of(m, v), swapped ? name_of(m, v) : other.text);
  return true;
}

static inline bool form_dropout(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 0, 5);
  if (v < 0) return false;
  if (chance(m, 50)) {
    add(m, "opset 10\n%s, %s = %s(%s) ratio=0.4\nopset 22\n", fresh(m, 'v').text,
        fresh(m, 'v').text, op, name_of(m, v));
    return true;
  }
  name ratio = scalar_of(m, "f32", "0.4"), training = scalar_of(m, "bool", "0");
  add(m, "%s, %s = %s(%s, %s, %s)\n", fresh(m, 'v').text, fresh(m, 'v').text, op, name_of(m, v),
      ratio.text, either(m, training.text));
  return true;
}

/* Quantization with zero points and explicit types. */
static inline bool form_quantize(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 1, 5);
  if (v < 0) return false;
  int axis = (int)draw(m, rank_of(m, v));
  int64_t n = shape_of(m, v)->dims[axis];
  bool along = chance(m, 60);
  name scale = along ? stored_vector(m, n, "positive") : scalar_of(m, "f32", "0.07");
  name zero = fresh(m, 'p'), q = fresh(m, 'v');
  if (along) add(m, "stored %s %lld i8\n", zero.text, (long long)n);
  else add(m, "stored %s \"\" i8 = %lld\n", zero.text, (long long)draw(m, 9));
  int back = along ? axis - rank_of(m, v) : axis;
  add(m, "%s = QuantizeLinear(%s, %s, %s) axis=%d\n", q.text, name_of(m, v), scale.text, zero.text,
      back);
  add(m, "%s = DequantizeLinear(%s, %s, %s) axis=%d\n", fresh(m, 'v').text, q.text, scale.text,
      zero.text, axis);
  return (void)op, true;
}

/* Quantization with a scale for every two elements along an axis. */
static inline bool form_blocked(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 2, 4);
  if (v < 0) return false;
  int axis = (int)draw(m, rank_of(m, v));
  laci_shape shape = *shape_of(m, v);
  shape.dims[axis] = (shape.dims[axis] + 1) / 2;
  name scale = stored_of(m, shape, "positive"), q = fresh(m, 'v');
  const char *type = chance(m, 50) ? "output_dtype=3" : "";
  add(m, "%s = QuantizeLinear(%s, %s) axis=%d block_size=2 %s\n", q.text, name_of(m, v), scale.text,
      axis, type);
  add(m, "%s = DequantizeLinear(%s, %s) axis=%d block_size=2\n", fresh(m, 'v').text, q.text,
      scale.text, axis);
  return (void)op, true;
}

/* ---- reductions and norms ---- */

/* Reductions over all axes, over none, and with axes as an attribute. */
static inline bool form_reduce(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 1, 5);
  if (v < 0) return false;
  name safe = fresh(m, 'v'), out = fresh(m, 'v');
  int rank = rank_of(m, v), kind = (int)draw(m, 10), keep = (int)chance(m, 60);
  add(m, "%s = %s(%s)\n", safe.text, strstr(op, "Log") ? "Sigmoid" : "Identity", name_of(m, v));
  if (kind < 2) {
    add(m, "%s = %s(%s) keepdims=%d\n", out.text, op, safe.text, keep);
  } else if (kind < 5) {
    name none = stored_ints(m, 0, NULL);
    add(m, "%s = %s(%s, %s) keepdims=%d noop_with_empty_axes=%d\n", out.text, op, safe.text,
        none.text, keep, kind > 2);
  } else {
    int first = (int)draw(m, rank) - (int)(chance(m, 40) ? rank : 0);
    add(m, "opset 11\n%s = %s(%s) keepdims=%d axes=%d,", out.text, op, safe.text, keep, first);
    add(m, chance(m, 40) && rank > 1 ? "%d\n" : "\n", (first + rank + 1) % rank);
    add(m, "opset 22\n");
  }
  return true;
}

/* BatchNormalization in training mode, with statistics as outputs. */
static inline bool form_batch_norm(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 3, 4);
  if (v < 0) return false;
  int64_t c = shape_of(m, v)->dims[1];
  if (laci_shape_count(shape_of(m, v)) / c < 2) return false; /* x - mean is 0 */
  name a = stored_vector(m, c, ""), b = stored_vector(m, c, ""), mean = stored_vector(m, c, ""),
       variance = stored_vector(m, c, "positive");
  bool old = chance(m, 40), training = !old && chance(m, 60);
  if (old) add(m, "opset 8\n");
  add(m, "%s", fresh(m, 'v').text);
  if (training) add(m, ", %s, %s", fresh(m, 'v').text, fresh(m, 'v').text);
  add(m, " = %s(%s, %s, %s, %s, %s) momentum=0.%d ", op, name_of(m, v), a.text, b.text, mean.text,
      variance.text, chance(m, 50) ? 5 : 7);
  add(m, old ? "spatial=1\nopset 22\n" : "training_mode=%d\n", training);
  return true;
}

static inline bool form_layer_norm(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 2, 5);
  if (v < 0) return false;
  int rank = rank_of(m, v), axis = rank - 1 - (int)draw(m, 2);
  laci_shape part = {0};
  for (int a = axis; a < rank; a++) part.dims[part.rank++] = shape_of(m, v)->dims[a];
  if (laci_shape_count(&part) < 2) return false;
  name scale = stored_of(m, part, ""), bias = stored_of(m, part, "");
  add(m, "%s, %s, %s = %s(%s, %s, %s) axis=%d\n", fresh(m, 'v').text, fresh(m, 'v').text,
      fresh(m, 'v').text, op, name_of(m, v), scale.text, either(m, bias.text), axis - rank);
  return true;
}

static inline bool form_top_k(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 1, 5);
  if (v < 0) return false;
  add(m, "opset 9\n%s, %s = %s(%s) axis=%d k=%d\nopset 22\n", fresh(m, 'v').text,
      fresh(m, 'v').text, op, name_of(m, v), (int)draw(m, rank_of(m, v)), 1 + (int)draw(m, 2));
  return true;
}

/* ---- layers ---- */

/* Layers with three spatial axes. */
static inline bool form_space(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 4, 4);
  if (v < 0) return false;
  const int64_t *x = shape_of(m, v)->dims;
  int64_t to[5] = {x[0], x[1], x[2], 1, x[3]}, w[5] = {1 + draw(m, 5), x[1], 1, 1, 1 + draw(m, 2)};
  name shape = stored_ints(m, 5, to), deep = fresh(m, 'v');
  add(m, "%s = Reshape(%s, %s)\n", deep.text, name_of(m, v), shape.text);
  name weight = stored_of(m, laci_shape_of(5, w), "");
  add(m, "%s = %s(%s, %s) pads=0,0,0,0,0,1\n", fresh(m, 'v').text, op, deep.text, weight.text);
  return true;
}

/* Gemm with C of any shape that broadcasts. */
static inline bool form_gemm(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 2, 2);
  if (v < 0) return false;
  int64_t rows = shape_of(m, v)->dims[0], n = 1 + draw(m, 6);
  int64_t dims[2] = {shape_of(m, v)->dims[1], n}, whole[2] = {rows, n};
  laci_shape out = laci_shape_of(2, whole);
  name w = stored_of(m, laci_shape_of(2, dims), ""), c = stored_of(m, smaller_shape(m, &out), "");
  add(m, "%s = %s(%s, %s, %s) beta=0.7 alpha=1.5\n", fresh(m, 'v').text, op, name_of(m, v), w.text,
      c.text);
  return true;
}

static inline bool form_einsum(builder *m, const char *op) {
  static const char *const one[] = {"ab->ba", "ij->i", "ij->", "ab", "...b->b..."};
  static const char *const with_weight[] = {"ab,bc->ac", "ab,cb->ac", "...a,ab->...b", "ij,jk->ki"};
  static const char *const heads[] = {"bid,bjd->bij", "bid,bjd->b", "bid,bjd->bdij",
                                      "bid,bid->bid"};
  int kind = (int)draw(m, 3), v = pick(m, WANT_FLOAT, kind == 2 ? 3 : 2, kind == 2 ? 3 : 2);
  if (v < 0) return false;
  name out = fresh(m, 'v');
  if (kind == 0) {
    add(m, "%s = %s(%s) equation=\"%s\"\n", out.text, op, name_of(m, v), one[draw(m, 5)]);
  } else if (kind == 1) {
    int which = (int)draw(m, 4);
    int64_t k = shape_of(m, v)->dims[1], n = 1 + draw(m, 5), dims[2] = {k, n};
    if (which == 1) dims[0] = n, dims[1] = k;
    name w = stored_of(m, laci_shape_of(2, dims), "");
    add(m, "%s = %s(%s, %s) equation=\"%s\"\n", out.text, op, name_of(m, v), w.text,
        with_weight[which]);
  } else {
    int64_t in = shape_of(m, v)->dims[2], dims[2] = {in, in};
    name w = stored_of(m, laci_shape_of(2, dims), ""), other = fresh(m, 'v');
    add(m, "%s = MatMul(%s, %s)\n%s = %s(%s, %s) equation=\"%s\"\n", other.text, name_of(m, v),
        w.text, out.text, op, name_of(m, v), other.text, heads[draw(m, 4)]);
  }
  return true;
}

/* Recurrent operators with all operands and outputs, in either layout. */
static inline bool form_recurrent(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 3, 3);
  if (v < 0) return false;
  bool cell = strcmp(op, "LSTM") == 0, first = chance(m, 40);
  int64_t gates = cell ? 4 : strcmp(op, "GRU") == 0 ? 3 : 1, n = 1 + chance(m, 40);
  const int64_t *x = shape_of(m, v)->dims;
  int64_t hidden = 1 + draw(m, 4), batch = x[!first], time = x[first];
  int64_t w_dims[3] = {n, gates * hidden, x[2]}, r_dims[3] = {n, gates * hidden, hidden};
  int64_t b_dims[2] = {n, 2 * gates * hidden}, p_dims[2] = {n, 3 * hidden};
  int64_t h_dims[3] = {first ? batch : n, first ? n : batch, hidden};
  name w = stored_of(m, laci_shape_of(3, w_dims), ""),
       r = stored_of(m, laci_shape_of(3, r_dims), ""),
       b = stored_of(m, laci_shape_of(2, b_dims), ""),
       h = stored_of(m, laci_shape_of(3, h_dims), ""),
       c = stored_of(m, laci_shape_of(3, h_dims), ""),
       p = stored_of(m, laci_shape_of(2, p_dims), ""), lengths = fresh(m, 'k'), y = fresh(m, 'v'),
       last = fresh(m, 'v'), state = fresh(m, 'v');
  add(m, "stored %s %lld i32 =", lengths.text, (long long)batch);
  for (int64_t i = 0; i < batch; i++) add(m, " %lld", (long long)(1 + draw(m, time)));
  add(m, "\n%s, %s%s%s = %s(%s, %s, %s, %s, %s", y.text, last.text, cell ? ", " : "",
      cell ? state.text : "", op, name_of(m, v), w.text, r.text, either(m, b.text),
      either(m, lengths.text));
  add(m, ", %s", either(m, h.text));
  if (cell) add(m, ", %s, %s", either(m, c.text), either(m, p.text));
  add(m, ") hidden_size=%lld layout=%d direction=\"%s\"\n", (long long)hidden, (int)first,
      n == 2 ? "bidirectional" : "forward");
  if (chance(m, 60)) { /* [B, T, D, H] or [T, D, B, H], its hidden channels last */
    add(m, "%s = ReduceMean(%s, %s) keepdims=0\n", fresh(m, 'v').text, y.text,
        stored_ints(m, 1, (int64_t[]){first ? 2 : 1}).text);
  }
  return true;
}

/* Attention with a mask, keys and values of past tokens, and all outputs. */
static inline bool form_attention(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 3, 3);
  if (v < 0) return false;
  const int64_t *x = shape_of(m, v)->dims;
  int64_t heads = 1 + draw(m, 2), size = 1 + draw(m, 3), past = chance(m, 40) ? 1 + draw(m, 2) : 0;
  int64_t dims[2] = {x[2], heads * size}, kept[4] = {x[0], heads, past, size};
  int64_t mask_dims[4] = {chance(m, 50) ? 1 : x[0], chance(m, 50) ? 1 : heads, x[1], x[1] + past};
  name part[3], mask = {"_"}, old[2];
  for (int i = 0; i < 3; i++) {
    name w = stored_of(m, laci_shape_of(2, dims), "");
    part[i] = fresh(m, 'v');
    add(m, "%s = MatMul(%s, %s)\n", part[i].text, name_of(m, v), w.text);
  }
  if (chance(m, 60)) mask = stored_of(m, laci_shape_of(4, mask_dims), "");
  for (int i = 0; past && i < 2; i++) old[i] = stored_of(m, laci_shape_of(4, kept), "");
  bool present = past || chance(m, 20);
  add(m, "%s", fresh(m, 'v').text);
  if (present) add(m, ", %s, %s", fresh(m, 'v').text, fresh(m, 'v').text);
  if (present && chance(m, 30)) add(m, ", %s", fresh(m, 'v').text);
  add(m, " = %s(%s, %s, %s, %s", op, part[0].text, part[1].text, part[2].text, mask.text);
  if (past) add(m, ", %s, %s", old[0].text, old[1].text);
  add(m, ") q_num_heads=%lld kv_num_heads=%lld\n", (long long)heads, (long long)heads);
  return true;
}

/* RotaryEmbedding with the heads on one axis, and table rows chosen by position ids. */
static inline bool form_rotary(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 3, 3);
  if (v < 0) return false;
  const int64_t *x = shape_of(m, v)->dims;
  int64_t heads = a_divisor(m, x[2]), size = x[2] / heads;
  if (size % 2) return false;
  int64_t table[2] = {x[1] + 1, size / 2}, at[2] = {x[0], x[1]};
  laci_shape places = laci_shape_of(2, at);
  name c = stored_of(m, laci_shape_of(2, table), ""), s = stored_of(m, laci_shape_of(2, table), ""),
       where = random_ints(m, &places, x[1] + 1);
  add(m, "%s = %s(%s, %s, %s, %s) num_heads=%lld\n", fresh(m, 'v').text, op, name_of(m, v), c.text,
      s.text, where.text, (long long)heads);
  return true;
}

static inline bool form_tensor_scatter(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 3, 4);
  if (v < 0) return false;
  laci_shape update = *shape_of(m, v), batch = laci_shape_of(1, update.dims);
  int axis = 1 + (int)draw(m, update.rank - 1);
  int64_t limit = update.dims[axis];
  update.dims[axis] = 1;
  name u = stored_of(m, update, ""), at = random_ints(m, &batch, limit);
  add(m, "%s = %s(%s, %s, %s) axis=%d\n", fresh(m, 'v').text, op, name_of(m, v), u.text, at.text,
      axis - (chance(m, 50) ? update.rank : 0));
  return true;
}

/* Integer convolutions with groups, zero points for each channel, an integer bias. */
static inline bool form_integer_layer(builder *m, const char *op) {
  bool conv = strstr(op, "Conv") != NULL, again = op[0] == 'Q';
  int v = pick(m, WANT_FLOAT, conv ? 3 : 2, 4);
  if (v < 0) return false;
  int rank = rank_of(m, v);
  const int64_t *x = shape_of(m, v)->dims;
  laci_shape w = {.rank = conv ? rank : 2};
  for (int a = 2; a < w.rank; a++) w.dims[a] = 1;
  int64_t groups = conv && x[1] % 2 == 0 && chance(m, 50) ? 2 : 1;
  w.dims[0] = conv ? groups * (1 + draw(m, 3)) : x[rank - 1];
  w.dims[1] = conv ? x[1] / groups : 1 + draw(m, 4);
  if (conv && chance(m, 50)) w.dims[rank - 1] = 2;
  int64_t out = conv ? w.dims[0] : w.dims[1];
  name zero = scalar_of(m, "u8", "3"), scale = scalar_of(m, "f32", "0.06"), weight = fresh(m, 'p'),
       scales = stored_vector(m, out, "positive"), zeros = fresh(m, 'p'), bias = fresh(m, 'p'),
       q = fresh(m, 'v'), y = fresh(m, 'v');
  add(m, "stored %s ", weight.text);
  add_shape(m, &w);
  add(m, " i8\nstored %s %lld i8\nstored %s %lld i32\n", zeros.text, (long long)out, bias.text,
      (long long)out);
  add(m, "%s = QuantizeLinear(%s, %s, %s)\n", q.text, name_of(m, v), scale.text, zero.text);
  if (again) {
    add(m, "%s = %s(%s, %s, %s, %s, %s, %s, %s, %s%s%s)", y.text, op, q.text, scale.text, zero.text,
        weight.text, scales.text, zeros.text, scale.text, zero.text, conv ? ", " : "",
        conv ? either(m, bias.text) : "");
  } else {
    add(m, "%s = %s(%s, %s, %s, %s)", y.text, op, q.text, weight.text, either(m, zero.text),
        zeros.text);
  }
  if (groups > 1) add(m, " group=%lld", (long long)groups);
  add(m, "\n%s = Cast(%s) to=1\n", fresh(m, 'v').text, y.text);
  return true;
}

static inline bool form_loss(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 2, 4);
  if (v < 0) return false;
  laci_shape shape = *shape_of(m, v);
  int64_t classes = shape.dims[1];
  for (int a = 1; a + 1 < shape.rank; a++) shape.dims[a] = shape.dims[a + 1];
  shape.rank--;
  name labels = fresh(m, 'k'), weights = stored_vector(m, classes, "positive");
  add(m, "stored %s ", labels.text);
  add_shape(m, &shape);
  add(m, " i64 =");
  for (int64_t i = 0; i < laci_shape_count(&shape); i++)
    add(m, " %lld", (long long)draw(m, classes));
  bool both = op[0] == 'S';
  add(m, "\n%s%s%s = %s(%s, %s, %s) reduction=\"%s\" ignore_index=%d\n", fresh(m, 'v').text,
      both ? ", " : "", both ? fresh(m, 'v').text : "", op, name_of(m, v), labels.text,
      either(m, weights.text), chance(m, 50) ? "sum" : "none", (int)draw(m, 2));
  return true;
}

/* ---- images and signals ---- */

static inline bool form_resize(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 3, 4);
  if (v < 0) return false;
  int rank = rank_of(m, v), kind = (int)draw(m, 4);
  const laci_shape *x = shape_of(m, v);
  name list = fresh(m, 'k');
  int first = kind == 1 ? 2 : 0;
  if (kind == 3) { /* any scales, and a region */
    name region = fresh(m, 'k');
    add(m, "stored %s %d = ", region.text, 2 * rank);
    for (int a = 0; a < 2 * rank; a++) add(m, " %s", a < rank ? "0.1" : "0.8");
    add(m, "\nstored %s %d =", list.text, rank);
    for (int a = 0; a < rank; a++) add(m, " %s", a < 2 && chance(m, 70) ? "1.0" : "1.5");
    add(m, "\n%s = %s(%s, %s, %s) mode=\"linear\"\n", fresh(m, 'v').text, op, name_of(m, v),
        region.text, list.text);
    return true;
  }
  add(m, "stored %s %d i64 =", list.text, rank - first);
  for (int a = first; a < rank; a++)
    add(m, " %lld", (long long)(a < 2 && chance(m, 70) ? x->dims[a] : 1 + draw(m, x->dims[a] + 2)));
  add(m, "\n%s = %s(%s, _, _, %s) mode=\"%s\"", fresh(m, 'v').text, op, name_of(m, v), list.text,
      chance(m, 40)   ? "nearest"
      : chance(m, 50) ? "linear"
                      : "cubic");
  add(m, first == 0 ? "\n" : rank == 3 ? " axes=2,\n" : " axes=2,3\n");
  return true;
}

static inline bool form_upsample(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 4, 4);
  if (v < 0) return false;
  add(m, "opset 8\n%s = %s(%s) scales=1.0,1.0,%s,2.0 mode=\"%s\"\nopset 22\n", fresh(m, 'v').text,
      op, name_of(m, v), chance(m, 50) ? "1.0" : "2.0", chance(m, 50) ? "nearest" : "linear");
  return true;
}

static inline bool form_unpool(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 4, 4);
  if (v < 0) return false;
  name pooled = fresh(m, 'v'), places = fresh(m, 'v'),
       size = stored_ints(m, 4, shape_of(m, v)->dims);
  add(m, "%s, %s = MaxPool(%s) kernel_shape=2,2 strides=2,2\n", pooled.text, places.text,
      name_of(m, v));
  add(m, "%s = %s(%s, %s, %s) kernel_shape=2,2 strides=2,2\n", fresh(m, 'v').text, op, pooled.text,
      places.text, either(m, size.text));
  return true;
}

/* Col2Im with windows of two elements along one row. */
static inline bool form_col2_im(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 3, 3);
  if (v < 0) return false;
  int64_t pads = draw(m, 2), more = draw(m, 2), dilation = 1 + draw(m, 2), step = 1 + draw(m, 2);
  int64_t width = (shape_of(m, v)->dims[2] - 1) * step + dilation + 1 - pads - more;
  int64_t image[2] = {1, width}, block[2] = {1, 2};
  if (width < 1) return false;
  name sizes = stored_ints(m, 2, image), window = stored_ints(m, 2, block), both = fresh(m, 'v');
  add(m, "%s = Concat(%s, %s) axis=1\n", both.text, name_of(m, v), name_of(m, v));
  add(m, "%s = %s(%s, %s, %s) pads=0,%lld,0,%lld dilations=1,%lld strides=1,%lld\n",
      fresh(m, 'v').text, op, both.text, sizes.text, window.text, (long long)pads, (long long)more,
      (long long)dilation, (long long)step);
  return true;
}

static inline bool form_eye(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 2, 2);
  if (v < 0) return false;
  name out = fresh(m, 'v'), number = fresh(m, 'v');
  add(m, "%s = %s(%s) dtype=%d k=%d\n%s = Cast(%s) to=1\n%s = Add(%s, %s)\n", out.text, op,
      name_of(m, v), chance(m, 50) ? 7 : 11, (int)draw(m, 3) - 1, number.text, out.text,
      fresh(m, 'v').text, name_of(m, v), number.text);
  return true;
}

/* NonMaxSuppression of boxes made of one value and scores made of another; the number of its
 * results is computed. */
static inline bool form_boxes(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 3, 3);
  if (v < 0) return false;
  const int64_t *x = shape_of(m, v)->dims;
  int64_t to_boxes[2] = {x[2], 4}, to_scores[2] = {x[2], 2}, sum = 0;
  name w = stored_of(m, laci_shape_of(2, to_boxes), ""),
       s = stored_of(m, laci_shape_of(2, to_scores), ""), boxes = fresh(m, 'v'),
       raw = fresh(m, 'v'), scores = fresh(m, 'v'), found = fresh(m, 'v'), number = fresh(m, 'v'),
       most = scalar_of(m, "i64", "2"), overlap = scalar_of(m, "f32", "0.3"),
       least = scalar_of(m, "f32", "0.1"), axes = stored_ints(m, 1, &sum);
  add(m, "%s = MatMul(%s, %s)\n%s = MatMul(%s, %s)\n%s = Transpose(%s) perm=0,2,1\n", boxes.text,
      name_of(m, v), w.text, raw.text, name_of(m, v), s.text, scores.text, raw.text);
  add(m, "%s = %s(%s, %s, %s, %s, %s)\n%s = Cast(%s) to=1\n%s = ReduceSum(%s, %s) keepdims=0\n",
      found.text, op, boxes.text, scores.text, most.text, either(m, overlap.text),
      either(m, least.text), number.text, found.text, fresh(m, 'v').text, number.text, axes.text);
  return true;
}

static inline bool form_dft(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 2, 3);
  if (v < 0) return false;
  int64_t last_axis = rank_of(m, v), n = 1 + draw(m, 5);
  char text[24];
  (void)snprintf(text, sizeof text, "%lld", (long long)n);
  name axes = stored_ints(m, 1, &last_axis), length = scalar_of(m, "i64", text),
       real = fresh(m, 'v'), both = fresh(m, 'v');
  add(m, "%s = Unsqueeze(%s, %s)\n", real.text, name_of(m, v), axes.text);
  if (chance(m, 50)) { /* complex */
    add(m, "%s = Concat(%s, %s) axis=-1\n", both.text, real.text, real.text);
    real = both;
  }
  bool old = chance(m, 50);
  if (old) add(m, "opset 17\n");
  add(m, "%s = %s(%s, %s) %s onesided=%d inverse=%d\n", fresh(m, 'v').text, op, real.text,
      either(m, length.text), old ? "axis=1" : "", (int)chance(m, 40), (int)chance(m, 30));
  if (old) add(m, "opset 22\n");
  return true;
}

static inline bool form_stft(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 2, 2);
  if (v < 0) return false;
  int64_t size = shape_of(m, v)->dims[1], n = 1 + draw(m, size);
  char text[24];
  (void)snprintf(text, sizeof text, "%lld", (long long)n);
  name step = scalar_of(m, "i64", chance(m, 50) ? "1" : "2"), length = scalar_of(m, "i64", text),
       window = stored_vector(m, n, "");
  add(m, "%s = %s(%s, %s, %s, %s) onesided=%d\n", fresh(m, 'v').text, op, name_of(m, v), step.text,
      either(m, window.text), length.text, (int)chance(m, 50));
  return true;
}

/* ---- moving data ---- */

static inline bool form_reshape(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 2, 5);
  if (v < 0) return false;
  int64_t count = laci_shape_count(shape_of(m, v)), first = a_divisor(m, count),
          to[4] = {first, a_divisor(m, count / first), 0, 0};
  int n = 2 + (int)chance(m, 40);
  to[n - 1] = -1;
  if (chance(m, 30)) to[0] = 0; /* 0: the size stays */
  name shape = stored_ints(m, n, to);
  add(m, "%s = %s(%s, %s)\n", fresh(m, 'v').text, op, name_of(m, v), shape.text);
  return true;
}

static inline bool form_unsqueeze(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 1, 3);
  if (v < 0) return false;
  if (chance(m, 50)) {
    add(m, "opset 11\n%s = %s(%s) axes=%d,%d\nopset 22\n", fresh(m, 'v').text, op, name_of(m, v), 0,
        1 + (int)draw(m, rank_of(m, v) + 1));
    return true;
  }
  int64_t axes[2] = {-1, draw(m, rank_of(m, v) + 1)};
  name list = stored_ints(m, 2, axes);
  add(m, "%s = %s(%s, %s)\n", fresh(m, 'v').text, op, name_of(m, v), list.text);
  return true;
}

static inline bool form_squeeze(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 1, 4);
  if (v < 0) return false;
  int64_t axis = draw(m, rank_of(m, v) + 1);
  name axes = stored_ints(m, 1, &axis), out = fresh(m, 'v');
  add(m, "%s = Unsqueeze(%s, %s)\n", out.text, name_of(m, v), axes.text);
  bool old = chance(m, 60);
  if (old) add(m, "opset 11\n");
  add(m, "%s = %s(%s) ", fresh(m, 'v').text, op, out.text);
  if (old && chance(m, 70)) add(m, "axes=%d,", (int)axis - (chance(m, 40) ? rank_of(m, v) + 1 : 0));
  add(m, old ? "\nopset 22\n" : "\n");
  return true;
}

/* Split into three parts, or into num_outputs parts. */
static inline bool form_split(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 1, 5);
  if (v < 0) return false;
  int axis = (int)draw(m, rank_of(m, v)), kind = (int)draw(m, 3);
  int64_t size = shape_of(m, v)->dims[axis];
  if (size < 3) return false;
  name a = fresh(m, 'v'), b = fresh(m, 'v'), c = fresh(m, 'v');
  bool used = chance(m, 70);
  if (kind == 2) {
    add(m, "%s, %s = %s(%s) axis=%d num_outputs=2\n", used ? a.text : "_", b.text, op,
        name_of(m, v), axis);
    return true;
  }
  if (kind == 0) add(m, "opset 11\n");
  add(m, "%s, %s, %s = %s(%s) axis=%d ", a.text, used ? b.text : "_", c.text, op, name_of(m, v),
      axis - (chance(m, 40) ? rank_of(m, v) : 0));
  if (kind == 0) add(m, "split=1,%lld,1\nopset 22\n", (long long)size - 2);
  else add(m, "num_outputs=3\n");
  if (used && chance(m, 50))
    add(m, "%s = Concat(%s, %s, %s) axis=%d\n", fresh(m, 'v').text, c.text, a.text, b.text, axis);
  return true;
}

/* Slice of two axes at once, or without `axes`. */
static inline bool form_slice(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 2, 5);
  if (v < 0) return false;
  int64_t begin[2], end[2], axes[2] = {0, 1}, steps[2] = {1, 1};
  for (int a = 0; a < 2; a++) {
    int64_t size = shape_of(m, v)->dims[a];
    begin[a] = chance(m, 50) ? 0 : draw(m, size);
    end[a] = begin[a] + 1 + draw(m, size - begin[a]);
    if (chance(m, 25)) begin[a] -= size, end[a] = 1000;
    if (chance(m, 25)) axes[a] -= rank_of(m, v);
    if (chance(m, 15)) begin[a] = 1000, end[a] = -1000, steps[a] = -1;
  }
  name b = stored_ints(m, 2, begin), e = stored_ints(m, 2, end), x = stored_ints(m, 2, axes),
       s = stored_ints(m, 2, steps);
  bool minimal = chance(m, 30);
  add(m, "%s = %s(%s, %s, %s%s%s%s%s)\n", fresh(m, 'v').text, op, name_of(m, v), b.text, e.text,
      minimal ? "" : ", ",
      minimal         ? ""
      : chance(m, 80) ? x.text
                      : "_",
      minimal ? "" : ", ", minimal ? "" : s.text);
  return true;
}

static inline bool form_old_slice(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 2, 5);
  if (v < 0) return false;
  int axis = (int)draw(m, rank_of(m, v));
  int64_t begin = draw(m, shape_of(m, v)->dims[axis]);
  add(m, "opset 9\n%s = %s(%s) starts=%lld, ends=%d, axes=%d,\nopset 22\n", fresh(m, 'v').text, op,
      name_of(m, v), (long long)begin, chance(m, 50) ? 100 : (int)begin + 1, axis);
  return true;
}

static inline bool form_gather(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 1, 4);
  if (v < 0) return false;
  int axis = (int)draw(m, rank_of(m, v));
  int64_t size = shape_of(m, v)->dims[axis], dims[2] = {1 + draw(m, 2), 1 + draw(m, 3)};
  laci_shape shape = laci_shape_of(2, dims);
  name indices = random_ints(m, &shape, size);
  add(m, "%s = %s(%s, %s) axis=%d\n", fresh(m, 'v').text, op, name_of(m, v), indices.text,
      axis - (chance(m, 40) ? rank_of(m, v) : 0));
  return true;
}

static inline bool form_gather_elements(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 1, 4);
  if (v < 0) return false;
  laci_shape shape = *shape_of(m, v);
  int axis = (int)draw(m, shape.rank);
  int64_t limit = shape.dims[axis];
  for (int a = 0; a < shape.rank; a++) {
    if (chance(m, 30)) shape.dims[a] = 1 + draw(m, shape.dims[a]);
  }
  name indices = random_ints(m, &shape, limit);
  add(m, "%s = %s(%s, %s) axis=%d\n", fresh(m, 'v').text, op, name_of(m, v), indices.text, axis);
  return true;
}

static inline bool form_gather_nd(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 3, 4);
  if (v < 0) return false;
  const int64_t *x = shape_of(m, v)->dims;
  bool batch = chance(m, 60);
  int64_t dims[3] = {batch ? x[0] : 2, 2, 1};
  laci_shape shape = laci_shape_of(3, dims);
  name at = random_ints(m, &shape, x[batch]);
  add(m, "%s = %s(%s, %s) batch_dims=%d\n", fresh(m, 'v').text, op, name_of(m, v), at.text,
      (int)batch);
  return true;
}

static inline bool form_scatter(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 2, 4);
  if (v < 0) return false;
  laci_shape shape = *shape_of(m, v);
  int axis = (int)draw(m, shape.rank);
  name at = fresh(m, 'k'), updates;
  int64_t limit = shape.dims[axis];
  shape.dims[axis] = 1; /* no place is written twice */
  updates = stored_of(m, shape, "");
  add(m, "stored %s ", at.text);
  add_shape(m, &shape);
  add(m, " i64 =");
  bool same = chance(m, 50);
  int64_t one = draw(m, limit);
  for (int64_t i = 0; i < laci_shape_count(&shape); i++)
    add(m, " %lld", (long long)(same ? one : draw(m, limit)));
  if (strcmp(op, "Scatter") == 0) add(m, "\nopset 10");
  add(m, "\n%s = %s(%s, %s, %s) axis=%d\nopset 22\n", fresh(m, 'v').text, op, name_of(m, v),
      at.text, updates.text, axis - (chance(m, 40) ? shape.rank : 0));
  return true;
}

static inline bool form_scatter_nd(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 2, 4);
  if (v < 0) return false;
  laci_shape shape = *shape_of(m, v), updates = shape;
  int depth = 1 + (int)draw(m, 2);
  updates.rank = 1;
  updates.dims[0] = 1;
  for (int a = depth; a < shape.rank; a++) updates.dims[updates.rank++] = shape.dims[a];
  name at = fresh(m, 'k'), u = stored_of(m, updates, "");
  add(m, "stored %s 1x%d i64 =", at.text, depth);
  for (int a = 0; a < depth; a++) add(m, " %lld", (long long)draw(m, shape.dims[a]));
  add(m, "\n%s = %s(%s, %s, %s)\n", fresh(m, 'v').text, op, name_of(m, v), at.text, u.text);
  return true;
}

/* Pad along given axes; negative pads remove elements. */
static inline bool form_pad(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 1, 4);
  if (v < 0) return false;
  int64_t axis = draw(m, rank_of(m, v)), pads[2] = {draw(m, 3) - 1, draw(m, 3)};
  if (chance(m, 40)) axis -= rank_of(m, v);
  name list = stored_ints(m, 2, pads), axes = stored_ints(m, 1, &axis),
       value = scalar_of(m, "f32", "0.3");
  add(m, "%s = %s(%s, %s, %s, %s) mode=\"%s\"\n", fresh(m, 'v').text, op, name_of(m, v), list.text,
      either(m, value.text), axes.text, chance(m, 70) ? "constant" : "wrap");
  return true;
}

static inline bool form_old_pad(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 2, 2);
  if (v < 0) return false;
  add(m, "opset 10\n%s = %s(%s) pads=%d,%d,0,1 value=0.%d\nopset 22\n", fresh(m, 'v').text, op,
      name_of(m, v), (int)draw(m, 2), (int)draw(m, 2), 2 + (int)draw(m, 5));
  return true;
}

static inline bool form_trilu(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 2, 4);
  if (v < 0) return false;
  name k = scalar_of(m, "i64", chance(m, 50) ? "1" : "-1");
  add(m, "%s = %s(%s, %s) upper=%d\n", fresh(m, 'v').text, op, name_of(m, v), k.text,
      (int)chance(m, 50));
  return true;
}

static inline bool form_reverse(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 2, 4);
  if (v < 0) return false;
  int64_t batch = shape_of(m, v)->dims[1], time = shape_of(m, v)->dims[0];
  name lengths = fresh(m, 'k');
  add(m, "stored %s %lld i64 =", lengths.text, (long long)batch);
  for (int64_t i = 0; i < batch; i++) add(m, " %lld", (long long)(1 + draw(m, time)));
  add(m, "\n%s = %s(%s, %s) batch_axis=1 time_axis=0\n", fresh(m, 'v').text, op, name_of(m, v),
      lengths.text);
  return true;
}

static inline bool form_crop(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 1, 4);
  if (v < 0) return false;
  int axis = (int)draw(m, rank_of(m, v));
  int64_t size = 1 + draw(m, shape_of(m, v)->dims[axis] + 2);
  name sizes = stored_ints(m, 1, &size);
  add(m, "%s = %s(%s, %s) axes=%d,\n", fresh(m, 'v').text, op, name_of(m, v), sizes.text,
      axis - (chance(m, 50) ? rank_of(m, v) : 0));
  return true;
}

/* Compress of the flattened tensor. */
static inline bool form_compress(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 1, 3);
  if (v < 0) return false;
  int64_t n = 1 + draw(m, laci_shape_count(shape_of(m, v)));
  name which = fresh(m, 'k');
  add(m, "stored %s %lld bool = 1", which.text, (long long)n);
  for (int64_t i = 1; i < n; i++) add(m, " %d", (int)chance(m, 60));
  add(m, "\n%s = %s(%s, %s)\n", fresh(m, 'v').text, op, name_of(m, v), which.text);
  return true;
}

static inline bool form_one_hot(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 1, 3);
  if (v < 0) return false;
  name depth = scalar_of(m, "i64", "4"), values = fresh(m, 'k'), out = fresh(m, 'v'),
       k = add_integers(m, v, 7);
  add(m, "stored %s 2 = 0.2 1.1\n%s = %s(%s, %s, %s) axis=%d\n", values.text, out.text, op, k.text,
      depth.text, values.text, (int)draw(m, rank_of(m, v) + 1));
  return true;
}

/* NonZero of x > 0; x is then gathered at these places and summed. */
static inline bool form_non_zero(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 1, 3);
  if (v < 0) return false;
  int64_t none = 0;
  name low = scalar_of(m, "f32", "0.0"), above = fresh(m, 'v'), places = fresh(m, 'v'),
       axes = stored_ints(m, 1, &none), other = fresh(m, 'v'), read = fresh(m, 'v'),
       number = fresh(m, 'v');
  add(m, "%s = Greater(%s, %s)\n%s = %s(%s)\n", above.text, name_of(m, v), low.text, places.text,
      op, above.text);
  if (chance(m, 50)) {
    add(m,
        "%s = Transpose(%s) perm=1,0\n%s = GatherND(%s, %s)\n%s = ReduceMax(%s, %s) keepdims=1\n",
        other.text, places.text, read.text, name_of(m, v), other.text, fresh(m, 'v').text,
        read.text, axes.text);
    return true;
  }
  none = 1;
  axes = stored_ints(m, 1, &none);
  add(m, "%s = Cast(%s) to=1\n%s = ReduceSum(%s, %s) keepdims=0\n", number.text, places.text,
      fresh(m, 'v').text, number.text, axes.text);
  return true;
}

static inline bool form_unique(builder *m, const char *op) {
  int v = pick(m, WANT_FLOAT, 1, 3);
  if (v < 0) return false;
  bool along = chance(m, 50);
  int axis = (int)draw(m, rank_of(m, v));
  int64_t all = along ? shape_of(m, v)->dims[axis] : laci_shape_count(shape_of(m, v));
  name shape = stored_ints(m, 1, &all), y = fresh(m, 'v'), back = fresh(m, 'v'),
       number = fresh(m, 'v'), again = fresh(m, 'v'), reader = fresh(m, 'v');
  if (!along && chance(m, 40)) {
    int64_t none = 0;
    name axes = stored_ints(m, 1, &none);
    add(m, "%s = %s(%s)\n%s = ReduceSum(%s, %s) keepdims=1\n", y.text, op, name_of(m, v),
        fresh(m, 'v').text, y.text, axes.text);
    return true;
  }
  bool places = chance(m, 50), counts = chance(m, 50);
  add(m, "%s, %s, %s%s%s = %s(%s) sorted=%d", y.text, places ? fresh(m, 'v').text : "_", back.text,
      counts ? ", " : "", counts ? fresh(m, 'v').text : "", op, name_of(m, v), (int)chance(m, 50));
  if (along) add(m, " axis=%d", axis);
  add(m, "\n%s = Gather(%s, %s) axis=%d\n", again.text, y.text, back.text, along ? axis : 0);
  if (along) return true;
  add(m, "%s = Reshape(%s, %s)\n%s = Cast(%s) to=1\n%s = Mul(%s, %s)\n", reader.text, again.text,
      shape.text, number.text, back.text, fresh(m, 'v').text, number.text, reader.text);
  return true;
}

static const op_template op_forms[] = {
#define FORM(op, make) {#op, make},
#include "support/random_forms.def"
#undef FORM
};

/** Returns the operator's template, or one of its other forms. */
static inline template_fn *draw_template(builder *m, const char *op) {
  template_fn *found = find_template(op);
  int n = 1;
  for (size_t i = 0; i < sizeof op_forms / sizeof *op_forms; i++) {
    if (strcmp(op_forms[i].op, op) == 0 && draw(m, ++n) == 0) found = op_forms[i].make;
  }
  return found;
}

/* ---- other attributes ---- */

typedef struct op_values {
  const char *op, *attribute, *values;
} op_values;

typedef struct attribute_value {
  char text[64];
} attribute_value;

static const op_values op_attributes[] = {
#define ATTRIBUTE(op, attribute, values) {op, attribute, values},
#include "support/random_attrs.def"
#undef ATTRIBUTE
};

/** Returns one of the values that an attribute of the operator may get; "": none is listed. */
static inline attribute_value draw_value(builder *m, const char *op, const char *attribute) {
  const char *values = NULL;
  attribute_value drawn = {""};
  for (size_t i = 0; i < sizeof op_attributes / sizeof *op_attributes; i++) {
    const op_values *row = &op_attributes[i];
    if (strcmp(row->attribute, attribute) != 0) continue;
    if (strcmp(row->op, op) == 0) values = row->values;
    else if (!values && row->op[0] == '*') values = row->values;
  }
  int n = 0;
  while (values && *values) {
    size_t size = strcspn(values, "|");
    if (draw(m, ++n) == 0 && size < sizeof drawn.text)
      (void)snprintf(drawn.text, sizeof drawn.text, "%.*s", (int)size, values);
    values += size + (values[size] == '|');
  }
  return drawn;
}

/** Replaces an attribute of the line, or adds it. line: NET_LINE bytes. */
static inline void set_attribute(char *line, const char *attribute, const char *value) {
  char sought[80], rest[NET_LINE];
  (void)snprintf(sought, sizeof sought, " %s=", attribute);
  char *at = strstr(line, sought);
  const char *rest_at = "";
  if (at) {
    rest_at = at + strlen(sought);
    rest_at += strcspn(rest_at, " ");
  } else at = line + strlen(line);
  (void)snprintf(rest, sizeof rest, "%s", rest_at);
  (void)snprintf(at, NET_LINE - (size_t)(at - line), " %s=%s%s", attribute, value, rest);
}

/** Changes attributes of the operator's last node after `mark`. op: with its domain, as key_of()
 * gives it. */
static inline void change_attributes(builder *m, size_t mark, const char *op) {
  char sought[80], domain[80], line[NET_LINE], rest[NET_LINE];
  const char *dot = strrchr(op, '.'), *type = dot ? dot + 1 : op;
  (void)snprintf(domain, sizeof domain, "%.*s", dot ? (int)(dot - op) : 0, op);
  const laci_op *declared = laci_op_find(type, domain);
  (void)snprintf(sought, sizeof sought, " = %s(", op);
  char *found = NULL;
  for (char *at = strstr(m->text + mark, sought); at; at = strstr(at + 1, sought)) found = at;
  if (!declared || !declared->attributes || !found) return;
  while (found > m->text && found[-1] != '\n') found--;
  char *end = strchr(found, '\n');
  (void)snprintf(line, sizeof line, "%.*s", (int)(end - found), found);
  (void)snprintf(rest, sizeof rest, "%s", end);
  for (const laci_attr_type *a = declared->attributes; a->name; a++) {
    attribute_value value = {""};
    if (chance(m, 30)) value = draw_value(m, op, a->name);
    if (value.text[0]) set_attribute(line, a->name, value.text);
  }
  m->n = (size_t)(found - m->text);
  add(m, "%s%s", line, rest);
}

#endif
