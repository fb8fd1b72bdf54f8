/* SPDX-License-Identifier: Apache-2.0
 * What a net is made of, for lowering and running: the plan, and what it is lowered to.
 *
 * Lowering is written without a check after each call, as planning is: the first failure stays in
 * plan.status, ids become -1, and what follows does nothing. Order of reading: plan/plan.h (types,
 * constants, fusion, memory), lower/lower.h (implementations and the words they use), onednn/ (the
 * library), net.c (create, run), steps.c and text.c (reports). */
#ifndef LACI_ENGINE_CPU_NET_IN_H
#define LACI_ENGINE_CPU_NET_IN_H

#include "engine/cpu/lower/lower.h"
#include "engine/cpu/net.h"
#include "engine/cpu/plan/plan.h"

typedef struct laci_costs laci_costs;
typedef struct laci_onednn laci_onednn;
typedef struct laci_pool laci_pool;
typedef struct laci_native_net laci_native_net;

/** A value that the observer sees. */
typedef struct laci_net_observed {
  int value;
  laci_engine_port port;
  bool lowered;
} laci_net_observed;

struct laci_net {
  laci_cpu_plan plan; /* what is computed, and where values are */
  laci_pool *pool;
  laci_pool *own_pool;              /* NULL: another's is used */
  bool reads_blocks, writes_blocks; /* laci_net_place */
  int n_threads;
  bool early_outputs;
  laci_native_which native_use;
  int algorithm;                     /* laci_native_use */
  const laci_costs *costs;           /* of layers that were not timed: native/costs/costs.h */
  const laci_timings *timings;       /* while planning; NULL: none */
  const laci_engine_weight *weights; /* [n_weights], while planning: what is known of them */
  int n_weights;
  bool blocks;      /* convolutions are in blocks of 16 channels; laci_conv_choose_blocks */
  bool declined;    /* the plan's status is laci_net_decline's: the next implementation is tried */
  bool recomputing; /* a recomputation is being lowered */
  bool has_run;
  const laci_looked *suspect; /* a run has seen what may not be finite: it ended there */
  laci_onednn *onednn;
  laci_native_net *native; /* native/layer.h; NULL: nothing could be done by sparse kernels */
  int *workspaces; /* [n_nodes] tensor that a forward node leaves for its gradient; -1: none */
  size_t n_tensors, n_buffers, n_steps, tensor_capacity, buffer_capacity, step_capacity;
  laci_net_tensor *tensors;
  laci_buffer *buffers;
  laci_net_step *steps;
  uint8_t *arena;
  int n_inputs, n_outputs;
  laci_engine_port *inputs, *outputs;
  laci_net_observed *observed; /* [plan.observer.n_values] */
  char *text;
};

/** oneDNN's answer; true where it was success. `what` is unsupported otherwise. */
bool laci_net_did(laci_net *net, lac_status status, const char *what);
/** oneDNN ends the process where it gets no memory for its own small things (code, descriptors), so
 * it is not asked where there is none; that is then the failure. */
bool laci_net_has_memory(laci_net *net);

static inline laci_element laci_net_dt(const laci_net *net) {
  return net->plan.bf16 ? LACI_ELEMENT_BF16 : LACI_ELEMENT_F32;
}

/* ---- text.c ---- */

void laci_net_write_text(laci_net *net);

/* ---- observe.c ---- */

/** Notes what is to be observed; observer NULL: nothing. */
LAC_MUST_CHECK lac_status laci_net_observe(laci_net *net, const laci_engine_observer *observer,
                                           lac_error *err);
/** Steps that show those observed values that are there by now and were not shown yet. */
void laci_net_lower_observed(laci_net *net);
/** Fails where one was never there. */
void laci_net_check_observed(laci_net *net);

/* ---- look.c ---- */

/** Steps that look at those values of plan.looked that are there by now: plan/finite.h. */
void laci_net_lower_looked(laci_net *net);
/** Where one was never there, the plan is careless. */
void laci_net_check_looked(laci_net *net);
/** Inputs have no step: laci_net_run looks at them first. */
void laci_net_look_at_inputs(laci_net *net, const void *const *inputs);

#endif
