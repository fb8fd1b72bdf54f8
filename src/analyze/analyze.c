/* SPDX-License-Identifier: Apache-2.0
 * Runs the whole analysis: tracks, classes, layers, groups. */
#include "analyze/analyze.h"

#include "analyze/classes_in.h"
#include "analyze/layers_in.h"
#include "analyze/tracks_in.h"
#include "base/error.h"
#include "graph/graph.h"

/* For each track (set of tied axes): counts its axes of stored tensors while stored_axes is NULL,
 * and afterwards lists them in the order of the tensors. */
static void count_or_list_stored_axes(laci_analysis *a, int *at) {
  for (int s = 0; s < a->graph->n_stored; s++) {
    const laci_layout *layout = &a->tracks->layouts[a->graph->stored[s].value];
    for (int b = 0; layout->rank >= 0 && b < layout->n_axis_sets; b++) {
      const laci_axis_set *axis_set = &layout->axis_sets[b];
      int track = laci_track_find_root(a->tracks, axis_set->track);
      if (!a->stored_axes) a->stored_first[track + 1]++;
      else
        a->stored_axes[at[track]++] = (laci_stored_axis){s, axis_set->axes[0], axis_set->n_groups};
    }
  }
}

static lac_status list_stored_axes(laci_analysis *a, lac_error *err) {
  size_t n = a->tracks->n_tracks;
  a->stored_first = laci_alloc(n + 1, sizeof *a->stored_first);
  int *at = laci_alloc(n + 1, sizeof *at);
  if (a->stored_first && at) {
    count_or_list_stored_axes(a, NULL);
    for (size_t t = 0; t < n; t++) at[t + 1] = a->stored_first[t + 1] += a->stored_first[t];
    a->stored_axes = laci_alloc((size_t)a->stored_first[n], sizeof *a->stored_axes);
    if (a->stored_axes) count_or_list_stored_axes(a, at);
  }
  laci_free(at);
  return a->stored_axes ? LAC_OK : laci_fail_memory(err, "the analysis");
}

lac_status laci_analyze(const laci_graph *graph, const laci_rules *rules, laci_analysis **out,
                        lac_error *err) {
  *out = NULL;
  laci_analysis *analysis = laci_alloc(1, sizeof *analysis);
  if (!analysis) return laci_fail_memory(err, "the analysis");
  analysis->graph = graph;
  analysis->tracks = laci_alloc(1, sizeof *analysis->tracks);
  analysis->classes = laci_alloc(1, sizeof *analysis->classes);
  lac_status st = LAC_OK;
  if (!analysis->tracks || !analysis->classes) st = laci_fail_memory(err, "the analysis");
  if (!st) st = laci_tracks_build(graph, rules->budget, analysis->tracks, err);
  if (!st) st = list_stored_axes(analysis, err);
  if (!st) st = laci_classes_find(analysis->tracks, analysis->classes, err);
  if (!st) st = laci_find_layers(analysis, rules, err);
  if (!st) st = laci_find_groups(analysis, err);
  if (st) laci_analysis_destroy(analysis);
  else *out = analysis;
  return st;
}

void laci_analysis_destroy(laci_analysis *analysis) {
  if (!analysis) return;
  if (analysis->tracks) laci_tracks_clear(analysis->tracks);
  if (analysis->classes) laci_classes_clear(analysis->classes);
  laci_free(analysis->tracks);
  laci_free(analysis->classes);
  laci_free(analysis->layers);
  laci_free(analysis->layer_of_node);
  laci_free(analysis->other_layer);
  laci_free(analysis->groups);
  laci_free(analysis->stored_first);
  laci_free(analysis->stored_axes);
  laci_arena_clear(&analysis->arena);
  laci_free(analysis);
}

void laci_analysis_find_node_mobility(const laci_analysis *analysis, int node_id,
                                      laci_node_mobility *channels) {
  const laci_node *node = &analysis->graph->nodes[node_id];
  const laci_tracks *t = analysis->tracks;
  const laci_classes *c = analysis->classes;
  *channels = (laci_node_mobility){0};
  for (int i = 0; i < node->n_outputs; i++) {
    if (node->outputs[i] < 0) continue;
    const laci_layout *layout = &t->layouts[node->outputs[i]];
    for (int b = 0; layout->rank >= 0 && b < layout->n_axis_sets; b++) {
      int root = laci_track_find_root(t, layout->axis_sets[b].track);
      for (int64_t p = 0; p < t->tracks[root].n && !channels->free; p++) {
        int class = c->class_of[c->first[root] + p];
        channels->free = class >= 0 && c->classes[class].n_channels > 1;
      }
    }
  }
  for (int g = 0; g < analysis->n_groups; g++) {
    if (!analysis->groups[g].frozen) continue;
    for (size_t k = 0; k < t->n_causes && !channels->blocks; k++) {
      channels->blocks =
          t->causes[k].node == node_id && t->causes[k].text == analysis->groups[g].cause;
    }
  }
}

int laci_group_count_slots(const laci_analysis *analysis, int group) {
  int class = analysis->groups[group].class_id;
  return class < 0 ? 0 : analysis->classes->classes[class].n_slots;
}

laci_slot laci_group_slot(const laci_analysis *analysis, int group, int slot) {
  const laci_class *class = &analysis->classes->classes[analysis->groups[group].class_id];
  return (laci_slot){.track = class->track[slot],
                     .position = class->position + (int64_t)slot * class->n_channels};
}

void laci_track_visit_stored_axes(const laci_analysis *analysis, int track,
                                  laci_stored_axis_visit *visit, void *context) {
  for (int at = analysis->stored_first[track]; at < analysis->stored_first[track + 1]; at++) {
    const laci_stored_axis *one = &analysis->stored_axes[at];
    visit(one->stored, one->axis, one->conv_groups, context);
  }
}

int laci_analysis_count_tracks(const laci_analysis *analysis) {
  return (int)analysis->tracks->n_tracks;
}

int64_t laci_track_count_positions(const laci_analysis *analysis, int track) {
  const laci_track *one = &analysis->tracks->tracks[track];
  return one->parent == track ? one->n : 0;
}

int laci_value_find_track_axes(const laci_analysis *analysis, int value, laci_value_axes *axes) {
  const laci_layout *layout = &analysis->tracks->layouts[value];
  if (layout->rank < 0) return 0;
  for (int b = 0; b < layout->n_axis_sets; b++) {
    const laci_axis_set *axis_set = &layout->axis_sets[b];
    axes[b] = (laci_value_axes){.track = laci_track_find_root(analysis->tracks, axis_set->track),
                                .n_axes = axis_set->n_axes,
                                .n_groups = axis_set->n_groups,
                                .row_axis = axis_set->row_axis};
    for (int k = 0; k < axis_set->n_axes; k++) axes[b].axes[k] = axis_set->axes[k];
  }
  return layout->n_axis_sets;
}

bool laci_analysis_check_orders(const laci_analysis *analysis, int32_t *const *order, int *group) {
  int class;
  if (!laci_classes_check_orders(analysis->tracks, analysis->classes, order, &class)) return false;
  *group = class < 0 ? class : -2;
  for (int g = 0; g < analysis->n_groups && class >= 0; g++) {
    if (analysis->groups[g].class_id != class) continue;
    *group = g;
    break;
  }
  return true;
}
