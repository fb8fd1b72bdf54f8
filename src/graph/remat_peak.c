/* SPDX-License-Identifier: Apache-2.0
 * How much memory a plan of what is kept would need: the step is walked through as it will run,
 * clones standing before their first reader, and what is alive is added up. Weights and scratch
 * memory are the same for every plan and do not count; outputs leave as soon as nobody reads them.
 */
#include <string.h>

#include "graph/op.h"
#include "graph/remat_in.h"

typedef struct walk {
  const laci_remat *r;
  int n_order;
  int *order;    /* a node, or ~node for its clone */
  int *last_use; /* [values, then clones] place in the order; -1: nowhere, or freed */
  bool *placed;  /* [forward nodes] its clone is in the order */
  bool *wanted;  /* [forward nodes] its clone must come now */
} walk;

static int producer_of(const walk *w, int node, int port) {
  const laci_graph *graph = w->r->graph;
  return graph->values[graph->nodes[node].inputs[port]].producer;
}

/** The clone of a node behind those of all that it needs. */
static void place_clone(walk *w, int node) {
  if (w->placed[node]) return;
  int first = node, n_open = 1;
  w->wanted[node] = true;
  for (int n = node; n_open > 0; n--) {
    if (!w->wanted[n]) continue;
    n_open--;
    first = n;
    for (int port = 0; port < w->r->graph->nodes[n].n_inputs; port++) {
      if (!laci_remat_reads_clone(w->r, n, port)) continue;
      int from = producer_of(w, n, port);
      n_open += !w->wanted[from] && !w->placed[from];
      if (!w->placed[from]) w->wanted[from] = true;
    }
  }
  for (int n = first; n <= node; n++) {
    if (!w->wanted[n]) continue;
    w->wanted[n] = false;
    w->placed[n] = true;
    w->order[w->n_order++] = ~n;
  }
}

static void find_order(walk *w) {
  const laci_remat *r = w->r;
  for (int n = 0; n < r->graph->n_nodes; n++) {
    if (!r->live[n]) continue;
    for (int port = 0; n >= r->n_forward && port < r->graph->nodes[n].n_inputs; port++)
      if (laci_remat_reads_clone(r, n, port)) place_clone(w, producer_of(w, n, port));
    w->order[w->n_order++] = n;
  }
}

/** What input `port` is among values and clones; -1: nothing that takes memory. */
static int read_at(const walk *w, int step, int port) {
  const laci_remat *r = w->r;
  int node = step < 0 ? ~step : step, value = r->graph->nodes[node].inputs[port];
  if (value < 0 || r->bytes[value] == 0) return -1;
  if (port == 1 && r->soft[node]) return -1;
  bool first_time = step >= 0 && node < r->n_forward;
  return !first_time && laci_remat_reads_clone(r, node, port) ? r->graph->n_values + value : value;
}

static int made_at(const walk *w, int step, int port) {
  const laci_graph *graph = w->r->graph;
  int value = graph->nodes[step < 0 ? ~step : step].outputs[port];
  return value >= 0 && step < 0 ? graph->n_values + value : value;
}

static void find_last_uses(walk *w) {
  const laci_graph *graph = w->r->graph;
  for (int at = 0; at < w->n_order; at++) {
    int step = w->order[at];
    const laci_node *node = &graph->nodes[step < 0 ? ~step : step];
    for (int port = 0; port < node->n_outputs; port++) {
      int made = made_at(w, step, port);
      if (made >= 0) w->last_use[made] = at;
    }
    for (int port = 0; port < node->n_inputs; port++) {
      int read = read_at(w, step, port);
      if (read >= 0) w->last_use[read] = at;
    }
  }
}

static int64_t bytes_of(const walk *w, int id) {
  return w->r->bytes[id < w->r->graph->n_values ? id : id - w->r->graph->n_values];
}

/** Products and windows need all of their input until the end; others may write over it. */
static bool overwrites(const laci_node *node) {
  return node->op && node->op->role != LACI_ROLE_ALLOW && strncmp(node->type, "Conv", 4) != 0 &&
         !strstr(node->type, "Pool");
}

static int64_t free_if_last(walk *w, int id, int at) {
  if (id < 0 || w->last_use[id] != at) return 0;
  w->last_use[id] = -1;
  return bytes_of(w, id);
}

static int64_t sweep(walk *w) {
  int64_t live = 0, peak = 0;
  for (int at = 0; at < w->n_order; at++) {
    int step = w->order[at];
    const laci_node *node = &w->r->graph->nodes[step < 0 ? ~step : step];
    int64_t first = node->n_outputs > 0 && made_at(w, step, 0) >= 0
                        ? bytes_of(w, made_at(w, step, 0))
                        : 0,
            saved = 0;
    for (int port = 0; port < node->n_outputs; port++) {
      int made = made_at(w, step, port);
      if (made >= 0) live += bytes_of(w, made);
    }
    for (int port = 0; port < node->n_inputs && overwrites(node); port++) {
      int read = read_at(w, step, port);
      if (read >= 0 && w->last_use[read] == at && bytes_of(w, read) == first) saved = first;
    }
    if (live - saved > peak) peak = live - saved;
    for (int port = 0; port < node->n_inputs; port++)
      live -= free_if_last(w, read_at(w, step, port), at);
    for (int port = 0; port < node->n_outputs; port++)
      live -= free_if_last(w, made_at(w, step, port), at);
  }
  return peak;
}

int64_t laci_remat_peak(const laci_remat *r) {
  size_t n_nodes = (size_t)r->graph->n_nodes, n_values = (size_t)r->graph->n_values;
  size_t n_forward = (size_t)r->n_forward;
  walk w = {.r = r,
            .order = laci_alloc(n_nodes + n_forward + 1, sizeof *w.order),
            .last_use = laci_alloc(2 * n_values + 1, sizeof *w.last_use),
            .placed = laci_alloc(n_forward + 1, sizeof *w.placed),
            .wanted = laci_alloc(n_forward + 1, sizeof *w.wanted)};
  int64_t peak = -1;
  if (w.order && w.last_use && w.placed && w.wanted) {
    for (size_t at = 0; at < 2 * n_values; at++) w.last_use[at] = -1;
    find_order(&w);
    find_last_uses(&w);
    peak = sweep(&w);
  }
  laci_free(w.order);
  laci_free(w.last_use);
  laci_free(w.placed);
  laci_free(w.wanted);
  return peak;
}
