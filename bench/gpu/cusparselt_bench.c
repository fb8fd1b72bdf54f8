/* SPDX-License-Identifier: Apache-2.0
 * Asks NVIDIA cuSPARSELt, on a GPU, about masks that `check --target cusparselt` takes and about
 * masks with planted faults, and measures layers dense and sparse.
 *
 *     cusparselt_bench [--times] [MODEL.onnx]...
 *
 * Of each model, every layer that the target takes (weights of f32 as f16, bf16 and i8) is asked
 * about. Prints JSON: what was asked, and every disagreement. Ends with 1 where there is one. */
#include <jansson.h>
#include <string.h>

#include "analyze/analyze.h"
#include "api/model/model_in.h"
#include "api/prune/job_in.h"
#include "gpu/device.h"
#include "gpu/times.h"
#include "graph/graph.h"
#include "lacuna/prune.h"

static const lac_dtype types[] = {LAC_DTYPE_F16, LAC_DTYPE_BF16, LAC_DTYPE_I8, LAC_DTYPE_F32};
enum { N_TYPES = sizeof types / sizeof *types, N_TIMED = 3 };

enum { FAULTS_OF_EACH = 10, INPUTS_FEW = 1, INPUTS_MANY = 32 };

/* ---- Masks ---- */

typedef struct tally {
  int n_taken, n_refused; /* both say so */
  json_t *differences;    /* text */
} tally;

static tally tally_new(void) { return (tally){.differences = json_array()}; }

static json_t *tally_json(const tally *t) {
  return json_pack("{s:i, s:i, s:o}", "both_take", t->n_taken, "both_refuse", t->n_refused,
                   "differences", t->differences);
}

/* What the target makes of a layer whose weight runs in this type. */
static bool target_takes(const laci_target_layer *layer, lac_dtype as, laci_target_answer *answer) {
  laci_target_choice choice;
  lac_error err = {0};
  if (laci_target_find("cusparselt", &choice, &err)) die("the target", err.text);
  choice.as = as;
  if (laci_target_judge_weight(&choice, layer, answer, &err)) die("the target", err.text);
  return answer->answer == LAC_TARGET_TAKEN;
}

/* Asks both about a mask. */
static void compare(const cusparseLtHandle_t *lt, const matrix *m, const char *name, tally *t) {
  laci_target_answer answer;
  const laci_target_layer layer = matrix_layer(m);
  const bool ours = target_takes(&layer, m->type, &answer);
  const gpu_answer theirs = ask_mask(lt, m);
  t->n_taken += ours && theirs == GPU_TAKES;
  t->n_refused += !ours && theirs != GPU_TAKES;
  if (ours == (theirs == GPU_TAKES)) return;
  json_array_append_new(
      t->differences,
      json_sprintf("%s, %s [%lld, %lld]: we %s%s%s, cuSPARSELt %s", name, lac_dtype_name(m->type),
                   (long long)m->out, (long long)m->in, ours ? "take it" : "refuse it (",
                   answer.reason, ours ? "" : ")", gpu_answer_names[theirs]));
}

static void compare_layer(const cusparseLtHandle_t *lt, const laci_target_layer *layer,
                          const char *name, tally *t) {
  for (int i = 0; i < N_TYPES; i++) {
    laci_target_answer answer;
    if (!target_takes(layer, types[i], &answer)) continue;
    matrix m = matrix_of_layer(layer, types[i]);
    compare(lt, &m, name, t);
    matrix_clear(&m);
  }
}

static json_t *ask_model(const cusparseLtHandle_t *lt, const char *path) {
  lac_options options = lac_options_default();
  lac_model *model;
  laci_job job;
  lac_error err = {0};
  tally t = tally_new();
  options.all_sizes = true;
  if (lac_model_load(path, NULL, &model, &err) || laci_job_open(model, &options, &job, &err) ||
      laci_job_materialise(&job, model, &err))
    die(path, err.text);
  for (int l = 0; l < job.analysis->n_layers; l++) {
    laci_target_layer layer;
    laci_analysis_describe_target_layer(job.analysis, l, &layer);
    compare_layer(lt, &layer, job.analysis->graph->nodes[job.analysis->layers[l].node].name, &t);
  }
  laci_job_close(&job);
  lac_model_destroy(model);
  return tally_json(&t);
}

static json_t *ask_faults(const cusparseLtHandle_t *lt) {
  json_t *all = json_object();
  tally sound = tally_new();
  for (int f = 0; f < N_MATRIX_FAULTS; f++) {
    tally t = tally_new();
    for (int i = 0; i < FAULTS_OF_EACH * N_TYPES; i++) {
      const lac_dtype type = types[i % N_TYPES];
      const bool by_input = i / N_TYPES % 2;
      const int64_t out = 32 * (1 + i % 5), in = 64 * (1 + i % 3);
      matrix good = matrix_random(type, out, in, by_input, (uint64_t)i);
      matrix bad = matrix_with_fault(f, type, out, in, by_input, (uint64_t)i);
      compare(lt, &good, "no fault", &sound);
      compare(lt, &bad, matrix_fault_names[f], &t);
      matrix_clear(&good);
      matrix_clear(&bad);
    }
    json_object_set_new(all, matrix_fault_names[f], tally_json(&t));
  }
  json_object_set_new(all, "no fault", tally_json(&sound));
  return all;
}

/* The least power of two whose odd multiples the library plans a product for. */
static int least_multiple(const cusparseLtHandle_t *lt, lac_dtype type, bool of_input) {
  int least = 0;
  for (int multiple = 64; multiple >= 1; multiple /= 2) {
    const int64_t odd = 320 + multiple;
    if (ask_size(lt, type, of_input ? 256 : odd, of_input ? odd : 256, 256)) break;
    least = multiple;
  }
  return least;
}

static json_t *ask_sizes(const cusparseLtHandle_t *lt) {
  json_t *all = json_object();
  for (int i = 0; i < N_TYPES; i++)
    json_object_set_new(all, lac_dtype_name(types[i]),
                        json_pack("{s:i, s:i}", "in", least_multiple(lt, types[i], true), "out",
                                  least_multiple(lt, types[i], false)));
  return all;
}

/* ---- Times ---- */

static json_t *measure_all(const cusparseLtHandle_t *lt) {
  static const char *const outcomes[] = {"measured", "size refused", "products differ"};
  cublasLtHandle_t blas;
  json_t *rows = json_array();
  if (cublasLtCreate(&blas)) die("cublasLtCreate", "it failed");
  for (int l = 0; l < n_gpu_layers; l++) {
    for (int i = 0; i < N_TIMED; i++) {
      for (int few = 0; few < 2; few++) {
        const gpu_layer *layer = &gpu_layers[l];
        const int inputs = few ? INPUTS_FEW : INPUTS_MANY;
        const gpu_times t = gpu_measure(blas, lt, types[i], layer, inputs);
        json_array_append_new(
            rows, json_pack("{s:s, s:s, s:s, s:I, s:I, s:i, s:I, s:s, s:f, s:f, s:f, s:f, s:f}",
                            "network", layer->network, "layer", layer->name, "type",
                            lac_dtype_name(types[i]), "in", (json_int_t)layer->in, "out",
                            (json_int_t)layer->out, "inputs", inputs, "columns",
                            (json_int_t)t.columns, "outcome", outcomes[t.outcome], "dense_us",
                            t.dense_us, "sparse_us", t.sparse_us, "gain", t.gain, "least_gain",
                            t.least_gain, "most_gain", t.most_gain));
      }
    }
  }
  (void)cublasLtDestroy(blas);
  return rows;
}

/* ---- All of it ---- */

static int count_differences(json_t *told) {
  const char *key;
  json_t *of;
  int n = 0;
  json_object_foreach(told, key, of) n += (int)json_array_size(json_object_get(of, "differences"));
  return n;
}

int main(int argc, char **argv) {
  struct cudaDeviceProp device;
  cusparseLtHandle_t lt;
  int version = 0, driver = 0, first = 1;
  const bool times = argc > 1 && strcmp(argv[1], "--times") == 0;
  first += times;
  if (first < argc && argv[first][0] == '-') {
    (void)fputs("usage: cusparselt_bench [--times] [MODEL.onnx]...\n", stderr);
    return 2;
  }
  must(cudaGetDeviceProperties(&device, 0), "a GPU");
  must(cudaDriverGetVersion(&driver), "the driver");
  if (cusparseLtInit(&lt)) die("cusparseLtInit", "it failed");
  (void)cusparseLtGetVersion(&lt, &version);
  json_t *models = json_object(), *faults = ask_faults(&lt), *sizes = ask_sizes(&lt);
  for (int i = first; i < argc; i++) json_object_set_new(models, argv[i], ask_model(&lt, argv[i]));
  const int n = count_differences(models) + count_differences(faults);
  json_t *told =
      json_pack("{s:s, s:i, s:i, s:i, s:i, s:o, s:o, s:o, s:o}", "device", device.name,
                "capability", 10 * device.major + device.minor, "driver", driver, "cusparselt",
                version, "differences", n, "models", models, "faults", faults, "least_multiples",
                sizes, "times", times ? measure_all(&lt) : json_array());
  (void)json_dumpf(told, stdout, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
  (void)fputs("\n", stdout);
  json_decref(told);
  (void)cusparseLtDestroy(&lt);
  return n > 0;
}
