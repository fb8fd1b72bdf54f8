/* SPDX-License-Identifier: Apache-2.0
 * Runs a model on the plain engine, so that other runtimes can be asked for their opinion.
 *
 *     plain_main MODEL.onnx IN_DIR OUT_DIR   reads IN_DIR/INPUT.npy for every input, writes
 *                                            OUT_DIR/OUTPUT.npy
 *     plain_main --infer MODEL.onnx          prints a line for each value: name, type, shape as
 *                                            inferred
 *     plain_main --ops                       prints the operators that are declared, a line each
 *
 * A '/' in a name becomes '_' in a file name. See tests/interop. */
#include <stdio.h>
#include <string.h>

#include "cpu/pool.h"
#include "graph/graph.h"
#include "support/walk.h"
#include "graph/infer.h"
#include "graph/op.h"
#include "onnx/onnx.h"
#include "tools/npy.h"

enum { PATH_BYTES = 4096 };

static void make_path(char path[PATH_BYTES], const char *folder, const char *name) {
  size_t start = strlen(folder) + 1;
  (void)snprintf(path, PATH_BYTES, "%s/%s.npy", folder, name);
  for (size_t at = start; at < PATH_BYTES && path[at]; at++) {
    if (path[at] == '/') path[at] = '_';
  }
}

/** The input as the network declares it: floats are floats, but no integers are taken for floats.
 */
static lac_status read_input(const laci_value *value, const char *folder, laci_buf **buf,
                             lac_error *err) {
  char path[PATH_BYTES];
  make_path(path, folder, value->name);
  lac_status st = npy_read(path, buf, err);
  if (st || value->type.dtype == LAC_DTYPE_NONE) return st;
  if (laci_dtype_is_float(value->type.dtype) != ((*buf)->f != NULL)) {
    laci_buf_destroy(*buf);
    *buf = NULL;
    return laci_fail(err, LAC_BAD_FILE, "%s: the network wants %s", path,
                     lac_dtype_name(value->type.dtype));
  }
  (*buf)->dtype = value->type.dtype;
  return LAC_OK;
}

static lac_status run_model(const laci_graph *graph, const char *in_folder, const char *out_folder,
                            lac_error *err) {
  laci_pool *pool = NULL;
  laci_stepper *run = NULL;
  lac_status st = laci_pool_create(0, &pool, err);
  if (!st) st = walk_open(graph, pool, &run, err);
  for (int at = 0; at < graph->n_inputs && !st; at++) {
    laci_buf *buf = NULL;
    st = read_input(&graph->values[graph->inputs[at]], in_folder, &buf, err);
    if (!st) laci_stepper_set_value(run, graph->inputs[at], buf);
  }
  if (!st) st = walk_all(run, graph, err);
  for (int at = 0; at < graph->n_outputs && !st; at++) {
    char path[PATH_BYTES];
    const laci_buf *buf = laci_stepper_value(run, graph->outputs[at]);
    make_path(path, out_folder, graph->values[graph->outputs[at]].name);
    st = buf ? npy_write(path, buf, err) : laci_fail(err, LAC_INTERNAL, "%s: not computed", path);
  }
  laci_stepper_destroy(run);
  laci_pool_destroy(pool);
  return st;
}

static lac_status print_inferred(laci_graph *graph, lac_error *err) {
  char text[256];
  lac_status st = laci_graph_infer(graph, NULL, 0, err);
  for (int v = 0; v < graph->n_values && !st; v++) {
    const laci_value *value = &graph->values[v];
    (void)printf("%s %s %s\n", value->name, lac_dtype_name(value->type.dtype),
                 laci_shape_text(&value->type.shape, text, sizeof text));
  }
  return st;
}

static void print_ops(void) {
  int n;
  const laci_op *const *ops = laci_op_all(&n);
  for (int at = 0; at < n; at++) {
    (void)printf("%s%s%s\n", ops[at]->domain ? ops[at]->domain : "", ops[at]->domain ? "." : "",
                 ops[at]->name);
  }
}

int main(int argc, char **argv) {
  lac_error err = {0};
  laci_onnx *file = NULL;
  laci_graph *graph = NULL;
  bool infer = argc == 3 && strcmp(argv[1], "--infer") == 0;
  if (argc == 2 && strcmp(argv[1], "--ops") == 0) {
    print_ops();
    return 0;
  }
  if (argc != 4 && !infer) {
    (void)fprintf(stderr,
                  "usage: plain_main MODEL.onnx IN_DIR OUT_DIR | --infer MODEL.onnx | --ops\n");
    return 2;
  }
  lac_status st = laci_onnx_load(argv[infer ? 2 : 1], &file, &graph, &err);
  if (!st) st = laci_onnx_materialise(file, &err);
  if (!st) st = infer ? print_inferred(graph, &err) : run_model(graph, argv[2], argv[3], &err);
  if (st) (void)fprintf(stderr, "%s\n", err.text);
  laci_graph_destroy(graph);
  laci_onnx_destroy(file);
  return st ? 1 : 0;
}
