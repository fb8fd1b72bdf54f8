/* SPDX-License-Identifier: Apache-2.0
 * Making the networks of sweep.h: a network that fits is copied value by value and node by node,
 * and each part may come out changed. */
#include "torture/sweep.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/random_net.h"

enum { MOST_BYTES = 1 << 16, MOST_PORTS = 20, MOST_ATTRS = 24, MOST_LIST = 40 };

typedef struct generator {
  uint64_t seed, drawn;
  const laci_graph *from;
  laci_graph *to;
  int rate; /* of a hundred parts, so many are changed */
} generator;

static int64_t pull(generator *m, int64_t n) {
  return (int64_t)laci_rng_integer_below(m->seed, 78, m->drawn++, (uint64_t)n);
}
static bool often(generator *m, int percent) { return pull(m, 100) < percent; }
static bool changes(generator *m) { return often(m, m->rate); }

const char *sweep_operator(uint64_t k) {
  int n;
  const laci_op *const *all = laci_op_all(&n);
  return all[k % (uint64_t)n]->name;
}

/* ---- Odd parts ---- */

static int64_t odd_int(generator *m) {
  static const int64_t odd[] = {0,
                                -1,
                                1,
                                2,
                                3,
                                7,
                                8,
                                9,
                                -2,
                                -9,
                                64,
                                1000,
                                65536,
                                INT32_MAX,
                                INT32_MIN,
                                UINT32_MAX,
                                INT64_MAX,
                                INT64_MIN,
                                INT64_MAX / 2,
                                INT64_MIN / 2,
                                (int64_t)1 << 40,
                                -100,
                                4,
                                5};
  return odd[pull(m, sizeof odd / sizeof *odd)];
}

static float odd_float(generator *m) {
  static const float odd[] = {0, -1, 1, 0.5f, -0.5f, 1e-30f, 1e30f, -1e30f, 3e38f, 1e-45f, 2, 1000};
  int64_t at = pull(m, sizeof odd / sizeof *odd + 3);
  if (at < 3) return at == 0 ? (float)NAN : at == 1 ? (float)INFINITY : -(float)INFINITY;
  return odd[at - 3];
}

static const char *odd_text(generator *m) {
  static const char *const odd[] = {"",
                                    "NOTSET",
                                    "SAME_UPPER",
                                    "SAME_LOWER",
                                    "VALID",
                                    "constant",
                                    "reflect",
                                    "edge",
                                    "wrap",
                                    "linear",
                                    "nearest",
                                    "cubic",
                                    "sum",
                                    "mean",
                                    "none",
                                    "LEFT",
                                    "RIGHT",
                                    "reverse",
                                    "bidirectional",
                                    "forward",
                                    "DCR",
                                    "CRD",
                                    "ij,jk->ik",
                                    "...i->i",
                                    "i->",
                                    "ii->i",
                                    "add",
                                    "mul",
                                    "max",
                                    "Relu",
                                    "Affine",
                                    "half_pixel",
                                    "align_corners",
                                    "round_prefer_ceil",
                                    "tanh",
                                    "no such thing",
                                    "->",
                                    "a,b,c->abc"};
  return odd[pull(m, sizeof odd / sizeof *odd)];
}

/** Ranks from 0 to 8; sizes that are small, now and then 0, one and the same, huge or open. */
static laci_shape odd_shape(generator *m, bool stored) {
  laci_shape shape = {.rank = (int)pull(m, LACI_MAX_RANK + 1)};
  int64_t same = 1 + pull(m, 4);
  bool even = often(m, 40);
  for (int axis = 0; axis < shape.rank; axis++) {
    int64_t size = even ? same : 1 + pull(m, shape.rank > 5 ? 2 : 5);
    if (often(m, 6)) size = 0;
    if (!stored && often(m, 3)) size = -1 - pull(m, 3);
    if (!stored && often(m, 2)) size = (int64_t)1 << (20 + pull(m, 43));
    shape.dims[axis] = size;
  }
  return shape;
}

/** One axis more, less, of another size. */
static laci_shape near_shape(generator *m, const laci_shape *shape, bool stored) {
  laci_shape near = *shape;
  int64_t change = pull(m, 5);
  if (change == 4 && shape->rank >= 0) {
    near.rank = (int)pull(m, 2); /* a scalar, or what is left of the first axis */
    return near;
  }
  if (change == 0 || shape->rank < 0) return odd_shape(m, stored);
  if (change == 1 && near.rank > 0) near.rank--;
  else if (change == 2 && near.rank < LACI_MAX_RANK) near.dims[near.rank++] = pull(m, 3);
  else if (near.rank > 0) near.dims[pull(m, near.rank)] = pull(m, 4);
  return near;
}

static lac_dtype odd_dtype(generator *m) {
  static const lac_dtype odd[] = {LAC_DTYPE_F32,  LAC_DTYPE_F32, LAC_DTYPE_F64,  LAC_DTYPE_F16,
                                  LAC_DTYPE_BF16, LAC_DTYPE_I64, LAC_DTYPE_I64,  LAC_DTYPE_I32,
                                  LAC_DTYPE_I8,   LAC_DTYPE_U8,  LAC_DTYPE_BOOL, LAC_DTYPE_U64};
  if (often(m, 5)) return (lac_dtype)(1 + pull(m, LAC_DTYPE_COUNT - 1));
  return odd[pull(m, sizeof odd / sizeof *odd)];
}

/* ---- Values ---- */

static void fill(generator *m, const laci_stored *from, uint8_t *bytes, size_t n) {
  bool random = !from || !from->size_bytes || often(m, 20);
  for (size_t at = 0; at < n; at++)
    bytes[at] = random ? (uint8_t)pull(m, 256) : from->bytes[at % from->size_bytes];
  if (random || from->dtype != LAC_DTYPE_I64 || !changes(m)) return;
  int64_t odd = odd_int(m);
  if (n >= 8) memcpy(bytes + (size_t)pull(m, (int64_t)(n / 8)) * 8, &odd, 8);
}

static lac_status give_stored(generator *m, const laci_stored *from, const char *called,
                              lac_error *err) {
  laci_stored stored = {.name = called, .dtype = from ? from->dtype : odd_dtype(m)};
  stored.shape = from ? from->shape : odd_shape(m, true);
  if (from && changes(m)) stored.shape = near_shape(m, &from->shape, true);
  if (from && changes(m)) stored.dtype = odd_dtype(m);
  int64_t count = laci_shape_count(&stored.shape);
  size_t size = lac_dtype_size(stored.dtype);
  if (!size || count < 0 || (uint64_t)count * size > MOST_BYTES)
    return laci_fail(err, LAC_UNSUPPORTED, "a stored tensor that is too large here");
  stored.size_bytes = (size_t)count * size;
  uint8_t *bytes = laci_arena_alloc(m->to->arena, stored.size_bytes + 8, 1);
  if (!bytes) return LAC_NO_MEMORY;
  fill(m, from, bytes, stored.size_bytes);
  stored.bytes = bytes;
  int id;
  return laci_graph_add_stored(m->to, &stored, &id, err);
}

static lac_status give_input(generator *m, const laci_type *from, const char *called,
                             lac_error *err) {
  laci_type type = from ? *from : (laci_type){odd_dtype(m), odd_shape(m, false)};
  if (from && changes(m)) type.shape = near_shape(m, &from->shape, false);
  if (from && changes(m)) type.dtype = odd_dtype(m);
  if (often(m, 2)) type.shape = laci_shape_unknown();
  return laci_graph_add_input(m->to, called, &type, err);
}

/* ---- Nodes ---- */

/** What the attributes of one node are stored in. */
typedef struct attr_storage {
  laci_attr attrs[MOST_ATTRS];
  int64_t ints[MOST_ATTRS][MOST_LIST];
  float floats[MOST_ATTRS][MOST_LIST];
  const char *texts[MOST_ATTRS][MOST_LIST];
  int n;
} attr_storage;

static void odd_value(generator *m, attr_storage *storage, const laci_attr *old, laci_attr *attr) {
  int k = (int)(attr - storage->attrs);
  int64_t n = old && often(m, 60) ? (int64_t)old->n + pull(m, 3) - 1 : pull(m, 10);
  if (n < 0) n = 0;
  if (n > MOST_LIST) n = MOST_LIST;
  for (int64_t at = 0; at < n; at++) {
    bool keep = old && at < (int64_t)old->n && often(m, 60);
    storage->ints[k][at] = keep && old->ints ? old->ints[at]
                           : often(m, 50)    ? pull(m, 4)
                                             : odd_int(m);
    storage->floats[k][at] = keep && old->floats ? old->floats[at] : odd_float(m);
    storage->texts[k][at] = keep && old->texts ? old->texts[at] : odd_text(m);
  }
  attr->n = attr->kind >= LACI_ATTR_INTS ? (size_t)n : 0;
  attr->i = odd_int(m);
  attr->f = odd_float(m);
  attr->text = odd_text(m);
  attr->ints = storage->ints[k];
  attr->floats = storage->floats[k];
  attr->texts = storage->texts[k];
}

/** An attribute that goes, changes or stays. */
static void give_attr(generator *m, attr_storage *storage, const laci_attr *old) {
  if (storage->n == MOST_ATTRS || (changes(m) && often(m, 40))) return;
  laci_attr *attr = &storage->attrs[storage->n++];
  *attr = *old;
  if (!changes(m)) return;
  if (often(m, 15)) attr->kind = (laci_attr_kind)(1 + pull(m, LACI_ATTR_TEXTS));
  odd_value(m, storage, attr->kind == old->kind ? old : NULL, attr);
}

/** Attributes that the operator's table has and the node has not. */
static void give_missing(generator *m, attr_storage *storage, const laci_op *op, int percent) {
  for (const laci_attr_type *type = op ? op->attributes : NULL; type && type->name; type++) {
    bool there = false;
    for (int at = 0; at < storage->n; at++)
      there |= strcmp(storage->attrs[at].name, type->name) == 0;
    if (there || !often(m, percent) || storage->n == MOST_ATTRS || type->kind >= LACI_ATTR_TENSOR)
      continue;
    laci_attr *attr = &storage->attrs[storage->n++];
    *attr = (laci_attr){.name = type->name, .kind = type->kind};
    if (often(m, 3)) attr->kind = (laci_attr_kind)(1 + pull(m, LACI_ATTR_TEXTS));
    odd_value(m, storage, NULL, attr);
  }
}

static int any_value(generator *m) { return m->to->n_values ? (int)pull(m, m->to->n_values) : -1; }

/** The new graph's value of that name; -1 stays. */
static int same_value(const generator *m, int value) {
  return value < 0 ? -1 : laci_graph_intern_value(m->to, m->from->values[value].name);
}

static lac_status give_node(generator *m, const laci_node *old, lac_error *err) {
  static attr_storage storage;
  int inputs[MOST_PORTS], outputs[MOST_PORTS], id;
  laci_node node = {.type = old->type,
                    .domain = old->domain,
                    .version = old->version,
                    .inputs = inputs,
                    .outputs = outputs,
                    .attrs = storage.attrs};
  storage.n = 0;
  for (int port = 0; port < old->n_inputs && node.n_inputs < MOST_PORTS; port++) {
    if (changes(m) && often(m, 30)) continue;
    int value = same_value(m, old->inputs[port]);
    if (changes(m) && often(m, 50)) value = often(m, 40) ? -1 : any_value(m);
    inputs[node.n_inputs++] = value;
  }
  if (changes(m) && often(m, 40)) inputs[node.n_inputs++] = any_value(m);
  for (int out = 0; out < old->n_outputs && node.n_outputs < MOST_PORTS; out++)
    outputs[node.n_outputs++] = same_value(m, old->outputs[out]);
  if (changes(m) && often(m, 30) && node.n_outputs < MOST_PORTS) {
    char text[32];
    (void)snprintf(text, sizeof text, "more%d", m->to->n_nodes);
    outputs[node.n_outputs++] = laci_graph_intern_value(m->to, text);
  }
  if (changes(m) && often(m, 20) && node.n_outputs > 1) node.n_outputs--;
  for (int at = 0; at < old->n_attrs; at++) give_attr(m, &storage, &old->attrs[at]);
  if (changes(m)) give_missing(m, &storage, old->op, 25);
  if (changes(m) && often(m, 30)) node.version = 7 + (int)pull(m, 17);
  node.n_attrs = storage.n;
  return laci_graph_add_node_copy(m->to, &node, &id, err);
}

/* ---- Networks ---- */

/** A copy with changes of what m->from holds. */
static lac_status copy_changed(generator *m, lac_error *err) {
  const laci_graph *from = m->from;
  lac_status st = LAC_OK;
  for (int at = 0; at < from->n_inputs && !st; at++) {
    const laci_value *value = &from->values[from->inputs[at]];
    st = give_input(m, &value->type, value->name, err);
  }
  for (int at = 0; at < from->n_stored && !st; at++) {
    const laci_stored *stored = &from->stored[at];
    if (changes(m) && often(m, 30)) {
      laci_type type = {stored->dtype, stored->shape};
      st = give_input(m, &type, stored->name, err);
    } else st = give_stored(m, stored, stored->name, err);
  }
  for (int at = 0; at < from->n_nodes && !st; at++) st = give_node(m, &from->nodes[at], err);
  for (int at = 0; at < m->to->n_values && !st; at++) {
    const laci_value *value = &m->to->values[at];
    if (value->producer >= 0 && !value->is_output)
      st = laci_graph_add_output(m->to, value->name, err);
  }
  return st;
}

/** A node of drawn ports. */
static lac_status draw_node(generator *m, const laci_op *op, lac_error *err) {
  static attr_storage storage;
  int n = (int)pull(m, 8), outs = 1 + (int)(often(m, 25) ? pull(m, 4) : 0), id;
  int inputs[MOST_PORTS], outputs[MOST_PORTS];
  lac_status st = LAC_OK;
  for (int port = 0; port < n && !st; port++) {
    char text[16];
    (void)snprintf(text, sizeof text, "i%d", port);
    if (often(m, 60)) st = give_input(m, NULL, text, err);
    else st = give_stored(m, NULL, text, err);
    inputs[port] = often(m, 8) ? -1 : laci_graph_intern_value(m->to, text);
  }
  for (int out = 0; out < outs; out++) {
    char text[16];
    (void)snprintf(text, sizeof text, "o%d", out);
    outputs[out] = laci_graph_intern_value(m->to, text);
  }
  storage.n = 0;
  give_missing(m, &storage, op, 50);
  const laci_node node = {.type = op->name,
                          .domain = op->domain ? op->domain : "",
                          .version = op->domain     ? 1
                                     : often(m, 70) ? 22
                                                    : 7 + (int)pull(m, 17),
                          .n_inputs = n,
                          .inputs = inputs,
                          .n_outputs = outs,
                          .outputs = outputs,
                          .n_attrs = storage.n,
                          .attrs = storage.attrs};
  if (!st) st = laci_graph_add_node_copy(m->to, &node, &id, err);
  for (int out = 0; out < outs && !st; out++) {
    char text[16];
    (void)snprintf(text, sizeof text, "o%d", out);
    st = laci_graph_add_output(m->to, text, err);
  }
  return st;
}

/** An input and the operator, as its templates make it. */
static bool fitting(builder *b, uint64_t seed, const laci_op *op) {
  static const char *const inputs[] = {"1x3x4x4", "2x3x3x3", "2x4",     "1x3x4",    "2x4x3",
                                       "5",       "1x8x2x2", "2x2x4x4", "2x2x3x2x2"};
  *b = (builder){.seed = seed};
  if (laci_graph_create(&b->graph, NULL)) return false;
  add(b, "input x %s\n", inputs[draw(b, sizeof inputs / sizeof *inputs)]);
  return keep(b, 0) && try_op(b, key_of(op).text);
}

laci_graph *sweep_network(uint64_t seed, uint64_t k, lac_error *err) {
  static builder b;
  int n;
  const laci_op *const *all = laci_op_all(&n);
  const laci_op *op = all[k % (uint64_t)n];
  generator m = {.seed = laci_rng(seed, 79, k)};
  m.rate = 3 + (int)pull(&m, 30);
  lac_status st = laci_graph_create(&m.to, err);
  if (st) return NULL;
  b.graph = NULL;
  if (!op->control && often(&m, 70) && fitting(&b, m.seed, op)) {
    m.from = b.graph;
    st = copy_changed(&m, err);
  } else st = draw_node(&m, op, err);
  builder_clear(&b);
  m.to->ir_version = 8;
  if (!st) st = laci_graph_finish(m.to, err);
  if (!st) return m.to;
  laci_graph_destroy(m.to);
  return NULL;
}
