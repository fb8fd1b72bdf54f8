/* SPDX-License-Identifier: Apache-2.0
 * Texts that live as long as an analysis, and names of weights. */
#include <stdarg.h>
#include <stdio.h>

#include "analyze/analyze.h"
#include "analyze/layers_in.h"
#include "base/memory.h"
#include "graph/graph.h"

const char *laci_analysis_format_text(laci_analysis *analysis, const char *format, ...) {
  char text[1024];
  va_list args;
  va_start(args, format);
  (void)vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return laci_arena_text(&analysis->arena, text);
}

const char *laci_layer_weight_name(const laci_analysis *analysis, const laci_layer *layer) {
  return layer->stored < 0 ? analysis->graph->values[layer->weight].name
                           : analysis->graph->stored[layer->stored].name;
}
