/* SPDX-License-Identifier: Apache-2.0
 * Makes a whole random network: an input, a first layer, some operators and known patterns, a layer
 * after most values without a reader, outputs. Also reduces a failing network to a small one. Next:
 * random_ops.h. */
#ifndef TESTS_SUPPORT_RANDOM_NET_H
#define TESTS_SUPPORT_RANDOM_NET_H

#include "graph/op.h"
#include "support/random_forms.h"

/** Returns the operators that are drawn: those without bodies. If, Loop and Scan are tested by
 * unit/analyze_bodies.c. */
static inline const laci_op *const *drawn_ops(int *n) {
  static const laci_op *list[512];
  int n_all, kept = 0;
  const laci_op *const *all = laci_op_all(&n_all);
  for (int at = 0; at < n_all && kept < 512; at++)
    if (!all[at]->control) list[kept++] = all[at];
  *n = kept;
  return list;
}

/** Appends a node of the operator, mostly with other attributes than its template sets, if these
 * can be run. */
static inline bool try_op(builder *m, const char *op) {
  static char plain[RANDOM_TEXT];
  size_t mark = m->n;
  for (int attempt = 0; attempt < 4; attempt++) {
    template_fn *make = draw_template(m, op);
    if (make && make(m, op)) {
      size_t end = m->n;
      (void)snprintf(plain, sizeof plain, "%s", m->text + mark);
      if (chance(m, 60)) change_attributes(m, mark, op);
      if (keep(m, mark)) return true;
      m->n = end;
      (void)snprintf(m->text + mark, sizeof m->text - mark, "%s", plain);
      if (keep(m, mark)) return true;
    }
    m->n = mark;
    m->text[mark] = 0;
  }
  return false;
}

/* ---- patterns that random draws would seldom hit ---- */

/* [N, g * k, H, W]: split the channels into g groups, transpose, merge: ShuffleNet's channel
 * shuffle. */
static inline bool add_shuffle(builder *m) {
  int v = pick(m, WANT_FLOAT, 4, 4);
  if (v < 0) return false;
  const int64_t *x = shape_of(m, v)->dims;
  int64_t g = a_divisor(m, x[1]), cut[5] = {x[0], g, x[1] / g, x[2], x[3]};
  name shape = stored_ints(m, 5, cut), back = stored_ints(m, 4, x), a = fresh(m, 'v'),
       b = fresh(m, 'v'), c = fresh(m, 'v');
  add(m, "%s = Reshape(%s, %s)\n%s = Transpose(%s) perm=0,2,1,3,4\n%s = Reshape(%s, %s)\n", a.text,
      name_of(m, v), shape.text, b.text, a.text, c.text, b.text, back.text);
  if (chance(m, 50)) add(m, "%s = Add(%s, %s)\n", fresh(m, 'v').text, name_of(m, v), c.text);
  return true;
}

/* [N, T, D] -> heads of queries, keys, values -> softmax -> [N, T, D'] . */
static inline bool add_attention(builder *m) {
  int v = pick(m, WANT_FLOAT, 3, 3);
  if (v < 0) return false;
  const int64_t *x = shape_of(m, v)->dims;
  int64_t heads = 1 + draw(m, 2), size = 1 + draw(m, 3), w[2] = {x[2], heads * size},
          cut[4] = {x[0], x[1], heads, size}, back[3] = {x[0], x[1], heads * size};
  name shape = stored_ints(m, 4, cut), merged = stored_ints(m, 3, back), part[3];
  for (int i = 0; i < 3; i++) {
    name weight = stored_of(m, laci_shape_of(2, w), ""), a = fresh(m, 'v'), b = fresh(m, 'v');
    part[i] = fresh(m, 'v');
    add(m, "%s = MatMul(%s, %s)\n%s = Reshape(%s, %s)\n%s = Transpose(%s) perm=%s\n", a.text,
        name_of(m, v), weight.text, b.text, a.text, shape.text, part[i].text, b.text,
        i == 1 ? "0,2,3,1" : "0,2,1,3");
  }
  name s = fresh(m, 'v'), p = fresh(m, 'v'), o = fresh(m, 'v'), t = fresh(m, 'v');
  add(m, "%s = MatMul(%s, %s)\n%s = Softmax(%s) axis=-1\n%s = MatMul(%s, %s)\n", s.text,
      part[0].text, part[1].text, p.text, s.text, o.text, p.text, part[2].text);
  add(m, "%s = Transpose(%s) perm=0,2,1,3\n%s = Reshape(%s, %s)\n", t.text, o.text,
      fresh(m, 'v').text, t.text, merged.text);
  return true;
}

/* Queries, keys and values from one layer: [N, T, 3 * heads * size], transposed to [3, N, heads, T,
 * size] and split. */
static inline bool add_fused_attention(builder *m) {
  int v = pick(m, WANT_FLOAT, 3, 3);
  if (v < 0) return false;
  const int64_t *x = shape_of(m, v)->dims;
  int64_t heads = 1 + draw(m, 2), size = 1 + draw(m, 3), w[2] = {x[2], 3 * heads * size},
          cut[5] = {x[0], x[1], 3, heads, size}, back[3] = {x[0], x[1], heads * size};
  name shape = stored_ints(m, 5, cut), merged = stored_ints(m, 3, back), a = fresh(m, 'v'),
       b = fresh(m, 'v'), c = fresh(m, 'v'), part[3], t = fresh(m, 'v'), s = fresh(m, 'v'),
       o = fresh(m, 'v'), r = fresh(m, 'v');
  name weight = weight_of(m, laci_shape_of(2, w));
  add(m, "%s = MatMul(%s, %s)\n%s = Reshape(%s, %s)\n%s = Transpose(%s) perm=2,0,3,1,4\n", a.text,
      name_of(m, v), weight.text, b.text, a.text, shape.text, c.text, b.text);
  for (int i = 0; i < 3; i++) {
    name at = scalar_of(m, "i64", i == 0 ? "0" : i == 1 ? "1" : "2");
    part[i] = fresh(m, 'v');
    add(m, "%s = Gather(%s, %s) axis=0\n", part[i].text, c.text, at.text);
  }
  add(m, "%s = Transpose(%s) perm=0,1,3,2\n%s = MatMul(%s, %s)\n%s = MatMul(%s, %s)\n", t.text,
      part[1].text, s.text, part[0].text, t.text, o.text, s.text, part[2].text);
  add(m, "%s = Transpose(%s) perm=0,2,1,3\n%s = Reshape(%s, %s)\n", r.text, o.text,
      fresh(m, 'v').text, r.text, merged.text);
  return true;
}

/* x * sigmoid(W2 relu(W1 mean(x))). */
static inline bool add_squeeze_excite(builder *m) {
  int v = pick(m, WANT_FLOAT, 4, 4);
  if (v < 0) return false;
  int64_t c = shape_of(m, v)->dims[1], d = 1 + draw(m, 4), down[4] = {d, c, 1, 1},
          up[4] = {c, d, 1, 1};
  name w1 = stored_of(m, laci_shape_of(4, down), ""), w2 = stored_of(m, laci_shape_of(4, up), ""),
       g = fresh(m, 'v'), a = fresh(m, 'v'), b = fresh(m, 'v'), s = fresh(m, 'v');
  add(m, "%s = GlobalAveragePool(%s)\n%s = Conv(%s, %s)\n%s = Conv(%s, %s)\n%s = Sigmoid(%s)\n",
      g.text, name_of(m, v), a.text, g.text, w1.text, b.text, a.text, w2.text, s.text, b.text);
  add(m, "%s = Mul(%s, %s)\n", fresh(m, 'v').text, name_of(m, v), s.text);
  return true;
}

/* x + conv(relu(conv(x))). */
static inline bool add_residual(builder *m) {
  int v = pick(m, WANT_FLOAT, 4, 4);
  if (v < 0) return false;
  int64_t c = shape_of(m, v)->dims[1], d = 1 + draw(m, 6), first[4] = {d, c, 1, 1},
          second[4] = {c, d, 1, 1};
  name w1 = stored_of(m, laci_shape_of(4, first), ""),
       w2 = stored_of(m, laci_shape_of(4, second), ""), a = fresh(m, 'v'), b = fresh(m, 'v'),
       e = fresh(m, 'v');
  add(m, "%s = Conv(%s, %s)\n%s = Relu(%s)\n%s = Conv(%s, %s)\n%s = Add(%s, %s)\n", a.text,
      name_of(m, v), w1.text, b.text, a.text, e.text, b.text, w2.text, fresh(m, 'v').text,
      name_of(m, v), e.text);
  return true;
}

static inline void try_pattern(builder *m) {
  static bool (*const patterns[])(builder *) = {add_shuffle, add_attention, add_squeeze_excite,
                                                add_residual, add_fused_attention};
  size_t mark = m->n;
  if (patterns[draw(m, 5)](m) && keep(m, mark)) return;
  m->n = mark;
  m->text[mark] = 0;
}

/* ---- the network ---- */

static inline void add_first_lines(builder *m) {
  static const char *const inputs[] = {"1x3x4x4", "2x3x3x3", "1x4x3x3", "2x4",
                                       "3x5",     "1x3x4",   "2x4x3",   "1x2x6"};
  int which = (int)draw(m, 8);
  add(m, "input x %s\n", inputs[which]);
  (void)keep(m, 0);
  static const char *const layers[] = {"Conv", "Conv",   "Conv",   "Gemm",
                                       "Gemm", "MatMul", "MatMul", "Conv"};
  (void)try_op(m, layers[which]);
}

/* Adds a layer after a value, if one of its axes is likely to be that of channels. */
static inline bool add_last_layer(builder *m, int v) {
  int rank = rank_of(m, v);
  if (rank < 2) return false;
  int axis = chance(m, 70) ? (rank == 4 ? 1 : rank - 1) : (int)draw(m, rank);
  int64_t dims[2] = {shape_of(m, v)->dims[axis], 1 + draw(m, 3)};
  name transposed = fresh(m, 'v'), w = stored_of(m, laci_shape_of(2, dims), ""),
       out = fresh(m, 'y');
  add(m, "%s = Transpose(%s) perm=", transposed.text, name_of(m, v));
  for (int a = 0; a < rank; a++) {
    if (a != axis) add(m, "%d,", a);
  }
  add(m, "%d,\n%s = MatMul(%s, %s)\n", axis, out.text, transposed.text, w.text);
  return true;
}

static inline void add_last_lines(builder *m) {
  for (int v = 0; v < m->graph->n_values; v++) {
    if (m->graph->values[v].n_readers || m->graph->values[v].producer < 0 ||
        !fits(m, v, WANT_FLOAT, 2, 6))
      continue;
    size_t mark = m->n;
    if (!chance(m, 85)) continue;
    if (add_last_layer(m, v) && keep(m, mark)) v = -1; /* the graph was made anew: start again */
    else m->n = mark, m->text[mark] = 0;
    if (m->graph->n_nodes > 24) break;
  }
  bool any = false;
  for (int v = 0; v < m->graph->n_values; v++) {
    if (m->graph->values[v].n_readers || m->graph->values[v].producer < 0) continue;
    if (any && chance(m, 8)) continue; /* a branch without a reader */
    any = true;
    add(m, "output %s\n", name_of(m, v));
  }
}

/** Makes a network that contains the operator. False: this seed gives none. */
static inline bool make_net(builder *m, uint64_t seed, const char *op) {
  static const char *const likely[] = {"Conv",
                                       "MatMul",
                                       "Gemm",
                                       "Add",
                                       "Mul",
                                       "Concat",
                                       "Split",
                                       "Slice",
                                       "Reshape",
                                       "Transpose",
                                       "Gather",
                                       "Relu",
                                       "BatchNormalization",
                                       "Pad",
                                       "ReduceMean"};
  int n_ops;
  const laci_op *const *ops = drawn_ops(&n_ops);
  *m = (builder){.seed = seed};
  if (laci_graph_create(&m->graph, NULL)) return false;
  add_first_lines(m);
  int n = 1 + (int)draw(m, 6), at = (int)draw(m, n);
  for (int i = 0; i < n; i++) {
    if (i == at) (void)try_op(m, op);
    if (chance(m, 18)) try_pattern(m);
    else if (chance(m, 65)) (void)try_op(m, likely[draw(m, 15)]);
    else (void)try_op(m, key_of(ops[draw(m, n_ops)]).text);
  }
  add_last_lines(m);
  return keep(m, m->n) && m->graph->n_outputs > 0;
}

/** Makes some sizes of the input unknown to the graph (run_shape() knows them), so that the
 * analysis of channels must hold for any sizes. False: the network cannot be run with them. */
static inline bool forget_sizes(builder *m) {
  laci_shape shape = m->graph->values[m->graph->inputs[0]].type.shape;
  size_t n = strcspn(m->text, "\n");
  static char rest[RANDOM_TEXT];
  for (int a = 0; a < shape.rank; a++) {
    if (chance(m, 40)) shape.dims[a] = -(10 * (a + 1) + shape.dims[a]);
  }
  (void)snprintf(rest, sizeof rest, "%s", m->text + n);
  m->n = 0;
  add(m, "input x ");
  add_shape(m, &shape);
  add(m, "%s", rest);
  return keep(m, 0);
}

/* ---- reducing a failing network ---- */

typedef bool fails_fn(const char *text, void *context);

static inline void replace_word(char *text, const char *from, const char *to) {
  char *copy = malloc(RANDOM_TEXT), *out = text;
  size_t n = strlen(from);
  if (!copy) abort();
  (void)snprintf(copy, RANDOM_TEXT, "%s", text);
  for (const char *at = copy; *at;) {
    bool starts = at == copy || !(isalnum((unsigned char)at[-1]));
    if (starts && strncmp(at, from, n) == 0 && !isalnum((unsigned char)at[n])) {
      out += sprintf(out, "%s", to);
      at += n;
    } else *out++ = *at++;
  }
  *out = 0;
  free(copy);
}

/* Copies `text` without the line at `begin`; with `bypass`, the readers of that line's node read
 * its first operand instead. */
static inline void without_line(const char *text, size_t begin, bool bypass, char *out) {
  const char *end = strchr(text + begin, '\n');
  char line[NET_LINE], defined[64], read[64];
  (void)snprintf(line, sizeof line, "%.*s", (int)(end - text - (long)begin), text + begin);
  (void)snprintf(out, RANDOM_TEXT, "%.*s%s", (int)begin, text, end + 1);
  const char *open = strchr(line, '(');
  if (!bypass || !open) return;
  (void)net_word(line, defined);
  (void)net_word(open + 1, read);
  replace_word(out, defined, read);
}

/** Removes lines from the text as long as it still fails. text: RANDOM_TEXT bytes. */
static inline void make_small(char *text, fails_fn *fails, void *context) {
  char *tried = malloc(RANDOM_TEXT);
  if (!tried) abort();
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t begin = 0; text[begin] && !changed; begin += strcspn(text + begin, "\n") + 1) {
      for (int bypass = 0; bypass < 2 && !changed; bypass++) {
        without_line(text, begin, bypass, tried);
        if (strcmp(tried, text) == 0 || !fails(tried, context)) continue;
        (void)snprintf(text, RANDOM_TEXT, "%s", tried);
        changed = true;
      }
    }
  }
  free(tried);
}

#endif
