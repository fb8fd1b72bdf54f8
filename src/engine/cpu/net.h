/* SPDX-License-Identifier: Apache-2.0
 * The fast engine: a graph, planned once for fixed input shapes, run many times.
 *
 * Planning decides everything that does not depend on the data: which nodes are constant, which
 * melt into the layer before them, the layout of every value, the place of every value in one
 * arena. Running walks a list of steps. Dense work is oneDNN's; what it lacks is done by the
 * operators' own eval. Next: net_in.h (what a plan is made of), layers.c, tensors.c, place.c. */
#ifndef LACI_BACKEND_CPU_NET_H
#define LACI_BACKEND_CPU_NET_H

#include "base/budget.h"
#include "graph/graph.h"
#include "graph/infer.h"

typedef struct laci_net laci_net;

/** Copies n of a stored tensor's bytes, which need not be in memory. Any thread. */
typedef lac_status laci_net_fetch(void *context, const uint8_t *bytes, size_t n, void *to,
                                  lac_error *err);

typedef struct laci_net_options {
  int threads;        /* <= 0: the cores this process may use */
  bool bf16;          /* activations and weights in bf16 between oneDNN's steps */
  bool early_outputs; /* no output's buffer is an input's: each is written as soon as it is
                         there, and takes no memory from then on */
  const laci_input_shape *shapes; /* of inputs; sizes that the file leaves open must be here */
  int n_shapes;
  laci_net_fetch *fetch; /* NULL: stored bytes are read where they are */
  void *fetch_context;   /* both for as long as the net is being created */
  laci_budget *budget;   /* what others hold and the limit; the net's ports, weights and values are
                            added. NULL: no limit */
} laci_net_options;

/** An input or output as the caller hands it over: f32 for every float type, i64 for integers and
 * booleans, row-major. */
typedef struct laci_net_port {
  const char *name;
  laci_type type; /* F32 or I64; the shape is known */
  size_t size_bytes;
} laci_net_port;

/** Plans `graph`, which is borrowed and must not change while the net lives. Its stored bytes are
 * read here and never again. Fails LAC_NOT_FOUND (a shape for an unknown input), LAC_BAD_SHAPE (a
 * size nobody fixed, operands that do not fit), LAC_UNSUPPORTED (an operator that cannot be run, a
 * shape that depends on data, bf16 on a processor without), LAC_NO_MEMORY, LAC_MEMORY_LIMIT (what
 * the plan needs is above the budget; nothing large was allocated, no primitive made). Any thread.
 */
LAC_MUST_CHECK lac_status laci_net_create(const laci_graph *graph, const laci_net_options *options,
                                          laci_net **net, lac_error *err);
void laci_net_destroy(laci_net *net);

int laci_net_inputs(const laci_net *net, const laci_net_port **ports);
int laci_net_outputs(const laci_net *net, const laci_net_port **ports);
/** Bytes of the one block for all that lives between steps, and of the reordered weights. */
size_t laci_net_arena_bytes(const laci_net *net);
size_t laci_net_weight_bytes(const laci_net *net);
/** A line a step; dies with the net. */
const char *laci_net_text(const laci_net *net);

/** One run; buffers in the order of the ports. Allocates nothing of our own (an operator without a
 * fast form may take scratch memory for itself; the text names each). One run at a time per net;
 * different nets run side by side, each on its own threads. */
LAC_MUST_CHECK lac_status laci_net_run(laci_net *net, const void *const *inputs,
                                       void *const *outputs, lac_error *err);
/** The same with the seconds that each step took, [laci_net_step_count]. */
LAC_MUST_CHECK lac_status laci_net_run_timed(laci_net *net, const void *const *inputs,
                                             void *const *outputs, double *seconds, lac_error *err);

/** What a step is, for reports (steps.c). Views; they die with the net. */
typedef struct laci_net_step_info {
  const char *name;   /* of its node; NULL: it only changes a layout for what comes next */
  const char *op;     /* the node's operator, "reorder" or "output" */
  const char *what;   /* with all that melted in */
  const char *kernel; /* oneDNN's name, "plain", or "own" for a copy of ours */
  bool plain;
  int64_t flops; /* multiplications and additions of a product; 0 for all else */
  int64_t bytes_read, bytes_written; /* every operand and result once */
} laci_net_step_info;

size_t laci_net_step_count(const laci_net *net);
laci_net_step_info laci_net_step_look(const laci_net *net, size_t step);
int laci_net_threads(const laci_net *net);

#endif
