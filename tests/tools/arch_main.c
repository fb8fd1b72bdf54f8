/* SPDX-License-Identifier: Apache-2.0
 * arch_main NAME OUT.onnx [classes=N] [size=N] [seed=N] [shortcut=conv]: writes a network with
 * fresh weights, for the interoperability tests. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arch/arch.h"
#include "graph/graph.h"
#include "onnx/onnx.h"

int main(int argc, char **argv) {
  lac_error err = {0};
  laci_graph *graph = NULL;
  if (argc < 3) {
    (void)fprintf(stderr,
                  "arch_main NAME OUT.onnx [classes=N] [size=N] [seed=N] [shortcut=conv]\n");
    return 2;
  }
  laci_arch_options options = {.name = argv[1]};
  for (int k = 3; k < argc; k++) {
    if (strncmp(argv[k], "classes=", 8) == 0) options.n_classes = atoi(argv[k] + 8);
    else if (strncmp(argv[k], "size=", 5) == 0) options.image_size = atoi(argv[k] + 5);
    else if (strncmp(argv[k], "seed=", 5) == 0) options.seed = strtoull(argv[k] + 5, NULL, 10);
    else if (strcmp(argv[k], "shortcut=conv") == 0) options.conv_shortcut = true;
    else return 2;
  }
  lac_status st = laci_arch_build(&options, &graph, &err);
  if (!st) st = laci_onnx_write(graph, argv[2], true, &err);
  if (st) (void)fprintf(stderr, "%s\n", err.text);
  laci_graph_destroy(graph);
  return st ? 1 : 0;
}
