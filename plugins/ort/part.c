/* SPDX-License-Identifier: Apache-2.0
 * Divides the nodes of a graph that may be taken into parts. No path from a node of a part to
 * another one passes a foreign node, which is one that may not be taken.
 *
 * The level of a node counts how often a path to it enters a foreign node from one that may be
 * taken: it is the maximum over all paths. Levels never fall along a path, and rise at such an
 * edge. So nodes of one level that may be taken and are connected form a part. Parts of different
 * levels are then joined unless a path leads from one to the other through a third: joined, the two
 * would form a cycle with it. */
#include "part.h"

#include <stdlib.h>
#include <string.h>

/* Maximum number of parts and foreign nodes, together, for which joining parts is tried. */
enum { MOST_JOINED = 512 };

static int find_set_root(int *above, int node) {
  while (above[node] != node) node = above[node] = above[above[node]];
  return node;
}

static void find_levels_and_sets(const laci_ort_edges *e, const bool *may, int *level, int *above) {
  for (int node = 0; node < e->n_nodes; node++) {
    level[node] = 0;
    above[node] = node;
    for (int k = e->begin[node]; k < e->begin[node + 1]; k++) {
      int from = e->from[k], least = level[from] + (may[from] && !may[node]);
      if (level[node] < least) level[node] = least;
    }
    for (int k = e->begin[node]; may[node] && k < e->begin[node + 1]; k++) {
      int from = e->from[k];
      if (may[from] && level[from] == level[node])
        above[find_set_root(above, node)] = find_set_root(above, from);
    }
  }
}

/** Gives each part, and each foreign node, a group of its own. group: [n_nodes] number of each
 * node's group. Returns the number of groups. */
static int number_groups(const laci_ort_edges *e, int *above, int *group) {
  int n = 0;
  for (int node = 0; node < e->n_nodes; node++) group[node] = -1;
  for (int node = 0; node < e->n_nodes; node++) {
    int root = find_set_root(above, node);
    if (group[root] < 0) group[root] = n++;
    group[node] = group[root];
  }
  return n;
}

/** Is there a path from group `from` to group `to` of two edges or more? */
static bool has_indirect_path(const bool *edge, int n, int from, int to, bool *seen, int *stack) {
  int n_stack = 0;
  memset(seen, 0, (size_t)n);
  for (int k = 0; k < n; k++)
    if (edge[from * n + k] && k != to && k != from) seen[k] = true, stack[n_stack++] = k;
  while (n_stack) {
    int at = stack[--n_stack];
    if (edge[at * n + to]) return true;
    for (int k = 0; k < n; k++)
      if (edge[at * n + k] && !seen[k] && k != from) seen[k] = true, stack[n_stack++] = k;
  }
  return false;
}

typedef struct joining {
  int n;
  bool *edge;  /* [n, n] edge[from * n + to]: group `to` reads from group `from` */
  bool *taken; /* [n] the group is a part, not a foreign node */
  bool *seen;
  int *stack, *into; /* [n] number of the group that each group was joined with; its own number: it
                        was not joined */
} joining;

static void join_groups_of_edge(joining *j, int from, int to) {
  for (int k = 0; k < j->n; k++) {
    j->edge[from * j->n + k] |= j->edge[to * j->n + k];
    j->edge[k * j->n + from] |= j->edge[k * j->n + to];
    j->edge[to * j->n + k] = j->edge[k * j->n + to] = false;
  }
  j->edge[from * j->n + from] = false;
  j->taken[to] = false;
  j->into[to] = from;
}

/** Joins pairs of parts, of which one reads from the other, unless that would make a cycle. */
static void join_connected_parts(joining *j) {
  for (bool again = true; again;) {
    again = false;
    for (int from = 0; from < j->n; from++) {
      for (int to = 0; to < j->n; to++) {
        if (!j->taken[from] || !j->taken[to] || !j->edge[from * j->n + to]) continue;
        if (has_indirect_path(j->edge, j->n, from, to, j->seen, j->stack)) continue;
        join_groups_of_edge(j, from, to);
        again = true;
      }
    }
  }
}

static bool join_parts_without_cycles(const laci_ort_edges *e, const bool *may, int *group,
                                      int n_groups) {
  joining j = {.n = n_groups};
  size_t n = (size_t)n_groups;
  j.edge = calloc(n * n + 1, 1);
  j.taken = calloc(n + 1, 1);
  j.seen = calloc(n + 1, 1);
  j.stack = calloc(n + 1, sizeof(int));
  j.into = calloc(n + 1, sizeof(int));
  bool fine = j.edge && j.taken && j.seen && j.stack && j.into;
  for (int k = 0; fine && k < n_groups; k++) j.into[k] = k;
  for (int node = 0; fine && node < e->n_nodes; node++) {
    if (may[node]) j.taken[group[node]] = true;
    for (int k = e->begin[node]; k < e->begin[node + 1]; k++)
      if (group[e->from[k]] != group[node])
        j.edge[group[e->from[k]] * n_groups + group[node]] = true;
  }
  if (fine) join_connected_parts(&j);
  for (int node = 0; fine && node < e->n_nodes; node++)
    while (j.into[group[node]] != group[node]) group[node] = j.into[group[node]];
  free(j.edge);
  free(j.taken);
  free(j.seen);
  free(j.stack);
  free(j.into);
  return fine;
}

bool laci_ort_cut_graph(const laci_ort_edges *edges, const bool *may, int *part, int *n_parts) {
  size_t n = (size_t)edges->n_nodes;
  int *level = calloc(n + 1, sizeof *level), *above = calloc(n + 1, sizeof *above);
  int *number = calloc(n + 1, sizeof *number);
  bool fine = level && above && number, whole = true;
  *n_parts = 0;
  for (size_t node = 0; node < n; node++) whole = whole && may[node];
  if (fine) {
    find_levels_and_sets(edges, may, level, above);
    int n_groups = number_groups(edges, above, part);
    if (whole) memset(part, 0, n * sizeof *part); /* one part, even if not connected */
    if (!whole && n_groups <= MOST_JOINED)
      fine = join_parts_without_cycles(edges, may, part, n_groups);
  }
  for (size_t node = 0; fine && node < n; node++) number[node] = -1;
  for (size_t node = 0; fine && node < n; node++) {
    if (!may[node]) {
      part[node] = -1;
    } else {
      int group = part[node];
      if (number[group] < 0) number[group] = (*n_parts)++;
      part[node] = number[group];
    }
  }
  free(level);
  free(above);
  free(number);
  return fine;
}
