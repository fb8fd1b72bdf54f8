/* SPDX-License-Identifier: Apache-2.0
 * Optimizers that work on flat buffers. All parameters of a network are stored one after the other
 * in one float32 buffer, and their gradients in a second one at the same offsets. So is every slot
 * of the optimizer's state.
 *
 * The optimizers are SGD with momentum, LARS (a separate factor of the rate for every tensor: trust
 * |w| / (|g| + decay |w|)) and AdamW. Masked weights stay zero without an extra pass over them: if
 * the weight, the state and every gradient are zero, each rule of kernel/optimizer/update.h keeps
 * the weight zero. So masks are applied to weights and state once, and to gradients at each step.
 * Results have the same bits for any number of threads. */
#ifndef LACI_TRAIN_OPTIMIZER_H
#define LACI_TRAIN_OPTIMIZER_H

#include <stdbool.h>
#include <stdint.h>

#include "lacuna/status.h"

typedef struct lac_engine_update lac_engine_update; /* defined in lacuna/engine_plugin.h */
typedef struct laci_pool laci_pool;

typedef enum laci_optimizer_kind {
#define LACI_OPTIMIZER(name, text) LACI_OPTIMIZER_##name,
#include "train/optimizer.def"
#undef LACI_OPTIMIZER
  LACI_OPTIMIZER_COUNT
} laci_optimizer_kind;

const char *laci_optimizer_kind_name(laci_optimizer_kind kind);
/** Finds an optimizer by its name. Returns false if there is none. */
bool laci_optimizer_find_kind(const char *name, laci_optimizer_kind *kind);

typedef struct laci_optimizer_options {
  laci_optimizer_kind kind;
  float momentum;   /* momentum; for AdamW, its beta 1 */
  float decay;      /* weight decay, >= 0 */
  bool decay_all;   /* true: weight decay also applies to vectors (normalization, biases) */
  bool nesterov;    /* true: uses Nesterov's momentum, for SGD and LARS */
  bool rate_inside; /* true: the momentum sums gradients that are already multiplied by the learning
                       rate, as in Keras. An option of SGD; always true for LARS */
  float trust;      /* trust coefficient of LARS, > 0 */
  float beta2;      /* decay of the mean of squares, for AdamW */
  float epsilon;    /* number that is added to a denominator: for AdamW to that of the update, > 0;
                       for LARS to that of the trust ratio, >= 0 */
} laci_optimizer_options;

/** Returns the default options: momentum 0.9, no decay, trust 0.001, beta2 0.999, epsilon 1e-8
 * (LARS: 0). */
laci_optimizer_options laci_optimizer_options_default(laci_optimizer_kind kind);

/** Changes the kind of optimizer. Options that only some kinds have get their defaults; momentum
 * and decay are kept. */
void laci_optimizer_options_set_kind(laci_optimizer_options *options, laci_optimizer_kind kind);

/** A parameter: a tensor that training changes, and its position in the flat buffers. */
typedef struct laci_parameter {
  const char *name;
  int64_t offset, count; /* range of the tensor in the buffers, in floats: offset and length.
                            Tensors may not overlap; gaps between them are not changed */
  bool is_vector;        /* true: the parameter is a scale or shift of a normalization, or a bias.
                            Weight decay and the trust ratio do not apply to it */
} laci_parameter;

typedef struct laci_optimizer laci_optimizer;

enum { LACI_OPTIMIZER_MAX_SLOTS = 2 };

/** Creates an optimizer for n parameters, whose state is zero. Their names are copied. pool must
 * outlive the optimizer; NULL: one thread. Fails with LAC_BAD_ARGUMENT if an option is out of its
 * limits or tensors overlap, or with LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_optimizer_create(const laci_optimizer_options *options,
                                                const laci_parameter *parameters, int n,
                                                laci_pool *pool, laci_optimizer **optimizer,
                                                lac_error *err);
void laci_optimizer_destroy(laci_optimizer *optimizer); /* optimizer may be NULL */

/** Returns the number of floats in a flat buffer: the end of the last parameter. */
int64_t laci_optimizer_count_floats(const laci_optimizer *optimizer);

/** Return the state of the optimizer, for checkpoints: its kind, its number of slots, the floats of
 * a slot [laci_optimizer_count_floats], and the number of steps taken. Slot 0 is the momentum, slot
 * 1 (AdamW) the mean of squares. laci_optimizer_count_slots_for_options returns the number of slots
 * that an optimizer with these options has. */
laci_optimizer_kind laci_optimizer_kind_of(const laci_optimizer *optimizer);
int laci_optimizer_count_slots_for_options(const laci_optimizer_options *options);
int laci_optimizer_count_slots(const laci_optimizer *optimizer);
float *laci_optimizer_slot(laci_optimizer *optimizer, int slot);
int64_t laci_optimizer_steps(const laci_optimizer *optimizer);
void laci_optimizer_set_steps(laci_optimizer *optimizer, int64_t steps);

/** Sets the mask of a parameter: elements with mask 0 become zero in `weights` and in the state
 * now, and stay zero in later steps. mask: [count] bytes, which must live as long as the optimizer;
 * NULL: no mask. weights may be NULL if they are masked already. */
void laci_optimizer_set_mask(laci_optimizer *optimizer, int parameter, const uint8_t *mask,
                             float *weights);

/** Describes the next step as laci_optimizer_step would take it, for an engine that takes it
 * instead. After that the caller calls laci_optimizer_set_steps. The result is valid until the next
 * call. */
const lac_engine_update *laci_optimizer_describe_step(laci_optimizer *optimizer, float rate,
                                                      float scale, float *weights,
                                                      float *gradients);

/** Returns the norm of the gradients [laci_optimizer_count_floats], without elements whose mask is
 * 0. Sums are in double, in the order of the parameters. */
double laci_optimizer_gradient_norm(const laci_optimizer *optimizer, const float *gradients);

/** Takes one step: updates weights [laci_optimizer_count_floats] from gradients
 * [laci_optimizer_count_floats]. Gradients are multiplied by scale (1 / n if they are sums over n
 * batches). Masked elements of the gradients become zero. */
void laci_optimizer_step(laci_optimizer *optimizer, float rate, float scale, float *weights,
                         float *gradients);

#endif
