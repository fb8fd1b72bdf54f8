/* SPDX-License-Identifier: Apache-2.0
 * Can a network be planned, what would run each of its nodes, and why not?
 *
 *   lac_engine_options o = lac_engine_options_default();
 *   lac_plan_ask(model, &o, &answer, &err);
 *   lac_plan_about(answer, &facts, &err);                facts.refusal is LAC_OK: it can
 *   lac_plan_find(answer, "conv1_output", &node, &err);  a node by the name of an output of it
 *
 * The answer comes from planning itself, without the memory and the generated code of a run: the
 * lists by which an engine lowers nodes decide. It is made once, for the whole network; looking at
 * its nodes costs nothing.
 *
 * With all sizes of the inputs fixed, by the file or by the options, the answer is exact.
 * lac_engine_create, without tuning and with enough memory, fails as it says, or makes a plan that
 * runs the nodes so. With open sizes, "no" means that no sizes make a plan possible. "Yes" means
 * that no operator prevents it. What runs each node is then known for sizes that were assumed: a
 * batch of 1, and usual sizes for the rest. Other sizes may be refused, or run otherwise. */
#ifndef LACUNA_PLAN_H
#define LACUNA_PLAN_H

#include <stdbool.h>
#include <stddef.h>

#include "lacuna/dtype.h"
#include "lacuna/engine.h"
#include "lacuna/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The answer about a network; opaque. It does not need the model any more. */
typedef struct lac_plan_answer lac_plan_answer;

/** What runs a node. */
typedef enum lac_node_runner {
  LAC_RUNNER_NONE = 0,    /* nothing: the node is why the network is refused */
  LAC_RUNNER_UNKNOWN = 1, /* not known: it depends on sizes that are open, or that do not fit */
  LAC_RUNNER_NO_STEP =
      2,               /* nothing in a run: its results are the same in every run, or nobody reads
                          them, or it is merged into another node */
  LAC_RUNNER_FAST = 3, /* a fast kernel, alone or with other nodes */
  LAC_RUNNER_OPERATOR = 4, /* the operator's slow definition, inside the fast engine */
  LAC_RUNNER_EXACT = 5,    /* the operator's slow definition, in the exact engine */
} lac_node_runner;

/** A node of the network. The texts are valid until the answer is destroyed. */
typedef struct lac_plan_node {
  size_t size;        /* sizeof of this struct, set by LAC_SIZED */
  const char *name;   /* may be empty, and need not be unique */
  const char *op;     /* operator of the node */
  const char *output; /* the name of its first output, unique in the network; NULL: it has none */
  lac_node_runner runner; /* what would run the node */
  bool sparse;            /* the kernel skips zeros of the weight */
  bool sparse_possible;   /* a kernel that skips zeros can compute the node with the zeros of its
                             weight; if `sparse` is false, a dense kernel is expected to be faster
                             */
  const char *reason;     /* why no fast kernel runs it; NULL: one does, or none is needed */
} lac_plan_node;

/** Facts about an answer. The texts are valid until the answer is destroyed. */
typedef struct lac_plan_facts {
  size_t size;        /* sizeof of this struct, set by LAC_SIZED */
  const char *engine; /* the engine that was asked */
  lac_dtype dtype;    /* type of the computation */
  lac_status refusal; /* LAC_OK: the network can be planned; else what lac_engine_create fails with:
                         LAC_UNSUPPORTED, LAC_BAD_SHAPE, LAC_MEMORY_LIMIT */
  const char *reason; /* the text of that failure; NULL: the network can be planned */
  lac_hint hint;      /* what the caller could change about that failure */
  bool open;          /* sizes of the inputs are open, and were assumed */
  int n_nodes;
  int n_none, n_unknown, n_no_step, n_fast, n_operator, n_exact; /* number of nodes for each value
                                                                    of lac_node_runner */
  int n_sparse, n_sparse_possible; /* number of nodes whose `sparse` is true, and whose
                                      `sparse_possible` is */
} lac_plan_facts;

/** Asks whether the network can be planned with these options. options->shapes may leave sizes
 * open; kernels are chosen without timing. *answer belongs to the caller, and is made whether the
 * network can be planned or not; NULL on failure. Fails LAC_BAD_ARGUMENT, LAC_NOT_FOUND (no engine
 * of that name, or a shape for an unknown input), LAC_IO, LAC_INTERRUPTED, LAC_NO_MEMORY. */
LAC_API LAC_MUST_CHECK lac_status lac_plan_ask(const lac_model *model,
                                               const lac_engine_options *options,
                                               lac_plan_answer **answer, lac_error *err);
/** Frees the answer. NULL is fine. */
LAC_API void lac_plan_answer_destroy(lac_plan_answer *answer);

/** Fills *facts. */
LAC_API LAC_MUST_CHECK lac_status lac_plan_about(const lac_plan_answer *answer,
                                                 lac_plan_facts *facts, lac_error *err);
/** Fills *node with node number `index`, 0 .. n_nodes - 1, in the order of the file. Fails
 * LAC_NOT_FOUND. */
LAC_API LAC_MUST_CHECK lac_status lac_plan_node_at(const lac_plan_answer *answer, int index,
                                                   lac_plan_node *node, lac_error *err);
/** Fills *node with the node that has an output of this name. Fails LAC_NOT_FOUND. */
LAC_API LAC_MUST_CHECK lac_status lac_plan_find(const lac_plan_answer *answer, const char *output,
                                                lac_plan_node *node, lac_error *err);
/** Returns what runs a node in one word, as reports have it: "fast"; never NULL. */
LAC_API const char *lac_node_runner_name(lac_node_runner runner);

#ifdef __cplusplus
}
#endif
#endif
