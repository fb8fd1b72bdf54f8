/* SPDX-License-Identifier: Apache-2.0
 * Runs many models by lac_infer on an engine (plain where none is named), so that a test of
 * thousands starts one process.
 *
 *     infer_main [ENGINE] < LIST   a line: MODEL.onnx OUT_DIR [INPUT=FILE.npy ...], tabs between
 *
 * Prints a line for each: "ok", or the status and the error's text, a tab between. Always ends with
 * 0: what a failure means is the caller's business (tests/interop/test_node_cases.py). */
#include <stdio.h>
#include <string.h>

#include "lacuna/infer.h"
#include "lacuna/model.h"

enum { LINE_BYTES = 1 << 16, MAX_INPUTS = 64 };

/** The text up to the next tab or the end; *rest moves past it, NULL at the end. */
static char *next_field(char **rest) {
  char *field = *rest, *tab = field + strcspn(field, "\t\n");
  *rest = *tab == '\t' ? tab + 1 : NULL;
  *tab = '\0';
  return field;
}

static lac_status run(char *line, const char *engine, lac_error *err) {
  lac_infer_input inputs[MAX_INPUTS];
  int n_inputs = 0;
  char *rest = line;
  const char *path = next_field(&rest), *folder = rest ? next_field(&rest) : "";
  while (rest && n_inputs < MAX_INPUTS) {
    char *name = next_field(&rest), *equals = strrchr(name, '=');
    if (!equals) return LAC_BAD_ARGUMENT;
    *equals = '\0';
    inputs[n_inputs++] = (lac_infer_input){.name = name, .path = equals + 1};
  }
  lac_model *model = NULL;
  lac_infer_options options = lac_infer_options_default();
  options.run.engine = engine;
  options.run.threads = 1;
  lac_status st = lac_model_load(path, NULL, &model, err);
  if (!st) st = lac_infer(model, inputs, n_inputs, folder, &options, NULL, err);
  lac_model_destroy(model);
  return st;
}

int main(int argc, char **argv) {
  static char line[LINE_BYTES];
  while (fgets(line, sizeof line, stdin)) {
    lac_error err = {0};
    lac_status st = run(line, argc > 1 ? argv[1] : "plain", &err);
    if (st) (void)printf("%s\t%s\n", lac_status_text(st), err.text);
    else (void)printf("ok\n");
  }
  return 0;
}
