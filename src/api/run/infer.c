/* SPDX-License-Identifier: Apache-2.0
 * lac_infer: reads arrays from files, runs the network once, and writes arrays to files.
 *
 * Files and engines exchange values as laci_buf, which holds every number exactly. So all engines
 * see the same inputs, and the same code writes all kinds of output. All output files are opened
 * before the run under temporary names, and are renamed after it. Next: data/npy.h,
 * engine/engine.h. */
#include "lacuna/infer.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/model/model_in.h"
#include "api/run/infer.h"
#include "base/budget.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/writer.h"
#include "cpu/pool.h"
#include "engine/engine.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file_set.h"
#include "base/log.h"
#include "data/npy.h"
#include "graph/graph.h"
#include "graph/infer.h"
#include "graph/sizes.h"
#include "tensor/buf.h"
#include "tensor/narrow.h"

typedef struct infer_result {
  lac_infer_result pub; /* first: a lac_infer_result * is an infer_result * */
  laci_arena arena;
  lac_infer_output *outputs;
} infer_result;

/* The state of one inference; inference_clear frees it. */
typedef struct inference {
  const laci_graph *graph;
  const lac_infer_options *options;
  lac_dtype dtype;       /* type of the computation */
  laci_budget budget;    /* the memory limit, and the memory of the inputs */
  laci_buf **inputs;     /* [graph->n_inputs] */
  laci_buf **outputs;    /* [graph->n_outputs], if the engine makes a plan */
  laci_stepper *walk;    /* runs node by node and has the outputs; NULL: the engine makes a plan */
  const char *walker;    /* name of the engine that runs node by node; NULL: the engine makes a plan
                            */
  laci_writer **writers; /* [graph->n_outputs] */
  laci_file_id *keep;    /* [n_keep] the inputs' files */
  size_t n_keep;
  infer_result *result;
} inference;

lac_infer_options lac_infer_options_default(void) {
  return (lac_infer_options){.dtype = LAC_DTYPE_F32};
}

static const laci_value *input_value(const inference *run, int at) {
  return &run->graph->values[run->graph->inputs[at]];
}

static const laci_value *output_value(const inference *run, int at) {
  return &run->graph->values[run->graph->outputs[at]];
}

/* ---- Inputs ---- */

/* Returns the index among the network's inputs, or -1. */
static int find_input(const inference *run, const char *name) {
  for (int at = 0; at < run->graph->n_inputs; at++) {
    if (strcmp(input_value(run, at)->name, name) == 0) return at;
  }
  return -1;
}

/* Changes the array's shape to the one in the options, if there is one. */
static lac_status apply_given_shape(const inference *run, const char *name, const char *path,
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
static lac_status check_shape(const laci_value *value, const char *path, const laci_shape *found,
                              lac_error *err) {
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
    to->i[k] = from->f ? laci_int_nearest(to->dtype, from->f[k])
                       : laci_int_from_wide(to->dtype, laci_int_to_wide(from->dtype, from->i[k]));
  const double held = laci_buf_get_f(to, k);
  if (from->f && to->f && isfinite(from->f[k])) return isfinite(held);
  if (from->f) return held == from->f[k] || (isnan(from->f[k]) && isnan(held));
  const laci_wide whole = laci_int_to_wide(from->dtype, from->i[k]);
  if (to->i) return laci_int_to_wide(to->dtype, to->i[k]) == whole;
  const lac_dtype widest = held < 0 ? LAC_DTYPE_I64 : LAC_DTYPE_U64;
  return held < 0x1p64 && laci_int_to_wide(widest, laci_int_nearest(widest, held)) == whole;
}

/* Converts *buf to the type that the network declares, if that can represent every element. */
static lac_status convert_input(const laci_value *value, const char *path, laci_buf **buf,
                                lac_error *err) {
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

static lac_status read_input(inference *run, int place, const char *path, lac_error *err) {
  const laci_value *value = input_value(run, place);
  laci_npy array;
  lac_status st = laci_npy_read_as(path, value->type.dtype, &array, err);
  if (!st) st = apply_given_shape(run, value->name, path, &array.type.shape, err);
  if (!st) st = check_shape(value, path, &array.type.shape, err);
  if (!st) {
    laci_budget both = run->budget; /* budget with the array twice: as read, and converted to the
                                       network's type */
    int64_t count = laci_shape_count(&array.type.shape);
    laci_budget_add(&run->budget, laci_bytes_of(count, sizeof(double)), "input '%.200s'",
                    value->name);
    laci_budget_add(&both, laci_bytes_of(count, 2 * sizeof(double)), "input '%.200s'", value->name);
    st = laci_budget_check(&both, "reading the inputs", err);
  }
  if (!st) {
    st = laci_buf_from_bytes(&array.type, array.bytes, array.size_bytes, &run->inputs[place], err);
  }
  laci_npy_clear(&array);
  return st ? st : convert_input(value, path, &run->inputs[place], err);
}

static lac_status read_inputs(inference *run, const lac_infer_input *inputs, int n_inputs,
                              lac_error *err) {
  for (int at = 0; at < n_inputs; at++) {
    int place = find_input(run, inputs[at].name);
    struct stat found;
    if (place < 0) { return laci_graph_fail_input(run->graph, inputs[at].name, err); }
    if (run->inputs[place]) {
      return laci_fail(err, LAC_BAD_ARGUMENT, "input '%s' is given twice", inputs[at].name);
    }
    lac_status st = read_input(run, place, inputs[at].path, err);
    if (st) return st;
    if (stat(inputs[at].path, &found) == 0) {
      run->keep[run->n_keep++] =
          (laci_file_id){.device = (uint64_t)found.st_dev, .inode = (uint64_t)found.st_ino};
    }
  }
  for (int at = 0; at < run->graph->n_inputs; at++) {
    if (run->inputs[at]) continue;
    const laci_value *value = input_value(run, at);
    char shape[256];
    return laci_hint(
        err, LAC_HINT_INPUT_ARRAY,
        laci_fail(err, LAC_NOT_FOUND, "no array for input '%s' is given: wanted %s of shape %s",
                  value->name, lac_dtype_name(value->type.dtype),
                  laci_shape_text(&value->type.shape, shape, sizeof shape)));
  }
  return LAC_OK;
}

static int64_t batch_of(const inference *run) {
  const laci_shape *first = run->graph->n_inputs > 0 ? &run->inputs[0]->shape : NULL;
  return first && first->rank > 0 ? first->dims[0] : 1;
}

/* Returns the engine's name; NULL: the default one. */
static const char *engine_of(const lac_infer_options *options) {
  return options->engine ? options->engine : options->plain ? LACI_ENGINE_EXACT : NULL;
}

/* Do the options name an engine that runs node by node? Such an engine can run networks whose sizes
 * depend on data, and returns doubles. */
static bool is_run_by_node(const lac_infer_options *options) {
  const char *engine = engine_of(options);
  return engine && laci_engine_has_stepper(engine);
}

static lac_status check_options(inference *run, lac_error *err) {
  const lac_infer_options *options = run->options;
  lac_status st = laci_check_threads(options->threads, err);
  if (st) return st;
  if (options->plain && strcmp(engine_of(options), LACI_ENGINE_EXACT) != 0) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "the plain engine and the engine '%s' are both wanted",
                     options->engine);
  }
  if (is_run_by_node(options) && options->dtype != LAC_DTYPE_F32) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "the %s engine does not compute in %s",
                     engine_of(options), lac_dtype_name(options->dtype));
  }
  run->dtype =
      laci_dtype_supported_or_warn(laci_engine_or_default(engine_of(options)), options->dtype);
  for (int at = 0; at < options->n_shapes; at++) {
    const lac_engine_shape *shape = &options->shapes[at];
    if (!shape->name || shape->rank < 0 || shape->rank > LACI_MAX_RANK) {
      return laci_fail(err, LAC_BAD_ARGUMENT, "shape %d: wanted a name and a rank of 0 to %d", at,
                       LACI_MAX_RANK);
    }
    if (find_input(run, shape->name) < 0) {
      return laci_graph_fail_input(run->graph, shape->name, err);
    }
  }
  return LAC_OK;
}

/* ---- Running ---- */

void laci_log_plan(const lac_engine *engine) {
  if (!laci_log_is_enabled(LAC_LOG_DEBUG)) return;
  const char *at = lac_engine_plan_text(engine);
  while (*at) {
    size_t n = strcspn(at, "\n");
    laci_log(LAC_LOG_DEBUG, "%.*s", (int)n, at);
    at += n + (at[n] == '\n');
  }
}

void laci_log_memory(const lac_engine *engine, size_t held_bytes) {
  if (!laci_log_is_enabled(LAC_LOG_DEBUG)) return;
  const lac_engine_memory planned = lac_engine_planned(engine);
  size_t sum = planned.weight_bytes + planned.arena_bytes + held_bytes, peak = laci_memory_peak();
  laci_log(LAC_LOG_DEBUG,
           "memory: weights %.1f MB + arena %.1f MB + inputs and outputs %.1f MB = %.1f MB planned",
           (double)planned.weight_bytes / 1e6, (double)planned.arena_bytes / 1e6,
           (double)held_bytes / 1e6, (double)sum / 1e6);
  if (peak) laci_log(LAC_LOG_DEBUG, "memory: %.1f MB at most, all in all", (double)peak / 1e6);
}

/* Returns the values in the format of an engine's port, which the caller frees; NULL: no memory. */
static void *pack_values(const lac_engine_port *port, const laci_buf *buf) {
  void *bytes = laci_alloc(port->size_bytes, 1);
  if (!bytes) return NULL;
  for (int64_t k = 0; k < buf->count; k++) {
    if (port->dtype == LAC_DTYPE_F32) ((float *)bytes)[k] = (float)buf->f[k];
    else ((int64_t *)bytes)[k] = buf->i[k];
  }
  return bytes;
}

static lac_status unpack_values(const lac_engine_port *port, const void *bytes, laci_buf **buf,
                                lac_error *err) {
  laci_type type = {port->dtype, laci_shape_of(port->rank, port->shape)};
  return laci_buf_from_bytes(&type, bytes, port->size_bytes, buf, err);
}

static lac_status copy_facts(infer_result *result, const lac_engine *engine, lac_error *err) {
  const lac_engine_facts about = lac_engine_about(engine);
  lac_infer_result *r = &result->pub;
  r->dtype = about.dtype;
  r->n_nodes = about.n_nodes;
  r->n_exact = about.n_exact;
  r->engine = laci_arena_text(&result->arena, about.name);
  if (about.exact_reason) r->exact_reason = laci_arena_text(&result->arena, about.exact_reason);
  r->n_sparse = laci_model_engine_n_sparse(engine);
  bool whole = r->engine && !about.exact_reason == !r->exact_reason;
  return whole ? LAC_OK : laci_fail_memory(err, "the result");
}

static lac_status plan_engine(const inference *run, const lac_model *model, laci_budget *budget,
                              lac_engine **engine, lac_error *err) {
  int n = run->graph->n_inputs;
  lac_engine_shape *shapes = laci_alloc((size_t)n, sizeof *shapes);
  if (!shapes) return laci_fail_memory(err, "the shapes of the inputs");
  for (int at = 0; at < n; at++) {
    const laci_shape *shape = &run->inputs[at]->shape;
    shapes[at] = (lac_engine_shape){.name = input_value(run, at)->name, .rank = shape->rank};
    memcpy(shapes[at].shape, shape->dims, sizeof shapes[at].shape);
  }
  lac_engine_options options = lac_engine_options_default();
  options.threads = run->options->threads;
  options.dtype = run->dtype;
  options.engine = engine_of(run->options);
  options.dense_only = run->options->dense_only;
  options.tuning = run->options->tuning;
  options.timings = run->options->timings;
  options.shapes = shapes;
  options.n_shapes = n;
  lac_status st = laci_model_create_engine(model, &options, NULL, budget, engine, err);
  laci_free(shapes);
  if (st) return st;
  laci_log_plan(*engine);
  laci_log_engine_parts(*engine);
  return copy_facts(run->result, *engine, err);
}

static size_t bytes_of(const lac_engine_port *ports, int n) {
  size_t sum = 0;
  for (int at = 0; at < n; at++) sum += ports[at].size_bytes;
  return sum;
}

static void free_all(void **blocks, int n) {
  for (int at = 0; blocks && at < n; at++) laci_free(blocks[at]);
  laci_free(blocks);
}

static lac_status run_planned(inference *run, const lac_model *model, lac_error *err) {
  lac_engine *engine = NULL;
  const lac_engine_port *in = NULL, *out = NULL;
  laci_budget budget = run->budget;
  lac_status st = plan_engine(run, model, &budget, &engine, err);
  if (st) {
    lac_engine_destroy(engine);
    return st;
  }
  int n_in = lac_engine_inputs(engine, &in), n_out = lac_engine_outputs(engine, &out);
  for (int at = 0; at < n_out; at++) { /* outputs are held twice: by the engine, and as they are
                                          written (double for float) */
    laci_budget_add(&budget, 2 * out[at].size_bytes, "output '%.200s'", out[at].name);
  }
  st = laci_budget_check(&budget, "the run with its outputs", err);
  if (st) {
    lac_engine_destroy(engine);
    return st;
  }
  void **read = laci_alloc((size_t)n_in, sizeof *read);
  void **written = laci_alloc((size_t)n_out, sizeof *written);
  bool whole = read && written;
  for (int at = 0; whole && at < n_in; at++) {
    whole = (read[at] = pack_values(&in[at], run->inputs[at])) != NULL;
  }
  for (int at = 0; whole && at < n_out; at++) {
    whole = (written[at] = laci_alloc(out[at].size_bytes, 1)) != NULL;
  }
  if (!whole) st = laci_fail_memory(err, "inputs and outputs");
  double begin = laci_clock_seconds();
  if (!st) st = lac_engine_run(engine, (const void *const *)read, written, err);
  run->result->pub.seconds = laci_clock_seconds() - begin;
  for (int at = 0; !st && at < n_out; at++) {
    const laci_buf *exact = laci_model_engine_result(engine, at);
    if (exact) st = laci_buf_copy(exact, &run->outputs[at], err);
    else st = unpack_values(&out[at], written[at], &run->outputs[at], err);
  }
  if (!st) laci_log_memory(engine, bytes_of(in, n_in) + bytes_of(out, n_out));
  free_all(read, n_in);
  free_all(written, n_out);
  lac_engine_destroy(engine);
  return st;
}

/* Adds to the budget the memory of the values for these inputs, as far as sizes are known before
 * the run. */
static lac_status plan_steps(const inference *run, laci_budget *budget, lac_error *err) {
  int n = run->graph->n_inputs;
  laci_type *types = NULL;
  laci_input_shape *shapes = laci_alloc((size_t)n, sizeof *shapes);
  if (!shapes) return laci_fail_memory(err, "the shapes of the inputs");
  for (int at = 0; at < n; at++) {
    shapes[at] = (laci_input_shape){input_value(run, at)->name, run->inputs[at]->shape};
  }
  lac_status st = laci_graph_infer_types(run->graph, shapes, n, &types, err);
  if (!st) st = laci_stepper_plan_memory(run->walker, run->graph, types, NULL, budget, err);
  laci_free(types);
  laci_free(shapes);
  return st ? st : laci_budget_check(budget, "the run", err);
}

static bool is_computed_double(const inference *run, int value) {
  const laci_value *v = &run->graph->values[value];
  return v->stored < 0 && v->type.dtype == LAC_DTYPE_F64;
}

/* Returns the engine that runs node by node; NULL: use one with a plan. Plans compute in f32, so
 * networks with f64 inputs or outputs are run node by node if no engine was named. */
static const char *find_stepping_engine(const inference *run) {
  const laci_graph *graph = run->graph;
  bool doubles = false;
  if (is_run_by_node(run->options)) return engine_of(run->options);
  if (strcmp(laci_engine_or_default(engine_of(run->options)), LACI_ENGINE_AUTO) != 0) return NULL;
  for (int at = 0; at < graph->n_inputs; at++)
    doubles |= is_computed_double(run, graph->inputs[at]);
  for (int at = 0; at < graph->n_outputs; at++)
    doubles |= is_computed_double(run, graph->outputs[at]);
  if (!doubles) return NULL;
  laci_log(LAC_LOG_INFO, "the network runs exactly, which is slow: elements of type f64");
  return LACI_ENGINE_EXACT;
}

static lac_status run_steps(inference *run, const lac_model *model, lac_error *err) {
  const laci_graph *graph = run->graph;
  laci_pool *pool = NULL;
  run->result->pub.engine = laci_arena_text(&run->result->arena, run->walker);
  run->result->pub.dtype = LAC_DTYPE_F64;
  run->result->pub.n_nodes = graph->n_nodes;
  if (!run->result->pub.engine) return laci_fail_memory(err, "the result");
  laci_budget budget = laci_budget_with_limit(run->budget.limit), planned;
  laci_model_add_stored_to_budget(model, &budget);
  planned = budget;
  lac_status st = laci_budget_check(&budget, "the model", err);
  if (!st) st = laci_model_materialise(model, err); /* shapes depend on small stored tensors */
  if (!st) st = plan_steps(run, &planned, err);
  if (!st) st = laci_pool_create(run->options->threads, &pool, err);
  const laci_stepper_options options = {.engine = run->walker, .pool = pool, .budget = &budget};
  if (!st) st = laci_stepper_create(graph, &options, &run->walk, err);
  for (int at = 0; !st && at < graph->n_inputs; at++) {
    laci_stepper_set_value(run->walk, graph->inputs[at], run->inputs[at]);
    run->inputs[at] = NULL; /* the stepper owns the value now */
  }
  double begin = laci_clock_seconds();
  for (int node = 0; !st && node < graph->n_nodes; node++) {
    if (laci_interrupted()) st = laci_fail(err, LAC_INTERRUPTED, "interrupted");
    else st = laci_stepper_step(run->walk, node, err);
  }
  run->result->pub.seconds = laci_clock_seconds() - begin;
  laci_pool_destroy(pool);
  return st;
}

/* ---- Outputs ---- */

/* Returns FOLDER/NAME.npy, with special characters of NAME replaced. */
static char *path_for(laci_arena *arena, const char *folder, const char *name) {
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

static lac_status name_outputs(inference *run, const char *folder, lac_error *err) {
  infer_result *result = run->result;
  int n = run->graph->n_outputs;
  result->outputs = laci_arena_alloc(&result->arena, (size_t)n, sizeof *result->outputs);
  if (!result->outputs) return laci_fail_memory(err, "the outputs");
  for (int at = 0; at < n; at++) {
    lac_infer_output *output = &result->outputs[at];
    output->name = laci_arena_text(&result->arena, output_value(run, at)->name);
    output->path = output->name ? path_for(&result->arena, folder, output->name) : NULL;
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
static bool is_input(const inference *run, const lac_model *model, const char *path) {
  struct stat found;
  if (lac_model_reads(model, path)) return true;
  if (stat(path, &found) != 0) return false;
  for (size_t at = 0; at < run->n_keep; at++) {
    const laci_file_id *id = &run->keep[at];
    if (id->device == (uint64_t)found.st_dev && id->inode == (uint64_t)found.st_ino) return true;
  }
  return false;
}

static lac_status open_outputs(inference *run, const lac_model *model, const char *folder,
                               lac_error *err) {
  laci_write_options options = {.force = run->options->force};
  lac_status st = laci_file_set_make_folder(folder, err);
  for (int at = 0; at < run->graph->n_outputs && !st; at++) {
    const char *path = run->result->outputs[at].path;
    if (is_input(run, model, path)) {
      return laci_fail(err, LAC_EXISTS, "%s: it is an input, which is never replaced", path);
    }
    st = laci_writer_open(path, &options, &run->writers[at], err);
  }
  return st;
}

/* Returns the type in the file, which is the one that the network declares. */
static lac_dtype file_dtype(const inference *run, const laci_value *value, const laci_buf *buf) {
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
    if (buf->f) laci_write_f(dtype, buf->f + first, n, bytes);
    for (int64_t k = 0; buf->i && k < n; k++) /* the low bytes come first */
      memcpy(bytes + (size_t)k * size, &buf->i[first + k], size);
    st = laci_writer_append(writer, bytes, (size_t)n * size, err);
  }
  return st;
}

static lac_status write_output(inference *run, int at, lac_error *err) {
  const laci_value *value = output_value(run, at);
  lac_infer_output *output = &run->result->outputs[at];
  const laci_buf *buf =
      run->walk ? laci_stepper_value(run->walk, run->graph->outputs[at]) : run->outputs[at];
  if (!buf) {
    return laci_fail(err, LAC_UNSUPPORTED, "output '%s' could not be computed", value->name);
  }
  laci_type type = {file_dtype(run, value, buf), buf->shape};
  output->dtype = type.dtype;
  output->rank = buf->shape.rank;
  memcpy(output->shape, buf->shape.dims, sizeof output->shape);
  lac_status st = laci_npy_append_header(run->writers[at], &type, err);
  if (!st) st = append_values(run->writers[at], type.dtype, buf, err);
  return st ? st : laci_writer_finish(run->writers[at], err);
}

static lac_status write_outputs(inference *run, lac_error *err) {
  int n = run->graph->n_outputs;
  lac_status st = LAC_OK;
  for (int at = 0; at < n && !st; at++) st = write_output(run, at, err);
  for (int at = 0; at < n && !st; at++) st = laci_writer_commit(run->writers[at], err);
  return st;
}

/* ---- The whole inference ---- */

static lac_status inference_init(inference *run, const lac_model *model,
                                 const lac_infer_options *options, int n_inputs, lac_error *err) {
  size_t n_in = (size_t)model->graph->n_inputs, n_out = (size_t)model->graph->n_outputs;
  *run = (inference){.graph = model->graph,
                     .options = options,
                     .budget = laci_budget_with_limit(options->max_memory)};
  run->inputs = laci_alloc(n_in, sizeof *run->inputs);
  run->outputs = laci_alloc(n_out, sizeof *run->outputs);
  run->writers = laci_alloc(n_out, sizeof *run->writers);
  run->keep = laci_alloc(n_inputs > 0 ? (size_t)n_inputs : 0, sizeof *run->keep);
  run->result = laci_alloc(1, sizeof *run->result);
  bool whole = run->inputs && run->outputs && run->writers && run->keep && run->result;
  return whole ? LAC_OK : laci_fail_memory(err, "an inference");
}

/* Frees the inference, and the result if it was not returned. */
static void inference_clear(inference *run) {
  for (int at = 0; run->inputs && at < run->graph->n_inputs; at++) {
    laci_buf_destroy(run->inputs[at]);
  }
  for (int at = 0; at < run->graph->n_outputs; at++) {
    if (run->outputs) laci_buf_destroy(run->outputs[at]);
    if (run->writers) laci_writer_destroy(run->writers[at]);
  }
  laci_stepper_destroy(run->walk);
  laci_free(run->inputs);
  laci_free(run->outputs);
  laci_free(run->writers);
  laci_free(run->keep);
  lac_infer_result_destroy(run->result ? &run->result->pub : NULL);
}

static lac_status check_files(const lac_infer_input *inputs, int n_inputs, lac_error *err) {
  if (n_inputs < 0 || (n_inputs > 0 && !inputs)) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "lac_infer: n_inputs is %d, and inputs is%s NULL",
                     n_inputs, inputs ? " not" : "");
  }
  for (int at = 0; at < n_inputs; at++) {
    const laci_named_pointer given[] = {{"name", inputs[at].name}, {"path", inputs[at].path}};
    lac_status st = laci_check_arguments("lac_infer", given, 2, err);
    if (st) return st;
  }
  return LAC_OK;
}

lac_status lac_infer(const lac_model *model, const lac_infer_input *inputs, int n_inputs,
                     const char *folder, const lac_infer_options *options,
                     lac_infer_result **result, lac_error *err) {
  lac_infer_options defaults = lac_infer_options_default();
  inference run;
  laci_file_set set;
  if (result) *result = NULL;
  lac_status st = LACI_CHECK_GIVEN(err, {"model", model}, {"folder", folder});
  if (!st) st = check_files(inputs, n_inputs, err);
  if (!st && options) st = laci_check_shapes(options->shapes, options->n_shapes, err);
  if (st) return st;
  laci_file_set_begin(&set);
  st = inference_init(&run, model, options ? options : &defaults, n_inputs, err);
  if (!st) st = check_options(&run, err);
  if (!st) st = read_inputs(&run, inputs, n_inputs, err);
  if (!st) run.result->pub.batch = batch_of(&run);
  if (!st) st = name_outputs(&run, folder, err);
  if (!st) st = open_outputs(&run, model, folder, err);
  if (!st) {
    run.walker = find_stepping_engine(&run);
    st = run.walker ? run_steps(&run, model, err) : run_planned(&run, model, err);
  }
  if (!st) st = write_outputs(&run, err);
  if (!st && result) {
    *result = &run.result->pub;
    run.result = NULL;
  }
  inference_clear(&run);
  st = laci_file_set_end(&set, st, err);
  if (st && result) {
    lac_infer_result_destroy(*result);
    *result = NULL;
  }
  return st;
}

void lac_infer_result_destroy(lac_infer_result *result) {
  if (!result) return;
  laci_arena_clear(&((infer_result *)result)->arena);
  laci_free(result);
}
