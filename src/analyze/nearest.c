/* SPDX-License-Identifier: Apache-2.0
 * Suggests layers for a pattern that matches none: those whose name has a substring with the
 * smallest edit distance to the pattern's plain characters, at most a third of their number. Where
 * no layer is that near, lists some names of layers as examples. */
#include <stdio.h>
#include <string.h>

#include "analyze/analyze.h"
#include "analyze/layers_in.h"
#include "graph/graph.h"

enum { LONGEST = 64, SHOWN = 3 };

static int min_int(int a, int b) { return a < b ? a : b; }

/* Returns the smallest edit distance between text and a substring of name (P. H. Sellers, 1980).
 * row[i]: distance of the first i characters of text to a substring that ends at the current
 * character of name. */
static int edit_distance_to_substring(const char *text, int n, const char *name) {
  int row[LONGEST + 1], fewest = n;
  for (int i = 0; i <= n; i++) row[i] = i;
  for (const char *at = name; *at; at++) {
    int diagonal = 0; /* row[0] stays 0: a substring may begin anywhere */
    for (int i = 1; i <= n; i++) {
      int edits = min_int(diagonal + (text[i - 1] != *at), min_int(row[i], row[i - 1]) + 1);
      diagonal = row[i];
      row[i] = edits;
    }
    fewest = min_int(fewest, row[n]);
  }
  return fewest;
}

/* Copies the characters of a pattern that match only themselves to text, and returns their
 * number. */
static int copy_literal_characters(const char *pattern, char *text) {
  int n = 0;
  for (const char *at = pattern; *at && n < LONGEST; at++) {
    if (!strchr("\\^$*+?()[]{}|", *at)) text[n++] = *at;
  }
  return n;
}

static const char *layer_name(const laci_analysis *analysis, int l) {
  return analysis->graph->nodes[analysis->layers[l].node].name;
}

static int edit_distance_to_layer(const laci_analysis *analysis, int l, const char *text, int n) {
  const char *weight = laci_layer_weight_name(analysis, &analysis->layers[l]);
  return min_int(edit_distance_to_substring(text, n, layer_name(analysis, l)),
                 edit_distance_to_substring(text, n, weight));
}

/** Lists up to SHOWN layers with the smallest edit distance; among equals the first ones. */
static int list_nearest_layers(const laci_analysis *analysis, const char *text, int n,
                               int most_edits, int *best) {
  int edits[SHOWN], n_best = 0;
  for (int l = 0; l < analysis->n_rows; l++) {
    int here = edit_distance_to_layer(analysis, l, text, n), at = n_best;
    if (here > most_edits) continue;
    while (at > 0 && edits[at - 1] > here) at--;
    if (at == SHOWN) continue;
    if (n_best < SHOWN) n_best++;
    for (int k = n_best - 1; k > at; k--) {
      best[k] = best[k - 1];
      edits[k] = edits[k - 1];
    }
    best[at] = l;
    edits[at] = here;
  }
  return n_best;
}

const char *laci_format_nearest_layers_hint(laci_analysis *analysis, const char *pattern) {
  char text[LONGEST], names[1024] = "";
  int best[SHOWN], n = copy_literal_characters(pattern, text);
  int n_best = list_nearest_layers(analysis, text, n, n / 3, best);
  const bool near = n_best > 0;
  for (; !near && n_best < SHOWN && n_best < analysis->n_rows; n_best++) best[n_best] = n_best;
  for (int k = 0; k < n_best; k++) {
    size_t used = strlen(names);
    (void)snprintf(names + used, sizeof names - used, "%s%.300s", k ? ", " : "",
                   layer_name(analysis, best[k]));
  }
  const bool more = !near && n_best < analysis->n_rows;
  return laci_analysis_format_text(analysis, "; the %s%s%s",
                                   near ? "nearest: " : "layers are named ", names,
                                   more ? ", ..." : "");
}
