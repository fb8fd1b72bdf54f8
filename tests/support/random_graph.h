/* SPDX-License-Identifier: Apache-2.0
 * Makes small random networks as text, from all declared operators.
 *
 * A builder appends lines to a text and keeps them only if the graph still builds, infers and runs;
 * so a template may propose parameters without proving that they fit. The templates are in
 * random_ops.h; graph_build.h has the language. Same seed, same text. */
#ifndef TESTS_SUPPORT_RANDOM_GRAPH_H
#define TESTS_SUPPORT_RANDOM_GRAPH_H

#include "support/graph_run.h"

enum { RANDOM_TEXT = 1 << 14, RANDOM_MAX_ELEMENTS = 1024, RANDOM_MAX_SIZE = 64 };

typedef struct builder {
  char text[RANDOM_TEXT];
  size_t n; /* number of bytes of text so far */
  uint64_t seed, drawn;
  int n_names;
  laci_graph *graph; /* the graph of the text that is kept so far */
} builder;

static inline int64_t draw(builder *m, int64_t n) {
  return (int64_t)laci_rng_integer_below(m->seed, 77, m->drawn++, (uint64_t)n);
}
static inline bool chance(builder *m, int percent) { return draw(m, 100) < percent; }

static inline void add(builder *m, const char *format, ...) LAC_PRINTF(2, 3);
static inline void add(builder *m, const char *format, ...) {
  va_list args;
  va_start(args, format);
  int n = vsnprintf(m->text + m->n, sizeof m->text - m->n, format, args);
  va_end(args);
  if (n > 0 && m->n + (size_t)n < sizeof m->text) m->n += (size_t)n;
}

typedef struct name {
  char text[24];
} name;

static inline name fresh(builder *m, char kind) {
  name made;
  (void)snprintf(made.text, sizeof made.text, "%c%d", kind, m->n_names++);
  return made;
}

static inline const laci_shape *shape_of(const builder *m, int value) {
  return &m->graph->values[value].type.shape;
}
static inline int rank_of(const builder *m, int value) { return shape_of(m, value)->rank; }
static inline const char *name_of(const builder *m, int value) {
  return m->graph->values[value].name;
}

typedef enum operand_kind { WANT_FLOAT, WANT_BOOL, WANT_INT } operand_kind;

static inline bool fits(const builder *m, int v, operand_kind kind, int min_rank, int max_rank) {
  const laci_value *value = &m->graph->values[v];
  int rank = value->type.shape.rank;
  bool is_bool = value->type.dtype == LAC_DTYPE_BOOL, is_float = value->type.dtype == LAC_DTYPE_F32;
  bool right = kind == WANT_FLOAT  ? is_float
               : kind == WANT_BOOL ? is_bool
                                   : value->type.dtype == LAC_DTYPE_I64;
  if (!right || rank < min_rank || rank > max_rank || laci_shape_count(&value->type.shape) < 1)
    return false;
  return value->stored < 0 || (kind == WANT_FLOAT && rank >= 2);
}

/** Picks a value to read: mostly a late one, sometimes a stored tensor. -1: there is none. */
static inline int pick(builder *m, operand_kind kind, int min_rank, int max_rank) {
  bool stored = chance(m, 6), late = chance(m, 65);
  int found = -1, n = 0;
  for (int v = 0; v < m->graph->n_values; v++) {
    if (!fits(m, v, kind, min_rank, max_rank) || (m->graph->values[v].stored >= 0) != stored)
      continue;
    n++;
    bool unread = m->graph->values[v].n_readers == 0;
    if (found < 0 || (late ? unread || m->graph->values[found].n_readers : draw(m, n) == 0))
      found = v;
  }
  return found;
}

static inline void add_shape(builder *m, const laci_shape *shape) {
  if (shape->rank == 0) add(m, "\"\"");
  for (int a = 0; a < shape->rank; a++) add(m, a ? "x%lld" : "%lld", (long long)shape->dims[a]);
}

/** Adds a stored tensor of that shape, or sometimes picks an existing one. */
static inline name stored_of(builder *m, laci_shape shape, const char *kind) {
  for (int s = 0; !kind[0] && s < m->graph->n_stored && chance(m, 25); s++) {
    const laci_stored *stored = &m->graph->stored[s];
    if (stored->dtype != LAC_DTYPE_F32 || !laci_shape_equal(&stored->shape, &shape) ||
        stored->name[0] == 'p')
      continue;
    name old;
    (void)snprintf(old.text, sizeof old.text, "%s", stored->name);
    return old;
  }
  name made = fresh(m, kind[0] == 'p' ? 'p' : 'w');
  add(m, "stored %s ", made.text);
  add_shape(m, &shape);
  add(m, " %s\n", kind);
  return made;
}

static inline name stored_vector(builder *m, int64_t n, const char *kind) {
  return stored_of(m, laci_shape_of(1, &n), kind);
}

/** Adds a stored int64 tensor of n given numbers. */
static inline name stored_ints(builder *m, int n, const int64_t *ints) {
  name made = fresh(m, 'k');
  add(m, "stored %s %d i64 =", made.text, n);
  for (int i = 0; i < n; i++) add(m, " %lld", (long long)ints[i]);
  add(m, "\n");
  return made;
}

static inline name scalar_of(builder *m, const char *type, const char *content) {
  name made = fresh(m, 'k');
  add(m, "stored %s \"\" %s = %s\n", made.text, type, content);
  return made;
}

/** Draws a shape that broadcasts into `shape`. */
static inline laci_shape smaller_shape(builder *m, const laci_shape *shape) {
  laci_shape part = {0};
  int skip = chance(m, 40) ? (int)draw(m, shape->rank + 1) : 0;
  for (int a = skip; a < shape->rank; a++)
    part.dims[part.rank++] = chance(m, 45) ? 1 : shape->dims[a];
  return part;
}

/** Returns a second operand for an operator that broadcasts: a value of the same shape, a part of
 * v, or a stored tensor. */
static inline name partner(builder *m, int v) {
  name made;
  const laci_shape *shape = shape_of(m, v);
  int found = -1, n = 0;
  for (int o = 0; o < m->graph->n_values; o++) {
    if (m->graph->values[o].stored >= 0 || !fits(m, o, WANT_FLOAT, 1, 6)) continue;
    if (laci_shape_equal(shape_of(m, o), shape) && draw(m, ++n) == 0) found = o;
  }
  if (found >= 0 && chance(m, 60)) {
    (void)snprintf(made.text, sizeof made.text, "%s", name_of(m, found));
    return made;
  }
  if (shape->rank && chance(m, 15)) { /* x[:, i:i+1] */
    int64_t axis = draw(m, shape->rank), first = draw(m, shape->dims[axis]), last = first + 1;
    name begin = stored_ints(m, 1, &first), end = stored_ints(m, 1, &last),
         axes = stored_ints(m, 1, &axis);
    made = fresh(m, 'v');
    add(m, "%s = Slice(%s, %s, %s, %s)\n", made.text, name_of(m, v), begin.text, end.text,
        axes.text);
    return made;
  }
  return stored_of(m, smaller_shape(m, shape), "");
}

/** Keeps the text added since `mark` if the graph can be run and its sizes stay small; else removes
 * it and returns false. */
static inline bool keep(builder *m, size_t mark) {
  laci_graph *graph = NULL;
  bool ok = m->n + 512 < sizeof m->text && net_read(m->text, &graph, NULL) == LAC_OK;
  for (int v = 0; ok && v < graph->n_values; v++)
    ok = laci_shape_count(&graph->values[v].type.shape) <= RANDOM_MAX_ELEMENTS;
  laci_buf **values = ok ? run_graph(graph) : NULL;
  ok &= values != NULL;
  for (int v = 0; values && ok && v < graph->n_values; v++) {
    const laci_shape *shape = &values[v]->shape;
    ok = values[v]->count <= RANDOM_MAX_ELEMENTS;
    for (int a = 0; ok && a < shape->rank; a++)
      ok =
          shape->dims[a] <= RANDOM_MAX_SIZE && (shape->dims[a] > 0 || graph->values[v].stored >= 0);
  }
  if (values) run_clear(graph, values);
  if (!ok) {
    laci_graph_destroy(graph);
    m->n = mark;
    m->text[mark] = 0;
    return false;
  }
  laci_graph_destroy(m->graph);
  m->graph = graph;
  return true;
}

static inline void builder_clear(builder *m) { laci_graph_destroy(m->graph); }

#endif
