/* SPDX-License-Identifier: Apache-2.0
 * Runs a part: arrays of ONNX Runtime go to a session of Lacuna without a copy. Outputs whose sizes
 * follow from those of the inputs are computed in place, too, once a run with these sizes has shown
 * that the graph is right about them; others are copied.
 *
 * Where all sizes are fixed, a part is planned before the first run, for as many threads as there
 * are cores. The first run counts the session's threads. If their number differs, the part is
 * planned again. */
#include "compute.h"

#include "lacuna/session.h"
#include "openmp.h"
#include "threads.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_RANK = 8, SYMBOL_BYTES = 40, MOST_PORTS_ON_STACK = 16, MOST_VERIFIED = 16 };

/** An input or output. */
typedef struct port {
  char *name;
  lac_dtype dtype;
  int rank; /* number of axes; -1: not known */
  int64_t sizes[MOST_RANK];
  char symbols[MOST_RANK][SYMBOL_BYTES]; /* name of each open size; empty: it has none, or one that
                                            is too long */
} port;

typedef struct compute {
  ort_compute face; /* first member: ONNX Runtime passes its address */
  laci_ort_shared *shared;
  laci_ort_model *model;
  port *inputs, *outputs;
  int n_inputs, n_outputs;
  bool by_place;        /* ports are matched to the inputs and outputs of the model by order, since
                           it is packed */
  lac_session *session; /* guarded by the lock until `counted` is set */
  bool counted;         /* the session has the right number of threads */
  bool watched;         /* the session's steps are added to a profile; accessed atomically */
  /* Hashes of input sizes for which a run has shown that all outputs have the sizes that the graph
   * states; 0: a free place */
  _Atomic uint64_t verified[MOST_VERIFIED];
  atomic_uint n_verified;
} compute;

/* ---- Ports ---- */

static lac_status read_port_info(port *to, laci_ort_graph *graph, int value, lac_error *err) {
  laci_ort_type type;
  const laci_ort_value *from = &graph->values[value];
  lac_status st = laci_ort_read_type(graph, from->info, &type, err);
  if (st) return st;
  to->name = strdup(from->name);
  if (!to->name) return laci_ort_fail_memory(err);
  to->dtype = (lac_dtype)type.dtype;
  to->rank = type.rank > MOST_RANK ? -1 : type.rank;
  for (int k = 0; k < to->rank; k++) {
    to->sizes[k] = type.sizes[k];
    const char *symbol = type.symbols[k];
    if (symbol && strlen(symbol) < SYMBOL_BYTES)
      (void)snprintf(to->symbols[k], SYMBOL_BYTES, "%s", symbol);
  }
  return LAC_OK;
}

static lac_status read_all_port_info(port **to, int *n_to, laci_ort_graph *graph, const int *values,
                                     int n, lac_error *err) {
  lac_status st = LAC_OK;
  *to = calloc((size_t)n + 1, sizeof **to);
  if (!*to) return laci_ort_fail_memory(err);
  *n_to = n;
  for (int k = 0; !st && k < n; k++) st = read_port_info(&(*to)[k], graph, values[k], err);
  return st;
}

static void free_ports(port *ports, int n) {
  for (int k = 0; ports && k < n; k++) free(ports[k].name);
  free(ports);
}

/* ---- The session ---- */

static lac_status open_session(const compute *c, int threads, lac_session **session,
                               lac_error *err) {
  const laci_ort_options *from = &c->shared->options;
  lac_session_options options = lac_session_options_default();
  options.run.threads = threads;
  options.run.dtype = from->dtype;
  options.run.max_memory = from->memory;
  options.run.context = c->shared->context;
  options.n_plans = from->plans;
  if (from->session_pool) options.parallel = laci_ort_run_parallel;
  return lac_session_create(laci_ort_get_loaded_model(c->model), &options, session, err);
}

/** Plans the part, if all sizes are fixed. A failure is ignored here: the first run plans again,
 * and reports it. */
static void plan_fixed_sizes(compute *c) {
  lac_array *arrays = calloc((size_t)c->n_inputs + 1, sizeof *arrays);
  bool fixed = arrays != NULL;
  for (int k = 0; fixed && k < c->n_inputs; k++) {
    const port *in = &c->inputs[k];
    fixed = in->rank >= 0;
    for (int axis = 0; fixed && axis < in->rank; axis++) fixed = in->sizes[axis] >= 0;
    arrays[k] =
        (lac_array){.name = c->by_place ? NULL : in->name, .dtype = in->dtype, .rank = in->rank};
    memcpy(arrays[k].shape, in->sizes, sizeof in->sizes);
  }
  lac_error err = {0};
  if (fixed && lac_session_plan(c->session, arrays, c->n_inputs, &err))
    laci_ort_log(c->shared->ort, c->shared->logger, LAC_ORT_INFO, "not planned early: %s",
                 err.text);
  free(arrays);
}

/** Logs the memory of all plans of the session, after a plan was made. */
static void log_memory(const compute *c) {
  const laci_ort_shared *shared = c->shared;
  lac_session_facts facts = LAC_SIZED(lac_session_facts);
  if (!shared->options.verbose || lac_session_about(c->session, &facts, NULL)) return;
  if (!facts.n_plans) return;
  laci_ort_log(shared->ort, shared->logger, LAC_ORT_WARNING,
               "the part that makes %s: %d plan%s of %.1f MB, most allowed %.1f MB; %.1f MB of "
               "weights are copies; %d thread%s, %s",
               c->n_outputs ? c->outputs[0].name : "nothing", facts.n_plans,
               facts.n_plans == 1 ? "" : "s", (double)facts.bytes / 1e6,
               (double)facts.max_memory / 1e6, (double)laci_ort_model_copied_bytes(c->model) / 1e6,
               facts.threads, facts.threads == 1 ? "" : "s", lac_dtype_name(facts.dtype));
}

static int expected_threads(const laci_ort_shared *shared) {
  if (shared->options.threads) return shared->options.threads;
  return shared->threads ? shared->threads : laci_ort_count_cores();
}

/** Makes sure, in the first run, that the session has as many threads as ONNX Runtime's. */
static lac_status match_session_threads(compute *c, ort_kernel *kernel, lac_error *err) {
  laci_ort_shared *shared = c->shared;
  lac_status st = LAC_OK;
  if (__atomic_load_n(&c->counted, __ATOMIC_ACQUIRE)) return LAC_OK;
  (void)pthread_mutex_lock(&shared->lock);
  if (!c->counted) {
    int planned = expected_threads(shared);
    if (!shared->threads && !shared->options.threads)
      shared->threads = laci_ort_count_threads(shared->ort, kernel);
    int threads = expected_threads(shared);
    lac_session_facts facts = LAC_SIZED(lac_session_facts);
    if (!lac_session_about(c->session, &facts, NULL)) planned = facts.threads;
    lac_session *other = NULL;
    if (threads != planned) {
      st = open_session(c, threads, &other, err);
      if (!st) {
        lac_session_destroy(c->session);
        c->session = other;
      }
    }
    if (!st) __atomic_store_n(&c->counted, true, __ATOMIC_RELEASE);
  }
  (void)pthread_mutex_unlock(&shared->lock);
  return st;
}

/** Makes the session add its steps to the profile while a profiler is started. */
static void update_step_profiling(compute *c) {
  laci_ort_profiles *profiles = &c->shared->profiles;
  bool wanted = laci_ort_profiles_are_started(profiles);
  if (__atomic_load_n(&c->watched, __ATOMIC_ACQUIRE) == wanted) return;
  lac_session_watch(c->session, wanted ? laci_ort_profiles_add_step : NULL, profiles);
  __atomic_store_n(&c->watched, wanted, __ATOMIC_RELEASE);
}

/* ---- A run ---- */

static lac_status read_shape(const laci_ort *ort, const ort_value *value, lac_array *array,
                             const port *in, lac_error *err) {
  ort_shape *shape = NULL;
  size_t rank = 0;
  int dtype = 0;
  lac_status st = laci_ort_take_failure(ort, ort->tensor_shape(value, &shape), in->name, err);
  if (st) return st;
  st = laci_ort_take_failure(ort, ort->element_type(shape, &dtype), in->name, err);
  if (!st) st = laci_ort_take_failure(ort, ort->rank(shape, &rank), in->name, err);
  if (!st && rank > MOST_RANK)
    st = laci_ort_fail(err, LAC_BAD_SHAPE, "%s: %zu dimensions, at most %d can be run", in->name,
                       rank, MOST_RANK);
  if (!st && rank)
    st = laci_ort_take_failure(ort, ort->sizes(shape, array->shape, rank), in->name, err);
  ort->release_shape(shape);
  array->dtype = (lac_dtype)dtype;
  array->rank = (int)rank;
  return st;
}

static lac_status bind_input(const compute *c, const ort_kernel *kernel, int at, lac_array *array,
                             lac_error *err) {
  static char nothing; /* address of the data of an array without elements */
  const laci_ort *ort = c->shared->ort;
  const port *in = &c->inputs[at];
  const ort_value *value = NULL;
  lac_status st =
      laci_ort_take_failure(ort, ort->kernel_input(kernel, (size_t)at, &value), in->name, err);
  if (!st && !value) st = laci_ort_fail(err, LAC_BAD_ARGUMENT, "%s: it is missing", in->name);
  if (!st) st = read_shape(ort, value, array, in, err);
  if (!st) st = laci_ort_take_failure(ort, ort->tensor_data(value, &array->data), in->name, err);
  if (st) return st;
  array->name = c->by_place ? NULL : in->name;
  array->size_bytes = lac_dtype_size(array->dtype);
  for (int k = 0; k < array->rank; k++) array->size_bytes *= (size_t)array->shape[k];
  if (!array->size_bytes) array->data = &nothing;
  return LAC_OK;
}

/** Returns the size that a symbol has in the shapes of the inputs. -1: no input has the symbol, or
 * two inputs have different sizes for it. */
static int64_t find_symbol_size(const compute *c, const lac_array *inputs, const char *symbol) {
  int64_t found = -1;
  for (int k = 0; *symbol && k < c->n_inputs; k++) {
    const port *in = &c->inputs[k];
    for (int axis = 0; axis < in->rank && axis < inputs[k].rank; axis++) {
      if (strcmp(in->symbols[axis], symbol) != 0) continue;
      if (found >= 0 && found != inputs[k].shape[axis]) return -1;
      found = inputs[k].shape[axis];
    }
  }
  return found;
}

/** Fills an output's rank and shape from the graph's shape and the inputs' symbols. False: a size
 * is not known. */
static bool predict_output_shape(const compute *c, const port *out, const lac_array *inputs,
                                 lac_array *array) {
  array->rank = out->rank;
  for (int k = 0; k < out->rank; k++) {
    array->shape[k] =
        out->sizes[k] >= 0 ? out->sizes[k] : find_symbol_size(c, inputs, out->symbols[k]);
    if (array->shape[k] < 0) return false;
  }
  return out->rank >= 0;
}

static bool is_same_shape(const lac_array *one, const lac_array *other) {
  bool same = one->rank == other->rank;
  for (int k = 0; same && k < one->rank; k++) same = one->shape[k] == other->shape[k];
  return same;
}

/** Returns a hash of the sizes of all inputs; never 0. */
static uint64_t hash_sizes(const compute *c, const lac_array *inputs) {
  uint64_t hash = 1469598103934665603u;
  for (int k = 0; k < c->n_inputs; k++) {
    hash = (hash ^ (uint64_t)inputs[k].rank) * 1099511628211u;
    for (int axis = 0; axis < inputs[k].rank; axis++)
      hash = (hash ^ (uint64_t)inputs[k].shape[axis] ^ hash >> 31) * 1099511628211u;
  }
  return hash | 1;
}

static bool has_verified_sizes(compute *c, uint64_t sizes) {
  for (int k = 0; k < MOST_VERIFIED; k++)
    if (atomic_load_explicit(&c->verified[k], memory_order_relaxed) == sizes) return true;
  return false;
}

static lac_status allocate_output(const compute *c, ort_kernel *kernel, int at,
                                  const lac_array *like, void **data, lac_error *err) {
  const laci_ort *ort = c->shared->ort;
  const char *name = c->outputs[at].name;
  ort_value *value = NULL;
  lac_status st = laci_ort_take_failure(
      ort, ort->kernel_output(kernel, (size_t)at, like->shape, (size_t)like->rank, &value), name,
      err);
  if (!st && !value) st = laci_ort_fail(err, LAC_IO, "%s: ONNX Runtime has no room for it", name);
  return st ? st : laci_ort_take_failure(ort, ort->tensor_data(value, data), name, err);
}

/** Makes the session compute an output in ONNX Runtime's memory, without a copy. */
static lac_status bind_output(const compute *c, ort_kernel *kernel, int at, lac_array *array,
                              lac_error *err) {
  static char nothing;
  array->dtype = c->outputs[at].dtype;
  array->size_bytes = lac_dtype_size(array->dtype);
  for (int k = 0; k < array->rank; k++) array->size_bytes *= (size_t)array->shape[k];
  lac_status st = allocate_output(c, kernel, at, array, &array->data, err);
  if (!array->size_bytes) array->data = &nothing;
  return st;
}

static lac_status copy_output(const compute *c, ort_kernel *kernel, int at, const lac_array *array,
                              lac_error *err) {
  const port *out = &c->outputs[at];
  void *data = NULL;
  if (array->dtype != out->dtype)
    return laci_ort_fail(err, LAC_BAD_VALUE, "%s: its type is %s, the graph says %s", out->name,
                         lac_dtype_name(array->dtype), lac_dtype_name(out->dtype));
  lac_status st = allocate_output(c, kernel, at, array, &data, err);
  if (!st && array->size_bytes) memcpy(data, array->data, array->size_bytes);
  return st;
}

/** Runs the session. arrays: [n_inputs + 2 n_outputs], all zero; they become inputs, outputs, and
 * the outputs' expected shapes. */
static lac_status run_session(compute *c, ort_kernel *kernel, lac_array *arrays, lac_error *err) {
  lac_array *inputs = arrays, *outputs = inputs + c->n_inputs, *expected = outputs + c->n_outputs;
  lac_status st = LAC_OK;
  bool said = true, right = true;
  for (int k = 0; !st && k < c->n_inputs; k++) st = bind_input(c, kernel, k, &inputs[k], err);
  if (st) return st;
  for (int k = 0; k < c->n_outputs; k++)
    said = predict_output_shape(c, &c->outputs[k], inputs, &expected[k]) && said;
  uint64_t sizes = hash_sizes(c, inputs);
  bool in_place = said && has_verified_sizes(c, sizes);
  for (int k = 0; !st && k < c->n_outputs; k++) {
    if (in_place) outputs[k] = expected[k], st = bind_output(c, kernel, k, &outputs[k], err);
    outputs[k].name = c->by_place ? NULL : c->outputs[k].name;
  }
  if (!st) st = lac_session_run(c->session, inputs, c->n_inputs, outputs, c->n_outputs, err);
  for (int k = 0; !st && k < c->n_outputs; k++) {
    right = is_same_shape(&outputs[k], &expected[k]) && right;
    if (!in_place) st = copy_output(c, kernel, k, &outputs[k], err);
  }
  lac_session_release(outputs, c->n_outputs);
  if (!st && in_place && !right)
    st = laci_ort_fail(err, LAC_BAD_SHAPE, "an output has another shape than before");
  if (!st && !in_place) log_memory(c);
  if (!st && said && right && !in_place)
    atomic_store(&c->verified[atomic_fetch_add(&c->n_verified, 1) % MOST_VERIFIED], sizes);
  return st;
}

static ort_status *run_part(ort_compute *self, void *state, ort_kernel *kernel) {
  compute *c = (compute *)self;
  const laci_ort *ort = c->shared->ort;
  lac_array on_stack[MOST_PORTS_ON_STACK] = {{0}}, *arrays = on_stack;
  lac_error err = {0};
  (void)state;
  if (!kernel) return laci_ort_fail_missing(ort, "Compute");
  lac_status st = match_session_threads(c, kernel, &err);
  size_t n = (size_t)(c->n_inputs + 2 * c->n_outputs);
  if (!st && n > MOST_PORTS_ON_STACK) {
    arrays = calloc(n, sizeof *arrays);
    if (!arrays) st = laci_ort_fail_memory(&err);
  }
  laci_ort_use_kernel_threads(ort, kernel);
  laci_ort_set_team_spin(c->shared->options.spins);
  if (!st) update_step_profiling(c);
  if (!st) st = run_session(c, kernel, arrays, &err);
  laci_ort_use_kernel_threads(NULL, NULL);
  if (arrays != on_stack) free(arrays);
  return laci_ort_make_status(ort, st, &err);
}

static ort_status *create_state(ort_compute *self, void *context, void **state) {
  (void)context;
  if (!state) return laci_ort_fail_missing(((compute *)self)->shared->ort, "CreateState");
  *state = self; /* a computation has no state of its own */
  return NULL;
}

static void release_state(ort_compute *self, void *state) {
  (void)self;
  (void)state;
}

/* ---- Creation ---- */

/** Checks the numbers of ports, since a packed model need not fit the node that holds it. */
static lac_status check_port_counts(const compute *c, lac_error *err) {
  const lac_array *arrays = NULL;
  int n_inputs = lac_session_inputs(c->session, &arrays);
  int n_outputs = lac_session_outputs(c->session, &arrays);
  if (n_inputs == c->n_inputs && n_outputs == c->n_outputs) return LAC_OK;
  return laci_ort_fail(err, LAC_BAD_FILE,
                       "the model has %d inputs and %d outputs, its node %d and %d", n_inputs,
                       n_outputs, c->n_inputs, c->n_outputs);
}

lac_status laci_ort_compute_create(laci_ort_shared *shared, laci_ort_graph *graph,
                                   const laci_ort_part *part, laci_ort_model *model,
                                   ort_compute **made, lac_error *err) {
  compute *c = calloc(1, sizeof *c);
  *made = NULL;
  if (!c) return laci_ort_fail_memory(err);
  c->face = (ort_compute){.version = LAC_ORT_API,
                          .create_state = create_state,
                          .run = run_part,
                          .release_state = release_state};
  c->shared = shared;
  c->model = model;
  c->by_place = laci_ort_model_is_packed(model);
  lac_status st =
      read_all_port_info(&c->inputs, &c->n_inputs, graph, part->inputs, part->n_inputs, err);
  if (!st)
    st = read_all_port_info(&c->outputs, &c->n_outputs, graph, part->outputs, part->n_outputs, err);
  if (!st) st = open_session(c, expected_threads(shared), &c->session, err);
  if (!st) st = check_port_counts(c, err);
  if (st) {
    c->model = NULL;
    laci_ort_compute_destroy(&c->face);
    return st;
  }
  plan_fixed_sizes(c);
  log_memory(c);
  *made = &c->face;
  return LAC_OK;
}

void laci_ort_compute_destroy(ort_compute *made) {
  compute *c = (compute *)made;
  if (!c) return;
  lac_session_destroy(c->session);
  laci_ort_model_destroy(c->model);
  free_ports(c->inputs, c->n_inputs);
  free_ports(c->outputs, c->n_outputs);
  free(c);
}
