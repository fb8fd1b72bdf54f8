/* SPDX-License-Identifier: Apache-2.0
 * Checks for tests of the analysis, on a network given as text: groups by layer and axis ('C'
 * input, 'K' output channels), their members and causes, and which indices of a stored tensor may
 * be exchanged. Failures name the line of the test. */
#ifndef TESTS_SUPPORT_EXPECT_CLASSES_H
#define TESTS_SUPPORT_EXPECT_CLASSES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "analyze/analyze.h"
#include "analyze/classes_in.h"
#include "analyze/tracks_in.h"
#include "support/graph_build.h"

typedef struct analysed {
  laci_graph *graph;
  laci_analysis *a;
} analysed;

static inline analysed analyse_graph(laci_graph *graph) {
  laci_rules rules = {.pattern = {2, 4}, .all_sizes = true};
  lac_error err = {0};
  analysed n = {.graph = graph};
  if (laci_analyze(graph, &rules, &n.a, &err)) fail_msg("%s", err.text);
  return n;
}

static inline analysed analyse(const char *text) {
  lac_error err = {0};
  laci_graph *graph;
  if (net_read(text, &graph, &err)) fail_msg("%s", err.text);
  return analyse_graph(graph);
}

static inline void analysed_clear(analysed *n) {
  laci_analysis_destroy(n->a);
  laci_graph_destroy(n->graph);
}

static inline const laci_layer *layer_named(const analysed *n, const char *node) {
  for (int l = 0; l < n->a->n_layers; l++) {
    if (strcmp(n->graph->nodes[n->a->layers[l].node].name, node) == 0) return &n->a->layers[l];
  }
  return NULL;
}

/** Returns the group of the node's axis; -1: none. */
static inline int group_at(const analysed *n, const char *node, char axis) {
  const laci_layer *layer = layer_named(n, node);
  if (!layer) fail_msg("%s is no layer", node);
  return axis == 'C' ? layer->group_c : layer->group_k;
}

static inline int count_free_groups(const analysed *n) {
  int free_ones = 0;
  for (int g = 0; g < n->a->n_groups; g++) free_ones += !n->a->groups[g].frozen;
  return free_ones;
}

static inline void check_free(const analysed *n, const char *node, char axis, int n_channels,
                              int line) {
  int g = group_at(n, node, axis);
  if (g < 0) fail_msg("line %d: %s.%c has no group", line, node, axis);
  const laci_group *group = &n->a->groups[g];
  if (group->frozen) fail_msg("line %d: %s.%c is frozen: %s", line, node, axis, group->cause);
  if (group->n_channels != n_channels) {
    fail_msg("line %d: %s.%c has %d channels, wanted %d", line, node, axis, group->n_channels,
             n_channels);
  }
}

static inline void check_frozen(const analysed *n, const char *node, char axis, const char *cause,
                                int line) {
  int g = group_at(n, node, axis);
  if (g < 0) fail_msg("line %d: %s.%c has no group", line, node, axis);
  const laci_group *group = &n->a->groups[g];
  if (!group->frozen) fail_msg("line %d: %s.%c is free, wanted \"%s\"", line, node, axis, cause);
  if (!strstr(group->cause, cause)) {
    fail_msg("line %d: %s.%c is frozen because \"%s\", wanted \"%s\"", line, node, axis,
             group->cause, cause);
  }
}

/** Checks the layers of a group; "c2 c3 < c1" are consumers, then producers. */
static inline void check_members(const analysed *n, int g, const char *wanted, int line) {
  char found[512] = "";
  const laci_group *group = &n->a->groups[g];
  size_t at = 0;
  for (int i = 0; i < group->n_layers + group->n_producers; i++) {
    int layer = i < group->n_layers ? group->layers[i] : group->producers[i - group->n_layers];
    at += (size_t)snprintf(found + at, sizeof found - at, "%s%s", i == group->n_layers ? "< " : "",
                           n->graph->nodes[n->a->layers[layer].node].name);
    at += (size_t)snprintf(found + at, sizeof found - at, " ");
  }
  if (at) found[at - 1] = 0;
  if (strcmp(found, wanted) != 0)
    fail_msg("line %d: group of \"%s\", wanted \"%s\"", line, found, wanted);
}

/** May indices p and q of a stored tensor's axis be exchanged, together with all that is coupled to
 * them? */
static inline bool may_exchange(const analysed *n, const char *stored, int axis, int64_t p,
                                int64_t q) {
  laci_value_axes axes[LACI_MAX_RANK];
  int value = laci_graph_find_value(n->graph, stored);
  if (value < 0) fail_msg("no tensor %s", stored);
  int n_axes = laci_value_find_track_axes(n->a, value, axes);
  const laci_classes *classes = n->a->classes;
  for (int i = 0; i < n_axes; i++) {
    if (axes[i].axes[0] != axis || axes[i].n_axes != 1) continue;
    int64_t first = classes->first[axes[i].track];
    int class = classes->class_of[first + p];
    if (class < 0 || class != classes->class_of[first + q]) return false;
    const laci_class *c = &classes->classes[class];
    for (int s = 0; s < c->n_slots; s++) {
      bool has_p = false, has_q = false;
      for (int k = 0; c->track[s] == axes[i].track && k < c->n_channels; k++) {
        has_p |= c->position[(int64_t)s * c->n_channels + k] == p;
        has_q |= c->position[(int64_t)s * c->n_channels + k] == q;
      }
      if (has_p && has_q) return true;
    }
  }
  return false;
}

/** Checks the classes of exchangeable indices of an axis. `wanted` has a letter for each index, one
 * for each class in order of appearance; '.': the index cannot be exchanged. */
static inline void check_pattern(const analysed *n, const char *stored, int axis,
                                 const char *wanted, int line) {
  char found[65] = "";
  int64_t size = n->graph->values[laci_graph_find_value(n->graph, stored)].type.shape.dims[axis];
  char next = 'a';
  if (size > 64) fail_msg("%s is too long", stored);
  for (int64_t p = 0; p < size; p++) {
    int64_t with = -1;
    for (int64_t q = 0; q < size && with < 0; q++) {
      if (q != p && may_exchange(n, stored, axis, p, q)) with = q;
    }
    found[p] = with < 0 ? '.' : with < p ? found[with] : next++;
  }
  if (strcmp(found, wanted) != 0)
    fail_msg("line %d: %s axis %d: %s, wanted %s", line, stored, axis, found, wanted);
}

#define expect_free(n, node, axis, n_channels) check_free(n, node, axis, n_channels, __LINE__)
#define expect_frozen(n, node, axis, cause) check_frozen(n, node, axis, cause, __LINE__)
#define expect_members(n, node, axis, wanted) \
  check_members(n, group_at(n, node, axis), wanted, __LINE__)
#define expect_pattern(n, stored, axis, wanted) check_pattern(n, stored, axis, wanted, __LINE__)

#endif
