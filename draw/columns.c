/* SPDX-License-Identifier: Apache-2.0
 * Puts strips of a drawing next to each other. Coordinates are graphviz' points, y upwards. */
#include "columns.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  MOST_STRIPS = 12,
  GAP = 36,
  A4_WIDTH = 523,
  A4_HEIGHT = 770,
  POINTS_IN_CURVE = 4,
  STEPS = 40
};

typedef struct strip {
  double top, bottom; /* the range of y of the drawing that the strip shows */
  double left, right; /* the range of x of the boxes in the strip */
  double dx, dy;      /* by how much the elements of the strip are moved */
} strip;

/* A gap between boxes, between the heights `from` (upper end) and `to` (lower end). A cut may go
 * through its middle. */
typedef struct gap {
  double from, to;
} gap;

typedef struct layout {
  Agraph_t *graph;
  gap *gaps; /* [n_gaps] the gaps, from the top down */
  int n_gaps;
  strip strips[MOST_STRIPS];
  int n_strips;
} layout;

static double node_top(Agnode_t *node) { return ND_coord(node).y + ND_ht(node) / 2; }
static double node_bottom(Agnode_t *node) { return ND_coord(node).y - ND_ht(node) / 2; }

/* ---- Where cuts may be ---- */

static int compare_tops(const void *a, const void *b) {
  double x = node_top(*(Agnode_t *const *)a), y = node_top(*(Agnode_t *const *)b);
  return (x < y) - (x > y);
}

/* Cuts near the upper or lower side of a cluster go outside of it, so that its label stays with its
 * boxes. */
static void move_gaps_out_of_clusters(const layout *l, gap *found) {
  for (int c = 1; c <= GD_n_cluster(l->graph); c++) {
    const boxf box = GD_bb(GD_clust(l->graph)[c]);
    if (box.UR.y < found->from && box.UR.y > found->to) found->to = box.UR.y;
    if (box.LL.y < found->from && box.LL.y > found->to) found->from = box.LL.y;
  }
}

/* Finds the gaps between boxes. Returns false if there is no memory. */
static bool find_gaps(layout *l) {
  size_t n = (size_t)agnnodes(l->graph), at = 0;
  Agnode_t **nodes = calloc(n + 1, sizeof(Agnode_t *));
  l->gaps = calloc(n + 1, sizeof *l->gaps);
  if (!nodes || !l->gaps) {
    free(nodes);
    return false;
  }
  for (Agnode_t *v = agfstnode(l->graph); v; v = agnxtnode(l->graph, v)) nodes[at++] = v;
  qsort(nodes, n, sizeof(Agnode_t *), compare_tops);
  double bottom = n ? node_bottom(nodes[0]) : 0;
  for (size_t k = 1; k < n; k++) {
    double top = node_top(nodes[k]);
    if (top < bottom) {
      l->gaps[l->n_gaps] = (gap){bottom, top};
      move_gaps_out_of_clusters(l, &l->gaps[l->n_gaps++]);
    }
    bottom = fmin(bottom, node_bottom(nodes[k]));
  }
  free(nodes);
  return true;
}

/* Cuts the drawing into strips of at most this height, from the top down. Returns false if that
 * takes more than `most` strips. */
static bool cut_into_strips(layout *l, double height, int most) {
  const boxf all = GD_bb(l->graph);
  double top = all.UR.y;
  l->n_strips = 0;
  for (int at = 0; l->n_strips < most;) {
    strip *s = &l->strips[l->n_strips++];
    s->top = top;
    s->bottom = all.LL.y;
    if (top - all.LL.y <= height) return true;
    int last = -1;
    for (; at < l->n_gaps && top - l->gaps[at].from <= height; at++) last = at;
    if (last < 0) return false;
    s->bottom = top = (l->gaps[last].from + l->gaps[last].to) / 2;
  }
  return false;
}

/* ---- Edges ---- */

static bezier *edge_curve(Agedge_t *edge, int at) { return &ED_spl(edge)->list[at]; }

static void widen_strip(strip *s, double x) {
  s->left = fmin(s->left, x);
  s->right = fmax(s->right, x);
}

static int find_strip_at(const layout *l, double y) {
  int at = 0;
  while (at + 1 < l->n_strips && y < l->strips[at].bottom) at++;
  return at;
}

/* Finds how wide each strip is. */
static void measure_strip_widths(layout *l) {
  const boxf all = GD_bb(l->graph);
  for (int k = 0; k < l->n_strips; k++) {
    l->strips[k].left = all.UR.x;
    l->strips[k].right = all.LL.x;
  }
  const textlabel_t *label = GD_label(l->graph);
  if (label) {
    widen_strip(&l->strips[0], all.LL.x);
    widen_strip(&l->strips[0], all.LL.x + label->dimen.x);
  }
  for (Agnode_t *v = agfstnode(l->graph); v; v = agnxtnode(l->graph, v)) {
    strip *s = &l->strips[find_strip_at(l, ND_coord(v).y)];
    widen_strip(s, ND_coord(v).x - ND_lw(v));
    widen_strip(s, ND_coord(v).x + ND_rw(v));
    for (Agedge_t *e = agfstout(l->graph, v); e; e = agnxtout(l->graph, e)) {
      for (int c = 0; ED_spl(e) && c < ED_spl(e)->size; c++) {
        for (int p = 0; p < edge_curve(e, c)->size; p++) {
          const pointf at = edge_curve(e, c)->list[p];
          widen_strip(&l->strips[find_strip_at(l, at.y)], at.x);
        }
      }
    }
  }
  for (int c = 1; c <= GD_n_cluster(l->graph); c++) {
    const boxf box = GD_bb(GD_clust(l->graph)[c]);
    for (int k = 0; k < l->n_strips; k++) {
      if (box.LL.y >= l->strips[k].top || box.UR.y <= l->strips[k].bottom) continue;
      widen_strip(&l->strips[k], box.LL.x);
      widen_strip(&l->strips[k], box.UR.x);
    }
  }
}

static double total_width(const layout *l) {
  double width = (l->n_strips - 1) * GAP;
  for (int k = 0; k < l->n_strips; k++) width += l->strips[k].right - l->strips[k].left;
  return width;
}

static double total_height(const layout *l) {
  double height = 0;
  for (int k = 0; k < l->n_strips; k++)
    height = fmax(height, l->strips[k].top - l->strips[k].bottom);
  return height;
}

double columns_page_scale(double width, double height) {
  double upright = fmin(A4_WIDTH / width, A4_HEIGHT / height);
  return fmax(upright, fmin(A4_HEIGHT / width, A4_WIDTH / height));
}

/* Divides the drawing into n strips of the least possible height. */
static bool divide_into_strips(layout *l, int n) {
  const boxf all = GD_bb(l->graph);
  double low = 0, high = all.UR.y - all.LL.y;
  for (int step = 0; step < STEPS; step++) {
    double middle = (low + high) / 2;
    if (cut_into_strips(l, middle, n)) high = middle;
    else low = middle;
  }
  if (!cut_into_strips(l, high, n)) return false;
  measure_strip_widths(l);
  return true;
}

static bool choose_strip_count(layout *l) {
  const boxf all = GD_bb(l->graph);
  double best = columns_page_scale(all.UR.x - all.LL.x, all.UR.y - all.LL.y);
  int chosen = 1;
  for (int n = 2; n <= MOST_STRIPS && best < 1; n++) {
    if (!divide_into_strips(l, n)) continue;
    double scale = columns_page_scale(total_width(l), total_height(l));
    if (scale <= best * 1.02) continue;
    best = scale;
    chosen = n;
  }
  return chosen > 1 && divide_into_strips(l, chosen);
}

/* ---- Moving ---- */

static pointf interpolate_points(pointf a, pointf b, double t) {
  return (pointf){a.x + t * (b.x - a.x), a.y + t * (b.y - a.y)};
}

/* Splits a curve of four points at t: `curve` becomes its first part. */
static void split_curve(pointf curve[POINTS_IN_CURVE], double t, pointf rest[POINTS_IN_CURVE]) {
  pointf ab = interpolate_points(curve[0], curve[1], t),
         bc = interpolate_points(curve[1], curve[2], t);
  pointf cd = interpolate_points(curve[2], curve[3], t), abc = interpolate_points(ab, bc, t),
         bcd = interpolate_points(bc, cd, t);
  pointf middle = interpolate_points(abc, bcd, t);
  rest[0] = middle;
  rest[1] = bcd;
  rest[2] = cd;
  rest[3] = curve[3];
  curve[1] = ab;
  curve[2] = abc;
  curve[3] = middle;
}

/* Returns the parameter, 0 .. 1, at which a curve that goes down reaches y. */
static double find_curve_parameter(const pointf curve[POINTS_IN_CURVE], double y) {
  double low = 0, high = 1;
  for (int step = 0; step < STEPS; step++) {
    double t = (low + high) / 2;
    pointf first[POINTS_IN_CURVE], rest[POINTS_IN_CURVE];
    memcpy(first, curve, sizeof first);
    split_curve(first, t, rest);
    if (rest[0].y > y) low = t;
    else high = t;
  }
  return (low + high) / 2;
}

static pointf shift_point_with_strip(const layout *l, int at, pointf p) {
  return (pointf){p.x + l->strips[at].dx, p.y + l->strips[at].dy};
}

static void move_label_with_strip(textlabel_t *label, const strip *s) {
  if (!label) return;
  label->pos.x += s->dx;
  label->pos.y += s->dy;
}

/* The new curves of an edge: each old curve is split so that every part is in one strip. */
typedef struct parts {
  bezier *list;
  int n, capacity;
} parts;

static bool append_curve(const layout *l, parts *to, const pointf curve[POINTS_IN_CURVE]) {
  if (to->n == to->capacity) {
    int capacity = to->capacity ? 2 * to->capacity : 8;
    bezier *fresh = realloc(to->list, (size_t)capacity * sizeof *fresh);
    if (!fresh) return false;
    to->list = fresh;
    to->capacity = capacity;
  }
  pointf *points = calloc(POINTS_IN_CURVE, sizeof *points);
  if (!points) return false;
  int at = find_strip_at(l, (curve[0].y + curve[POINTS_IN_CURVE - 1].y) / 2);
  for (int p = 0; p < POINTS_IN_CURVE; p++) points[p] = shift_point_with_strip(l, at, curve[p]);
  to->list[to->n++] = (bezier){.list = points, .size = POINTS_IN_CURVE};
  return true;
}

/* Adds a curve, split wherever it passes from a strip into the next. */
static bool append_curve_split_at_cuts(const layout *l, parts *to, pointf curve[POINTS_IN_CURVE]) {
  for (int k = 0; k + 1 < l->n_strips; k++) {
    double cut = l->strips[k].bottom;
    pointf rest[POINTS_IN_CURVE];
    if (!(curve[0].y > cut && curve[POINTS_IN_CURVE - 1].y < cut)) continue;
    split_curve(curve, find_curve_parameter(curve, cut), rest);
    if (!append_curve(l, to, curve)) return false;
    memcpy(curve, rest, sizeof rest);
  }
  return append_curve(l, to, curve);
}

static bool move_edge_to_strips(const layout *l, Agedge_t *edge) {
  parts made = {0};
  if (!ED_spl(edge)) return true;
  for (int c = 0; c < ED_spl(edge)->size; c++) {
    const bezier *old = edge_curve(edge, c);
    for (int p = 0; p + POINTS_IN_CURVE <= old->size; p += POINTS_IN_CURVE - 1) {
      pointf curve[POINTS_IN_CURVE];
      memcpy(curve, old->list + p, sizeof curve);
      if (!append_curve_split_at_cuts(l, &made, curve)) return false;
    }
    if (made.n && old->eflag) {
      made.list[made.n - 1].eflag = old->eflag;
      made.list[made.n - 1].ep =
          shift_point_with_strip(l, find_strip_at(l, old->list[old->size - 1].y), old->ep);
    }
  }
  if (!made.n) return true;
  ED_spl(edge)->list = made.list; /* the old curves are not freed, since the process ends soon */
  ED_spl(edge)->size = made.n;
  return true;
}

/* Moves a cluster's frame; where it crosses a cut, each further strip gets a cluster of its own. */
static bool move_cluster_to_strips(layout *l, int number) {
  Agraph_t *root = l->graph, *cluster = GD_clust(root)[number];
  const boxf box = GD_bb(cluster);
  bool is_first = true;
  for (int k = 0; k < l->n_strips; k++) {
    const strip *s = &l->strips[k];
    if (box.LL.y >= s->top || box.UR.y <= s->bottom) continue;
    Agraph_t *part = cluster;
    if (!is_first) {
      char name[64];
      (void)snprintf(name, sizeof name, "cluster_%d_%d", number, k);
      part = agsubg(root, name, 1);
      Agraph_t **list =
          realloc(GD_clust(root), (size_t)(GD_n_cluster(root) + 2) * sizeof(Agraph_t *));
      if (!part || !list) return false;
      (void)agbindrec(part, "Agraphinfo_t", sizeof(Agraphinfo_t), 1);
      (void)agcopyattr(cluster, part);
      GD_clust(root) = list;
      GD_clust(root)[++GD_n_cluster(root)] = part;
    }
    GD_bb(part).LL = shift_point_with_strip(l, k, (pointf){box.LL.x, fmax(box.LL.y, s->bottom)});
    GD_bb(part).UR = shift_point_with_strip(l, k, (pointf){box.UR.x, fmin(box.UR.y, s->top)});
    if (is_first) move_label_with_strip(GD_label(cluster), s);
    is_first = false;
  }
  return true;
}

static void set_strip_offsets(layout *l) {
  const boxf all = GD_bb(l->graph);
  double x = all.LL.x;
  for (int k = 0; k < l->n_strips; k++) {
    strip *s = &l->strips[k];
    s->dx = x - s->left;
    s->dy = all.UR.y - s->top;
    x += s->right - s->left + GAP;
  }
}

static bool move_all_to_strips(layout *l) {
  set_strip_offsets(l);
  for (Agnode_t *v = agfstnode(l->graph); v; v = agnxtnode(l->graph, v))
    for (Agedge_t *e = agfstout(l->graph, v); e; e = agnxtout(l->graph, e))
      if (!move_edge_to_strips(l, e)) return false;
  int n_clusters = GD_n_cluster(l->graph);
  for (int c = 1; c <= n_clusters; c++)
    if (!move_cluster_to_strips(l, c)) return false;
  for (Agnode_t *v = agfstnode(l->graph); v; v = agnxtnode(l->graph, v)) {
    int at = find_strip_at(l, ND_coord(v).y);
    ND_coord(v) = shift_point_with_strip(l, at, ND_coord(v));
  }
  move_label_with_strip(GD_label(l->graph), &l->strips[0]);
  GD_bb(l->graph).UR.x = GD_bb(l->graph).LL.x + total_width(l);
  GD_bb(l->graph).LL.y = GD_bb(l->graph).UR.y - total_height(l);
  return true;
}

void columns_arrange(Agraph_t *graph) {
  layout l = {.graph = graph};
  if (find_gaps(&l) && choose_strip_count(&l) && !move_all_to_strips(&l)) {
    fputs("graphviz could not draw the graph: no memory\n", stderr);
    exit(EXIT_FAILURE);
  }
  free(l.gaps);
}
