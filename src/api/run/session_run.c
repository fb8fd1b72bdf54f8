/* SPDX-License-Identifier: Apache-2.0
 * A run of a session. The caller's arrays are brought into the order of the network. The buffers of
 * an engine are f32 for all floats, and i64 for integers and booleans. Arrays in this format are
 * read and written in place; others are converted to and from buffers that the engine keeps. */
#include <string.h>

#include "api/model/arrays.h"
#include "api/model/structs.h"
#include "api/run/infer.h"
#include "api/run/session_in.h"
#include "base/error.h"
#include "base/memory.h"
#include "tensor/buf.h"

enum { FEW = 8 };

/* The arrays of a call in the order of the network. */
typedef struct call {
  const lac_array **inputs; /* [n_inputs] the caller's array for each input */
  laci_shape *shapes;       /* [n_inputs] shape of each input */
  lac_array **outputs;      /* [n_outputs] the caller's array for each output; NULL: the caller does
                               not want it */
  const lac_array *few_inputs[FEW];
  laci_shape few_shapes[FEW];
  lac_array *few_outputs[FEW];
} call;

/* ---- The arrays of a call ---- */

static lac_status call_init(call *c, const lac_session *s, lac_error *err) {
  c->inputs = c->few_inputs;
  c->shapes = c->few_shapes;
  c->outputs = c->few_outputs;
  if (s->n_inputs > FEW) {
    c->inputs = laci_alloc((size_t)s->n_inputs, sizeof *c->inputs);
    c->shapes = laci_alloc((size_t)s->n_inputs, sizeof *c->shapes);
  }
  if (s->n_outputs > FEW) c->outputs = laci_alloc((size_t)s->n_outputs, sizeof *c->outputs);
  if (!c->inputs || !c->shapes || !c->outputs) return laci_fail_memory(err, "a call");
  if (s->n_inputs) memset((void *)c->inputs, 0, (size_t)s->n_inputs * sizeof *c->inputs);
  if (s->n_outputs) memset((void *)c->outputs, 0, (size_t)s->n_outputs * sizeof *c->outputs);
  return LAC_OK;
}

static void call_clear(call *c) {
  if (c->inputs != c->few_inputs) laci_free((void *)c->inputs);
  if (c->shapes != c->few_shapes) laci_free(c->shapes);
  if (c->outputs != c->few_outputs) laci_free((void *)c->outputs);
}

/* Finds which of n declared arrays the caller's array number `index` is; -1: none. */
static int find_declared(const lac_array *declared, int n, const char *name, int index) {
  if (!name) return index < n ? index : -1;
  if (index < n && strcmp(declared[index].name, name) == 0) return index;
  for (int at = 0; at < n; at++) {
    if (strcmp(declared[at].name, name) == 0) return at;
  }
  return -1;
}

static lac_status fail_unknown_name(const char *kind, const char *name, int index, int n,
                                    lac_error *err) {
  if (name) return laci_fail(err, LAC_NOT_FOUND, "%s: no %s has this name", name, kind);
  return laci_fail(err, LAC_NOT_FOUND, "%s %d has no name, and the network has %d", kind, index, n);
}

static lac_status check_array_lists(const char *function, const lac_array *inputs, int n_inputs,
                                    const lac_array *outputs, int n_outputs, lac_error *err) {
  if (n_inputs < 0 || n_outputs < 0) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "%s: %s is %d, wanted 0 or more", function,
                     n_inputs < 0 ? "n_inputs" : "n_outputs", n_inputs < 0 ? n_inputs : n_outputs);
  }
  if ((inputs || !n_inputs) && (outputs || !n_outputs)) return LAC_OK;
  const bool in = !inputs && n_inputs;
  return laci_fail(err, LAC_BAD_ARGUMENT, "%s: %s is NULL, but n_%s is %d", function,
                   in ? "inputs" : "outputs", in ? "inputs" : "outputs", in ? n_inputs : n_outputs);
}

static lac_status find_inputs(const lac_session *s, const lac_array *inputs, int n, call *c,
                              lac_error *err) {
  for (int k = 0; k < n; k++) {
    const int at = find_declared(s->inputs, s->n_inputs, inputs[k].name, k);
    if (at < 0) return fail_unknown_name("input", inputs[k].name, k, s->n_inputs, err);
    if (c->inputs[at]) {
      return laci_fail(err, LAC_BAD_ARGUMENT, "%s: this input is given twice", s->inputs[at].name);
    }
    c->inputs[at] = &inputs[k];
  }
  for (int at = 0; at < s->n_inputs; at++) {
    if (c->inputs[at]) continue;
    return laci_fail(err, LAC_NOT_FOUND, "%s: this input is missing", s->inputs[at].name);
  }
  return LAC_OK;
}

static lac_status find_outputs(const lac_session *s, lac_array *outputs, int n, call *c,
                               lac_error *err) {
  for (int k = 0; k < n; k++) {
    const int at = find_declared(s->outputs, s->n_outputs, outputs[k].name, k);
    if (at < 0) return fail_unknown_name("output", outputs[k].name, k, s->n_outputs, err);
    if (c->outputs[at]) {
      return laci_fail(err, LAC_BAD_ARGUMENT, "%s: this output is wanted twice",
                       s->outputs[at].name);
    }
    c->outputs[at] = &outputs[k];
  }
  return LAC_OK;
}

/* ---- Checking arrays ---- */

/* May an array have this type, if the network declares `declared`? */
static lac_status check_dtype(const lac_array *declared, lac_dtype dtype, lac_error *err) {
  const lac_dtype plain = laci_dtype_is_integer(declared->dtype) ? LAC_DTYPE_I64 : LAC_DTYPE_F32;
  if (dtype == declared->dtype || dtype == plain) return LAC_OK;
  return laci_fail(err, LAC_BAD_ARGUMENT, "%s: an array of %s, wanted %s%s%s", declared->name,
                   lac_dtype_name(dtype), lac_dtype_name(declared->dtype),
                   plain == declared->dtype ? "" : " or ",
                   plain == declared->dtype ? "" : lac_dtype_name(plain));
}

/* Does the shape fit the declared one? The plan checks symbols that occur twice. */
static lac_status check_shape(const lac_array *declared, const laci_shape *shape, lac_error *err) {
  bool fits = declared->rank < 0 || declared->rank == shape->rank;
  for (int axis = 0; fits && axis < declared->rank; axis++) {
    fits = declared->shape[axis] < 0 || declared->shape[axis] == shape->dims[axis];
  }
  if (fits) return LAC_OK;
  const laci_shape want = laci_shape_of(declared->rank, declared->shape);
  char found[256], wanted[256];
  return laci_fail(err, LAC_BAD_SHAPE, "%s: an array of shape %s, wanted %s", declared->name,
                   laci_shape_text(shape, found, sizeof found),
                   laci_shape_text(&want, wanted, sizeof wanted));
}

/* Do type and shape of an input fit? Fills *shape. */
static lac_status check_dtype_and_shape(const lac_array *declared, const lac_array *array,
                                        laci_shape *shape, lac_error *err) {
  lac_status st = laci_array_read_shape(array, declared->name, shape, err);
  if (!st) st = check_dtype(declared, array->dtype, err);
  return st ? st : check_shape(declared, shape, err);
}

static lac_status check_input(const lac_array *declared, const lac_array *array, laci_shape *shape,
                              lac_error *err) {
  lac_status st = check_dtype_and_shape(declared, array, shape, err);
  if (!st) st = laci_array_check_bytes(array, declared->name, shape, err);
  if (st) return st;
  if (array->data || laci_shape_count(shape) == 0) return LAC_OK;
  return laci_fail(err, LAC_BAD_ARGUMENT, "%s: data is NULL", declared->name);
}

static lac_status check_arrays(const lac_session *s, const call *c, lac_error *err) {
  lac_status st = LAC_OK;
  for (int at = 0; at < s->n_inputs && !st; at++) {
    st = check_input(&s->inputs[at], c->inputs[at], &c->shapes[at], err);
  }
  for (int at = 0; at < s->n_outputs && !st; at++) {
    const lac_array *wanted = c->outputs[at];
    const bool any = !wanted || wanted->dtype == LAC_DTYPE_NONE;
    if (!any && s->outputs[at].dtype != LAC_DTYPE_NONE)
      st = check_dtype(&s->outputs[at], wanted->dtype, err);
  }
  return st;
}

/* ---- Inputs ---- */

static bool is_aligned(const void *data, lac_dtype dtype) {
  return (uintptr_t)data % lac_dtype_size(dtype) == 0;
}

/* Returns the buffer. It is allocated at its first use, and belongs to the engine. */
static void *find_or_alloc_buffer(void **buffer, size_t size_bytes) {
  if (!*buffer) *buffer = laci_alloc(size_bytes, 1);
  return *buffer;
}

/* Checks elements given as i64 against the type that the network declares. */
static lac_status check_integer_range(const lac_array *declared, const int64_t *elements, int64_t n,
                                      lac_error *err) {
  int64_t low, high;
  if (declared->dtype == LAC_DTYPE_I64 || declared->dtype == LAC_DTYPE_U64) return LAC_OK;
  laci_int_get_range(declared->dtype, &low, &high);
  for (int64_t at = 0; at < n; at++) {
    if (elements[at] >= low && elements[at] <= high) continue;
    return laci_fail(err, LAC_BAD_VALUE, "%s: element %lld is %lld, which %s does not hold",
                     declared->name, (long long)at, (long long)elements[at],
                     lac_dtype_name(declared->dtype));
  }
  return LAC_OK;
}

static lac_status bind_input(const lac_session *s, int at, const lac_array *array,
                             laci_session_engine *e, lac_error *err) {
  const lac_engine_port *port = &e->inputs[at];
  const int64_t n = (int64_t)(port->size_bytes / lac_dtype_size(port->dtype));
  const bool checked = array->dtype != s->inputs[at].dtype && port->dtype == LAC_DTYPE_I64;
  e->in[at] = array->data;
  if (n == 0 || array->dtype != port->dtype || !is_aligned(array->data, port->dtype)) {
    void *to = find_or_alloc_buffer(&e->converted[at], port->size_bytes);
    if (!to) return laci_fail_memory(err, port->name);
    e->in[at] = to;
    if (n == 0) return LAC_OK;
    if (port->dtype == LAC_DTYPE_F32) laci_read_f32(array->dtype, array->data, 0, n, to);
    else laci_read_i64(array->dtype, array->data, 0, n, to);
  }
  return checked ? check_integer_range(&s->inputs[at], e->in[at], n, err) : LAC_OK;
}

/* ---- Outputs ---- */

/* Returns the type of an output array, for elements that the engine computes as `computed`. */
static lac_status find_output_dtype(const lac_session *s, int at, const lac_array *wanted,
                                    lac_dtype computed, lac_dtype *dtype, lac_error *err) {
  const lac_array *declared = &s->outputs[at];
  *dtype = wanted->dtype == LAC_DTYPE_NONE ? declared->dtype : wanted->dtype;
  if (*dtype == LAC_DTYPE_NONE) *dtype = computed;
  if (laci_dtype_is_float(*dtype) == (computed == LAC_DTYPE_F32)) return LAC_OK;
  if (s->as_computed) *dtype = computed;
  if (s->as_computed) return LAC_OK;
  return laci_fail(err, LAC_BAD_ARGUMENT, "%s: an array of %s, and the output is of %s",
                   declared->name, lac_dtype_name(*dtype), lac_dtype_name(computed));
}

/* Checks the caller's buffer, or allocates one in e->allocated. */
static lac_status check_or_alloc_output(const lac_array *declared, const lac_array *wanted,
                                        size_t size_bytes, void **made, lac_error *err) {
  if (wanted->data && wanted->size_bytes < size_bytes) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "%s: size_bytes is %zu, wanted %zu", declared->name,
                     wanted->size_bytes, size_bytes);
  }
  if (wanted->data) return LAC_OK;
  *made = laci_alloc(size_bytes, 1);
  return *made ? LAC_OK : laci_fail_memory(err, declared->name);
}

static lac_status bind_output(const lac_session *s, int at, const lac_array *wanted,
                              laci_session_engine *e, lac_error *err) {
  const lac_engine_port *port = &e->outputs[at];
  lac_dtype dtype = port->dtype;
  e->out[at] = NULL;
  if (port->open) return LAC_OK;
  if (wanted) {
    lac_status st = find_output_dtype(s, at, wanted, port->dtype, &dtype, err);
    const size_t n = port->size_bytes / lac_dtype_size(port->dtype);
    if (!st)
      st = check_or_alloc_output(&s->outputs[at], wanted, n * lac_dtype_size(dtype),
                                 &e->allocated[at], err);
    if (st) return st;
    e->out[at] = wanted->data ? wanted->data : e->allocated[at];
  }
  if (wanted && dtype == port->dtype && is_aligned(e->out[at], dtype)) return LAC_OK;
  e->out[at] = find_or_alloc_buffer(&e->results[at], port->size_bytes);
  return e->out[at] ? LAC_OK : laci_fail_memory(err, port->name);
}

/* Copies an output of fixed shape to the caller's array, if the engine did not write it there. */
static void copy_fixed_output(const lac_array *wanted, int at, lac_dtype dtype,
                              const laci_session_engine *e) {
  const lac_engine_port *port = &e->outputs[at];
  const int64_t n = (int64_t)(port->size_bytes / lac_dtype_size(port->dtype));
  void *to = wanted->data ? wanted->data : e->allocated[at];
  if (to == e->out[at]) return;
  if (port->dtype == LAC_DTYPE_F32) laci_write_f32(dtype, e->out[at], n, to);
  else laci_write_i64(dtype, e->out[at], n, to);
}

/* Copies an output whose shape depends on data. */
static lac_status copy_open_output(const lac_session *s, int at, const lac_array *wanted,
                                   laci_session_engine *e, lac_array *result, lac_error *err) {
  const laci_buf *buf = laci_model_engine_result(e->engine, at);
  const char *name = s->outputs[at].name;
  if (!buf) return laci_fail(err, LAC_INTERNAL, "output '%s' was not kept", name);
  lac_status st =
      find_output_dtype(s, at, wanted, buf->f ? LAC_DTYPE_F32 : LAC_DTYPE_I64, &result->dtype, err);
  result->size_bytes = (size_t)buf->count * lac_dtype_size(result->dtype);
  if (!st)
    st = check_or_alloc_output(&s->outputs[at], wanted, result->size_bytes, &e->allocated[at], err);
  if (st) return st;
  result->rank = buf->shape.rank;
  memcpy(result->shape, buf->shape.dims, sizeof result->shape);
  void *to = wanted->data ? wanted->data : e->allocated[at];
  if (buf->f) laci_write_f64(result->dtype, buf->f, buf->count, to);
  else laci_write_i64(result->dtype, buf->i, buf->count, to);
  return LAC_OK;
}

/* Fills the fields of the caller's array that the caller left open. */
static void fill_caller_array(lac_array *array, const lac_array *result, void *made) {
  array->name = result->name;
  array->dtype = result->dtype;
  array->rank = result->rank;
  memcpy(array->shape, result->shape, sizeof array->shape);
  if (array->data) return;
  array->data = made;
  array->size_bytes = result->size_bytes;
  array->owned = true;
}

/* ---- A run ---- */

/* Stores all outputs; the caller's structs change only when nothing can fail any more. */
static lac_status copy_outputs(const lac_session *s, const call *c, laci_session_engine *e,
                               lac_error *err) {
  lac_status st = LAC_OK;
  lac_array few[FEW], *results = few;
  if (s->n_outputs > FEW) results = laci_alloc((size_t)s->n_outputs, sizeof *results);
  if (!results) return laci_fail_memory(err, "the outputs");
  for (int at = 0; at < s->n_outputs && !st; at++) {
    const lac_engine_port *port = &e->outputs[at];
    results[at] = (lac_array){.name = s->outputs[at].name, .rank = port->rank};
    if (!c->outputs[at]) continue;
    if (port->open) {
      st = copy_open_output(s, at, c->outputs[at], e, &results[at], err);
      continue;
    }
    st = find_output_dtype(s, at, c->outputs[at], port->dtype, &results[at].dtype, err);
    if (st) break;
    memcpy(results[at].shape, port->shape, sizeof port->shape);
    results[at].size_bytes =
        port->size_bytes / lac_dtype_size(port->dtype) * lac_dtype_size(results[at].dtype);
    copy_fixed_output(c->outputs[at], at, results[at].dtype, e);
  }
  for (int at = 0; at < s->n_outputs && !st; at++) {
    if (!c->outputs[at]) continue;
    fill_caller_array(c->outputs[at], &results[at], e->allocated[at]);
    e->allocated[at] = NULL; /* the caller's array has it now, if the caller wants this output */
  }
  if (results != few) laci_free(results);
  return st;
}

static lac_status run_engine(lac_session *s, const call *c, laci_session_engine *e,
                             lac_error *err) {
  lac_status st = LAC_OK;
  for (int at = 0; at < s->n_inputs && !st; at++) st = bind_input(s, at, c->inputs[at], e, err);
  for (int at = 0; at < s->n_outputs && !st; at++) st = bind_output(s, at, c->outputs[at], e, err);
  if (!st) st = laci_session_run_engine(s, e, err);
  if (!st) st = copy_outputs(s, c, e, err);
  for (int at = 0; at < s->n_outputs; at++) {
    laci_free(e->allocated[at]); /* allocated by a run that failed */
    e->allocated[at] = NULL;
  }
  return st;
}

lac_status lac_session_run(lac_session *session, const lac_array *inputs, int n_inputs,
                           lac_array *outputs, int n_outputs, lac_error *err) {
  call c;
  laci_session_engine *engine = NULL;
  lac_status st = LACI_CHECK_GIVEN(err, {"session", session});
  if (!st) st = check_array_lists("lac_session_run", inputs, n_inputs, outputs, n_outputs, err);
  if (st) return st;
  lac_context *before = laci_call_enter_context(session->context);
  st = call_init(&c, session, err);
  if (!st) st = find_inputs(session, inputs, n_inputs, &c, err);
  if (!st) st = find_outputs(session, outputs, n_outputs, &c, err);
  if (!st) st = check_arrays(session, &c, err);
  if (!st) st = laci_session_take_engine(session, c.shapes, &engine, err);
  if (!st) st = run_engine(session, &c, engine, err);
  if (engine) laci_session_give_back(session, engine);
  call_clear(&c);
  laci_call_leave_context(before);
  return st;
}

lac_status lac_session_plan(lac_session *session, const lac_array *inputs, int n_inputs,
                            lac_error *err) {
  call c;
  laci_session_engine *engine = NULL;
  lac_status st = LACI_CHECK_GIVEN(err, {"session", session});
  if (!st) st = check_array_lists("lac_session_plan", inputs, n_inputs, NULL, 0, err);
  if (st) return st;
  lac_context *before = laci_call_enter_context(session->context);
  st = call_init(&c, session, err);
  if (!st) st = find_inputs(session, inputs, n_inputs, &c, err);
  for (int at = 0; !st && at < session->n_inputs; at++)
    st = check_dtype_and_shape(&session->inputs[at], c.inputs[at], &c.shapes[at], err);
  if (!st) st = laci_session_take_engine(session, c.shapes, &engine, err);
  if (engine) laci_session_give_back(session, engine);
  call_clear(&c);
  laci_call_leave_context(before);
  return st;
}

void lac_session_release(lac_array *outputs, int n) {
  for (int at = 0; outputs && at < n; at++) {
    if (!outputs[at].owned) continue;
    laci_free(outputs[at].data);
    outputs[at].data = NULL;
    outputs[at].size_bytes = 0;
    outputs[at].owned = false;
  }
}
