/* SPDX-License-Identifier: Apache-2.0
 * Builds the groups of channels that layers read and produce from classes of positions
 * (classes_in.h).
 *
 * Searchable groups come first, in the order of their first consumer; then groups that may move but
 * have no consumer; then frozen groups, one for each track (set of tied axes) whose channels may
 * not move. */
#include <stdlib.h>
#include <string.h>

#include "analyze/analyze.h"
#include "analyze/classes_in.h"
#include "analyze/layers_in.h"
#include "analyze/tracks_in.h"
#include "base/error.h"
#include "graph/graph.h"

/* The track (set of tied axes) that an axis of a layer belongs to, and its number of positions.
 * track -1: nothing moves along the axis, because of `cause`. */
typedef struct axis_view {
  int track; /* root track (set of tied axes) of the axis; -1: nothing moves along it */
  int64_t n; /* number of positions along the axis, those of its track */
  int cause; /* index of the cause for which nothing moves along the axis, if track is -1 */
  int conv_groups;
} axis_view;

static axis_view find_track_of_layer_axis(const laci_analysis *analysis, const laci_layer *layer,
                                          int axis) {
  const laci_tracks *t = analysis->tracks;
  int value = analysis->graph->stored[layer->stored].value;
  const laci_layout *layout = &t->layouts[value];
  axis_view view = {.track = -1};
  if (layout->rank < 0) return view;
  if (layout->set[axis] < 0) {
    view.cause = layout->set[axis] == LACI_AXIS_FIXED ? layout->cause[axis] : 0;
    view.n = analysis->graph->stored[layer->stored].shape.dims[axis];
    return view;
  }
  const laci_axis_set *axis_set = &layout->axis_sets[layout->set[axis]];
  view.track = laci_track_find_root(t, axis_set->track);
  view.n = t->tracks[view.track].n;
  view.conv_groups = axis_set->n_groups;
  return view;
}

typedef struct builder {
  laci_analysis *a;
  int *group_of_class; /* [n_classes] index of the group of each class; -1: none yet */
  int *group_of_track; /* [n_tracks] group of the frozen positions of each track (set of tied axes);
                          -1: none yet */
  int *group_of_cause; /* [n_causes] index of the frozen group of all axes along which nothing moves
                          because of this cause; -1: none yet */
  int64_t *seen;       /* [n_classes + 1] scratch counters, all zero between uses */
  size_t capacity;
} builder;

static int add_group(builder *b, laci_group group) {
  if (!laci_grow((void **)&b->a->groups, (size_t)b->a->n_groups, &b->capacity,
                 sizeof *b->a->groups))
    return -1;
  b->a->groups[b->a->n_groups] = group;
  return b->a->n_groups++;
}

/* Creates the groups that the positions of an axis belong to, as far as they do not exist yet.
 * Returns the group that has the largest number of these positions. */
static int find_or_add_groups_of_axis(builder *b, const axis_view *view, bool *ok) {
  const laci_tracks *t = b->a->tracks;
  const laci_classes *c = b->a->classes;
  if (view->track < 0) {
    if (view->n < 2) return -1; /* a single channel is no group */
    int *slot = &b->group_of_cause[view->cause];
    if (*slot < 0) {
      *slot = add_group(b, (laci_group){.n_channels = (int)view->n,
                                        .frozen = true,
                                        .cause = t->causes[view->cause].text,
                                        .class_id = -1});
    }
    *ok &= *slot >= 0;
    return *slot;
  }
  int best = -1;
  int64_t most = 0;
  for (int64_t p = 0; p < view->n; p++) {
    int64_t v = c->first[view->track] + p;
    int class = c->class_of[v], *slot;
    if (class >= 0 && c->classes[class].n_channels < 2) continue; /* a single channel is no group */
    slot = class >= 0 ? &b->group_of_class[class] : &b->group_of_track[view->track];
    if (*slot < 0) {
      laci_group fresh = {.class_id = class, .frozen = class < 0};
      if (class >= 0) fresh.n_channels = c->classes[class].n_channels;
      else fresh.cause = t->causes[c->cause_of[v]].text;
      *slot = add_group(b, fresh);
      if (*slot < 0) {
        *ok = false;
        break;
      }
    }
    int64_t n = ++b->seen[class + 1];
    if (class < 0 && n > b->a->groups[*slot].n_channels) b->a->groups[*slot].n_channels = (int)n;
    if (n > most) {
      most = n;
      best = *slot;
    }
  }
  for (int64_t p = 0; p < view->n; p++) b->seen[c->class_of[c->first[view->track] + p] + 1] = 0;
  return best;
}

/* Adds to the group, as consumers, the columns of the layer's weight at which the group's channels
 * are: one consumer for each copy of the channels along the layer's input axis. */
static bool add_consumers_to_group(laci_analysis *analysis, laci_group *group, int l,
                                   laci_consumer **list, size_t *capacity) {
  const laci_layer *layer = &analysis->layers[l];
  axis_view view = find_track_of_layer_axis(analysis, layer, layer->c_axis);
  if (view.track < 0 || group->class_id < 0) return true;
  const laci_class *class = &analysis->classes->classes[group->class_id];
  for (int s = 0; s < class->n_slots; s++) {
    if (class->track[s] != view.track) continue;
    const int32_t *position = class->position + (int64_t)s * class->n_channels;
    int conv_group = -1;
    const int32_t *column = position;
    if (view.conv_groups > 0) {
      int64_t size = view.n / view.conv_groups;
      int32_t *inside =
          laci_arena_alloc(&analysis->arena, (size_t) class->n_channels, sizeof *inside);
      if (!inside) return false;
      conv_group = (int)(position[0] / size);
      for (int c = 0; c < class->n_channels; c++) inside[c] = (int32_t)(position[c] % size);
      column = inside;
    }
    if (!laci_grow((void **)list, (size_t)group->n_consumers, capacity, sizeof **list))
      return false;
    (*list)[group->n_consumers++] =
        (laci_consumer){.layer = l, .conv_group = conv_group, .column = column};
  }
  return true;
}

/* The layers of each group, ascending: those of group g begin at layer[first[g]]. */
typedef struct layer_lists {
  int *first; /* [n_groups + 1] index in `layer` of each group's first layer */
  int *layer;
  int *last; /* [n_groups] 1 + the layer that was listed last for the group */
  int *fill; /* [n_groups] how many layers of each group are listed so far */
} layer_lists;

static void layer_lists_clear(layer_lists *lists) {
  laci_free(lists->first);
  laci_free(lists->layer);
  laci_free(lists->last);
  laci_free(lists->fill);
}

/* Counts layer l for group g while lists->layer is NULL, and lists it afterwards. A layer counts
 * once, however many positions of its axis are in the group. */
static void count_or_list_layer(layer_lists *lists, int g, int l) {
  if (g < 0 || lists->last[g] == l + 1) return;
  lists->last[g] = l + 1;
  if (lists->layer) lists->layer[lists->first[g] + lists->fill[g]++] = l;
  else lists->first[g + 1]++;
}

static void list_layers_of_groups(const builder *b, bool is_c, layer_lists *lists) {
  const laci_classes *c = b->a->classes;
  for (int l = 0; l < b->a->n_layers; l++) {
    const laci_layer *layer = &b->a->layers[l];
    axis_view view = find_track_of_layer_axis(b->a, layer, is_c ? layer->c_axis : layer->k_axis);
    int most = is_c ? layer->group_c : layer->group_k;
    for (int64_t p = 0; view.track >= 0 && p < view.n; p++) {
      int class = c->class_of[c->first[view.track] + p];
      if (class >= 0) count_or_list_layer(lists, b->group_of_class[class], l);
    }
    /* If most positions of the layer's axis belong to a frozen group, the layer is listed for that
     * group. */
    if (most >= 0 && b->a->groups[most].frozen) count_or_list_layer(lists, most, l);
  }
}

static bool layer_lists_init(const builder *b, bool is_c, layer_lists *lists) {
  size_t n = (size_t)b->a->n_groups;
  *lists = (layer_lists){.first = laci_alloc(n + 1, sizeof *lists->first),
                         .last = laci_alloc(n, sizeof *lists->last),
                         .fill = laci_alloc(n, sizeof *lists->fill)};
  if (!lists->first || !lists->last || !lists->fill) return false;
  list_layers_of_groups(b, is_c, lists);
  for (size_t g = 0; g < n; g++) {
    lists->first[g + 1] += lists->first[g];
    lists->last[g] = 0;
  }
  lists->layer = laci_alloc((size_t)lists->first[n], sizeof *lists->layer);
  if (!lists->layer) return false;
  list_layers_of_groups(b, is_c, lists);
  return true;
}

static bool list_group_members(laci_analysis *analysis, int g, const layer_lists *consuming,
                               const layer_lists *producing, laci_consumer **list,
                               size_t *capacity) {
  laci_group *group = &analysis->groups[g];
  const int *consumes = consuming->layer + consuming->first[g],
            *produces = producing->layer + producing->first[g];
  int n_consuming = consuming->first[g + 1] - consuming->first[g];
  group->n_producers = producing->first[g + 1] - producing->first[g];
  group->n_consumers = group->n_layers = 0;
  int *layers = laci_arena_alloc(&analysis->arena, (size_t)(n_consuming + group->n_producers),
                                 sizeof *layers);
  if (!layers) return false;
  for (int k = 0; k < n_consuming; k++) {
    laci_layer *layer = &analysis->layers[consumes[k]];
    if (!group->frozen) layer->searchable = true;
    if (!layer->eligible) continue;
    layers[group->n_layers++] = consumes[k];
    if (!add_consumers_to_group(analysis, group, consumes[k], list, capacity)) return false;
  }
  laci_consumer *consumers =
      laci_arena_alloc(&analysis->arena, (size_t)group->n_consumers, sizeof *consumers);
  if (!consumers) return false;
  if (group->n_producers) {
    memcpy(layers + group->n_layers, produces, (size_t)group->n_producers * sizeof *layers);
  }
  if (group->n_consumers) memcpy(consumers, *list, (size_t)group->n_consumers * sizeof *consumers);
  group->layers = layers;
  group->producers = layers + group->n_layers;
  group->consumers = consumers;
  return true;
}

static bool list_members_of_all_groups(const builder *b) {
  layer_lists consuming, producing = {0};
  laci_consumer *list = NULL;
  size_t capacity = 0;
  bool ok = layer_lists_init(b, true, &consuming) && layer_lists_init(b, false, &producing);
  for (int g = 0; ok && g < b->a->n_groups; g++)
    ok = list_group_members(b->a, g, &consuming, &producing, &list, &capacity);
  layer_lists_clear(&consuming);
  layer_lists_clear(&producing);
  laci_free(list);
  return ok;
}

static int sort_key_of_group(const laci_group *group) {
  if (group->frozen) return 2;
  return group->n_layers > 0 ? 0 : 1;
}

/* Sorts the groups: first the searchable ones, then other movable ones, then frozen ones; each in
 * order of creation. */
static bool sort_groups(laci_analysis *analysis) {
  int n = analysis->n_groups, *new_id = laci_alloc((size_t)n, sizeof *new_id), at = 0;
  laci_group *sorted = laci_alloc((size_t)n, sizeof *sorted);
  bool ok = new_id && sorted;
  for (int rank = 0; ok && rank < 3; rank++) {
    for (int g = 0; g < n; g++) {
      if (sort_key_of_group(&analysis->groups[g]) != rank) continue;
      new_id[g] = at;
      sorted[at++] = analysis->groups[g];
    }
    if (rank == 0) analysis->n_searchable = at;
  }
  for (int l = 0; ok && l < analysis->n_layers; l++) {
    laci_layer *layer = &analysis->layers[l];
    if (layer->group_c >= 0) layer->group_c = new_id[layer->group_c];
    if (layer->group_k >= 0) layer->group_k = new_id[layer->group_k];
  }
  laci_free(new_id);
  if (ok) {
    laci_free(analysis->groups);
    analysis->groups = sorted;
  } else {
    laci_free(sorted);
  }
  return ok;
}

static void explain_unsearchable_layers(laci_analysis *analysis) {
  for (int l = 0; l < analysis->n_layers; l++) {
    laci_layer *layer = &analysis->layers[l];
    if (layer->searchable || layer->reason) continue;
    const char *cause = layer->group_c >= 0 ? analysis->groups[layer->group_c].cause : NULL;
    layer->reason =
        cause ? laci_analysis_format_text(analysis, "its input channels stay in place: %s", cause)
              : "no two of its input channels may change places";
  }
}

lac_status laci_find_groups(laci_analysis *analysis, lac_error *err) {
  builder b = {.a = analysis};
  size_t n_classes = (size_t)analysis->classes->n_classes, n_tracks = analysis->tracks->n_tracks,
         n_causes = analysis->tracks->n_causes;
  int *ids = laci_alloc(n_classes + n_tracks + n_causes, sizeof *ids);
  b.seen = laci_alloc(n_classes + 1, sizeof *b.seen);
  bool ok = ids && b.seen;
  for (size_t i = 0; ok && i < n_classes + n_tracks + n_causes; i++) ids[i] = -1;
  b.group_of_class = ids;
  b.group_of_track = ids + n_classes;
  b.group_of_cause = b.group_of_track + n_tracks;
  for (int l = 0; ok && l < analysis->n_layers; l++) {
    laci_layer *layer = &analysis->layers[l];
    axis_view c = find_track_of_layer_axis(analysis, layer, layer->c_axis),
              k = find_track_of_layer_axis(analysis, layer, layer->k_axis);
    layer->group_c = find_or_add_groups_of_axis(&b, &c, &ok);
    layer->group_k = find_or_add_groups_of_axis(&b, &k, &ok);
  }
  ok = ok && list_members_of_all_groups(&b);
  ok = ok && (analysis->n_groups == 0 || sort_groups(analysis));
  if (ok) explain_unsearchable_layers(analysis);
  laci_free(ids);
  laci_free(b.seen);
  return ok ? LAC_OK : laci_fail_memory(err, "the groups");
}
