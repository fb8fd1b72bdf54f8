/* SPDX-License-Identifier: Apache-2.0
 * Draws a network as a graph of its nodes, with graphviz. */
#ifndef LACI_REPORT_PLOT_H
#define LACI_REPORT_PLOT_H

#include <stdbool.h>
#include <stddef.h>

#include "lacuna/status.h"

typedef struct laci_graph laci_graph;

typedef enum laci_plot_colour {
  LACI_PLOT_GREEN,  /* the node is reordered or pruned */
  LACI_PLOT_YELLOW, /* the node's output has the same channel order as its input */
  LACI_PLOT_ORANGE, /* the node's parameters are reordered with its channels */
  LACI_PLOT_RED,    /* the node prevents reordering, or is a layer that could not be pruned */
  LACI_PLOT_GREY,   /* the node computes only constants, such as shapes */
} laci_plot_colour;

/** What is drawn for a node in addition to its name and operator. */
typedef struct laci_plot_node {
  laci_plot_colour colour;
  const char *detail; /* more lines of text, separated by \n: "group 3 -> 4   reordered [K,C]  S";
                         NULL: none */
  const char *kind;   /* `detail` without what is specific to this node: "reordered [K,C]  S". Nodes
                         of a repeated block have it in common; NULL: none */
  const char *reason; /* why the layer is not pruned, or why the node prevents reordering; drawn in
                         red boxes; NULL: none */
} laci_plot_node;

/** Whether a drawing is folded: blocks that repeat are drawn once, and nodes that only change one
 * value are lines in other boxes. */
typedef enum laci_plot_fold {
  LACI_PLOT_FOLD_LARGE, /* the drawing is folded if the network has more than 60 nodes */
  LACI_PLOT_FOLD_ALWAYS,
  LACI_PLOT_FOLD_NEVER
} laci_plot_fold;

typedef struct laci_plot {
  const char *title;           /* first line of the heading: network, pattern */
  const char *summary;         /* second line of the heading: "53/54 layers pruned, 53/53
                                  reordered" */
  const laci_plot_node *nodes; /* [n_nodes] what to draw for each node */
  laci_plot_fold fold;
  bool details;  /* true: also draws shape arithmetic, scales of quantization, and other small
                    constants */
  bool for_page; /* true: the drawing is for a page (page.h). Boxes have ids and classes for its
                    scripts; there is no heading and there are no reasons, since the page shows
                    these */
} laci_plot;

/** Returns the word for a color. Boxes contain it for readers who cannot tell colors apart. */
const char *laci_plot_role(laci_plot_colour colour);

/** Finds for each node the node in whose box it is drawn: boxes[n_nodes]. This is the node itself,
 * the first node of the box, or the corresponding node in the first copy of a repeated block.
 * line[n_nodes]: true if the node is only a line of that box. Fails with LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_plot_find_boxes(const laci_graph *graph, const laci_plot *plot,
                                               int *boxes, bool *line, lac_error *err);

/** Returns the drawing as bytes, in the format of path's ending. The caller frees *bytes with
 * laci_free (NULL on failure). Fails with LAC_BAD_ARGUMENT for an unknown ending, or with
 * LAC_UNSUPPORTED if graphviz cannot draw it. */
LAC_MUST_CHECK lac_status laci_plot_draw(const laci_graph *graph, const laci_plot *plot,
                                         const char *path, char **bytes, size_t *size_bytes,
                                         lac_error *err);

/** Writes the drawing to path, atomically. The ending chooses the format (.svg, .pdf, .png, .dot).
 * force: replace an existing file. Fails with LAC_BAD_ARGUMENT for another ending. */
LAC_MUST_CHECK lac_status laci_plot_write(const laci_graph *graph, const laci_plot *plot,
                                          const char *path, bool force, lac_error *err);

#endif
