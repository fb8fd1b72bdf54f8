/* SPDX-License-Identifier: Apache-2.0
 * For lac_inspect_why: finds the path from a node to the first cause that keeps its channels in
 * place.
 *
 * Searches breadth-first over the nodes that share the channels of the node's axis, until it finds
 * the node that froze them. */
#include <stdio.h>
#include <string.h>

#include "analyze/analyze.h"
#include "analyze/classes_in.h"
#include "analyze/tracks_in.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/nearest.h"
#include "graph/graph.h"

/* A text to which lines are appended. */
typedef struct lines {
  char *text;
  size_t n, capacity;
  bool failed;
} lines;

static void append_line(lines *out, const char *format, ...) LAC_PRINTF(2, 3);

#include <stdarg.h>
static void append_line(lines *out, const char *format, ...) {
  char line[1200];
  va_list args;
  va_start(args, format);
  int n = vsnprintf(line, sizeof line - 1, format, args);
  va_end(args);
  if (n < 0) return;
  if ((size_t)n > sizeof line - 2) n = (int)sizeof line - 2;
  line[n++] = '\n';
  line[n] = 0;
  while (out->capacity < out->n + (size_t)n + 1) {
    if (!laci_grow((void **)&out->text, out->capacity, &out->capacity, 1)) {
      out->failed = true;
      return;
    }
  }
  memcpy(out->text + out->n, line, (size_t)n + 1);
  out->n += (size_t)n;
}

/* Has an axis of the value a position of this component (channel, classes_in.h)? */
static bool value_has_component(const laci_analysis *a, int value, int32_t component) {
  if (value < 0) return false;
  const laci_layout *layout = &a->tracks->layouts[value];
  for (int b = 0; layout->rank >= 0 && b < layout->n_axis_sets; b++) {
    int root = laci_track_find_root(a->tracks, layout->axis_sets[b].track);
    for (int64_t p = 0; p < a->tracks->tracks[root].n; p++) {
      if (a->classes->component_of[a->classes->first[root] + p] == component) return true;
    }
  }
  return false;
}

static bool node_has_component(const laci_analysis *a, int node_id, int32_t component, int *value) {
  const laci_node *node = &a->graph->nodes[node_id];
  for (int i = 0; i < node->n_inputs + node->n_outputs; i++) {
    *value = i < node->n_inputs ? node->inputs[i] : node->outputs[i - node->n_inputs];
    if (value_has_component(a, *value, component)) return true;
  }
  return false;
}

/* Searches breadth-first over nodes that share the component, from `start` to `goal`; came[n]: 1 +
 * the index of the node before node n on the path. */
static bool find_path_of_component(const laci_analysis *a, int start, int goal, int32_t component,
                                   int *came, int *queue) {
  int n_queued = 0, ignored;
  queue[n_queued++] = start;
  came[start] = start + 1;
  for (int q = 0; q < n_queued; q++) {
    int at = queue[q];
    if (at == goal) return true;
    const laci_node *node = &a->graph->nodes[at];
    for (int i = 0; i < node->n_inputs + node->n_outputs; i++) {
      int value = i < node->n_inputs ? node->inputs[i] : node->outputs[i - node->n_inputs];
      if (!value_has_component(a, value, component)) continue;
      const laci_value *v = &a->graph->values[value];
      for (int k = -1; k < v->n_readers; k++) {
        int next = k < 0 ? v->producer : v->readers[k];
        if (next < 0 || came[next] ||
            !(next == goal || node_has_component(a, next, component, &ignored)))
          continue;
        came[next] = at + 1;
        queue[n_queued++] = next;
      }
    }
  }
  return false;
}

/* Returns the node to report for a cause: its own node, or the producer or a reader of its
 * value. */
static int find_node_to_report(const laci_analysis *a, const laci_cause *cause, int32_t component) {
  if (cause->node >= 0) return cause->node;
  if (cause->value < 0) return -1;
  const laci_value *v = &a->graph->values[cause->value];
  int ignored;
  if (v->producer >= 0) return v->producer;
  for (int i = 0; i < v->n_readers; i++) {
    if (node_has_component(a, v->readers[i], component, &ignored)) return v->readers[i];
  }
  return v->n_readers ? v->readers[0] : -1;
}

static bool append_path_lines(const laci_analysis *a, int start, int64_t vertex, lines *out) {
  int32_t component = a->classes->component_of[vertex];
  const laci_cause *cause = &a->tracks->causes[a->classes->cause_of[vertex]];
  int goal = find_node_to_report(a, cause, component), n = a->graph->n_nodes;
  int *came = laci_alloc((size_t)n, sizeof *came), *queue = laci_alloc((size_t)n, sizeof *queue);
  bool ok = came && queue;
  if (ok && goal >= 0 && find_path_of_component(a, start, goal, component, came, queue)) {
    int n_path = 0;
    if (goal != start) append_line(out, "  through");
    for (int at = goal; at != start; at = came[at] - 1) queue[n_path++] = at;
    for (int i = n_path - 1; i >= 0; i--) {
      append_line(out, "    %s (%s)", a->graph->nodes[queue[i]].name,
                  a->graph->nodes[queue[i]].type);
    }
  }
  append_line(out, "  because %s", cause->text);
  laci_free(came);
  laci_free(queue);
  return ok && !out->failed;
}

static bool explain_layer_axis(const laci_analysis *a, int l, bool is_c, lines *out) {
  const laci_layer *layer = &a->layers[l];
  int axis = is_c ? layer->c_axis : layer->k_axis, group = is_c ? layer->group_c : layer->group_k;
  const char *what = is_c ? "input channels (C)" : "output channels (K)";
  const laci_layout *layout = &a->tracks->layouts[a->graph->stored[layer->stored].value];
  if (layout->rank < 0 || layout->set[axis] < 0) {
    bool one = layout->rank >= 0 && layout->set[axis] == LACI_AXIS_UNIFORM;
    append_line(out, "%s: %s", what, one ? "there is only one" : "stay in place");
    if (!one)
      append_line(out, "  because %s",
                  a->tracks->causes[layout->rank < 0 ? 0 : layout->cause[axis]].text);
    return !out->failed;
  }
  int root = laci_track_find_root(a->tracks, layout->axis_sets[layout->set[axis]].track);
  int64_t n = a->tracks->tracks[root].n, n_frozen = 0, n_alone = 0, first_frozen = -1;
  for (int64_t p = 0; p < n; p++) {
    int64_t v = a->classes->first[root] + p;
    int class = a->classes->class_of[v];
    if (class >= 0 && a->classes->classes[class].n_channels < 2) n_alone++;
    if (class >= 0) continue;
    if (!n_frozen++) first_frozen = v;
  }
  if (n_frozen < n && group >= 0 && !a->groups[group].frozen) {
    append_line(out, "%s: %lld of %lld may change places (group %d)", what,
                (long long)(n - n_frozen - n_alone), (long long)n, group + 1);
  } else if (!n_frozen) {
    append_line(out, "%s: free, but no two of them are alike", what);
  }
  if (!n_frozen) return !out->failed;
  append_line(out, "%s: %lld of %lld stay in place", what, (long long)n_frozen, (long long)n);
  return append_path_lines(a, layer->node, first_frozen, out);
}

enum { MOST_NAMES = 3 };

/* Lists the layers whose names contain the word, "a, b, c"; empty: there are none. */
static void list_layers_containing_word(const laci_analysis *a, const char *word, char *text,
                                        size_t capacity) {
  size_t used = 0;
  int n = 0;
  text[0] = 0;
  for (int l = 0; l < a->n_layers && n < MOST_NAMES && used < capacity; l++) {
    const char *name = a->graph->nodes[a->layers[l].node].name;
    if (!word[0] || !strstr(name, word)) continue;
    used += (size_t)snprintf(text + used, capacity - used, "%s%s", n++ ? ", " : "", name);
  }
}

/* Fails with the names that contain this one, or the nearest names of layers and their weights. */
static lac_status fail_unknown_node_name(const laci_analysis *a, const char *name, lac_error *err) {
  char held[512];
  int n = 0;
  list_layers_containing_word(a, name, held, sizeof held);
  const char **names = laci_alloc((size_t)a->n_layers * 2, sizeof *names);
  if (!names) return laci_fail_memory(err, "the names of the layers");
  for (int l = 0; l < a->n_layers; l++) {
    names[n++] = a->graph->nodes[a->layers[l].node].name;
    names[n++] = a->graph->stored[a->layers[l].stored].name;
  }
  const char *nearest = held[0] ? held : laci_find_nearest_text(name, 0, names, n);
  lac_status st = laci_fail(err, LAC_NOT_FOUND, "%s: no node or weight has this name%s%s%s", name,
                            nearest ? ", did you mean "
                            : n     ? " (lacuna inspect lists them; the first is "
                                    : ", and the network has no layers",
                            nearest ? nearest
                            : n     ? names[0]
                                    : "",
                            nearest ? "?"
                            : n     ? ")"
                                    : "");
  laci_free((void *)names);
  return st;
}

lac_status laci_analysis_explain_node(const laci_analysis *a, const char *name, char **text,
                                      lac_error *err) {
  *text = NULL;
  lines out = {0};
  bool found = false, ok = true;
  for (int l = 0; l < a->n_layers && ok; l++) {
    const laci_layer *layer = &a->layers[l];
    const laci_node *node = &a->graph->nodes[layer->node];
    if (strcmp(node->name, name) != 0 && strcmp(a->graph->stored[layer->stored].name, name) != 0)
      continue;
    found = true;
    append_line(&out, "%s (%s), weight %s", node->name, node->type,
                a->graph->stored[layer->stored].name);
    if (!layer->eligible && layer->reason) append_line(&out, "not pruned: %s", layer->reason);
    ok = explain_layer_axis(a, l, true, &out) && explain_layer_axis(a, l, false, &out);
  }
  if (found && ok && !out.failed) {
    *text = out.text;
    return LAC_OK;
  }
  laci_free(out.text);
  if (found) return laci_fail_memory(err, "the explanation");
  for (int n = 0; n < a->graph->n_nodes; n++) {
    if (strcmp(a->graph->nodes[n].name, name) == 0) {
      return laci_fail(err, LAC_NOT_FOUND, "%s: a %s, not a layer with a stored weight", name,
                       a->graph->nodes[n].type);
    }
  }
  return fail_unknown_node_name(a, name, err);
}
