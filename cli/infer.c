/* SPDX-License-Identifier: Apache-2.0
 * `lacuna infer`: runs a network on arrays from .npy files and writes its outputs as .npy files. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "input.h"
#include "lacuna/infer.h"
#include "outputs.h"
#include "log.h"
#include "table.h"
#include "run_options.h"
#include "verbs.h"

/* The parsed values of the command line. */
typedef struct request {
  laci_arena arena;
  lac_infer_input *inputs;
  lac_engine_shape *shapes;
  lac_infer_options options;
} request;

/* Parses "NAME=FILE.npy" into the request. */
static lac_status parse_input(request *r, const char *text, lac_infer_input *input,
                              lac_error *err) {
  const char *equals = strchr(text, '=');
  if (!equals || equals == text || !equals[1]) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "--input %s: wanted NAME=FILE.npy", text);
  }
  input->name = laci_arena_text_n(&r->arena, text, (size_t)(equals - text));
  input->path = equals + 1;
  return input->name ? LAC_OK : laci_fail_memory(err, "the command line");
}

static lac_status parse_inputs_and_outputs(const arguments *args, request *r, lac_error *err) {
  const text_list *inputs = &args->input, *shapes = &args->input_shape;
  lac_status st = LAC_OK;
  if (!args->output) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "-o DIR is missing: where the outputs go");
  }
  if (strcmp(args->output, "-") == 0) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "--output -: this goes to a folder only");
  }
  r->inputs = laci_arena_alloc(&r->arena, (size_t)inputs->n, sizeof *r->inputs);
  r->shapes = laci_arena_alloc(&r->arena, (size_t)shapes->n, sizeof *r->shapes);
  if (!r->inputs || !r->shapes) return laci_fail_memory(err, "the command line");
  for (int at = 0; at < inputs->n && !st; at++) {
    st = parse_input(r, inputs->items[at], &r->inputs[at], err);
  }
  for (int at = 0; at < shapes->n && !st; at++) {
    st = input_parse_shape(shapes->items[at], &r->arena, &r->shapes[at], err);
  }
  r->options = lac_infer_options_default();
  r->options.run = run_options_from_arguments(args);
  r->options.shapes = r->shapes;
  r->options.n_shapes = shapes->n;
  r->options.force = args->force;
  r->options.f32 = args->f32;
  return st;
}

static lac_status print_outputs(const lac_infer_result *result, lac_error *err) {
  text_table table = {0};
  table_begin(&table, "~output|type|shape|~file");
  for (int at = 0; at < result->n_outputs; at++) {
    const lac_infer_output *output = &result->outputs[at];
    table_add_cell(&table, "%s", output->name);
    table_add_cell(&table, "%s", lac_dtype_name(output->dtype));
    if (output->rank > 0) table_add_shape_cell(&table, output->rank, output->shape);
    else table_add_cell(&table, "scalar");
    table_add_cell(&table, "%s", output->path);
  }
  lac_status st = table_print(&table, stdout, err);
  table_clear(&table);
  return st;
}

/* Returns the name in the Python package ml_dtypes of a type that NumPy does not have; NULL: NumPy
 * has it. */
static const char *ml_dtypes_name(lac_dtype dtype) {
  switch (dtype) {
    case LAC_DTYPE_BF16: return "bfloat16";
    case LAC_DTYPE_F8E4M3FN: return "float8_e4m3fn";
    case LAC_DTYPE_F8E4M3FNUZ: return "float8_e4m3fnuz";
    case LAC_DTYPE_F8E5M2: return "float8_e5m2";
    case LAC_DTYPE_F8E5M2FNUZ: return "float8_e5m2fnuz";
    case LAC_DTYPE_F8E8M0: return "float8_e8m0fnu";
    case LAC_DTYPE_F4E2M1: return "float4_e2m1fn";
    case LAC_DTYPE_I4: return "int4";
    case LAC_DTYPE_U4: return "uint4";
    case LAC_DTYPE_I2: return "int2";
    case LAC_DTYPE_U2: return "uint2";
    default: return NULL;
  }
}

/* Logs how to read outputs of types that NumPy does not have: the reader must name the type. */
static void log_types_unknown_to_numpy(const lac_infer_result *result) {
  for (int at = 0; at < result->n_outputs; at++) {
    const lac_infer_output *output = &result->outputs[at];
    const char *type = ml_dtypes_name(output->dtype);
    if (!type) continue;
    log_line("%s holds %s: numpy.load(...).view(ml_dtypes.%s) reads it, --f32 writes f32",
             output->path, lac_dtype_name(output->dtype), type);
  }
}

static void log_speed(const lac_infer_result *result) {
  log_line("ran in %.3f s", result->seconds);
  if (result->seconds > 0)
    log_images_per_second((double)result->batch / result->seconds, result->n_sparse);
}

exit_code verb_infer(const arguments *args, lac_error *err) {
  lac_model *model = NULL;
  lac_infer_result *result = NULL;
  request r = {0};
  outputs plan = {0}; /* names no files: the library chooses and writes them */
  lac_status st = parse_inputs_and_outputs(args, &r, err);
  if (!st) st = input_load_model(args, args->operand, &model, err);
  if (!st) {
    outputs_begin_file_set(&plan);
    st = lac_infer(model, r.inputs, args->input.n, args->output, &r.options, &result, err);
  }
  if (!st) log_types_unknown_to_numpy(result);
  if (!st) st = print_outputs(result, err);
  st = outputs_rename_or_remove(&plan, st, err);
  if (!st) log_speed(result);
  lac_infer_result_destroy(result);
  lac_model_destroy(model);
  laci_arena_clear(&r.arena);
  return exit_code_of_status(st);
}
