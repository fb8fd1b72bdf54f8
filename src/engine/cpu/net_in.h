/* SPDX-License-Identifier: Apache-2.0
 * The data of a net, for lowering and running: the plan, and the steps to which it is lowered.
 *
 * Lowering does not check after each call, and neither does planning: the first failure stays in
 * plan.status, ids become -1, and later calls do nothing. Order of reading: plan/plan.h (types,
 * constants, fusion, memory), lower/lower.h (implementations and the terms they use), onednn/ (the
 * library), net.c (create, run), steps.c and text.c (reports). */
#ifndef LACI_ENGINE_CPU_NET_IN_H
#define LACI_ENGINE_CPU_NET_IN_H

#include "engine/cpu/lower/lower.h"
#include "engine/cpu/plan/plan.h"

typedef struct laci_costs laci_costs;
typedef struct laci_onednn laci_onednn;
typedef struct laci_pool laci_pool;
typedef struct laci_native_net laci_native_net;
typedef struct laci_native_use laci_native_use;

/** A value that the observer sees. */
typedef struct laci_net_observed {
  int value;
  laci_engine_port port;
  bool lowered; /* a step computes the value */
} laci_net_observed;

struct laci_net {
  laci_cpu_plan plan; /* which nodes are computed, and where values are stored */
  laci_pool *pool;
  laci_pool *own_pool;              /* the pool, if this net created it; NULL: `pool` is borrowed */
  bool reads_blocks, writes_blocks; /* see laci_net_place */
  int n_threads;
  bool early_outputs;                /* see laci_engine_options.early_outputs */
  const laci_native_use *use;        /* while planning: which layers are native */
  const laci_costs *costs;           /* estimates for layers that were not timed:
                                        native/costs/costs.h */
  const laci_timings *timings;       /* while planning: measured times of layers; NULL: none */
  const laci_engine_weight *weights; /* [n_weights], while planning: facts about weights, from the
                                        options */
  int n_weights;
  bool blocks;      /* values of convolutions are in blocks of 16 channels (nChw16c); set by
                       laci_conv_choose_blocked_layout */
  bool declined;    /* laci_net_decline_node set the plan's status: the next implementation of the
                       node is tried */
  bool recomputing; /* a recomputation is being lowered */
  bool has_run;
  const laci_engine_watch *watch; /* while a run lasts: its watch, which long steps call; NULL:
                                     none */
  const laci_checked_value
      /* the value at which the last run stopped, because it may not be finite; NULL: none */
      *suspect;
  laci_onednn *onednn;
  laci_native_net *native; /* data of native layers (native/layer.h); NULL: native kernels support
                              no layer */
  bool outline;            /* the net cannot run: it has no arena, and no primitive is created */
  laci_engine_node *nodes; /* [n_nodes] how the fused node that begins with each node is run */
  int *workspaces; /* [n_nodes] index of the tensor that the forward step of the node fills for its
                      gradient; -1: none */
  size_t n_tensors, n_buffers, n_steps, tensor_capacity, buffer_capacity, step_capacity;
  laci_net_tensor *tensors;
  laci_buffer *buffers;
  laci_net_step *steps;
  uint8_t *arena;
  int n_inputs, n_outputs;
  laci_engine_port *inputs, *outputs;
  laci_net_observed *observed; /* [plan.observer.n_values] the values that the observer sees */
  char *text;
};

/** Checks the status of a oneDNN call; true where it was a success. Else the implementation
 * declines or the plan fails; `what` names the operation that is not supported. */
bool laci_net_check_status(laci_net *net, lac_status status, const char *what);
/** Checks that some memory is free before oneDNN is called, since oneDNN ends the process when it
 * cannot allocate its own small objects (code, descriptors). Else the plan fails, and false is
 * returned. */
bool laci_net_has_memory(laci_net *net);

static inline laci_element laci_net_float_element(const laci_net *net) {
  return net->plan.bf16 ? LACI_ELEMENT_BF16 : LACI_ELEMENT_F32;
}

/* ---- text.c ---- */

void laci_net_write_text(laci_net *net);

/* ---- observe.c ---- */

/** Records which values the observer wants to see; observer NULL: none. */
LAC_MUST_CHECK lac_status laci_net_note_observed_values(laci_net *net,
                                                        const laci_engine_observer *observer,
                                                        lac_error *err);
/** Adds steps that pass observed values to the observer, for those values that are lowered by now
 * and have no such step yet. */
void laci_net_add_observer_steps(laci_net *net);
/** Fails the plan where an observed value was never lowered. */
void laci_net_check_observed_are_lowered(laci_net *net);

/* ---- check_values.c ---- */

/** Adds steps that check the values of plan.checked (plan/finite.h), for those that are lowered by
 * now and have no such step yet. */
void laci_net_add_check_steps(laci_net *net);
/** Sets plan.careless where a value of plan.checked was never lowered. */
void laci_net_mark_missing_checks(laci_net *net);
/** Checks inputs that are in plan.checked; they have no step, so laci_net_run calls this first. */
void laci_net_check_inputs(laci_net *net, const void *const *inputs);

#endif
