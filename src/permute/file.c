/* SPDX-License-Identifier: Apache-2.0
 * Writing and reading permutation files with jansson.
 *
 * The places are there for other programs (and people): this library finds them again by its own
 * analysis and takes them as a check that the file means the same channels. */
#include "permute/file.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"

/* Operators, wiring and shapes of stored tensors; not names, not contents. */
static uint64_t structure_hash(const laci_graph *graph) {
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

/* Positions of a slot as runs of equal step. */
static json_t *runs_of(const int32_t *position, int n) {
  json_t *runs = json_array();
  for (int i = 0; i < n;) {
    int step = i + 1 < n ? position[i + 1] - position[i] : 1, count = 1;
    while (i + count < n && position[i + count] - position[i + count - 1] == step) count++;
    if (json_array_append_new(runs, json_pack("[i,i,i]", position[i], count, count > 1 ? step : 1)))
      break;
    i += count;
  }
  return runs;
}

typedef struct place_context {
  const laci_analysis *analysis;
  json_t *places;
  const int32_t *position;
  int n, copy;
} place_context;

static void add_place(int stored_id, int axis, int conv_groups, void *context) {
  place_context *c = context;
  const laci_stored *stored = &c->analysis->graph->stored[stored_id];
  int conv_group = -1, *inside = laci_alloc((size_t)c->n, sizeof *inside);
  if (!inside) return;
  for (int i = 0; i < c->n; i++) {
    inside[i] = c->position[i];
    if (conv_groups <= 0) continue;
    int size = (int)stored->shape.dims[axis];
    conv_group = c->position[0] / size;
    inside[i] = c->position[i] % size;
  }
  json_t *place = json_object();
  (void)json_object_set_new(place, "tensor", json_string_nocheck(stored->name));
  (void)json_object_set_new(place, "axis", json_integer(axis));
  (void)json_object_set_new(place, "group",
                            conv_group < 0 ? json_null() : json_integer(conv_group));
  (void)json_object_set_new(place, "runs", runs_of(inside, c->n));
  (void)json_object_set_new(place, "copy", json_integer(c->copy));
  (void)json_array_append_new(c->places, place);
  laci_free(inside);
}

static json_t *class_places(const laci_plan *plan, int g) {
  const laci_analysis *a = plan->analysis;
  json_t *places = json_array();
  int n = a->groups[g].n_channels;
  for (int s = 0; s < laci_group_slots(a, g); s++) {
    laci_slot slot = laci_group_slot(a, g, s);
    place_context context = {
        .analysis = a, .places = places, .position = slot.position, .n = n, .copy = s};
    laci_track_stored_axes(a, slot.track, add_place, &context);
  }
  return places;
}

static json_t *class_json(const laci_plan *plan, int g) {
  json_t *out = json_object(), *order = json_array();
  for (int c = 0; c < plan->analysis->groups[g].n_channels; c++) {
    (void)json_array_append_new(order, json_integer(plan->found[g].order[c]));
  }
  (void)json_object_set_new(out, "id", json_integer(g + 1));
  (void)json_object_set_new(out, "permutation", order);
  (void)json_object_set_new(out, "places", class_places(plan, g));
  return out;
}

static void hash_text(const laci_plan *plan, char text[20]) {
  (void)snprintf(text, 20, "%016" PRIx64, structure_hash(plan->analysis->graph));
}

lac_status laci_permutation_text(const laci_plan *plan, laci_pattern pattern, uint64_t seed,
                                 char **text, lac_error *err) {
  *text = NULL;
  char hash[20], wanted[16];
  hash_text(plan, hash);
  (void)snprintf(wanted, sizeof wanted, "%d:%d", pattern.n, pattern.m);
  json_t *root = json_object(), *classes = json_array();
  (void)json_object_set_new(root, "lacuna_permutation", json_integer(1));
  (void)json_object_set_new(root, "network", json_string(hash));
  (void)json_object_set_new(root, "pattern", json_string(wanted));
  (void)json_object_set_new(root, "seed", json_integer((json_int_t)seed));
  for (int g = 0; g < plan->analysis->n_groups; g++) {
    if (!plan->analysis->groups[g].frozen)
      (void)json_array_append_new(classes, class_json(plan, g));
  }
  (void)json_object_set_new(root, "classes", classes);
  size_t size = json_dumpb(root, NULL, 0, JSON_INDENT(1) | JSON_ENSURE_ASCII);
  char *out = size ? laci_alloc(size + 2, 1) : NULL;
  if (out) {
    (void)json_dumpb(root, out, size, JSON_INDENT(1) | JSON_ENSURE_ASCII);
    out[size] = '\n';
  }
  json_decref(root);
  *text = out;
  return out ? LAC_OK : laci_fail_memory(err, "the permutation file");
}

static lac_status read_order(laci_plan *plan, int g, const json_t *class, const char *name,
                             bool invert, lac_error *err) {
  const json_t *order = json_object_get(class, "permutation");
  int n = plan->analysis->groups[g].n_channels;
  if (!json_is_array(order) || json_array_size(order) != (size_t)n) {
    return laci_fail(err, LAC_BAD_FILE, "%s: class %d has %zu channels, the network's has %d", name,
                     g + 1, json_array_size(order), n);
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

/* Classes are known by their places: their numbers depend on which layers are to be pruned. */
static lac_status match_classes(laci_plan *plan, const json_t *classes, const char *name,
                                bool invert, lac_error *err) {
  int n = plan->analysis->n_groups;
  json_t **places = laci_alloc((size_t)n, sizeof *places);
  if (!places) return laci_fail_memory(err, name);
  lac_status st = LAC_OK;
  for (int g = 0; g < n; g++) {
    if (!plan->analysis->groups[g].frozen) places[g] = class_places(plan, g);
  }
  for (size_t i = 0; i < json_array_size(classes) && !st; i++) {
    const json_t *class = json_array_get(classes, i);
    int found = -1;
    for (int g = 0; g < n && found < 0; g++) {
      if (places[g] && json_equal(places[g], json_object_get(class, "places"))) found = g;
    }
    if (found < 0) {
      st = laci_fail(err, LAC_BAD_FILE,
                     "%s: class %zu covers places that no class of this network does", name, i + 1);
      break;
    }
    st = read_order(plan, found, class, name, invert, err);
    json_decref(places[found]);
    places[found] = NULL;
  }
  for (int g = 0; g < n; g++) {
    if (places[g] && !st) {
      st = laci_fail(err, LAC_BAD_FILE, "%s: the class of group %d is missing", name, g + 1);
    }
    json_decref(places[g]);
  }
  laci_free(places);
  return st;
}

static lac_status read_classes(laci_plan *plan, const json_t *root, const char *name, bool invert,
                               lac_error *err) {
  char hash[20];
  hash_text(plan, hash);
  const char *network = json_string_value(json_object_get(root, "network"));
  const json_t *classes = json_object_get(root, "classes");
  if (json_integer_value(json_object_get(root, "lacuna_permutation")) != 1 || !network ||
      !json_is_array(classes)) {
    return laci_fail(err, LAC_BAD_FILE, "%s: not a permutation file of version 1", name);
  }
  if (strcmp(network, hash) != 0) {
    return laci_fail(err, LAC_BAD_FILE, "%s: belongs to network %s, this one is %s", name, network,
                     hash);
  }
  return match_classes(plan, classes, name, invert, err);
}

lac_status laci_permutation_read(laci_plan *plan, const char *name, const char *text, bool invert,
                                 lac_error *err) {
  json_error_t where;
  json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &where);
  if (!root) {
    return laci_fail(err, LAC_BAD_FILE, "%s:%d: not a permutation file: %s", name, where.line,
                     where.text);
  }
  lac_status st = read_classes(plan, root, name, invert, err);
  json_decref(root);
  return st ? st : laci_plan_complete(plan, err);
}
