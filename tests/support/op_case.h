/* SPDX-License-Identifier: Apache-2.0
 * Operator cases as text: a small network (graph_build.h), its expected outputs, and the expected
 * coupling of its axes.
 *
 * Each case is inferred, folded where the operator folds, and run on the plain engine with 1 and 3
 * threads; shapes, types, contents and coupling are compared with the expected ones, and the
 * results of folding and of both runs with each other.
 *
 *   want      "y f32 2x3 = 1 2 3 4 5 6", a line for each output; "s" is a scalar's shape
 *   coupling  of the last node: "ab . -> ba" are labels, port by port: letters in order of
 *             appearance, '.' fixed, 'M' mapped, '-' an absent port, 's' a scalar;
 *             "| 0.1<0.1 = 2 1 0" is a map: out port.axis < in port.axis, '*' virtual;
 *             "reshape" where that is set. NULL: not checked. */
#ifndef TESTS_SUPPORT_OP_CASE_H
#define TESTS_SUPPORT_OP_CASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "cpu/pool.h"
#include "graph/coupling.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "support/graph_build.h"
#include "support/walk.h"

typedef struct op_case {
  const char *about, *net, *want, *coupling;
} op_case;

static inline void say(char *text, size_t size, const char *format, ...) {
  size_t used = strlen(text);
  va_list args;
  va_start(args, format);
  (void)vsnprintf(text + used, size - used, format, args);
  va_end(args);
}

/** Returns the letter of a label; letters are assigned in order of appearance. */
static inline char label_letter(int *letters, int *n_letters, int label) {
  if (label == LACI_FIXED) return '.';
  if (label == LACI_MAPPED) return 'M';
  for (int at = 0; at < *n_letters; at++) {
    if (letters[at] == label) return (char)('a' + at);
  }
  letters[(*n_letters)++] = label;
  return (char)('a' + *n_letters - 1);
}

static inline void say_port(const laci_coupling *c, int port, int *letters, int *n_letters,
                            char *text, size_t size) {
  const laci_node *node = c->node;
  bool absent = port >= 0 ? node->inputs[port] < 0 : node->outputs[LACI_OUT(port)] < 0;
  const laci_shape *shape = laci_port_shape(c, port);
  if (absent || !shape || shape->rank == 0) {
    say(text, size, "%s", absent ? "-" : shape ? "s" : "?");
    return;
  }
  for (int axis = 0; axis < shape->rank; axis++) {
    int label = laci_coupling_get_label(c, port, axis);
    say(text, size, "%c", label_letter(letters, n_letters, label));
    if (label > 0 && c->normalized[label]) say(text, size, "~");
  }
}

/** Writes the coupling of a node as text. */
static inline void coupling_text(const laci_graph *graph, const laci_node *node, char *text,
                                 size_t size) {
  laci_coupling c;
  int letters[256], n_letters = 0;
  text[0] = 0;
  assert_non_null(node->op);
  assert_int_equal(laci_couple_node(&c, graph, node), LAC_OK);
  if (c.reshape) say(text, size, "reshape ");
  for (int port = 0; port < node->n_inputs; port++) {
    say_port(&c, port, letters, &n_letters, text, size);
    say(text, size, " ");
  }
  say(text, size, "->");
  for (int port = 0; port < node->n_outputs; port++) {
    say(text, size, " ");
    say_port(&c, LACI_OUT(port), letters, &n_letters, text, size);
  }
  for (size_t at = 0; at < c.n_maps; at++) {
    const laci_axis_map *map = &c.maps[at];
    say(text, size, " | %d.", LACI_OUT(map->out_port));
    if (map->out_axis < 0) say(text, size, "*");
    else say(text, size, "%d", map->out_axis);
    say(text, size, "<%d.%d =", map->in_port, map->in_axis);
    for (int64_t o = 0; o < map->n_out; o++) {
      bool inside = o >= map->start && o < map->start + map->n;
      say(text, size, " %d", inside ? map->from[o - map->start] : -1);
    }
  }
  laci_coupling_clear(&c);
}

static inline void buf_text(const char *name, const laci_buf *buf, char *text, size_t size) {
  say(text, size, "%s %s ", name, lac_dtype_name(buf->dtype));
  if (buf->shape.rank == 0) say(text, size, "s");
  for (int axis = 0; axis < buf->shape.rank; axis++) {
    say(text, size, "%s%lld", axis ? "x" : "", (long long)buf->shape.dims[axis]);
  }
  say(text, size, " =");
  for (int64_t at = 0; at < buf->count; at++) {
    if (buf->f) say(text, size, " %.6g", buf->f[at]);
    else if (laci_is_symbol(buf->i[at])) say(text, size, " ?");
    else say(text, size, " %lld", (long long)buf->i[at]);
  }
}

/** Checks that the inferred type and contents of a value agree with the computed value. */
static inline void check_inferred(const laci_graph *graph, int value, const laci_buf *got,
                                  const char *about) {
  const laci_value *v = &graph->values[value];
  if (v->type.dtype != got->dtype)
    fail_msg("%s: '%s' is inferred as %s", about, v->name, lac_dtype_name(v->type.dtype));
  if (v->type.shape.rank >= 0 && v->type.shape.rank != got->shape.rank)
    fail_msg("%s: inferred rank", about);
  for (int axis = 0; axis < v->type.shape.rank; axis++) {
    int64_t size = v->type.shape.dims[axis];
    if (size >= 0 && size != got->shape.dims[axis])
      fail_msg("%s: '%s' axis %d inferred as %lld", about, v->name, axis, (long long)size);
  }
  for (int64_t at = 0; v->known && at < got->count; at++) {
    if (got->f && !(v->known->f[at] == got->f[at] ||
                    (v->known->f[at] != v->known->f[at] && got->f[at] != got->f[at]))) {
      fail_msg("%s: '%s' element %lld is folded to %g", about, v->name, (long long)at,
               v->known->f[at]);
    }
    if (got->i && !laci_is_symbol(v->known->i[at]) && v->known->i[at] != got->i[at]) {
      fail_msg("%s: '%s' element %lld is folded to %lld", about, v->name, (long long)at,
               (long long)v->known->i[at]);
    }
  }
}

/** Runs the network on generic numbers and writes all graph outputs as text, one a line. */
static inline void run_text(const laci_graph *graph, int n_threads, const char *about, char *text,
                            size_t size) {
  lac_error err = {0};
  laci_pool *pool = NULL;
  laci_stepper *run = NULL;
  text[0] = 0;
  assert_int_equal(laci_pool_create(n_threads, &pool, &err), LAC_OK);
  assert_int_equal(walk_open(graph, pool, &run, &err), LAC_OK);
  lac_status st = walk_all(run, graph, &err);
  if (st) fail_msg("%s: %s", about, err.text);
  for (int at = 0; at < graph->n_outputs; at++) {
    int value = graph->outputs[at];
    const laci_buf *got = laci_stepper_value(run, value);
    assert_non_null(got);
    if (at) say(text, size, "\n");
    buf_text(graph->values[value].name, got, text, size);
    check_inferred(graph, value, got, about);
  }
  laci_stepper_destroy(run);
  laci_pool_destroy(pool);
}

static inline void check_case(const op_case *one) {
  char text[8192], again[8192];
  lac_error err = {0};
  laci_graph *graph = NULL;
  lac_status st = net_read(one->net, &graph, &err);
  if (st) fail_msg("%s: %s", one->about, err.text);
  run_text(graph, 1, one->about, text, sizeof text);
  if (strcmp(text, one->want) != 0) fail_msg("%s:\n got %s\nwant %s", one->about, text, one->want);
  run_text(graph, 3, one->about, again, sizeof again);
  if (strcmp(text, again) != 0) fail_msg("%s: other bytes with 3 threads", one->about);
  coupling_text(graph, &graph->nodes[graph->n_nodes - 1], text, sizeof text);
  if (one->coupling && strcmp(text, one->coupling) != 0) {
    fail_msg("%s: coupling\n got %s\nwant %s", one->about, text, one->coupling);
  }
  laci_graph_destroy(graph);
}

static inline void check_cases(const op_case *cases, size_t n) {
  for (size_t at = 0; at < n; at++) check_case(&cases[at]);
}

/** A network that inference must refuse, with an error that contains `text`. */
typedef struct bad_case {
  const char *about, *net;
  lac_status status;
  const char *text;
} bad_case;

static inline void check_refused(const bad_case *cases, size_t n) {
  for (size_t at = 0; at < n; at++) {
    lac_error err = {0};
    laci_graph *graph = NULL;
    lac_status st = net_read(cases[at].net, &graph, &err);
    if (st != cases[at].status)
      fail_msg("%s: %s (%s)", cases[at].about, lac_status_text(st), err.text);
    if (!strstr(err.text, cases[at].text))
      fail_msg("%s: '%s' lacks '%s'", cases[at].about, err.text, cases[at].text);
  }
}

#endif
