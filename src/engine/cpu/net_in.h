/* SPDX-License-Identifier: Apache-2.0
 * What a net is made of, for the files of this folder and its own folders.
 *
 * Planning is written without a check after each call: the first failure stays in net->status, ids
 * become -1, and what follows does nothing. Order of reading: plan/plan.h (types, constants,
 * fusion, memory), lower/lower.h (implementations and the words they use), onednn/ (the library),
 * net.c (create, run), steps.c and text.c (reports). */
#ifndef LACI_ENGINE_CPU_NET_IN_H
#define LACI_ENGINE_CPU_NET_IN_H

#include "base/budget.h"
#include "base/memory.h"
#include "cpu/pool.h"
#include "engine/cpu/lower/lower.h"
#include "engine/cpu/net.h"
#include "engine/cpu/plan/plan.h"
#include "tensor/buf.h"

/** A value that the observer wants to see. */
typedef struct laci_net_observed {
  int value;
  laci_engine_port port;
  bool lowered;
} laci_net_observed;

struct laci_net {
  const laci_graph *graph;
  laci_engine_fetch *fetch; /* of stored bytes; NULL: they are in memory */
  void *fetch_context;
  laci_arena memory; /* all small things */
  laci_pool *pool;   /* for plain operators */
  int n_threads;
  bool bf16;
  bool early_outputs;
  bool has_run;
  bool blocks; /* convolutions' values lie in blocks of 16 channels; laci_conv_choose_blocks */
  laci_onednn *onednn;
  laci_net_value *values;    /* [n_values] */
  bool *computed;            /* [n_nodes] neither constant nor unused */
  laci_fused *fused;         /* [n_nodes]; output -1: part of another, or nothing to do */
  int *fused_at;             /* [n_nodes] fused node that is computed at this place; -1: none */
  int n_turns, n_recomputed; /* n_recomputed: nodes of those that have a second turn */
  laci_turn *turns;          /* [n_turns] the fused nodes in the order in which they are computed */
  bool recomputing;          /* a second turn is being lowered */
  int *workspaces; /* [n_nodes] tensor that a forward node leaves for its gradient; -1: none */
  size_t n_tensors, n_buffers, n_steps, tensor_capacity, buffer_capacity, step_capacity;
  laci_net_tensor *tensors;
  laci_net_buffer *buffers;
  laci_net_step *steps;
  uint8_t *arena;
  size_t arena_bytes, weight_bytes;
  int n_inputs, n_outputs;
  laci_engine_port *inputs, *outputs;
  int *output_tensors;
  laci_engine_observer observer; /* none: no values */
  laci_net_observed *observed;   /* [observer.n_values] */
  char *text;
  laci_budget budget;    /* what others hold, and our ports; no limit without the caller's */
  size_t constant_bytes; /* of contents that only planning needs */
  lac_status status;     /* of planning */
  bool declined;         /* the status is laci_net_decline's: another implementation's turn */
  lac_error *err;
};

/* ---- Failing ---- */

/** Keeps the first failure. */
void laci_net_fail(laci_net *net, lac_status status, const char *format, ...) LAC_PRINTF(3, 4);
void laci_net_no_memory(laci_net *net);
/** oneDNN's answer; true where it was success. `what` is unsupported otherwise. */
bool laci_net_did(laci_net *net, lac_status status, const char *what);
/** oneDNN ends the process where it gets no memory for its own small things (code, descriptors), so
 * it is not asked where there is none; that is then the failure. */
bool laci_net_has_memory(laci_net *net);
/** May so many bytes more be taken now, for what planning holds? If not, that is the failure.
 * value: what they are for; -1: of no value. */
bool laci_net_may_take(laci_net *net, uint64_t bytes, int value);
/** Zeroed memory that lives as long as the net; NULL: no memory (noted). */
void *laci_net_new(laci_net *net, size_t n, size_t size);

/* ---- Shapes and types ---- */

static inline const laci_shape *laci_net_shape(const laci_net *net, int value) {
  return &net->values[value].type.shape;
}
static inline bool laci_net_is_float(const laci_net *net, int value) {
  return laci_dtype_is_float(net->values[value].type.dtype);
}
static inline bool laci_net_is_constant(const laci_net *net, int value) {
  return net->values[value].constant != NULL;
}
static inline laci_element laci_net_dt(const laci_net *net) {
  return net->bf16 ? LACI_ELEMENT_BF16 : LACI_ELEMENT_F32;
}
static inline bool laci_net_has(const laci_node *node, int port) {
  return port < node->n_inputs && node->inputs[port] >= 0;
}

/* ---- text.c ---- */

void laci_net_write_text(laci_net *net);

/* ---- observe.c ---- */

/** Notes what is to be observed; observer NULL: nothing. */
LAC_MUST_CHECK lac_status laci_net_observe(laci_net *net, const laci_engine_observer *observer,
                                           lac_error *err);
/** Each observed value is used once more. */
void laci_net_observe_uses(laci_net *net);
/** Steps that show those observed values that are there by now and were not shown yet. */
void laci_net_lower_observed(laci_net *net);
/** Fails where one was never there. */
void laci_net_check_observed(laci_net *net);

#endif
