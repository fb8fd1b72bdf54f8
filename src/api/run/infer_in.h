/* SPDX-License-Identifier: Apache-2.0
 * One call of lac_infer: its state, and the functions that read and write its files. */
#ifndef LACI_API_RUN_INFER_IN_H
#define LACI_API_RUN_INFER_IN_H

#include "base/budget.h"
#include "base/memory.h"
#include "graph/graph.h"
#include "lacuna/infer.h"

typedef struct lac_array lac_array;
typedef struct laci_buf laci_buf;
typedef struct laci_file_id laci_file_id;
typedef struct laci_stepper laci_stepper;
typedef struct laci_writer laci_writer;

/** A lac_infer_result with the memory that it owns. */
typedef struct laci_infer_result {
  lac_infer_result pub; /* must be first: a lac_infer_result * is cast to laci_infer_result * */
  laci_arena arena;
  lac_infer_output *outputs;
} laci_infer_result;

/** The state of one inference. */
typedef struct laci_inference {
  lac_model *view; /* the network: a view of the caller's model (laci_model_view_create) */
  const laci_graph *graph;
  const lac_infer_options *options;
  lac_dtype dtype;       /* type of the computation */
  laci_budget budget;    /* the memory limit, and the memory of the inputs */
  laci_buf **inputs;     /* [graph->n_inputs] the contents of the inputs */
  lac_array *outputs;    /* [graph->n_outputs] the outputs, if the engine makes a plan */
  laci_stepper *walk;    /* runs the network node by node and holds the outputs; NULL: the engine
                            makes a plan */
  const char *walker;    /* name of the engine that runs node by node; NULL: the engine makes a plan
                            */
  laci_writer **writers; /* [graph->n_outputs] the writer of each output's file */
  laci_file_id *keep;    /* [n_keep] the files of the inputs, which no output may replace */
  size_t n_keep;
  laci_infer_result *result;
} laci_inference;

static inline const laci_value *laci_inference_input(const laci_inference *run, int at) {
  return &run->graph->values[run->graph->inputs[at]];
}

static inline const laci_value *laci_inference_output(const laci_inference *run, int at) {
  return &run->graph->values[run->graph->outputs[at]];
}

/** Returns the index of the network's input of this name; -1: there is none. */
int laci_inference_find_input(const laci_inference *run, const char *name);
/** Reads the inputs' files in the types that the network declares. Fails LAC_NOT_FOUND,
 * LAC_BAD_SHAPE, LAC_BAD_VALUE, and as laci_npy_read_as does. */
LAC_MUST_CHECK lac_status laci_inference_read_inputs(laci_inference *run,
                                                     const lac_infer_input *inputs, int n_inputs,
                                                     lac_error *err);

/** Runs the network by a plan: run->inputs become run->outputs. Fails as lac_session_run, and
 * LAC_MEMORY_LIMIT. */
LAC_MUST_CHECK lac_status laci_inference_run_planned(laci_inference *run, lac_error *err);

/** Runs the network by run->walker, node by node: run->walk then has the outputs. Fails as
 * laci_stepper_step, LAC_INTERRUPTED and LAC_MEMORY_LIMIT. infer_steps.c */
LAC_MUST_CHECK lac_status laci_inference_run_steps(laci_inference *run, const lac_model *model,
                                                   lac_error *err);

void laci_inference_clear_outputs(laci_inference *run);

/** Chooses the outputs' paths. Fails LAC_EXISTS if two outputs have the same path. */
LAC_MUST_CHECK lac_status laci_inference_choose_output_paths(laci_inference *run,
                                                             const char *folder, lac_error *err);
/** Opens all output files under temporary names. Fails LAC_EXISTS if one is an input. */
LAC_MUST_CHECK lac_status laci_inference_open_outputs(laci_inference *run, const lac_model *model,
                                                      const char *folder, lac_error *err);
/** Writes the values and renames the files. */
LAC_MUST_CHECK lac_status laci_inference_write_outputs(laci_inference *run, lac_error *err);
/** Closes the files that were opened; those that were not renamed are removed. */
void laci_inference_close_files(laci_inference *run);

#endif
