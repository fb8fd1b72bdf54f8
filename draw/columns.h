/* SPDX-License-Identifier: Apache-2.0
 * Cuts a tall drawing that graphviz has laid out into strips, which are put next to each other, so
 * that a page holds it.
 *
 * A cut goes between boxes. An edge that crosses it ends at the bottom of one strip, and goes on at
 * the top of the next; so does the frame of a cluster. */
#ifndef DRAW_COLUMNS_H
#define DRAW_COLUMNS_H

#include <graphviz/gvc.h>

/** Moves the boxes, edges and clusters of the graph, if columns make it larger on a page of A4. */
void columns_arrange(Agraph_t *graph);

/** Returns the scale at which a drawing of this size, in points, fits a page of A4, upright or
 * across; 1 is its natural size. */
double columns_page_scale(double width, double height);

#endif
