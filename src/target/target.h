/* SPDX-License-Identifier: Apache-2.0
 * Tells which N:M weights a target, which is hardware or a runtime, can use as sparse.
 *
 * Each target has a file of facts (list/NAME.c): rules, one for each form in which the target
 * accepts a sparse weight; gains that were published or measured; and the sources of both. judge.c
 * compares a layer with the rules; rules are data, not code. Facts that no source states are "not
 * stated", and never guessed. Next: list/tensorrt.c, then judge.c. */
#ifndef LACI_TARGET_TARGET_H
#define LACI_TARGET_TARGET_H

#include "lacuna/report.h"
#include "sparse/weight_view.h"

/** The source of a fact: a title, and the section in it. */
typedef struct laci_target_source {
  const char *key; /* key by which rules and gains refer to the source */
  const char *title, *section;
} laci_target_source;

/** Whether a target accepts something that its rules do not cover, according to the sources. */
typedef enum laci_target_stance {
  LACI_TARGET_NO,
  LACI_TARGET_YES,
  LACI_TARGET_UNSTATED,
} laci_target_stance;

/** A rule: one form in which a target accepts a sparse weight. Lists of words are separated by
 * spaces. Blocks of the pattern are aligned, and run along the input channels, for every output
 * channel and kernel position. */
typedef struct laci_target_rule {
  const char *by;            /* name of the backend that the rule is for; NULL: the target has only
                                one backend */
  const char *ops;           /* operators of the layers that the rule accepts */
  const char *types;         /* element types that the rule accepts for the weight */
  laci_pattern pattern;      /* pattern that the weight must hold: at most n nonzeros in m elements;
                                0:0: the zeros may be anywhere */
  int least_zeros;           /* least percentage of zeros in the weight; 0: what the pattern
                                implies */
  int in_multiple;           /* number of which the input channels of a convolution group must be a
                                multiple; 0: not stated */
  int out_multiple;          /* number of which the output channels must be a multiple; 0: not
                                stated */
  int least_rank, most_rank; /* least and maximum rank of the weight; 0: any */
  laci_target_stance other_rank; /* whether weights of other ranks are accepted */
  int most_positions;            /* maximum number of kernel positions; 0: any */
  laci_target_stance groups;     /* whether layers with more than one convolution group are
                                    accepted */
  bool unshared;                 /* true: no other layer may share the weight */
  int pays_in, pays_out; /* least sizes from which the source says that sparse is faster. pays_in:
                            input channels times kernel positions. pays_out: output channels. 0: not
                            stated */
  const char *source;
} laci_target_rule;

/** A published or measured gain for layers of one shape. times: time of the dense layer / time of
 * the sparse one. */
typedef struct laci_target_gain {
  const char *op, *type;
  int positions;
  int64_t in, out;
  double times;
  const char *of; /* what was measured, and on which hardware */
  const char *source;
} laci_target_gain;

typedef struct laci_target {
  const char *title;
  const char *needs; /* what the user of the target must do in addition; NULL: nothing is
                        documented */
  const char *never; /* why the target accepts no sparse weight; NULL: its rules say what it
                        accepts */
  const char *never_source;
  const char *unstated; /* operators that no source mentions */
  bool zero_points;     /* true: elements that equal their zero point count as zeros; false: only
                           elements stored as 0 do */
  const char *remarks;  /* remarks on the target, for the documentation */
  const laci_target_source *sources;
  const laci_target_rule *rules;
  const laci_target_gain *gains;
  int n_sources, n_rules, n_gains;
} laci_target;

#define LAC_TARGET(id, name) extern const laci_target laci_target_##id;
#include "target/target.def"
#undef LAC_TARGET

/** All targets (laci_targets), and their names (*n of them), in the order of target.def. */
extern const laci_target *const laci_targets[];
const char *const *laci_target_names(int *n);

/** A target as the user writes it: NAME, or NAME:TYPE, where TYPE is the element type that weights
 * will have on the target. */
typedef struct laci_target_choice {
  const char *name; /* name of the target, such as "tensorrt" */
  const laci_target *target;
  lac_dtype as; /* element type that weights have on the target; LAC_DTYPE_NONE: the type in which
                   they are stored */
} laci_target_choice;

/** Finds the target that `text` names. Fails with LAC_BAD_ARGUMENT; the text lists all targets or
 * types. */
LAC_MUST_CHECK lac_status laci_target_find(const char *text, laci_target_choice *choice,
                                           lac_error *err);

/** The facts of a layer, which are compared with a target's rules. */
typedef struct laci_target_layer {
  const char *op;
  lac_dtype dtype; /* element type of the stored weight */
  int rank, k_axis, c_axis;
  const int64_t *dims;               /* [rank] sizes of the stored weight's axes */
  int64_t groups;                    /* number of convolution groups */
  int64_t channels_in, channels_out; /* number of input and of output channels of one convolution
                                        group */
  const char *shared_with;           /* name of another layer with the same weight; NULL: there is
                                        none */
  laci_weight_view view;
} laci_target_layer;

/** Why a target refuses a layer, in the order of the checks. */
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
  LACI_FAULT_PATTERN, /* the zeros are along the right axis, but some block has too few */
  LACI_FAULT_AXIS,    /* the weight holds the pattern, but along another axis */
  LACI_FAULT_ZEROS,   /* the weight has too few zeros */
  LACI_FAULT_PLAN,    /* the plan of the network runs the layer with a dense kernel */
} laci_target_fault;

/** Returns the fault's name, "size" for LACI_FAULT_SIZE; NULL for LACI_FAULT_NONE. */
const char *laci_target_fault_name(laci_target_fault fault);

enum { LACI_TARGET_TEXT = 320 };

typedef struct laci_target_answer {
  lac_target_answer answer;
  laci_target_fault fault;
  lac_target_pays pays;
  const laci_target_rule *rule;  /* the rule that accepts the layer; NULL: no rule does */
  const laci_target_gain *gain;  /* the gain of such a layer; NULL: none was published or
                                    measured */
  char reason[LACI_TARGET_TEXT]; /* why the layer is refused, or a remark on an accepted layer; else
                                    "" */
} laci_target_answer;

/** Predicts whether the target would accept the layer if it had a mask of this pattern. Elements
 * are not read. */
void laci_target_predict_answer(const laci_target_choice *choice, const laci_target_layer *layer,
                                laci_pattern pattern, laci_target_answer *answer);

/** Judges whether the target accepts the layer's weight as it is. Takes time and memory in
 * proportion to its number of elements: one byte for each. Fails with LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_target_judge_weight(const laci_target_choice *choice,
                                                   const laci_target_layer *layer,
                                                   laci_target_answer *answer, lac_error *err);

/** Writes "title, section" of the source with this key to `text`, and returns text. */
const char *laci_target_source_text(const laci_target *target, const char *key,
                                    char text[LACI_TARGET_TEXT]);

#endif
