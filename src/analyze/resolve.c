/* SPDX-License-Identifier: Apache-2.0
 * Visits all nodes and builds tracks from their couplings.
 *
 * Safe by default: an input that no coupling describes is frozen, and so is an output axis without
 * a description. See graph/coupling.h for couplings, tracks_in.h for the result. */
#include "analyze/resolve_in.h"
#include "graph/content.h"
#include "graph/op.h"
#include "tensor/buf.h"

#include <stdio.h>

#include "base/error.h"

/* Resolves the weight of a grouped convolution. If the weight has no other reader, each group has
 * its own order along the input axis; else all groups have one order. */
static void resolve_grouped_weight(laci_resolve *r, const laci_grouped_axis *g) {
  laci_tracks *t = r->t;
  int weight = laci_port_value(r, g->port);
  laci_layout *layout = laci_port_layout(r, g->port);
  /* if the weight's axis must stay in place, so must the axis of the data */
  if (!layout || layout->set[g->axis] < 0) {
    int data = laci_port_value(r, g->data_port);
    if (laci_port_layout(r, g->data_port))
      laci_layout_freeze_axis(t, data, g->data_axis, laci_node_freeze_cause(r));
    return;
  }
  laci_axis_set *along = &layout->axis_sets[layout->set[g->axis]];
  const laci_axis_set *data = laci_port_axis_set(r, g->data_port, g->data_axis);
  int64_t size = t->graph->values[weight].type.shape.dims[g->axis];
  if (!data || data->n_axes != 1 || along->n_axes != 1 || data->n_groups ||
      laci_track_find_root_record(t, data->track)->n != size * g->n_groups) {
    laci_track_freeze(t, along->track, laci_node_freeze_cause(r));
    if (data) laci_track_freeze(t, data->track, laci_node_freeze_cause(r));
    return;
  }
  const laci_value *value = &t->graph->values[weight];
  if (along->n_groups == g->n_groups) {
    along->track = laci_track_merge(t, along->track, data->track);
    return;
  }
  if (value->stored >= 0 && !value->is_output && along->n_groups == 0 &&
      laci_count_content_readers(t->graph, t->matters, weight) == 1) {
    along->track = data->track;
    along->n_groups = (int)g->n_groups;
    along->row_axis = g->row_axis;
    laci_track_find_root_record(t, data->track)->sourced = true;
    return;
  }
  int64_t n = size * g->n_groups;
  int32_t *to = laci_alloc((size_t)n, sizeof *to), *copy = laci_alloc((size_t)n, sizeof *copy);
  for (int64_t p = 0; to && copy && p < n; p++) {
    to[p] = (int32_t)(p % size);
    copy[p] = (int32_t)(p / size);
  }
  if (!copy) t->no_memory = true;
  laci_link_add(t, r->node_id, data->track, along->track, to, copy);
}

/* Freezes uniform outputs (all elements along an axis are equal) if the axis is divided into parts:
 * their elements are equal only within a part. */
static void freeze_uniform_outputs_of_divided_axis(laci_resolve *r, const laci_axis_parts *part) {
  int label = laci_port_labels_of(r, part->port)->label[part->axis];
  for (int i = 0; i < r->node->n_outputs; i++) {
    laci_layout *out = r->node->outputs[i] >= 0 ? laci_port_layout(r, LACI_OUT(i)) : NULL;
    for (int a = 0; out && a < out->rank; a++) {
      bool is_part = LACI_OUT(i) == part->port && a == part->axis;
      bool same = label > 0 && laci_port_labels_of(r, LACI_OUT(i))->label[a] == label;
      if (out->set[a] != LACI_AXIS_UNIFORM || !(is_part || same)) continue;
      out->set[a] = LACI_AXIS_FIXED;
      out->cause[a] = laci_node_freeze_cause(r);
    }
  }
}

static void tag_axis_parts(laci_resolve *r, const laci_axis_parts *part) {
  const laci_layout *layout = laci_port_layout(r, part->port);
  if (layout && layout->set[part->axis] == LACI_AXIS_UNIFORM)
    freeze_uniform_outputs_of_divided_axis(r, part);
  const laci_axis_set *axis_set = layout ? laci_port_axis_set(r, part->port, part->axis) : NULL;
  if (!axis_set) return;
  const laci_shape *shape = laci_port_value_shape(r, part->port);
  laci_track *track = laci_track_find_root_record(r->t, axis_set->track);
  int64_t run = shape->dims[part->axis] / part->n_parts;
  int which = 0;
  while (axis_set->axes[which] != part->axis) which++;
  int32_t *index = laci_alloc((size_t)track->n, sizeof *index);
  if (!index || run < 1) {
    r->t->no_memory |= !index;
    laci_free(index);
    return;
  }
  for (int64_t p = 0; p < track->n; p++) {
    index[p] = (int32_t)(laci_axis_set_index_along_axis(axis_set, shape, which, p) / run);
  }
  laci_track_add_tag(r->t, axis_set->track, 0x6A09u + (uint64_t)r->node_id, index);
  laci_free(index);
}

/* Freezes those positions of an axis that the operator holds in place; its other positions may
 * move. */
static void freeze_held_positions(laci_resolve *r, const laci_axis_hold *hold) {
  const laci_axis_set *axis_set = laci_port_axis_set(r, hold->port, hold->axis);
  if (!axis_set) return;
  if (axis_set->n_axes > 1 || axis_set->n_groups) {
    laci_track_freeze(r->t, axis_set->track, laci_node_freeze_cause(r));
    return;
  }
  for (int64_t at = 0; at < hold->n; at++)
    laci_track_freeze_at(r->t, axis_set->track, hold->start + at, laci_node_freeze_cause(r));
}

/* Returns the cause for an unknown shape of an input: the node that computed it; -1: all shapes are
 * known. */
static int find_unknown_shape_cause(laci_resolve *r) {
  for (int port = 0; port < r->node->n_inputs; port++) {
    int value = r->node->inputs[port];
    if (value >= 0 && r->t->layouts[value].rank < 0) return r->t->layouts[value].cause[0];
  }
  return -1;
}

/* Freezes the inputs that the node's coupling does not describe, and the axes that it marks FIXED.
 */
static void freeze_undescribed_axes(laci_resolve *r) {
  int blamed = find_unknown_shape_cause(r);
  for (int port = 0; port < r->node->n_inputs; port++) {
    laci_layout *layout = laci_port_layout(r, port);
    if (!layout) continue;
    const laci_port_labels *labels = laci_port_labels_of(r, port);
    if (r->c->reshape && port == 0) continue;
    if (!laci_node_reads_port_content(r->node, port)) continue;
    if (!labels->described && blamed >= 0) r->cause = blamed;
    for (int a = 0; a < layout->rank; a++) {
      bool fixed = !labels->described || labels->label[a] == LACI_FIXED;
      if (layout->set[a] < 0 || laci_port_is_grouped_axis(r, port, a)) continue;
      const laci_axis_set *axis_set = &layout->axis_sets[layout->set[a]];
      if (axis_set->n_groups && labels->label[a] != LACI_FIXED)
        fixed = true; /* this operator does not allow a channel order of its own for each
                         convolution group */
      if (axis_set->n_groups && fixed)
        laci_track_freeze(r->t, axis_set->track, laci_node_freeze_cause(r));
      else if (fixed)
        laci_layout_freeze_axis(r->t, laci_port_value(r, port), a, laci_node_freeze_cause(r));
    }
  }
}

static void freeze_pending_output_axes(laci_resolve *r) {
  for (int i = 0; i < r->node->n_outputs; i++) {
    if (r->node->outputs[i] < 0) continue;
    laci_layout *layout = &r->t->layouts[r->node->outputs[i]];
    if (layout->rank < 0) {
      int blamed = find_unknown_shape_cause(r);
      layout->cause[0] = blamed >= 0 ? blamed : laci_node_freeze_cause(r);
    }
    for (int a = 0; a < layout->rank; a++) {
      if (layout->set[a] != LACI_AXIS_PENDING) continue;
      layout->set[a] = LACI_AXIS_FIXED;
      layout->cause[a] = laci_node_freeze_cause(r);
    }
  }
}

static void freeze_inputs(laci_resolve *r) {
  for (int i = 0; i < r->node->n_inputs; i++) {
    if (r->node->inputs[i] >= 0 && laci_node_reads_port_content(r->node, i))
      laci_layout_freeze_all_axes(r->t, r->node->inputs[i], laci_node_freeze_cause(r));
  }
}

/* Starts a new track (set of tied axes) for each axis of outputs that the coupling marks as fresh
 * (graph/coupling.h). A later node ties these axes to others. */
static void start_fresh_tracks(laci_resolve *r) {
  for (int i = 0; i < r->node->n_outputs; i++) {
    int value = r->node->outputs[i];
    laci_layout *layout = value >= 0 ? laci_port_layout(r, LACI_OUT(i)) : NULL;
    if (!layout || !r->c->out[i].fresh) continue;
    const laci_shape *shape = laci_port_value_shape(r, LACI_OUT(i));
    for (int a = 0; a < layout->rank; a++) {
      if (shape->dims[a] == 1) layout->set[a] = LACI_AXIS_UNIFORM;
      if (shape->dims[a] <= 1 || shape->dims[a] > LACI_TRACK_LIMIT) continue;
      laci_axis_set axis_set =
          laci_axis_set_of_single_axis(laci_track_create(r->t, shape->dims[a], false), a);
      if (axis_set.track < 0) return;
      laci_layout_add_axis_set(r->t, value, &axis_set);
    }
  }
}

/* Freezes integer inputs of a node whose outputs' shapes alone are read, for these integers may
 * decide the shapes. */
static void freeze_integer_inputs(laci_resolve *r) {
  for (int i = 0; i < r->node->n_inputs; i++) {
    int value = r->node->inputs[i];
    if (value >= 0 && laci_node_reads_content(r->t->graph, r->t->matters, r->node_id, value))
      laci_layout_freeze_all_axes(r->t, value, laci_node_freeze_cause(r));
  }
}

/* Resolves the operator's coupling, for a node whose outputs matter. */
static lac_status resolve_coupling(laci_resolve *r, laci_coupling *coupling) {
  const laci_node *node = r->node;
  lac_status st = laci_couple_node(coupling, r->t->graph, node);
  if (st) return st;
  if (node->op && node->op->couple) {
    /* inputs whose content is not read take no part in the coupling */
    for (int i = 0; i < node->n_inputs; i++) {
      if (!laci_node_reads_port_content(node, i)) coupling->in[i] = (laci_port_labels){0};
    }
    if (coupling->reshape) laci_resolve_reshape(r);
    freeze_undescribed_axes(r);
    start_fresh_tracks(r);
    laci_resolve_axis_maps(r);
    laci_resolve_axis_labels(r);
    laci_resolve_labelled_axis_maps(r);
    for (size_t i = 0; i < coupling->n_grouped; i++)
      resolve_grouped_weight(r, &coupling->grouped[i]);
    for (size_t i = 0; i < coupling->n_parts; i++) tag_axis_parts(r, &coupling->parts[i]);
    for (size_t i = 0; i < coupling->n_holds; i++) freeze_held_positions(r, &coupling->holds[i]);
  } else {
    freeze_inputs(r);
  }
  for (int i = 0; i < node->n_captures; i++)
    laci_layout_freeze_all_axes(r->t, node->captures[i], laci_node_freeze_cause(r));
  return LAC_OK;
}

/* Resolves a node of whose outputs only the shapes matter: its integer inputs may be sizes, which
 * must not be reordered. */
static lac_status resolve_shape_only_node(laci_resolve *r, laci_coupling *coupling) {
  lac_status st = laci_coupling_init(coupling, r->t->graph, r->node);
  for (int i = 0; i < r->node->n_inputs && !st; i++) {
    int value = r->node->inputs[i];
    if (value < 0 || !laci_node_reads_port_content(r->node, i)) continue;
    if (!laci_dtype_is_float(r->t->graph->values[value].type.dtype))
      laci_layout_freeze_all_axes(r->t, value, laci_node_freeze_cause(r));
  }
  return st;
}

static lac_status resolve_node(laci_tracks *t, int node_id, lac_error *err) {
  const laci_node *node = &t->graph->nodes[node_id];
  laci_coupling coupling = {0};
  laci_resolve r = {
      .t = t, .c = &coupling, .node = node, .node_id = node_id, .cause = -1, .part_cause = -1};
  lac_status st = LAC_OK;
  if (laci_node_affects_outputs(t->graph, t->matters, node_id))
    st = resolve_coupling(&r, &coupling);
  else st = resolve_shape_only_node(&r, &coupling);
  if (st) goto out;
  if (!laci_node_affects_outputs(t->graph, t->matters, node_id)) freeze_integer_inputs(&r);
  freeze_pending_output_axes(&r);
  if (t->no_memory) st = LAC_NO_MEMORY;
out:
  laci_coupling_clear(&coupling);
  if (!laci_budget_allows(&t->budget, 0)) {
    st = laci_budget_check(&t->budget, "the analysis of channels", err);
    return laci_fail_with_prefix(err, st, "%s (%s)", node->name, node->type);
  }
  return st ? laci_fail(err, st, "%s: %s while reading how channels pass through", node->name,
                        lac_status_text(st))
            : LAC_OK;
}

/* Sets the layout of a value before any node is resolved: each axis of a stored tensor gets a track
 * (set of tied axes) of its own, graph inputs are fixed, and all other axes are pending. */
static void init_value_layout(laci_tracks *t, int id) {
  const laci_value *value = &t->graph->values[id];
  laci_layout *layout = &t->layouts[id];
  const laci_shape *shape = &value->type.shape;
  layout->rank = shape->rank;
  int cause = -1;
  char text[512];
  if (value->stored >= 0 && t->graph->stored[value->stored].overridable) {
    (void)snprintf(text, sizeof text, "%s may be replaced by the caller: it is listed as an input",
                   value->name);
    cause = laci_freeze_cause_create(t, -1, id, text);
  } else if (value->stored >= 0 && !lac_dtype_size(t->graph->stored[value->stored].dtype)) {
    (void)snprintf(text, sizeof text,
                   "%s has elements of type %s, which cannot be moved one by one", value->name,
                   lac_dtype_name(t->graph->stored[value->stored].dtype));
    cause = laci_freeze_cause_create(t, -1, id, text);
  } else if (value->stored < 0 && value->producer < 0) {
    (void)snprintf(text, sizeof text, "%s is an input of the network", value->name);
    cause = laci_freeze_cause_create(t, -1, id, text);
  }
  layout->cause[0] = cause < 0 ? 0 : cause;
  for (int a = 0; a < layout->rank; a++) {
    layout->set[a] = value->producer >= 0 ? LACI_AXIS_PENDING : LACI_AXIS_FIXED;
    layout->cause[a] = cause < 0 ? 0 : cause;
    if (value->stored < 0 || cause >= 0) continue;
    if (shape->dims[a] == 1 || shape->dims[a] > LACI_TRACK_LIMIT) {
      layout->set[a] = shape->dims[a] == 1 ? LACI_AXIS_UNIFORM : LACI_AXIS_FIXED;
      continue;
    }
    int track = laci_track_create(t, shape->dims[a], true);
    if (track < 0) return;
    laci_axis_set axis_set = laci_axis_set_of_single_axis(track, a);
    laci_layout_add_axis_set(t, id, &axis_set);
  }
}

lac_status laci_tracks_build(const laci_graph *graph, const laci_budget *budget, laci_tracks *t,
                             lac_error *err) {
  *t = (laci_tracks){.graph = graph,
                     .budget = budget ? *budget : laci_budget_with_limit(UINT64_MAX)};
  t->layouts = laci_alloc((size_t)graph->n_values, sizeof *t->layouts);
  if (!t->layouts) return laci_fail_memory(err, "the analysis");
  (void)laci_freeze_cause_create(t, -1, -1, "nothing is known about this axis");
  lac_status st = laci_find_values_affecting_outputs(graph, &t->matters, err);
  for (int v = 0; v < graph->n_values && !st; v++) init_value_layout(t, v);
  if (!st) st = laci_budget_check(&t->budget, "the analysis of channels", err);
  for (int n = 0; n < graph->n_nodes && !st; n++) st = resolve_node(t, n, err);
  for (int v = 0; v < graph->n_values && !st; v++) {
    char text[512];
    if (!graph->values[v].tied_by) continue;
    (void)snprintf(text, sizeof text, "%s is named by the file's %s, which no node follows",
                   graph->values[v].name, graph->values[v].tied_by);
    laci_layout_freeze_all_axes(t, v, laci_freeze_cause_create(t, -1, v, text));
  }
  for (int i = 0; i < graph->n_outputs && !st; i++) {
    char text[512];
    (void)snprintf(text, sizeof text, "%s is an output of the network",
                   graph->values[graph->outputs[i]].name);
    laci_layout_freeze_all_axes(t, graph->outputs[i],
                                laci_freeze_cause_create(t, -1, graph->outputs[i], text));
  }
  if (!st && t->no_memory) st = laci_fail_memory(err, "the analysis");
  if (st) laci_tracks_clear(t);
  return st;
}
