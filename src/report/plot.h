/* SPDX-License-Identifier: Apache-2.0
 * Draws the operation graph with graphviz. */
#ifndef LACI_REPORT_PLOT_H
#define LACI_REPORT_PLOT_H

#include <stdbool.h>
#include <stddef.h>

#include "lacuna/status.h"

typedef struct laci_graph laci_graph;

typedef enum laci_plot_colour {
  LACI_PLOT_GREEN,  /* permuted or pruned */
  LACI_PLOT_YELLOW, /* its output has the same channel order as its input */
  LACI_PLOT_ORANGE, /* its parameters are reordered with its channels */
  LACI_PLOT_RED,    /* prevents reordering, or is a layer that could not be pruned */
  LACI_PLOT_GREY,   /* constants, shape arithmetic */
} laci_plot_colour;

/** What to draw for a node in addition to its name and operator. */
typedef struct laci_plot_node {
  laci_plot_colour colour;
  const char *detail; /* lines (\n): "group 3 -> 4   reordered [K,C]  S"; NULL: none */
  const char *kind;   /* the detail without what is specific to this node, so that nodes of a
                         repeated block have it in common: "reordered [K,C]  S"; NULL: none */
  const char *reason; /* why the layer is not pruned, or why the node prevents reordering; drawn in
                         red boxes; NULL: none */
} laci_plot_node;

/** Whether the drawing is folded: repeated blocks are drawn once, and nodes that only change one
 * value are lines. */
typedef enum laci_plot_fold {
  LACI_PLOT_FOLD_LARGE, /* the drawing is folded if the network has more than 60 nodes */
  LACI_PLOT_FOLD_ALWAYS,
  LACI_PLOT_FOLD_NEVER
} laci_plot_fold;

typedef struct laci_plot {
  const char *title;           /* first line: network, pattern */
  const char *summary;         /* second line: "53/54 layers pruned, 53/53 reordered" */
  const laci_plot_node *nodes; /* [n_nodes] */
  laci_plot_fold fold;
  bool details;  /* shape arithmetic, scales of quantization, and other small constants, too */
  bool for_page; /* boxes have ids and classes for a page's scripts; there is no heading and there
                    are no reasons, since the page shows these */
} laci_plot;

/** Returns the word for a colour. Boxes contain it for readers who cannot tell colours apart. */
const char *laci_plot_role(laci_plot_colour colour);

/** Finds for each node the node in whose box it is drawn, boxes[n_nodes]: the node itself, the
 * first node of the box, or the corresponding node in the first copy of a repeated block.
 * line[n_nodes]: the node is only a line of that box. Fails LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_plot_find_boxes(const laci_graph *graph, const laci_plot *plot,
                                               int *boxes, bool *line, lac_error *err);

/** Returns the drawing as bytes, in the format of path's ending; the caller frees *bytes with
 * laci_free (NULL on failure). Fails LAC_BAD_ARGUMENT for an unknown ending, LAC_UNSUPPORTED if
 * graphviz cannot draw it. */
LAC_MUST_CHECK lac_status laci_plot_draw(const laci_graph *graph, const laci_plot *plot,
                                         const char *path, char **bytes, size_t *size_bytes,
                                         lac_error *err);

/** Writes the drawing to path, atomically; the ending chooses the format (.svg .pdf .png .dot).
 * force: replace an existing file. Fails LAC_BAD_ARGUMENT for another ending. */
LAC_MUST_CHECK lac_status laci_plot_write(const laci_graph *graph, const laci_plot *plot,
                                          const char *path, bool force, lac_error *err);

#endif
