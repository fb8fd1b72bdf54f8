/* SPDX-License-Identifier: Apache-2.0
 * The files of lac_infer: arrays are read in the types that the network declares, and outputs are
 * written under temporary names, which are renamed when all are complete. Next: data/npy.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "api/run/infer_in.h"
#include "base/error.h"
#include "base/file.h"
#include "base/file_set.h"
#include "base/log.h"
#include "base/writer.h"
#include "data/npy.h"
#include "engine/stepper.h"
#include "lacuna/array.h"
#include "lacuna/model.h"
#include "tensor/buf.h"
#include "tensor/narrow.h"

/* ---- Inputs ---- */

/* Returns the index of the network's input of this name; -1: there is none. */
int laci_inference_find_input(const laci_inference *run, const char *name) {
  for (int at = 0; at < run->graph->n_inputs; at++) {
    if (strcmp(laci_inference_input(run, at)->name, name) == 0) return at;
  }
  return -1;
}

/* Changes the array's shape to the one in the options, if there is one. */
static lac_status apply_given_shape(const laci_inference *run, const char *name, const char *path,
                                    laci_shape *shape, lac_error *err) {
  const lac_infer_options *options = run->options;
  for (int at = 0; at < options->n_shapes; at++) {
    const lac_engine_shape *given = &options->shapes[at];
    if (strcmp(given->name, name) != 0) continue;
    laci_shape wanted = laci_shape_of(given->rank, given->shape);
    for (int axis = 0; axis < wanted.rank; axis++) {
      bool keep = wanted.dims[axis] < 0 && wanted.rank == shape->rank;
      if (keep) wanted.dims[axis] = shape->dims[axis];
    }
    if (laci_shape_count(&wanted) != laci_shape_count(shape)) {
      char have[256], want[256];
      return laci_fail(err, LAC_BAD_SHAPE, "%s: input '%s' is %s, which cannot be taken as %s",
                       path, name, laci_shape_text(shape, have, sizeof have),
                       laci_shape_text(&wanted, want, sizeof want));
    }
    *shape = wanted;
  }
  return LAC_OK;
}

/* Checks the sizes that the network fixes; the engines check symbolic sizes. */
static lac_status check_fixed_sizes(const laci_value *value, const char *path,
                                    const laci_shape *found, lac_error *err) {
  const laci_shape *wanted = &value->type.shape;
  bool fits = wanted->rank < 0 || wanted->rank == found->rank;
  for (int axis = 0; fits && axis < wanted->rank; axis++) {
    fits = wanted->dims[axis] < 0 || wanted->dims[axis] == found->dims[axis];
  }
  if (fits) return LAC_OK;
  char have[256], want[256];
  return laci_fail(err, LAC_BAD_SHAPE, "%s: input '%s' is %s, wanted %s", path, value->name,
                   laci_shape_text(found, have, sizeof have),
                   laci_shape_text(wanted, want, sizeof want));
}

/* Converts element k to the type of `to`; false: the type cannot represent it. A float is rounded
 * to the nearest value, as in casts of arrays, unless it would become infinite. */
static bool convert_element(const laci_buf *from, laci_buf *to, int64_t k) {
  if (to->f) to->f[k] = laci_float_round_finite(to->dtype, laci_buf_get_f(from, k));
  else
    to->i[k] = from->f ? laci_int_truncate(to->dtype, from->f[k])
                       : laci_int_from_wide(to->dtype, laci_int_to_wide(from->dtype, from->i[k]));
  const double held = laci_buf_get_f(to, k);
  if (from->f && to->f && isfinite(from->f[k])) return isfinite(held);
  if (from->f) return held == from->f[k] || (isnan(from->f[k]) && isnan(held));
  const laci_wide whole = laci_int_to_wide(from->dtype, from->i[k]);
  if (to->i) return laci_int_to_wide(to->dtype, to->i[k]) == whole;
  const lac_dtype widest = held < 0 ? LAC_DTYPE_I64 : LAC_DTYPE_U64;
  return held < 0x1p64 && laci_int_to_wide(widest, laci_int_truncate(widest, held)) == whole;
}

/* Converts *buf to the type that the network declares, if that can represent every element. */
static lac_status convert_to_declared_type(const laci_value *value, const char *path,
                                           laci_buf **buf, lac_error *err) {
  lac_dtype dtype = value->type.dtype == LAC_DTYPE_NONE ? LAC_DTYPE_F32 : value->type.dtype;
  laci_buf *from = *buf, *to = NULL;
  if (from->dtype == dtype) return LAC_OK;
  lac_status st = laci_buf_create(dtype, &from->shape, &to, err);
  if (st) return laci_fail_with_prefix(err, st, "input '%s'", value->name);
  bool rounded = false;
  for (int64_t k = 0; k < from->count; k++) {
    if (convert_element(from, to, k)) {
      rounded |= from->f && to->f && isfinite(from->f[k]) && to->f[k] != from->f[k];
      continue;
    }
    st = laci_fail(err, LAC_BAD_VALUE,
                   "%s: found %s, and element %lld is %.17g, but input '%s' is %s, which does not "
                   "hold that: wanted an array of %s",
                   path, lac_dtype_name(from->dtype), (long long)k, laci_buf_get_f(from, k),
                   value->name, lac_dtype_name(dtype), lac_dtype_name(dtype));
    laci_buf_destroy(to);
    return st;
  }
  laci_log(LAC_LOG_INFO, "%s: %s as %s for input '%s', %s", path, lac_dtype_name(from->dtype),
           lac_dtype_name(dtype), value->name,
           rounded ? "rounded" : "which holds all its elements exactly");
  laci_buf_destroy(from);
  *buf = to;
  return LAC_OK;
}

/* Checks, before the file is read, that its bytes and its array may be in memory together. */
static lac_status check_file_fits(const laci_inference *run, const laci_value *value,
                                  const char *path, lac_error *err) {
  laci_budget budget = run->budget;
  struct stat found;
  if (stat(path, &found)) return LAC_OK; /* reading it fails with the cause */
  laci_budget_add(&budget, 2 * (uint64_t)found.st_size, "%.100s, input '%.100s'", path,
                  value->name);
  return laci_budget_check(&budget, "reading the inputs", err);
}

static lac_status read_input_file(laci_inference *run, int place, const char *path,
                                  lac_error *err) {
  const laci_value *value = laci_inference_input(run, place);
  laci_npy array = {0};
  lac_status st = check_file_fits(run, value, path, err);
  if (!st) st = laci_npy_read_as(path, value->type.dtype, &array, err);
  if (!st) st = apply_given_shape(run, value->name, path, &array.type.shape, err);
  if (!st) st = check_fixed_sizes(value, path, &array.type.shape, err);
  if (!st) {
    laci_budget both = run->budget; /* budget with the array twice: as read, and converted to the
                                       network's type */
    int64_t count = laci_shape_count(&array.type.shape);
    laci_budget_add(&run->budget, laci_count_bytes_saturated(count, sizeof(double)),
                    "input '%.200s'", value->name);
    laci_budget_add(&both, laci_count_bytes_saturated(count, 2 * sizeof(double)), "input '%.200s'",
                    value->name);
    st = laci_budget_check(&both, "reading the inputs", err);
  }
  if (!st) {
    st = laci_buf_from_bytes(&array.type, array.bytes, array.size_bytes, &run->inputs[place], err);
  }
  laci_npy_clear(&array);
  return st ? st : convert_to_declared_type(value, path, &run->inputs[place], err);
}

lac_status laci_inference_read_inputs(laci_inference *run, const lac_infer_input *inputs,
                                      int n_inputs, lac_error *err) {
  for (int at = 0; at < n_inputs; at++) {
    int place = laci_inference_find_input(run, inputs[at].name);
    struct stat found;
    if (place < 0) { return laci_graph_fail_unknown_input(run->graph, inputs[at].name, err); }
    if (run->inputs[place]) {
      return laci_fail(err, LAC_BAD_ARGUMENT, "input '%s' is given twice", inputs[at].name);
    }
    lac_status st = read_input_file(run, place, inputs[at].path, err);
    if (st) return st;
    if (stat(inputs[at].path, &found) == 0) {
      run->keep[run->n_keep++] =
          (laci_file_id){.device = (uint64_t)found.st_dev, .inode = (uint64_t)found.st_ino};
    }
  }
  for (int at = 0; at < run->graph->n_inputs; at++) {
    if (run->inputs[at]) continue;
    const laci_value *value = laci_inference_input(run, at);
    char shape[256];
    return laci_hint(
        err, LAC_HINT_INPUT_ARRAY,
        laci_fail(err, LAC_NOT_FOUND, "no array for input '%s' is given: wanted %s of shape %s",
                  value->name, lac_dtype_name(value->type.dtype),
                  laci_shape_text(&value->type.shape, shape, sizeof shape)));
  }
  return LAC_OK;
}

/* ---- Outputs ---- */

/* Returns FOLDER/NAME.npy, with special characters of NAME replaced. */
static char *make_output_path(laci_arena *arena, const char *folder, const char *name) {
  static const char harmless[] =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
  size_t n_folder = strlen(folder), n = strlen(name);
  const char *slash = n_folder && folder[n_folder - 1] == '/' ? "" : "/";
  size_t capacity = n_folder + n + sizeof "/_.npy";
  char *path = laci_arena_alloc(arena, capacity, 1);
  if (!path) return NULL;
  int at = snprintf(path, capacity, "%s%s", folder, slash);
  char *stem = path + at;
  (void)snprintf(stem, capacity - (size_t)at, "%s.npy", n ? name : "_");
  for (size_t k = 0; k < n; k++) {
    if (!strchr(harmless, stem[k]) || (k == 0 && stem[k] == '.')) stem[k] = '_';
  }
  return path;
}

lac_status laci_inference_choose_output_paths(laci_inference *run, const char *folder,
                                              lac_error *err) {
  laci_infer_result *result = run->result;
  int n = run->graph->n_outputs;
  result->outputs = laci_arena_alloc(&result->arena, (size_t)n, sizeof *result->outputs);
  if (!result->outputs) return laci_fail_memory(err, "the outputs");
  for (int at = 0; at < n; at++) {
    lac_infer_output *output = &result->outputs[at];
    output->name = laci_arena_text(&result->arena, laci_inference_output(run, at)->name);
    output->path = output->name ? make_output_path(&result->arena, folder, output->name) : NULL;
    if (!output->path) return laci_fail_memory(err, "the outputs");
    for (int other = 0; other < at; other++) {
      if (strcmp(result->outputs[other].path, output->path) != 0) continue;
      return laci_fail(err, LAC_EXISTS, "outputs '%s' and '%s' would both be written to %s",
                       result->outputs[other].name, output->name, output->path);
    }
  }
  result->pub.outputs = result->outputs;
  result->pub.n_outputs = n;
  return LAC_OK;
}

/* Is path the file of an input or of the model, under any name? */
static bool is_file_of_input_or_model(const laci_inference *run, const lac_model *model,
                                      const char *path) {
  struct stat found;
  if (lac_model_reads(model, path)) return true;
  if (stat(path, &found) != 0) return false;
  for (size_t at = 0; at < run->n_keep; at++) {
    const laci_file_id *id = &run->keep[at];
    if (id->device == (uint64_t)found.st_dev && id->inode == (uint64_t)found.st_ino) return true;
  }
  return false;
}

lac_status laci_inference_open_outputs(laci_inference *run, const lac_model *model,
                                       const char *folder, lac_error *err) {
  laci_write_options options = {.force = run->options->force};
  lac_status st = laci_file_set_make_folder(folder, err);
  for (int at = 0; at < run->graph->n_outputs && !st; at++) {
    const char *path = run->result->outputs[at].path;
    if (is_file_of_input_or_model(run, model, path)) {
      return laci_fail(err, LAC_EXISTS, "%s: it is an input, which is never replaced", path);
    }
    st = laci_writer_open(path, &options, &run->writers[at], err);
  }
  return st;
}

/* Returns the type in the file, which is the one that the network declares. */
static lac_dtype find_dtype_in_file(const laci_inference *run, const laci_value *value,
                                    const laci_buf *buf) {
  lac_dtype declared = value->type.dtype == LAC_DTYPE_NONE ? buf->dtype : value->type.dtype;
  if (buf->i) return laci_dtype_is_integer(declared) ? declared : LAC_DTYPE_I64;
  return laci_dtype_is_float(declared) && !run->options->f32 ? declared : LAC_DTYPE_F32;
}

static lac_status append_values(laci_writer *writer, lac_dtype dtype, const laci_buf *buf,
                                lac_error *err) {
  enum { STEP = 1024 };
  uint8_t bytes[STEP * sizeof(int64_t)];
  size_t size = lac_dtype_size(dtype);
  lac_status st = LAC_OK;
  for (int64_t first = 0; first < buf->count && !st; first += STEP) {
    int64_t n = buf->count - first < STEP ? buf->count - first : STEP;
    if (buf->f) laci_write_f64(dtype, buf->f + first, n, bytes);
    else laci_write_i64(dtype, buf->i + first, n, bytes);
    st = laci_writer_append(writer, bytes, (size_t)n * size, err);
  }
  return st;
}

/* Writes an output of the stepper, which ran the network node by node. */
static lac_status append_stepper_output(laci_inference *run, int at, laci_type *type,
                                        lac_error *err) {
  const laci_value *value = laci_inference_output(run, at);
  const laci_buf *buf = laci_stepper_value(run->walk, run->graph->outputs[at]);
  if (!buf) {
    return laci_fail(err, LAC_UNSUPPORTED, "output '%s' could not be computed", value->name);
  }
  *type = (laci_type){find_dtype_in_file(run, value, buf), buf->shape};
  lac_status st = laci_npy_append_header(run->writers[at], type, err);
  return st ? st : append_values(run->writers[at], type->dtype, buf, err);
}

/* Writes an output of the session, which has the type of the file. */
static lac_status append_session_output(laci_inference *run, int at, laci_type *type,
                                        lac_error *err) {
  const lac_array *array = &run->outputs[at];
  *type = (laci_type){array->dtype, laci_shape_of(array->rank, array->shape)};
  lac_status st = laci_npy_append_header(run->writers[at], type, err);
  return st ? st : laci_writer_append(run->writers[at], array->data, array->size_bytes, err);
}

static lac_status write_output(laci_inference *run, int at, lac_error *err) {
  lac_infer_output *output = &run->result->outputs[at];
  laci_type type;
  lac_status st = run->walk ? append_stepper_output(run, at, &type, err)
                            : append_session_output(run, at, &type, err);
  if (st) return st;
  output->dtype = type.dtype;
  output->rank = type.shape.rank;
  memcpy(output->shape, type.shape.dims, sizeof output->shape);
  return laci_writer_finish(run->writers[at], err);
}

lac_status laci_inference_write_outputs(laci_inference *run, lac_error *err) {
  int n = run->graph->n_outputs;
  lac_status st = LAC_OK;
  for (int at = 0; at < n && !st; at++) st = write_output(run, at, err);
  for (int at = 0; at < n && !st; at++) st = laci_writer_commit(run->writers[at], err);
  return st;
}

void laci_inference_close_files(laci_inference *run) {
  for (int at = 0; run->writers && at < run->graph->n_outputs; at++) {
    laci_writer_destroy(run->writers[at]);
  }
}
