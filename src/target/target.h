/* SPDX-License-Identifier: Apache-2.0
 * What hardware and runtimes make of an N:M weight.
 *
 * A target is a file of facts (list/NAME.c): rules, one for each form in which it takes a weight as
 * sparse, gains that were published or measured, and the sources of both. judge.c compares a layer
 * with the rules; no rule is code. What no source says is "not stated", and never guessed. Next:
 * list/tensorrt.c, then judge.c. */
#ifndef LACI_TARGET_TARGET_H
#define LACI_TARGET_TARGET_H

#include "base/memory.h"
#include "lacuna/report.h"
#include "sparse/weight_view.h"

/** Where a fact comes from: a title, and the section or place in it. */
typedef struct laci_target_source {
  const char *key; /* what rules and gains name it by */
  const char *title, *section;
} laci_target_source;

/** What sources say of something that is outside a rule. */
typedef enum laci_target_stance {
  LACI_TARGET_NO,
  LACI_TARGET_YES,
  LACI_TARGET_UNSTATED,
} laci_target_stance;

/** One form in which a target takes a weight as sparse. Words are separated by spaces. Zeros are
 * along the input channels, for every output channel and kernel position, in aligned blocks. */
typedef struct laci_target_rule {
  const char *by;            /* which backend; NULL: there is one */
  const char *ops;           /* operators */
  const char *types;         /* element types of the weight */
  laci_pattern pattern;      /* at most n non-zeros in m; 0:0: zeros anywhere */
  int least_zeros;           /* percent of all elements; 0: the pattern says it */
  int in_multiple;           /* of input channels, those of one convolution group; 0: not stated */
  int out_multiple;          /* of output channels, likewise */
  int least_rank, most_rank; /* of the weight; 0: any */
  laci_target_stance other_rank; /* beyond these */
  int most_positions;            /* of the kernel; 0: any */
  laci_target_stance groups;     /* more than one convolution group */
  bool unshared;                 /* no other layer may have the same weight */
  int pays_in, pays_out; /* least input channels times kernel positions, least output channels, for
                            which sparse is said to be faster; 0: not stated */
  const char *source;
} laci_target_rule;

/** A published or measured gain of layers of one shape: dense time over sparse time. */
typedef struct laci_target_gain {
  const char *op, *type;
  int positions;
  int64_t in, out;
  double times;
  const char *of; /* what was measured, and on what */
  const char *source;
} laci_target_gain;

typedef struct laci_target {
  const char *title;
  const char *needs; /* what its user has to do in addition */
  const char *never; /* why it takes nothing; NULL: rules say what it takes */
  const char *never_source;
  const char *unstated; /* operators that no source speaks of */
  bool zero_points; /* elements that equal their zero point count as zeros; else only stored zeros
                       do */
  const char *remarks; /* what a reader should know; for documents */
  const laci_target_source *sources;
  const laci_target_rule *rules;
  const laci_target_gain *gains;
  int n_sources, n_rules, n_gains;
} laci_target;

#define LAC_TARGET(id, name) extern const laci_target laci_target_##id;
#include "target/target.def"
#undef LAC_TARGET

/** All of them, in the order of target.def: facts and names. */
extern const laci_target *const laci_targets[];
const char *const *laci_target_names(int *n);

/** A target as it was asked for: NAME, or NAME:TYPE, the element type that weights will have when
 * they run there. */
typedef struct laci_target_choice {
  const char *name; /* "tensorrt" */
  const laci_target *target;
  lac_dtype as; /* LAC_DTYPE_NONE: the stored one */
} laci_target_choice;

/** Fails LAC_BAD_ARGUMENT, naming all targets or types. */
LAC_MUST_CHECK lac_status laci_target_find(const char *text, laci_target_choice *choice,
                                           lac_error *err);

/** A layer as targets see it. */
typedef struct laci_target_layer {
  const char *op;
  lac_dtype dtype; /* of the stored weight */
  int rank, k_axis, c_axis;
  const int64_t *dims;               /* [rank] of the stored weight */
  int64_t groups;                    /* of a convolution */
  int64_t channels_in, channels_out; /* in one group */
  const char *shared_with;           /* another layer with the same weight; NULL: none */
  laci_weight_view view;
} laci_target_layer;

/** What is wrong, in the order in which it is looked for. */
typedef enum laci_target_fault {
  LACI_FAULT_NONE,
  LACI_FAULT_NEVER,
  LACI_FAULT_OPERATOR,
  LACI_FAULT_TYPE,
  LACI_FAULT_RANK,
  LACI_FAULT_WINDOW,
  LACI_FAULT_GROUPS,
  LACI_FAULT_SHARED,
  LACI_FAULT_SIZE,
  LACI_FAULT_ZERO_POINT,
  LACI_FAULT_PATTERN, /* zeros along the right axis, but not enough in some block */
  LACI_FAULT_AXIS,    /* the pattern, along another axis */
  LACI_FAULT_ZEROS,   /* too few zeros */
} laci_target_fault;

/** "size" and so on; NULL for none. */
const char *laci_target_fault_name(laci_target_fault fault);

enum { LACI_TARGET_TEXT = 320 };

typedef struct laci_target_answer {
  lac_target_answer answer;
  laci_target_fault fault;
  lac_target_pays pays;
  const laci_target_rule *rule;  /* of a layer that is taken; else NULL */
  const laci_target_gain *gain;  /* NULL: none was published or measured */
  char reason[LACI_TARGET_TEXT]; /* why not, or where it says something, how; else "" */
} laci_target_answer;

/** Would the target take the layer under a mask of this pattern? Elements are not looked at. */
void laci_target_foresee(const laci_target_choice *choice, const laci_target_layer *layer,
                         laci_pattern pattern, laci_target_answer *answer);

/** Will it take the layer as it is? O(elements), one byte of memory for each. Fails LAC_NO_MEMORY.
 */
LAC_MUST_CHECK lac_status laci_target_judge(const laci_target_choice *choice,
                                            const laci_target_layer *layer,
                                            laci_target_answer *answer, lac_error *err);

/** What the source of a key is called, "title, section", in `text`; returns text. */
const char *laci_target_source_text(const laci_target *target, const char *key,
                                    char text[LACI_TARGET_TEXT]);

#endif
