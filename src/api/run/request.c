/* SPDX-License-Identifier: Apache-2.0
 * Requests for engines: request.h. */
#include "api/model/model_in.h"
#include "api/run/request.h"

#include "api/run/infer.h"
#include "base/error.h"
#include "base/memory.h"
#include "graph/infer.h"
#include "onnx/onnx.h"

static lac_status convert_shapes(laci_request *request, const lac_engine_options *options,
                                 lac_error *err) {
  request->shapes = laci_alloc((size_t)options->n_shapes, sizeof *request->shapes);
  if (!request->shapes) return laci_fail_memory(err, "input shapes");
  for (int at = 0; at < options->n_shapes; at++) {
    const lac_engine_shape *from = &options->shapes[at];
    request->shapes[at] =
        (laci_input_shape){.name = from->name, .shape = laci_shape_of(from->rank, from->shape)};
  }
  return LAC_OK;
}

laci_engine_options laci_engine_options_of_run(const lac_run_options *run, lac_dtype dtype) {
  return (laci_engine_options){.engine = run->engine,
                               .threads = run->threads,
                               .bf16 = dtype == LAC_DTYPE_BF16,
                               .dense_only = run->dense_only,
                               .finite = run->careful ? LACI_FINITE_CAREFUL : LACI_FINITE_SURE};
}

lac_status laci_request_init(laci_request *request, const lac_model *model,
                             const lac_engine_options *options, lac_error *err) {
  int n_weights = 0;
  *request = (laci_request){0};
  lac_status st = laci_model_view_create(model, &request->view, err);
  if (!st) st = convert_shapes(request, options, err);
  if (!st)
    st = laci_model_list_unchanged_weights(request->view, &request->weights, &n_weights, err);
  if (st) return st;
  const char *name = laci_engine_name_or_default(options->run.engine);
  request->dtype = laci_dtype_find_supported_or_warn(name, options->run.dtype);
  request->options = laci_engine_options_of_run(&options->run, request->dtype);
  request->options.engine = name;
  request->options.shapes = request->shapes;
  request->options.n_shapes = options->n_shapes;
  request->options.weights = request->weights;
  request->options.n_weights = n_weights;
  request->options.fetch = model->file ? laci_onnx_copy_stored_bytes : NULL;
  request->options.fetch_context = model->file;
  return LAC_OK;
}

void laci_request_clear(laci_request *request) {
  laci_model_view_destroy(request->view);
  laci_free(request->shapes);
  laci_free(request->weights);
  *request = (laci_request){0};
}
