/* SPDX-License-Identifier: Apache-2.0
 * Writes and reads permutation files.
 *
 * A class is a group of channels that must be reordered together. For each class the file lists its
 * order, and the places (tensor, axis, positions) where its channels are. Places are written for
 * other programs and for people. When the library reads a file, it finds the places by its own
 * analysis and compares them, to check that the file means the same channels. */
#include "permute/file.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analyze/analyze.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/plural.h"
#include "graph/graph.h"
#include "permute/plan.h"
#include "permute/search.h"

/* Returns a hash of the network's structure: operators, connections and shapes of stored tensors,
 * but not names or contents. */
static uint64_t hash_graph_structure(const laci_graph *graph) {
  uint64_t hash = 0x1ACu;
  for (int n = 0; n < graph->n_nodes; n++) {
    const laci_node *node = &graph->nodes[n];
    hash = laci_hash64(node->type, strlen(node->type), hash);
    hash = laci_hash64(node->domain, strlen(node->domain), hash);
    for (int i = 0; i < node->n_inputs; i++) {
      int value = node->inputs[i], producer = value < 0 ? -2 : graph->values[value].producer;
      hash = laci_hash64(&producer, sizeof producer, hash);
      if (value < 0 || graph->values[value].stored < 0) continue;
      const laci_stored *stored = &graph->stored[graph->values[value].stored];
      hash = laci_hash64(&stored->shape.rank, sizeof stored->shape.rank, hash);
      for (int a = 0; a < stored->shape.rank; a++) {
        hash = laci_hash64(&stored->shape.dims[a], sizeof stored->shape.dims[a], hash);
      }
    }
  }
  return hash;
}

/* Returns the positions of a class's channels (those that are reordered together) as JSON: runs of
 * positions at equal distances. */
static json_t *positions_as_json_runs(laci_json_writer *w, const int32_t *position, int n) {
  json_t *runs = json_array();
  for (int i = 0; i < n;) {
    int step = i + 1 < n ? position[i + 1] - position[i] : 1, count = 1;
    while (i + count < n && position[i + count] - position[i + count - 1] == step) count++;
    json_t *run = json_array();
    laci_json_append(w, run, json_integer(position[i]));
    laci_json_append(w, run, json_integer(count));
    laci_json_append(w, run, json_integer(count > 1 ? step : 1));
    laci_json_append(w, runs, run);
    i += count;
  }
  return runs;
}

typedef struct place_context {
  laci_json_writer *w;
  const laci_analysis *analysis;
  json_t *places;
  const int32_t *position;
  int32_t *inside; /* [n] positions of channels inside a place */
  int n, copy;
} place_context;

static void add_place_json(int stored_id, int axis, int conv_groups, void *context) {
  place_context *c = context;
  const laci_stored *stored = &c->analysis->graph->stored[stored_id];
  int size = (int)stored->shape.dims[axis];
  const int32_t *position = c->position;
  for (int i = 0; conv_groups > 0 && i < c->n; i++) c->inside[i] = c->position[i] % size;
  if (conv_groups > 0) position = c->inside;
  json_t *place = json_object();
  laci_json_add(c->w, place, "tensor", laci_json_text(c->w, stored->name));
  laci_json_add(c->w, place, "axis", json_integer(axis));
  laci_json_add(c->w, place, "group",
                conv_groups > 0 ? json_integer(c->position[0] / size) : json_null());
  laci_json_add(c->w, place, "runs", positions_as_json_runs(c->w, position, c->n));
  laci_json_add(c->w, place, "copy", json_integer(c->copy));
  laci_json_append(c->w, c->places, place);
}

/* Returns as JSON the places of group g's channels: which tensors, which axis, which positions. If
 * an allocation fails, the writer records it. */
static json_t *class_places_as_json(laci_json_writer *w, const laci_plan *plan, int g) {
  const laci_analysis *a = plan->analysis;
  json_t *places = json_array();
  int n = a->groups[g].n_channels;
  int32_t *inside = laci_alloc((size_t)n, sizeof *inside);
  if (!inside) w->whole = false;
  for (int s = 0; inside && s < laci_group_count_slots(a, g); s++) {
    laci_slot slot = laci_group_slot(a, g, s);
    place_context context = {.w = w,
                             .analysis = a,
                             .places = places,
                             .position = slot.position,
                             .inside = inside,
                             .n = n,
                             .copy = s};
    laci_track_visit_stored_axes(a, slot.track, add_place_json, &context);
  }
  laci_free(inside);
  return places;
}

static json_t *class_as_json(laci_json_writer *w, const laci_plan *plan, int g) {
  json_t *out = json_object(), *order = json_array();
  for (int c = 0; c < plan->analysis->groups[g].n_channels; c++)
    laci_json_append(w, order, json_integer(plan->found[g].order[c]));
  laci_json_add(w, out, "id", json_integer(g + 1));
  laci_json_add(w, out, "permutation", order);
  laci_json_add(w, out, "places", class_places_as_json(w, plan, g));
  return out;
}

static void write_structure_hash(const laci_plan *plan, char text[20]) {
  (void)snprintf(text, 20, "%016" PRIx64, hash_graph_structure(plan->analysis->graph));
}

lac_status laci_permutation_text(const laci_plan *plan, laci_pattern pattern, uint64_t seed,
                                 char **text, lac_error *err) {
  char hash[20], wanted[16];
  write_structure_hash(plan, hash);
  (void)snprintf(wanted, sizeof wanted, "%d:%d", pattern.n, pattern.m);
  laci_json_writer w = {.whole = true};
  json_t *root = json_object(), *classes = json_array();
  laci_json_add(&w, root, "lacuna_permutation", json_integer(1));
  laci_json_add(&w, root, "network", json_string(hash));
  laci_json_add(&w, root, "pattern", json_string(wanted));
  laci_json_add(&w, root, "seed", laci_json_uint64(seed));
  for (int g = 0; g < plan->analysis->n_groups; g++) {
    if (!plan->analysis->groups[g].frozen)
      laci_json_append(&w, classes, class_as_json(&w, plan, g));
  }
  laci_json_add(&w, root, "classes", classes);
  return laci_json_finish(&w, root, LACI_JSON_ASCII, "the permutation file", text, err);
}

/* ---- Reading ---- */

/* Reads the order of group g from JSON. Fails if its length is not the number of channels, or if a
 * number occurs twice. */
static lac_status read_order(laci_plan *plan, int g, const json_t *class, const char *name,
                             bool invert, lac_error *err) {
  const json_t *order = json_object_get(class, "permutation");
  int n = plan->analysis->groups[g].n_channels;
  if (!json_is_array(order) || json_array_size(order) != (size_t)n) {
    return laci_fail(err, LAC_BAD_FILE, "%s: class %d has %zu channel%s, the network's has %d",
                     name, g + 1, json_array_size(order),
                     laci_plural((int64_t)json_array_size(order)), n);
  }
  uint8_t *seen = laci_alloc((size_t)n, 1);
  lac_status st = seen ? LAC_OK : laci_fail_memory(err, name);
  for (int c = 0; c < n && !st; c++) {
    const json_t *item = json_array_get(order, (size_t)c);
    json_int_t from = json_is_integer(item) ? json_integer_value(item) : -1;
    if (from < 0 || from >= n || seen[from]) {
      st = laci_fail(err, LAC_BAD_FILE, "%s: class %d: place %d does not hold a channel of its own",
                     name, g + 1, c);
      break;
    }
    seen[from] = 1;
    if (invert) plan->found[g].order[from] = c;
    else plan->found[g].order[c] = (int32_t)from;
  }
  laci_free(seen);
  return st;
}

/* Returns the class (channels that are reordered together) whose places in the network are exactly
 * `wanted`; -1: there is none. places[g] is NULL for classes that are matched already. The search
 * starts at `begin`, after the class found last, since most files list the classes in the order of
 * the analysis. */
static int find_class_by_places(json_t *const *places, int n, int begin, const json_t *wanted) {
  for (int k = 0; k < n; k++) {
    int g = (begin + k) % n;
    if (places[g] && json_equal(places[g], wanted)) return g;
  }
  return -1;
}

/* Matches the file's classes with the network's by their places: class numbers depend on which
 * layers are to be pruned. places[g] is freed when class g is matched. */
static lac_status match_classes(laci_plan *plan, const json_t *classes, json_t **places,
                                const char *name, bool invert, lac_error *err) {
  int n = plan->analysis->n_groups, found = -1;
  for (size_t i = 0; i < json_array_size(classes); i++) {
    const json_t *class = json_array_get(classes, i), *wanted = json_object_get(class, "places");
    if (!json_is_integer(json_object_get(class, "id")) || !json_is_array(wanted)) {
      return laci_fail(err, LAC_BAD_FILE, "%s: class %zu lacks its id or its places", name, i + 1);
    }
    found = find_class_by_places(places, n, found + 1, wanted);
    if (found < 0) {
      return laci_fail(err, LAC_BAD_FILE,
                       "%s: class %zu covers places that no class of this network does", name,
                       i + 1);
    }
    lac_status st = read_order(plan, found, class, name, invert, err);
    if (st) return st;
    json_decref(places[found]);
    places[found] = NULL;
  }
  for (int g = 0; g < n; g++) {
    if (places[g]) {
      return laci_fail(err, LAC_BAD_FILE, "%s: the class of group %d is missing", name, g + 1);
    }
  }
  return LAC_OK;
}

static lac_status read_classes(laci_plan *plan, const json_t *classes, const char *name,
                               bool invert, lac_error *err) {
  int n = plan->analysis->n_groups;
  laci_json_writer w = {.whole = true};
  json_t **places = laci_alloc((size_t)n, sizeof *places);
  for (int g = 0; places && g < n; g++) {
    if (plan->analysis->groups[g].frozen) continue;
    places[g] = class_places_as_json(&w, plan, g);
    w.whole = w.whole && places[g];
  }
  lac_status st = places && w.whole ? match_classes(plan, classes, places, name, invert, err)
                                    : laci_fail_memory(err, name);
  for (int g = 0; places && g < n; g++) json_decref(places[g]);
  laci_free(places);
  laci_arena_clear(&w.arena);
  return st;
}

/* Reads the whole file, given as JSON. All that laci_permutation_text writes must be there: if one
 * entry is missing, others may be, too. */
static lac_status read_json_root(laci_plan *plan, const json_t *root, const char *name, bool invert,
                                 lac_error *err) {
  char hash[20];
  write_structure_hash(plan, hash);
  const char *network = json_string_value(json_object_get(root, "network"));
  const json_t *classes = json_object_get(root, "classes"), *seed = json_object_get(root, "seed");
  if (json_integer_value(json_object_get(root, "lacuna_permutation")) != 1 || !network ||
      !json_is_array(classes)) {
    return laci_fail(err, LAC_BAD_FILE, "%s: not a permutation file of version 1", name);
  }
  if (!json_is_string(json_object_get(root, "pattern")) ||
      (!json_is_integer(seed) && !json_is_string(seed))) {
    return laci_fail(err, LAC_BAD_FILE, "%s: damaged: it lacks its pattern or its seed", name);
  }
  if (strcmp(network, hash) != 0) {
    return laci_fail(err, LAC_BAD_FILE, "%s: belongs to network %s, this one is %s", name, network,
                     hash);
  }
  return read_classes(plan, classes, name, invert, err);
}

lac_status laci_permutation_read(laci_plan *plan, const char *name, const char *text, bool invert,
                                 lac_error *err) {
  json_t *root;
  lac_status st = laci_json_read(name, "a permutation file", text, &root, err);
  if (!st) st = read_json_root(plan, root, name, invert, err);
  json_decref(root);
  return st ? st : laci_plan_make_value_orders(plan, err);
}
