/* SPDX-License-Identifier: Apache-2.0
 * Graphs from text, one statement a line, so that a test shows its network and a failing random one
 * can be pasted:
 *
 *    input x 1x3x4x4       a graph input; a type may follow: i64, bool, f16 ...
 *    stored w 8x3x3x3      a stored tensor of generic numbers, the same for the same name;
 *                          "positive": their magnitudes; "listed": a caller may override it;
 *                          "pruned": two of every four stay along the second axis
 *    stored s 2 i64 = 1 -1 a stored tensor of given contents; "" is a scalar's shape
 *    y, _ = Conv(x, w, _) group=2 pads=1,1,1,1 mode="text" eps=0.5 name="a name" domain="my"
 *    y = com.microsoft.Gelu(x)
 *    output y
 *    shape y 1x8x4x4       what the file declares of a value
 *    opset 13              of the nodes that follow (default 22)
 *    then / else / end     bodies of the If that follows: y = If(condition, a, b)
 *    loop / end            a loop (graph.h, laci_body): `loop` precedes its LoopBegin or ScanBegin
 *                          (domain="lacuna"), `end` its Loop or Scan
 *
 * A number with a point is a float, one with a comma a list ("axes=1," has one element); so are
 * texts ("Tanh","Relu"), and those of `activations` always. */
#ifndef TESTS_SUPPORT_GRAPH_BUILD_H
#define TESTS_SUPPORT_GRAPH_BUILD_H

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/rng.h"
#include "graph/graph.h"
#include "graph/infer.h"
#include "tensor/buf.h"

enum {
  NET_MAX_PORTS = 20,
  NET_MAX_ATTRS = 12,
  NET_MAX_INTS = 64,
  NET_MAX_TEXTS = 8,
  NET_LINE = 1024
};

/** The salt of generic numbers. Tests run with several salts: what holds by accident for one set of
 * numbers does not hold for three. */
static inline uint64_t *net_salt(void) {
  static uint64_t salt;
  return &salt;
}

/** Returns generic number `at` of a tensor, in +-[0.25, 1.25): no two are equal, and no sum of a
 * few is zero. */
static inline double net_number(const char *name, int64_t at) {
  uint64_t stream = 1469598103934665603u + *net_salt();
  for (const char *c = name; *c; c++) stream = (stream ^ (uint8_t)*c) * 1099511628211u;
  double u = laci_rng_unit_interval(20, stream, (uint64_t)at);
  return u < 0.5 ? -0.25 - 2 * u : 0.25 + 2 * (u - 0.5);
}

static inline const char *net_skip(const char *at) {
  while (*at == ' ' || *at == ',') at++;
  return at;
}

/** Reads a word of letters, digits, '_', '.', '/'; returns the rest of the line. */
static inline const char *net_word(const char *at, char word[64]) {
  size_t n = 0;
  at = net_skip(at);
  while (n < 63 && (isalnum((unsigned char)*at) || strchr("_./-", *at)) && *at) word[n++] = *at++;
  word[n] = 0;
  return at;
}

static inline laci_shape net_shape(const char *text) {
  laci_shape shape = {0};
  while (*text) {
    char *end;
    shape.dims[shape.rank++] = strtoll(text, &end, 10);
    if (end == text || (*end && *end != 'x')) return laci_shape_unknown();
    text = *end == 'x' ? end + 1 : end;
  }
  return shape;
}

static inline lac_dtype net_dtype(const char *word) {
  for (int d = 1; d < LAC_DTYPE_COUNT; d++) {
    if (strcmp(lac_dtype_name((lac_dtype)d), word) == 0) return (lac_dtype)d;
  }
  return LAC_DTYPE_F32;
}

static inline void net_put(lac_dtype dtype, uint8_t *bytes, int64_t at, double x) {
  float f = (float)x;
  int64_t i = (int64_t)x;
  size_t size = lac_dtype_size(dtype);
  if (dtype == LAC_DTYPE_F64) memcpy(bytes + at * 8, &x, 8);
  else if (dtype == LAC_DTYPE_F32) memcpy(bytes + at * 4, &f, 4);
  else if (dtype == LAC_DTYPE_BF16) memcpy(bytes + at * 2, (uint8_t *)&f + 2, 2);
  else memcpy(bytes + at * (int64_t)size, &i, size); /* correct on little-endian hosts only */
}

/** Is an element of a pruned tensor kept? By chance, two of every four. */
static inline bool net_is_kept(const laci_shape *shape, int64_t at) {
  static const uint8_t two[6] = {3, 5, 9, 6, 10, 12};
  int64_t taps = 1;
  for (int axis = 2; axis < shape->rank; axis++) taps *= shape->dims[axis];
  const int64_t channel = at / taps % shape->dims[1];
  const uint64_t block = (uint64_t)((at / taps - channel % 4) * taps + at % taps);
  return two[laci_rng_integer_below(21, (uint64_t)taps, block, 6)] >> channel % 4 & 1;
}

/** Reads `stored NAME SHAPE [TYPE] [positive] [pruned] [listed] [= numbers]`. */
static inline lac_status net_stored(laci_graph *graph, const char *line, lac_error *err) {
  char name[64], word[64];
  line = net_word(line, name);
  while (*line == ' ') line++;
  size_t n = 0;
  if (*line == '"') line += 2; /* a scalar's shape */
  else
    while (n < 63 && *line && *line != ' ') word[n++] = *line++;
  word[n] = 0;
  laci_stored stored = {.name = name, .dtype = LAC_DTYPE_F32, .shape = net_shape(word)};
  bool positive = false, pruned = false;
  for (line = net_skip(line); *line && *line != '='; line = net_skip(line)) {
    line = net_word(line, word);
    if (strcmp(word, "positive") == 0) positive = true;
    else if (strcmp(word, "pruned") == 0) pruned = true;
    else if (strcmp(word, "listed") == 0) stored.overridable = true;
    else stored.dtype = net_dtype(word);
  }
  int64_t count = laci_shape_count(&stored.shape);
  if (count < 0) return laci_fail(err, LAC_BAD_FILE, "stored %s: bad shape", name);
  stored.size_bytes = (size_t)count * lac_dtype_size(stored.dtype);
  uint8_t *bytes = laci_arena_alloc(graph->arena, stored.size_bytes + 1, 1);
  if (!bytes) return LAC_NO_MEMORY;
  bool given = *line == '=';
  if (given) line++;
  for (int64_t i = 0; i < count; i++) {
    double x = net_number(name, i);
    if (positive) x = fabs(x);
    if (pruned && !net_is_kept(&stored.shape, i)) x = 0;
    if (!given && !laci_dtype_is_float(stored.dtype)) x = floor(x * 20);
    if (given) {
      char *end;
      x = strtod(net_skip(line), &end);
      line = end;
    }
    net_put(stored.dtype, bytes, i, x);
  }
  int id;
  stored.bytes = bytes;
  return laci_graph_add_stored(graph, &stored, &id, err);
}

/** Reads an attribute value after '='; numbers are stored in `ints` or `floats` from *used on. */
static inline const char *net_attr(const char *at, laci_attr *attr, int64_t *ints, float *floats,
                                   int *used, char *text) {
  char *end;
  if (*at == '"') {
    const char *close = strchr(at + 1, '"');
    size_t n = close && close - at < 64 ? (size_t)(close - at - 1) : 0;
    memcpy(text, at + 1, n);
    text[n] = 0;
    attr->kind = LACI_ATTR_TEXT;
    attr->text = text;
    return close ? close + 1 : at + strlen(at);
  }
  int first = *used;
  bool list = false, is_float = false;
  do {
    if (*at == ',') at++;
    floats[*used] = strtof(at, &end);
    if (end == at) break;
    ints[*used] = strtoll(at, NULL, 10);
    for (const char *c = at; c < end; c++) is_float |= *c == '.';
    ++*used;
    at = end;
    list |= *at == ',';
  } while (*at == ',' && *used < NET_MAX_INTS);
  attr->n = (size_t)(*used - first);
  attr->kind = list       ? is_float ? LACI_ATTR_FLOATS : LACI_ATTR_INTS
               : is_float ? LACI_ATTR_FLOAT
                          : LACI_ATTR_INT;
  attr->i = ints[first];
  attr->f = floats[first];
  attr->ints = attr->kind == LACI_ATTR_INTS ? ints + first : NULL;
  attr->floats = attr->kind == LACI_ATTR_FLOATS ? floats + first : NULL;
  return at;
}

/** Reads the texts of a list ("a","b") after the first one, and stores them consecutively in
 * `text`. */
static inline const char *net_texts(const char *at, laci_attr *attr, char *text,
                                    const char **list) {
  size_t used = strlen(text) + 1;
  list[0] = text;
  for (attr->n = 1; at[0] == ',' && at[1] == '"' && attr->n < NET_MAX_TEXTS; attr->n++) {
    size_t n = strcspn(at + 2, "\"");
    if (used + n + 1 > 64 || at[2 + n] != '"') break;
    (void)snprintf(text + used, n + 1, "%s", at + 2);
    list[attr->n] = text + used;
    used += n + 1;
    at += n + 3;
  }
  attr->kind = LACI_ATTR_TEXTS;
  attr->texts = list;
  return at;
}

enum { NET_MAX_BODIES = 8 };

/** State that statements leave for later ones. */
typedef struct net_state {
  int opset;
  int n_open, open[NET_MAX_BODIES][2]; /* bodies that are open: of an If, then and else; or of a
                                          loop, and 0 */
  int ended[2];                        /* numbers of the bodies that the next node ends; 0: none */
  bool begins;                         /* the next node begins a loop */
} net_state;

static inline int net_body(const net_state *s) {
  if (!s->n_open) return 0;
  const int *open = s->open[s->n_open - 1];
  return open[1] ? open[1] : open[0];
}

/** Enters a body: `then`, `else` or the beginning of a loop. */
static inline lac_status net_enter(laci_graph *graph, net_state *s, laci_body body, int second) {
  int id = -1;
  if (s->n_open + !second <= NET_MAX_BODIES) {
    s->n_open += !second;
    body.outer = s->n_open > 1 ? (s->open[s->n_open - 2][1] ? s->open[s->n_open - 2][1]
                                                            : s->open[s->n_open - 2][0])
                               : 0;
    id = laci_graph_add_body(graph, &body);
  }
  if (id < 0) return LAC_NO_MEMORY;
  s->open[s->n_open - 1][second] = id;
  if (!second) s->open[s->n_open - 1][1] = 0;
  laci_graph_set_current_body(graph, id);
  return LAC_OK;
}

static inline void net_leave(laci_graph *graph, net_state *s) {
  s->n_open--;
  memcpy(s->ended, s->open[s->n_open], sizeof s->ended);
  laci_graph_set_current_body(graph, net_body(s));
}

/** Puts the node into its body; it may begin a body, or end one or two. */
static inline lac_status net_place(laci_graph *graph, net_state *s, laci_node *node,
                                   lac_error *err) {
  int id;
  if (s->begins) node->frames = graph->n_bodies + 1;
  else if (s->ended[0]) node->frames = s->ended[0];
  lac_status st = laci_graph_add_node(graph, node, &id, err);
  for (int at = 0; at < 2 && !st && !s->begins; at++) {
    if (s->ended[at]) graph->bodies[s->ended[at] - 1].end = id;
    s->ended[at] = 0;
  }
  if (st || !s->begins) return st;
  s->begins = false;
  return net_enter(graph, s, (laci_body){.begin = id, .end = -1, .branch = -1}, 0);
}

/** Reads `y, z = Op(a, _, b) attributes`. */
static inline lac_status net_node(laci_graph *graph, const char *line, net_state *state,
                                  lac_error *err) {
  char word[64], type[64], names[NET_MAX_ATTRS][64], texts[NET_MAX_ATTRS][64], node_name[64] = "",
                                                                               domain[64] = "";
  const char *lists[NET_MAX_ATTRS][NET_MAX_TEXTS];
  int inputs[NET_MAX_PORTS], outputs[NET_MAX_PORTS], used = 0;
  laci_attr attrs[NET_MAX_ATTRS] = {0};
  int64_t ints[NET_MAX_INTS + 1];
  float floats[NET_MAX_INTS + 1];
  laci_node node = {.inputs = inputs,
                    .outputs = outputs,
                    .attrs = attrs,
                    .version = state->opset,
                    .domain = domain};
  for (line = net_skip(line); *line && *line != '='; line = net_skip(line)) {
    line = net_word(line, word);
    if (node.n_outputs == NET_MAX_PORTS || !word[0])
      return laci_fail(err, LAC_BAD_FILE, "bad line");
    outputs[node.n_outputs++] = strcmp(word, "_") == 0 ? -1 : laci_graph_intern_value(graph, word);
  }
  line = net_word(line + (*line == '='), type);
  char *dot = strrchr(type, '.');
  if (dot) (void)snprintf(domain, sizeof domain, "%.*s", (int)(dot - type), type);
  node.type = dot ? dot + 1 : type;
  for (line = net_skip(line + (*line == '(')); *line && *line != ')'; line = net_skip(line)) {
    line = net_word(line, word);
    if (node.n_inputs == NET_MAX_PORTS || !word[0]) return laci_fail(err, LAC_BAD_FILE, "bad line");
    inputs[node.n_inputs++] = strcmp(word, "_") == 0 ? -1 : laci_graph_intern_value(graph, word);
  }
  for (line = net_skip(line + (*line == ')')); *line && node.n_attrs < NET_MAX_ATTRS;
       line = net_skip(line)) {
    int at = node.n_attrs;
    line = net_word(line, names[at]);
    if (*line != '=') return laci_fail(err, LAC_BAD_FILE, "bad attribute at '%s'", line);
    line = net_attr(line + 1, &attrs[at], ints, floats, &used, texts[at]);
    attrs[at].name = names[at];
    if (attrs[at].kind == LACI_ATTR_TEXT && (*line == ',' || strcmp(names[at], "activations") == 0))
      line = net_texts(line, &attrs[at], texts[at], lists[at]);
    if (strcmp(names[at], "name") == 0)
      (void)snprintf(node_name, sizeof node_name, "%s", texts[at]);
    else if (strcmp(names[at], "domain") == 0)
      (void)snprintf(domain, sizeof domain, "%s", texts[at]);
    else node.n_attrs++;
  }
  node.name = node_name;
  return net_place(graph, state, &node, err);
}

/** Reads a statement of one word, which begins or ends a body. False: it is none. */
static inline bool net_frame(laci_graph *graph, net_state *state, const char *word,
                             lac_status *st) {
  const bool then = strcmp(word, "then") == 0, other = strcmp(word, "else") == 0;
  const laci_body body = {.begin = -1, .end = -1, .branch = then};
  if (then || other) *st = net_enter(graph, state, body, other);
  else if (strcmp(word, "loop") == 0) state->begins = true;
  else if (strcmp(word, "end") == 0 && state->n_open) net_leave(graph, state);
  else return false;
  return true;
}

static inline lac_status net_line(laci_graph *graph, const char *line, net_state *state,
                                  lac_error *err) {
  char word[64], name[64], shape[64], type[64];
  const char *rest = net_word(line, word);
  lac_status st = LAC_OK;
  if (!word[0]) return LAC_OK;
  if (strcmp(word, "opset") == 0) {
    state->opset = atoi(rest);
    return LAC_OK;
  }
  if (!*net_skip(rest) && net_frame(graph, state, word, &st)) return st;
  if (strcmp(word, "stored") == 0) return net_stored(graph, rest, err);
  if (strcmp(word, "output") == 0) {
    (void)net_word(rest, name);
    return laci_graph_add_output(graph, name, err);
  }
  if (strcmp(word, "shape") == 0) {
    (void)net_word(net_word(rest, name), shape);
    int id = laci_graph_intern_value(graph, name);
    if (id < 0) return LAC_NO_MEMORY;
    graph->values[id].type = (laci_type){.dtype = LAC_DTYPE_F32, .shape = net_shape(shape)};
    return LAC_OK;
  }
  if (strcmp(word, "input") != 0) return net_node(graph, line, state, err);
  (void)net_word(net_word(net_word(rest, name), shape), type);
  laci_type tensor = {.dtype = net_dtype(type), .shape = net_shape(shape)};
  return laci_graph_add_input(graph, name, &tensor, err);
}

/** Makes the graph of a text, complete and inferred. */
static inline lac_status net_read(const char *text, laci_graph **graph, lac_error *err) {
  char line[NET_LINE];
  net_state state = {.opset = 22};
  lac_status st = laci_graph_create(graph, err);
  if (st) return st;
  for (; *text && !st; text += strcspn(text, "\n"), text += *text == '\n') {
    (void)snprintf(line, sizeof line, "%.*s", (int)strcspn(text, "\n"), text);
    st = net_line(*graph, line, &state, err);
  }
  (*graph)->ir_version = 8;
  if (!st) st = laci_graph_finish(*graph, err);
  if (!st) st = laci_graph_infer(*graph, NULL, 0, err);
  if (st) {
    laci_graph_destroy(*graph);
    *graph = NULL;
  }
  return st;
}

#endif
