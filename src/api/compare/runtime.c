/* SPDX-License-Identifier: Apache-2.0
 * Runs a network in ONNX Runtime, which is loaded at run time. Functions of its C API are called by
 * their places in a table, which never change.
 *
 * Values become outputs of the network by bytes that are added after its file: a graph that has
 * outputs and nothing else. Decoders of protobuf merge such parts of a message. The outputs' types
 * are left out; ONNX Runtime infers them. */
#include "api/compare/runtime.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/reader.h"
#include "base/varint.h"
#include "tensor/buf.h"

typedef struct ort_status ort_status;
typedef struct ort_object ort_object; /* an object of ONNX Runtime, of any type */
typedef void (*any_function)(void);

/* The functions of API 14, which ONNX Runtime 1.14 brought. */
enum { API = 14, PLACES = 131, LONGEST_PATH = 4096, DEFAULT_ALLOCATOR = 0, DEFAULT_MEMORY = 0 };
enum { LOG_ERRORS = 3 };

typedef struct ort_base {
  const any_function *(*get_api)(uint32_t version);
  const char *(*get_version)(void);
} ort_base;

/* LAC_RUNTIME_CALL(place, name, arguments): functions that return a status, NULL on success. */
#define LAC_RUNTIME_CALLS                                                                          \
  LAC_RUNTIME_CALL(3, create_env, (int level, const char *name, ort_object **env))                 \
  LAC_RUNTIME_CALL(8, create_session,                                                              \
                   (const ort_object *env, const void *bytes, size_t n, const ort_object *options, \
                    ort_object **session))                                                         \
  LAC_RUNTIME_CALL(9, run,                                                                         \
                   (ort_object * session, const ort_object *options, const char *const *inputs,    \
                    const ort_object *const *arrays, size_t n_inputs, const char *const *outputs,  \
                    size_t n_outputs, ort_object **values))                                        \
  LAC_RUNTIME_CALL(10, create_options, (ort_object * *options))                                    \
  LAC_RUNTIME_CALL(49, create_tensor,                                                              \
                   (const ort_object *memory, void *data, size_t n_bytes, const int64_t *shape,    \
                    size_t rank, int type, ort_object **value))                                    \
  LAC_RUNTIME_CALL(50, is_tensor, (const ort_object *value, int *is))                              \
  LAC_RUNTIME_CALL(51, tensor_data, (ort_object * value, void **data))                             \
  LAC_RUNTIME_CALL(60, element_type, (const ort_object *shape, int *type))                         \
  LAC_RUNTIME_CALL(61, rank, (const ort_object *shape, size_t *rank))                              \
  LAC_RUNTIME_CALL(62, sizes, (const ort_object *shape, int64_t *sizes, size_t n))                 \
  LAC_RUNTIME_CALL(65, tensor_shape, (const ort_object *value, ort_object **shape))                \
  LAC_RUNTIME_CALL(69, create_memory, (int allocator, int kind, ort_object **memory))              \
  LAC_RUNTIME_CALL(130, add_entry, (ort_object * options, const char *key, const char *value))

typedef struct runtime {
#define LAC_RUNTIME_CALL(place, name, arguments) ort_status *(*name)arguments;
  LAC_RUNTIME_CALLS
#undef LAC_RUNTIME_CALL
  const char *(*error_text)(const ort_status *status);
  void (*release_status)(ort_status *status);
  const any_function *table;
  ort_object *env, *options, *session, *memory;
} runtime;

static lac_status fail_with_runtime_error(const runtime *r, ort_status *status, const char *what,
                                          lac_error *err) {
  if (!status) return LAC_OK;
  lac_status st =
      laci_fail(err, LAC_UNSUPPORTED, "%s: ONNX Runtime says: %s", what, r->error_text(status));
  r->release_status(status);
  return st;
}

/* ---- The library ---- */

static lac_status open_library(const char *path, const ort_base *(**get)(void), lac_error *err) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *why = dlerror();
    return laci_fail(err, LAC_NOT_FOUND,
                     "%s: no library that can be opened (%s): wanted libonnxruntime.so, which "
                     "pip's onnxruntime has in its folder capi",
                     path, why ? why : "the loader does not say why");
  }
  void *found = dlsym(library, "OrtGetApiBase");
  if (!found) {
    return laci_fail(err, LAC_BAD_FILE,
                     "%s: not ONNX Runtime: it exports no OrtGetApiBase: wanted libonnxruntime.so, "
                     "which pip's onnxruntime has in its folder capi",
                     path);
  }
  memcpy(get, &found, sizeof *get);
  return LAC_OK;
}

static lac_status open_runtime(const laci_runtime_job *job, runtime *r, char *version,
                               lac_error *err) {
  const ort_base *(*get)(void) = NULL;
  lac_status st = open_library(job->library, &get, err);
  if (st) return st;
  const ort_base *base = get();
  r->table = base->get_api(API);
  (void)snprintf(version, 32, "ONNX Runtime %.18s", base->get_version());
  if (!r->table) {
    return laci_fail(err, LAC_UNSUPPORTED, "%s: %s: wanted 1.14 or later", job->library, version);
  }
#define LAC_RUNTIME_CALL(place, name, arguments) memcpy(&r->name, &r->table[place], sizeof r->name);
  LAC_RUNTIME_CALLS
#undef LAC_RUNTIME_CALL
  memcpy(&r->error_text, &r->table[2], sizeof r->error_text);
  memcpy(&r->release_status, &r->table[93], sizeof r->release_status);
  return LAC_OK;
}

static void release_runtime_object(const runtime *r, int place, ort_object *object) {
  void (*call)(ort_object *) = NULL;
  memcpy(&call, &r->table[place], sizeof call);
  if (object) call(object);
}

enum { RELEASE_ENV = 92, RELEASE_MEMORY = 94, RELEASE_SESSION = 95, RELEASE_VALUE = 96 };
enum { RELEASE_SHAPE = 99, RELEASE_OPTIONS = 100 };

/* ---- The network with more outputs ---- */

/* Returns the number of bytes of ValueInfoProto{name = text}, with its length before it. */
static size_t count_bytes_of_output_entry(const char *text) {
  const size_t n = strlen(text), inside = 1 + laci_varint_size(n) + n;
  return 1 + laci_varint_size(inside) + inside;
}

static lac_status add_outputs(const laci_runtime_job *job, const laci_file_bytes *file,
                              uint8_t **bytes, size_t *n_bytes, lac_error *err) {
  enum { GRAPH_OF_MODEL = 7 << 3 | 2, OUTPUT_OF_GRAPH = 12 << 3 | 2, NAME_OF_VALUE = 1 << 3 | 2 };
  size_t inside = 0;
  for (int k = 0; k < job->n_added; k++) inside += count_bytes_of_output_entry(job->added[k]);
  *n_bytes = file->size_bytes + (inside ? 1 + laci_varint_size(inside) + inside : 0);
  *bytes = laci_alloc(*n_bytes, 1);
  if (!*bytes) return laci_fail_memory(err, job->model);
  memcpy(*bytes, file->bytes, file->size_bytes);
  if (!inside) return LAC_OK;
  uint8_t *at = *bytes + file->size_bytes;
  *at++ = GRAPH_OF_MODEL;
  at = laci_varint_write(at, inside);
  for (int k = 0; k < job->n_added; k++) {
    const size_t n = strlen(job->added[k]);
    *at++ = OUTPUT_OF_GRAPH;
    at = laci_varint_write(at, 1 + laci_varint_size(n) + n);
    *at++ = NAME_OF_VALUE;
    at = laci_varint_write(at, n);
    memcpy(at, job->added[k], n);
    at += n;
  }
  return LAC_OK;
}

/** Tells ONNX Runtime the folder of the network's data files: that of its file. */
static lac_status set_folder(const laci_runtime_job *job, const runtime *r, lac_error *err) {
  char folder[LONGEST_PATH];
  const char *slash = strrchr(job->model, '/');
  const int n = slash ? (int)(slash - job->model) : 1;
  (void)snprintf(folder, sizeof folder, "%.*s", n ? n : 1, slash ? job->model : ".");
  return fail_with_runtime_error(
      r, r->add_entry(r->options, "session.model_external_initializers_file_folder_path", folder),
      job->model, err);
}

static lac_status open_session(const laci_runtime_job *job, runtime *r, lac_error *err) {
  laci_file_bytes file = {0};
  uint8_t *bytes = NULL;
  size_t n_bytes = 0;
  lac_status st = laci_file_bytes_read(job->model, &file, err);
  if (!st) st = add_outputs(job, &file, &bytes, &n_bytes, err);
  if (!st)
    st =
        fail_with_runtime_error(r, r->create_env(LOG_ERRORS, "lacuna", &r->env), job->library, err);
  if (!st) st = fail_with_runtime_error(r, r->create_options(&r->options), job->library, err);
  if (!st) st = set_folder(job, r, err);
  if (!st) {
    st = fail_with_runtime_error(
        r, r->create_session(r->env, bytes, n_bytes, r->options, &r->session), job->model, err);
  }
  laci_free(bytes);
  laci_file_bytes_clear(&file);
  return st;
}

/* ---- Values in and out ---- */

static lac_status convert_array_to_bytes(const char *name, const laci_buf *buf, void **bytes,
                                         size_t *n, lac_error *err) {
  const size_t size = lac_dtype_size(buf->dtype);
  *n = (size_t)buf->count * size;
  *bytes = laci_alloc(*n + 1, 1);
  if (!*bytes) return laci_fail_memory(err, name);
  uint8_t *to = *bytes;
  for (int64_t k = 0; k < buf->count; k++, to += size) {
    const double f = buf->f ? buf->f[k] : 0;
    const float narrow = (float)f;
    if (buf->dtype == LAC_DTYPE_F64) memcpy(to, &f, sizeof f);
    else if (buf->dtype == LAC_DTYPE_F32) memcpy(to, &narrow, sizeof narrow);
    else if (buf->i && buf->dtype < LAC_DTYPE_C64) memcpy(to, &buf->i[k], size);
    else
      return laci_fail(err, LAC_UNSUPPORTED, "%s: ONNX Runtime takes no such type from here", name);
  }
  return LAC_OK;
}

static lac_status read_value_of_runtime(const runtime *r, const char *name, ort_object *value,
                                        laci_buf **buf, lac_error *err) {
  int is_tensor = 0, type = 0;
  size_t rank = 0;
  void *data = NULL;
  ort_object *shape = NULL;
  laci_type found = {LAC_DTYPE_NONE, {0, {0}}};
  lac_status st =
      value ? fail_with_runtime_error(r, r->is_tensor(value, &is_tensor), name, err) : LAC_OK;
  if (st || !is_tensor) return st;
  st = fail_with_runtime_error(r, r->tensor_shape(value, &shape), name, err);
  if (!st) st = fail_with_runtime_error(r, r->element_type(shape, &type), name, err);
  if (!st) st = fail_with_runtime_error(r, r->rank(shape, &rank), name, err);
  if (!st && rank > LACI_MAX_RANK) rank = 0, type = LAC_DTYPE_NONE;
  if (!st) st = fail_with_runtime_error(r, r->sizes(shape, found.shape.dims, rank), name, err);
  const bool is_number = type > LAC_DTYPE_NONE && type <= LAC_DTYPE_BF16 &&
                         type != LAC_DTYPE_TEXT && type != LAC_DTYPE_C64 && type != LAC_DTYPE_C128;
  if (!st && is_number) {
    found.dtype = (lac_dtype)type;
    found.shape.rank = (int)rank;
    st = fail_with_runtime_error(r, r->tensor_data(value, &data), name, err);
    const size_t n = (size_t)laci_shape_count(&found.shape) * sizeof(double);
    if (!st) st = laci_buf_from_bytes(&found, data ? data : &rank, n, buf, err);
  }
  release_runtime_object(r, RELEASE_SHAPE, shape);
  return st;
}

typedef struct run_memory {
  void **bytes;         /* [n_inputs] elements of each input */
  ort_object **inputs;  /* [n_inputs] ONNX Runtime's tensor of each input */
  ort_object **outputs; /* [n_values] ONNX Runtime's tensor of each value */
} run_memory;

static lac_status run_session(const laci_runtime_job *job, runtime *r, run_memory *m,
                              laci_buf **bufs, lac_error *err) {
  lac_status st = fail_with_runtime_error(
      r, r->create_memory(DEFAULT_ALLOCATOR, DEFAULT_MEMORY, &r->memory), job->library, err);
  for (int k = 0; k < job->n_inputs && !st; k++) {
    const laci_buf *buf = job->arrays[k];
    size_t n = 0;
    st = convert_array_to_bytes(job->inputs[k], buf, &m->bytes[k], &n, err);
    if (st) break;
    st = fail_with_runtime_error(
        r,
        r->create_tensor(r->memory, m->bytes[k], n, buf->shape.dims, (size_t)buf->shape.rank,
                         (int)buf->dtype, &m->inputs[k]),
        job->inputs[k], err);
  }
  if (!st) {
    st = fail_with_runtime_error(
        r,
        r->run(r->session, NULL, job->inputs, (const ort_object *const *)m->inputs,
               (size_t)job->n_inputs, job->values, (size_t)job->n_values, m->outputs),
        job->model, err);
  }
  for (int k = 0; k < job->n_values && !st; k++) {
    st = read_value_of_runtime(r, job->values[k], m->outputs[k], &bufs[k], err);
    release_runtime_object(r, RELEASE_VALUE, m->outputs[k]);
    m->outputs[k] = NULL;
  }
  return st;
}

lac_status laci_runtime_run(const laci_runtime_job *job, laci_buf **bufs, char *version,
                            lac_error *err) {
  runtime r = {0};
  run_memory m = {laci_alloc((size_t)job->n_inputs + 1, sizeof *m.bytes),
                  laci_alloc((size_t)job->n_inputs + 1, sizeof *m.inputs),
                  laci_alloc((size_t)job->n_values + 1, sizeof *m.outputs)};
  lac_status st = m.bytes && m.inputs && m.outputs ? LAC_OK : laci_fail_memory(err, job->model);
  if (!st) st = open_runtime(job, &r, version, err);
  if (!st) st = open_session(job, &r, err);
  if (!st) st = run_session(job, &r, &m, bufs, err);
  for (int k = 0; m.inputs && r.table && k < job->n_inputs; k++) {
    release_runtime_object(&r, RELEASE_VALUE, m.inputs[k]);
  }
  for (int k = 0; m.bytes && k < job->n_inputs; k++) laci_free(m.bytes[k]);
  for (int k = 0; m.outputs && r.table && k < job->n_values; k++) {
    release_runtime_object(&r, RELEASE_VALUE, m.outputs[k]);
  }
  if (r.table) {
    release_runtime_object(&r, RELEASE_MEMORY, r.memory);
    release_runtime_object(&r, RELEASE_SESSION, r.session);
    release_runtime_object(&r, RELEASE_OPTIONS, r.options);
    release_runtime_object(&r, RELEASE_ENV, r.env);
  }
  laci_free(m.bytes);
  laci_free(m.inputs);
  laci_free(m.outputs);
  return st;
}
