/* SPDX-License-Identifier: Apache-2.0
 * The operation graph as a drawing, through graphviz' libraries. */
#ifndef LACI_REPORT_PLOT_H
#define LACI_REPORT_PLOT_H

#include <stdbool.h>
#include <stddef.h>

#include "lacuna/status.h"

typedef struct laci_graph laci_graph;

typedef enum laci_plot_colour {
  LACI_PLOT_GREEN,  /* permuted or pruned */
  LACI_PLOT_YELLOW, /* passes orders through */
  LACI_PLOT_ORANGE, /* follows with its own parameters */
  LACI_PLOT_RED,    /* blocks, or is a layer that could not be pruned */
  LACI_PLOT_GREY,   /* constants, shape arithmetic */
} laci_plot_colour;

/** What to draw for a node, besides its name and operator. */
typedef struct laci_plot_node {
  laci_plot_colour colour;
  const char *detail; /* lines (\n): "group 3 -> 4   reordered [K,C]  S"; NULL: none */
  const char *reason; /* drawn in red layers and blockers; NULL: none */
} laci_plot_node;

typedef struct laci_plot {
  const char *title;           /* network, pattern */
  const char *summary;         /* second line: "53/54 layers pruned, 53/53 reordered" */
  const laci_plot_node *nodes; /* [n_nodes] */
} laci_plot;

/** The drawing as bytes, in the format that the ending of path names; the caller frees *bytes with
 * laci_free (NULL on failure). Fails LAC_BAD_ARGUMENT for another ending, LAC_UNSUPPORTED where
 * graphviz cannot draw it. */
LAC_MUST_CHECK lac_status laci_plot_draw(const laci_graph *graph, const laci_plot *plot,
                                         const char *path, char **bytes, size_t *size_bytes,
                                         lac_error *err);

/** Writes path (.svg .pdf .png .dot; atomic; force as everywhere). Fails LAC_BAD_ARGUMENT for
 * another ending. */
LAC_MUST_CHECK lac_status laci_plot_write(const laci_graph *graph, const laci_plot *plot,
                                          const char *path, bool force, lac_error *err);

#endif
