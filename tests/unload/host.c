/* SPDX-License-Identifier: Apache-2.0
 * A library of somebody else that holds Lacuna, shared or static: what a plug-in of a larger
 * program is. Next: main.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lacuna/engine.h"
#include "lacuna/model.h"
#include "lacuna/session.h"

__attribute__((visibility("default"))) int host_run(const char *path, void **code);

static int run(lac_engine *engine, lac_error *err) {
  const lac_engine_port *in, *out;
  if (lac_engine_inputs(engine, &in) != 1 || lac_engine_outputs(engine, &out) != 1) return 1;
  void *x = calloc(1, in->size_bytes), *y = calloc(1, out->size_bytes);
  lac_status st =
      x && y ? lac_engine_run(engine, (const void *[]){x}, (void *[]){y}, err) : LAC_NO_MEMORY;
  free(x);
  free(y);
  return st;
}

/* A run by a session, whose handlers of fork go with the library. */
static int run_session(const lac_model *model, lac_error *err) {
  static float values[2 * 64];
  lac_session_options options = lac_session_options_default();
  lac_session *session = NULL;
  const lac_array x = {.dtype = LAC_DTYPE_F32,
                       .rank = 4,
                       .shape = {2, 1, 8, 8},
                       .data = values,
                       .size_bytes = sizeof values};
  lac_array y = {0};
  options.run.threads = 2;
  int st = lac_session_create(model, &options, &session, err);
  if (!st) st = lac_session_run(session, &x, 1, &y, 1, err);
  lac_session_release(&y, 1);
  lac_session_destroy(session);
  return st;
}

/* A run with two threads; 0: it went well. *code: an address in Lacuna's code. */
int host_run(const char *path, void **code) {
  lac_error err = {0};
  lac_model *model = NULL;
  lac_engine *engine = NULL;
  lac_status (*const runs)(lac_engine *, const void *const *, void *const *, lac_error *) =
      lac_engine_run;
  memcpy(code, &runs, sizeof *code);
  const lac_engine_shape shape = {"image", 4, {4, 1, 8, 8}};
  lac_engine_options options = lac_engine_options_default();
  options.run.threads = 2;
  options.shapes = &shape;
  options.n_shapes = 1;
  int st = lac_model_load(path, NULL, &model, &err);
  if (!st) st = lac_engine_create(model, &options, &engine, &err);
  if (!st) st = run(engine, &err);
  if (!st) st = run_session(model, &err);
  if (st) (void)fprintf(stderr, "%s\n", err.text);
  lac_engine_destroy(engine);
  lac_model_destroy(model);
  return st;
}
