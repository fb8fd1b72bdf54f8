/* SPDX-License-Identifier: Apache-2.0
 * Finds blocks that repeat in a network, and nodes that are drawn as lines in the boxes of other
 * nodes (fold.h). */
#include "report/fold.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "report/plot.h"

enum {
  LONGEST = 600,  /* maximum number of nodes in a block */
  LEAST_SAVED = 3 /* a block is folded only if that leaves out at least this many nodes */
};

/* The state of the search for blocks that repeat. A place is an index in fold->order. */
typedef struct search {
  const laci_graph *graph;
  const laci_plot_node *nodes;
  laci_fold *fold;
  int *place;       /* [n_nodes] place of each node; -1: it is left out */
  int *last_reader; /* [n_order] the last place that reads an output of the node at this place;
                       n_order: the network outputs it */
} search;

static int find_read_value(const laci_node *node, int i) {
  return i < node->n_inputs ? node->inputs[i] : node->captures[i - node->n_inputs];
}

static const laci_node *node_at_place(const search *s, int place) {
  return &s->graph->nodes[s->fold->order[place]];
}

static bool have_same_text(const char *a, const char *b) {
  return a == b || (a && b && strcmp(a, b) == 0);
}

/* Are the shapes equal? Two sizes that are not known count as equal, whatever their symbols. */
static bool same_shape(const laci_shape *a, const laci_shape *b) {
  if (a->rank != b->rank) return false;
  for (int axis = 0; axis < a->rank; axis++) {
    int64_t x = a->dims[axis], y = b->dims[axis];
    if (x != y && (x >= 0 || y >= 0)) return false;
  }
  return true;
}

/* Nodes at place_a and place_b read the values a and b. Do these values correspond? They do if they
 * are stored tensors of one shape, outputs of nodes at the same distance, or the same value. Values
 * of nodes that are not drawn correspond if their shapes are equal. The first copy of the block,
 * which is drawn, begins at `first`; what it reads from nodes before it may be anywhere. */
static bool have_same_source(const search *s, int first, int place_a, int place_b, int a, int b) {
  if (a < 0 || b < 0 || a == b) return a == b || (a < 0 && b < 0);
  const laci_value *x = &s->graph->values[a], *y = &s->graph->values[b];
  if ((x->stored >= 0) != (y->stored >= 0)) return false;
  if (!same_shape(&x->type.shape, &y->type.shape)) return false;
  if (x->stored >= 0) return true;
  if (x->producer < 0 || y->producer < 0) return false;
  int from_a = s->place[x->producer], from_b = s->place[y->producer];
  if (from_a < 0 || from_b < 0) return from_a < 0 && from_b < 0;
  if (place_a - from_a == place_b - from_b) return true;
  int length = place_b - place_a;
  return place_a < first + length && from_a < first && from_b < first + length;
}

static bool are_same_nodes(const search *s, int first, int place_a, int place_b) {
  const laci_node *a = node_at_place(s, place_a), *b = node_at_place(s, place_b);
  const laci_plot_node *x = &s->nodes[s->fold->order[place_a]],
                       *y = &s->nodes[s->fold->order[place_b]];
  if (x->colour != y->colour || a->n_inputs != b->n_inputs || a->n_outputs != b->n_outputs ||
      a->n_captures != b->n_captures || strcmp(a->type, b->type) != 0)
    return false;
  /* reasons are not compared, since they contain names of nodes, which differ from block to
     block */
  if (!have_same_text(x->kind, y->kind) || !x->reason != !y->reason) return false;
  for (int i = 0; i < a->n_outputs; i++) {
    int from = a->outputs[i], to = b->outputs[i];
    if ((from < 0) != (to < 0)) return false;
    if (from >= 0 &&
        !same_shape(&s->graph->values[from].type.shape, &s->graph->values[to].type.shape))
      return false;
  }
  for (int i = 0; i < a->n_inputs + a->n_captures; i++)
    if (!have_same_source(s, first, place_a, place_b, find_read_value(a, i), find_read_value(b, i)))
      return false;
  return true;
}

/* Returns the number of nodes, from place `first` on, that are the same as the nodes `length`
 * places later. */
static int count_repeated_nodes(const search *s, int first, int length) {
  int n = 0;
  while (first + n + length < s->fold->n_order &&
         are_same_nodes(s, first, first + n, first + n + length))
    n++;
  return n;
}

/* Nodes repeat every `length` places, for `run` places from `first` on. Returns the number of
 * copies of the block. Outputs of all copies but the last must be read only inside the copies. */
static int count_copies(const search *s, int first, int length, int run) {
  int copies = run / length + 1;
  for (int copy = 0; copy + 1 < copies; copy++) {
    for (int at = 0; at < length; at++) {
      if (s->last_reader[first + copy * length + at] >= first + copies * length) return copy + 1;
    }
  }
  return copies;
}

/* Returns how many characters the names of the nodes at places first to first + length - 1 have in
 * common at the beginning, up to a separator. */
static int common_prefix_length(const laci_graph *graph, const laci_fold *fold, int first,
                                int length) {
  const char *name = graph->nodes[fold->order[first]].name;
  size_t common = strlen(name);
  for (int at = 1; at < length; at++) {
    const char *other = graph->nodes[fold->order[first + at]].name;
    size_t n = 0;
    while (n < common && other[n] == name[n]) n++;
    common = n;
  }
  while (common > 0 && !strchr("./:_", name[common - 1])) common--;
  return (int)common;
}

/* Returns the best block that begins at `first` or a little later in the same run. Best is where
 * names begin a new part of the network, such as "layer1.1.". */
static laci_fold_block align_block_to_names(const search *s, int first, int length, int run) {
  laci_fold_block best = {first, length, count_copies(s, first, length, run)};
  int prefix = common_prefix_length(s->graph, s->fold, first, length);
  for (int at = 1; at < length && run - at >= length; at++) {
    int here = common_prefix_length(s->graph, s->fold, first + at, length);
    int copies = count_copies(s, first + at, length, run - at);
    if (here <= prefix || copies + 1 < best.copies || copies < 2) continue;
    prefix = here;
    best = (laci_fold_block){first + at, length, copies};
  }
  return best;
}

static int count_nodes_saved(laci_fold_block block) { return (block.copies - 1) * block.length; }

/* Returns the block that begins at `first` and leaves out the most nodes. Its field copies is 0 if
 * no block repeats. */
static laci_fold_block find_best_block(const search *s, int first) {
  laci_fold_block best = {0};
  int most = s->fold->n_order - first;
  for (int length = 1; length <= most / 2 && length <= LONGEST; length++) {
    int run = count_repeated_nodes(s, first, length);
    if (run < length) continue;
    laci_fold_block found = align_block_to_names(s, first, length, run);
    if (found.copies >= 2 && count_nodes_saved(found) > count_nodes_saved(best)) best = found;
  }
  if (best.copies && count_nodes_saved(best) < LEAST_SAVED) best.copies = 0;
  return best;
}

static lac_status find_repeated_blocks(search *s, lac_error *err) {
  laci_fold *fold = s->fold;
  fold->blocks = laci_alloc((size_t)fold->n_order + 1, sizeof *fold->blocks);
  if (!fold->blocks) return laci_fail_memory(err, "a drawing");
  for (int at = 0; at < fold->n_order;) {
    laci_fold_block block = find_best_block(s, at);
    if (!block.copies) {
      at++;
      continue;
    }
    fold->blocks[fold->n_blocks++] = block;
    at = block.first + block.length * block.copies;
    for (int k = block.first + block.length; k < at; k++) {
      fold->copy[fold->order[k]] = true;
      fold->box[fold->order[k]] = fold->order[block.first + (k - block.first) % block.length];
    }
  }
  return LAC_OK;
}

/* Returns the node in whose box this node can be a line. That node has one output, which must be
 * the only computed value that this node reads, and no other node may read it. -1: there is no such
 * node, or this node needs a box of its own. */
static int find_node_to_attach_to(const search *s, const int *n_readers, int id) {
  const laci_node *node = &s->graph->nodes[id];
  const laci_plot_node *look = &s->nodes[id];
  int producer = -1;
  if (look->colour != LACI_PLOT_YELLOW && look->colour != LACI_PLOT_ORANGE) return -1;
  if (look->detail || look->reason || node->n_captures || node->n_outputs != 1) return -1;
  for (int i = 0; i < node->n_inputs; i++) {
    int value = node->inputs[i];
    if (value < 0 || s->graph->values[value].stored >= 0) continue;
    int from = s->graph->values[value].producer;
    if (from < 0 || producer >= 0)
      return -1;                      /* it reads an input of the network, or a second
                                                 computed value */
    if (s->place[from] < 0) continue; /* it reads a computed constant, which is not drawn */
    if (n_readers[value] != 1 || s->graph->nodes[from].n_outputs != 1) return -1;
    producer = from;
  }
  return producer;
}

/* Are both nodes in the same copy of a block? Also true if neither is in a block. */
static bool are_in_same_copy(const laci_fold *fold, int a, int b) {
  for (int k = 0; k < fold->n_blocks; k++) {
    const laci_fold_block *block = &fold->blocks[k];
    int end = block->first + block->length * block->copies;
    bool has_a = a >= block->first && a < end, has_b = b >= block->first && b < end;
    if (has_a != has_b) return false;
    if (has_a) return (a - block->first) / block->length == (b - block->first) / block->length;
  }
  return true;
}

static lac_status attach_nodes_to_boxes(search *s, lac_error *err) {
  const laci_graph *graph = s->graph;
  laci_fold *fold = s->fold;
  int *n_readers = laci_alloc((size_t)graph->n_values + 1, sizeof *n_readers);
  if (!n_readers) return laci_fail_memory(err, "a drawing");
  for (int id = 0; id < graph->n_nodes; id++) {
    const laci_node *node = &graph->nodes[id];
    for (int i = 0; i < node->n_inputs + node->n_captures; i++)
      if (find_read_value(node, i) >= 0) n_readers[find_read_value(node, i)]++;
  }
  for (int i = 0; i < graph->n_outputs; i++) n_readers[graph->outputs[i]]++;
  for (int at = 0; at < fold->n_order; at++) {
    int id = fold->order[at];
    int to = fold->box[id] == id ? find_node_to_attach_to(s, n_readers, id) : -1;
    if (to < 0 || !are_in_same_copy(fold, at, s->place[to])) continue;
    fold->box[id] = fold->box[to];
    fold->line[id] = true;
  }
  /* a node in a later copy is drawn in the box of the node that it is a copy of. By now, that node
   * may be a line in another box */
  for (int at = 0; at < fold->n_order; at++) {
    int id = fold->order[at], first = fold->box[id];
    if (fold->copy[id]) fold->line[id] = fold->line[first];
    fold->box[id] = fold->box[first];
  }
  laci_free(n_readers);
  return LAC_OK;
}

static void find_last_readers(search *s) {
  const laci_graph *graph = s->graph;
  for (int at = 0; at < s->fold->n_order; at++) {
    const laci_node *node = node_at_place(s, at);
    for (int i = 0; i < node->n_inputs + node->n_captures; i++) {
      int value = find_read_value(node, i);
      int from = value >= 0 ? graph->values[value].producer : -1;
      if (from >= 0 && s->place[from] >= 0) s->last_reader[s->place[from]] = at;
    }
  }
  for (int i = 0; i < graph->n_outputs; i++) {
    int from = graph->values[graph->outputs[i]].producer;
    if (from >= 0 && s->place[from] >= 0) s->last_reader[s->place[from]] = s->fold->n_order;
  }
}

lac_status laci_fold_init(const laci_graph *graph, const laci_plot_node *nodes,
                          const bool *left_out, bool folds, laci_fold *fold, lac_error *err) {
  size_t n = (size_t)graph->n_nodes + 1;
  search s = {.graph = graph, .nodes = nodes, .fold = fold};
  *fold = (laci_fold){.box = laci_alloc(n, sizeof *fold->box)};
  fold->order = laci_alloc(n, sizeof *fold->order);
  fold->copy = laci_alloc(n, sizeof *fold->copy);
  fold->line = laci_alloc(n, sizeof *fold->line);
  s.place = laci_alloc(n, sizeof *s.place);
  s.last_reader = laci_alloc(n, sizeof *s.last_reader);
  lac_status st = LAC_OK;
  if (!fold->box || !fold->order || !fold->copy || !fold->line || !s.place || !s.last_reader) {
    st = laci_fail_memory(err, "a drawing");
    goto out;
  }
  for (int id = 0; id < graph->n_nodes; id++) {
    fold->box[id] = id;
    s.place[id] = left_out[id] ? -1 : fold->n_order;
    if (!left_out[id]) fold->order[fold->n_order++] = id;
  }
  find_last_readers(&s);
  if (folds) st = find_repeated_blocks(&s, err);
  if (!st && folds) st = attach_nodes_to_boxes(&s, err);
out:
  laci_free(s.place);
  laci_free(s.last_reader);
  if (st) laci_fold_clear(fold);
  return st;
}

void laci_fold_clear(laci_fold *fold) {
  laci_free(fold->box);
  laci_free(fold->order);
  laci_free(fold->copy);
  laci_free(fold->line);
  laci_free(fold->blocks);
  *fold = (laci_fold){.box = NULL};
}

void laci_fold_write_copy_name(const laci_graph *graph, const laci_fold *fold,
                               const laci_fold_block *block, int copy, char *text, size_t size) {
  int first = block->first + copy * block->length;
  int n = common_prefix_length(graph, fold, first, block->length);
  const char *name = graph->nodes[fold->order[first]].name;
  while (n > 0 && strchr("./:_", name[n - 1])) n--;
  (void)snprintf(text, size, "%.*s", n, name);
}

const laci_fold_block *laci_fold_block_at(const laci_fold *fold, int place) {
  for (int k = 0; k < fold->n_blocks; k++) {
    const laci_fold_block *block = &fold->blocks[k];
    if (place >= block->first && place < block->first + block->length) return block;
  }
  return NULL;
}
