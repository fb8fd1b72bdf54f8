/* SPDX-License-Identifier: Apache-2.0
 * The analysis against brute force, over random small networks of all declared operators.
 *
 * Sound: whatever order a class allows, every value of the network is the old one reordered, and
 * the plan's certificate and the verification agree. Complete: an exchange of two indices that
 * trial and error finds harmless is one that the classes allow, or is on the short list of
 * weaknesses in classify(). LAC_RANDOM_GRAPHS sets how many networks, LAC_RANDOM_SEED where they
 * start, LAC_RANDOM_ONLY which tests run (every_allowed*). Next: support/random_net.h,
 * support/brute_force.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "analyze/analyze.h"
#include "analyze/classes_in.h"
#include "analyze/tracks_in.h"
#include "base/log.h"
#include "graph/content.h"
#include "permute/plan.h"
#include "permute/search.h"
#include "verify/verify.h"
#include "support/brute_force.h"
#include "support/light.h"
#include "support/random_net.h"
#include "tensor/buf.h"

enum { DEFAULT_GRAPHS = 1900, MAX_REPORTS = 6, FREE_TRIED = 2, FROZEN_TRIED = 10 };

static int log_errors;

static void count_errors(lac_log_level level, const char *line, void *context) {
  (void)context;
  if (level != LAC_LOG_ERROR) return;
  log_errors++;
  print_message("log: %s\n", line);
}

static laci_rules all_layers(void) {
  return (laci_rules){.pattern = {2, 4}, .all_sizes = true, .recurrent = true};
}

/* ---- sound ---- */

typedef struct sound {
  const laci_graph *graph;
  laci_analysis *a;
  laci_buf **old;
  int32_t **order; /* [n_tracks] */
  uint64_t seed, drawn;
  bool hide;  /* the analysis does not know the shapes of some values */
  bool moves; /* some channels may change places */
  char why[256];
} sound;

static void shuffle(sound *s, int32_t *order, int n, bool one_swap) {
  for (int i = 0; i < n; i++) order[i] = i;
  for (int i = n - 1; i > 0; i--) {
    int j = (int)laci_rng_integer_below(s->seed, 5, s->drawn++,
                                        one_swap ? (uint64_t)i : (uint64_t)i + 1);
    int32_t kept = order[i];
    order[i] = order[j];
    order[j] = kept;
    if (one_swap) return;
  }
}

/* Adds a random order of one class to the tracks' orders. */
static void move_class(sound *s, int class, bool one_swap) {
  const laci_class *c = &s->a->classes->classes[class];
  int32_t *chosen = laci_alloc((size_t)c->n_channels, sizeof *chosen);
  assert_non_null(chosen);
  shuffle(s, chosen, c->n_channels, one_swap);
  for (int slot = 0; slot < c->n_slots; slot++) {
    int32_t **order = &s->order[c->track[slot]];
    int64_t n = laci_track_count_positions(s->a, c->track[slot]);
    const int32_t *position = c->position + (int64_t)slot * c->n_channels;
    if (!*order) {
      *order = laci_alloc((size_t)n, sizeof **order);
      assert_non_null(*order);
      for (int64_t p = 0; p < n; p++) (*order)[p] = (int32_t)p;
    }
    for (int k = 0; k < c->n_channels; k++) (*order)[position[k]] = position[chosen[k]];
  }
  laci_free(chosen);
}

static laci_buf *reordered(const sound *s, int value) {
  laci_value_axes axes[LACI_MAX_RANK];
  laci_axis_order items[LACI_MAX_RANK];
  laci_value_orders orders = {.items = items};
  int n = laci_value_find_track_axes(s->a, value, axes);
  for (int i = 0; i < n; i++) {
    if (!s->order[axes[i].track]) continue;
    laci_axis_order *item = &items[orders.n++];
    *item = (laci_axis_order){.n_axes = axes[i].n_axes,
                              .count = laci_track_count_positions(s->a, axes[i].track),
                              .order = s->order[axes[i].track],
                              .n_groups = axes[i].n_groups,
                              .row_axis = axes[i].row_axis};
    memcpy(item->axes, axes[i].axes, sizeof item->axes);
  }
  const laci_buf *old = s->old[value];
  laci_buf *now = buf_copy(old);
  const void *from = old->f ? (void *)old->f : (void *)old->i;
  void *to = old->f ? (void *)now->f : (void *)now->i;
  if (laci_reorder(&old->shape, 8, &orders, from, to, NULL)) {
    laci_buf_destroy(now);
    return NULL;
  }
  return now;
}

/* Runs the network on reordered stored tensors and compares every value through its order. */
static bool orders_hold(sound *s) {
  laci_buf **now = laci_alloc((size_t)s->graph->n_values + 1, sizeof *now);
  assert_non_null(now);
  bool ok = true;
  for (int v = 0; ok && v < s->graph->n_values; v++) {
    if (s->graph->values[v].producer >= 0) continue;
    now[v] = reordered(s, v);
    ok = now[v] != NULL && (s->graph->values[v].stored >= 0 || buf_close(now[v], s->old[v], 0));
    if (!ok)
      (void)snprintf(s->why, sizeof s->why, "%s cannot be reordered", s->graph->values[v].name);
  }
  for (int n = 0; ok && n < s->graph->n_nodes; n++) {
    const laci_node *node = &s->graph->nodes[n];
    ok = run_node(s->graph, n, now, NULL) == LAC_OK;
    bool matters = laci_node_affects_outputs(s->graph, s->a->tracks->matters, n);
    for (int i = 0; ok && i < node->n_outputs; i++) {
      int v = node->outputs[i];
      if (v < 0 || !matters) continue; /* of the others at most the shape is read */
      laci_buf *wanted = reordered(s, v);
      ok = wanted && buf_close(now[v], wanted, brute_tolerance(wanted));
      if (ok && s->graph->values[v].is_output)
        ok = buf_close(now[v], s->old[v], brute_tolerance(wanted));
      laci_buf_destroy(wanted);
    }
    if (!ok)
      (void)snprintf(s->why, sizeof s->why, "%s (%s) differs",
                     node->outputs[0] >= 0 ? s->graph->values[node->outputs[0]].name : node->name,
                     node->type);
  }
  run_clear(s->graph, now);
  return ok;
}

static bool certified(sound *s) {
  int miss = -2;
  assert_true(laci_classes_check_orders(s->a->tracks, s->a->classes, s->order, &miss));
  if (miss != -1) (void)snprintf(s->why, sizeof s->why, "the certificate misses at class %d", miss);
  return miss == -1;
}

static void release_orders(sound *s) {
  for (int t = 0; t < laci_analysis_count_tracks(s->a); t++) {
    laci_free(s->order[t]);
    s->order[t] = NULL;
  }
}

/* Every class alone (an exchange, an order), then all together. */
static bool classes_are_sound(sound *s) {
  const laci_classes *classes = s->a->classes;
  bool ok = true;
  for (int c = 0; ok && c < classes->n_classes; c++) {
    if (classes->classes[c].n_channels < 2) continue;
    move_class(s, c, s->seed % 2 == 0);
    ok = certified(s) && orders_hold(s);
    release_orders(s);
  }
  for (int c = 0; ok && c < classes->n_classes; c++) {
    if (classes->classes[c].n_channels > 1) move_class(s, c, false);
  }
  ok = ok && certified(s) && orders_hold(s);
  release_orders(s);
  return ok;
}

static const laci_shape *input_shape(const laci_graph *graph) {
  return &graph->values[graph->inputs[0]].type.shape;
}

/* The same through the function that the product uses. */
static bool plan_is_sound(sound *s) {
  laci_plan *plan;
  lac_error err = {0};
  laci_verification found;
  laci_verify_options options = {.seed = s->seed, .tolerance = 1e-9};
  if (laci_plan_create(s->a, &plan, &err)) {
    (void)snprintf(s->why, sizeof s->why, "plan: %.200s", err.text);
    return false;
  }
  for (int g = 0; g < s->a->n_groups; g++) {
    if (!s->a->groups[g].frozen)
      shuffle(s, plan->found[g].order, s->a->groups[g].n_channels, false);
  }
  int errors = log_errors;
  lac_status st = laci_plan_make_value_orders(plan, &err);
  bool open = !laci_shape_is_known(input_shape(s->graph));
  if (!st && (!open || s->seed % 4 == 0)) { /* large sizes, too, where it may choose */
    st = laci_verify(s->graph, &plan->orders, &options, NULL, &found, &err);
    if (open && st != LAC_PROOF_FAILED && st != LAC_INTERNAL)
      st = LAC_OK; /* which sizes the network accepts cannot always be told from it */
  }
  if (!st && log_errors != errors) st = laci_fail(&err, LAC_INTERNAL, "the log has an error");
  if (st) (void)snprintf(s->why, sizeof s->why, "plan: %.200s", err.text);
  laci_plan_destroy(plan);
  return st == LAC_OK;
}

/* An operand of some node, as if an operator without a shape rule had made it, and a quarter of all
 * values. */
static void hide_shapes(laci_graph *graph, uint64_t seed) {
  const laci_node *node =
      &graph->nodes[laci_rng_integer_below(seed, 11, 0, (uint64_t)graph->n_nodes)];
  int operand = node->n_inputs > 0
                    ? node->inputs[laci_rng_integer_below(seed, 11, 1, (uint64_t)node->n_inputs)]
                    : -1;
  for (int v = 0; v < graph->n_values; v++) {
    bool drawn = seed % 2 && laci_rng_integer_below(seed, 12, (uint64_t)v, 4) == 0;
    if (v == operand || drawn) graph->values[v].type.shape = laci_shape_unknown();
  }
}

static bool is_unsound(const char *text, void *context) {
  sound *s = context;
  laci_graph *graph;
  *s = (sound){.seed = s->seed, .hide = s->hide};
  laci_rules rules = all_layers();
  if (net_read(text, &graph, NULL)) return false;
  s->graph = graph;
  s->old = run_graph(graph);
  bool ok = true;
  if (s->hide && s->old && graph->n_nodes > 0) hide_shapes(graph, s->seed);
  if (s->old && graph->n_outputs > 0 && laci_analyze(graph, &rules, &s->a, NULL) == LAC_OK) {
    s->order = laci_alloc((size_t)laci_analysis_count_tracks(s->a) + 1, sizeof *s->order);
    for (int c = 0; c < s->a->classes->n_classes; c++)
      s->moves |= s->a->classes->classes[c].n_channels > 1;
    ok = classes_are_sound(s) && (s->hide || plan_is_sound(s));
    laci_free(s->order);
    laci_analysis_destroy(s->a);
  }
  run_clear(graph, s->old);
  laci_graph_destroy(graph);
  return !ok;
}

/* ---- complete ---- */

typedef enum verdict {
  FOUND_ALLOWED, /* brute force found an exchange that the classes allow */
  FOUND_VACUOUS, /* it found one of contents that no output depends on */
  FOUND_EQUAL,   /* ... of equal contents */
  FOUND_WITHIN,  /* ... of two places of one channel: a symmetry inside a channel is no exchange of
                    channels */
  FOUND_SILENT,  /* ... frozen by what says less than could be said: see is_frozen_by_choice() */
  FOUND_WHOLE,   /* ... of whole heads or whole groups that are one channel wide */
  FOUND_COPIES,  /* ... of two outputs of one channel of a depthwise layer with a multiplier: they
                    are copies to us */
  FOUND_DEGENERATE, /* ... in a network with roundings, comparisons, dead branches, recurrences of
                       one step or outputs that ignore the inputs */
  FOUND_ACCIDENT,   /* ... that other contents do not allow: rounding, saturation */
  FOUND_MISSED,     /* ... that the classes should have allowed */
  NOT_FOUND_FREE, /* nothing found where classes allow the exchange: it needs more than one move on
                     a tensor */
  NOT_FOUND,      /* classes and brute force agree that it cannot be */
  GAVE_UP,
  N_VERDICTS
} verdict;

static const char *const verdict_texts[N_VERDICTS] = {"allowed and found",
                                                      "nobody cares",
                                                      "equal contents",
                                                      "inside one channel",
                                                      "a silent operator",
                                                      "whole heads or groups",
                                                      "copies of a depthwise layer",
                                                      "degenerate networks",
                                                      "by accident",
                                                      "MISSED BY ANALYSIS",
                                                      "allowed, beyond the trial",
                                                      "frozen, none found",
                                                      "gave up"};

typedef struct complete {
  uint64_t seed;
  long count[N_VERDICTS];
  char why[256];
  const char *text;
  const laci_graph *graph;
  laci_analysis *a;
  laci_buf **old;
} complete;

/* Position of index p of a stored tensor's axis on its track; group -1: not a grouped axis. */
static int64_t position_of(const laci_value_axes *axes, const laci_shape *shape, int64_t group,
                           int64_t p) {
  return group < 0 ? p : group * shape->dims[axes->axes[0]] + p;
}

static bool in_one_slot(const laci_class *c, int track, int64_t p, int64_t q) {
  for (int s = 0; s < c->n_slots; s++) {
    bool has_p = false, has_q = false;
    for (int k = 0; c->track[s] == track && k < c->n_channels; k++) {
      has_p |= c->position[(int64_t)s * c->n_channels + k] == p;
      has_q |= c->position[(int64_t)s * c->n_channels + k] == q;
    }
    if (has_p && has_q) return true;
  }
  return false;
}

typedef struct relation {
  bool on_track, exchangeable, same_channel, frozen_by_choice, tagged_apart;
} relation;

/* Do the outputs stay when both slices are replaced by other numbers? */
static bool is_vacuous(const complete *k, int stored, int axis, int64_t p, int64_t q) {
  const laci_graph *graph = k->graph;
  laci_buf **now = laci_alloc((size_t)graph->n_values + 1, sizeof *now);
  assert_non_null(now);
  int changed = graph->stored[stored].value;
  for (int v = 0; v < graph->n_values; v++) {
    if (graph->values[v].producer < 0) now[v] = buf_copy(k->old[v]);
  }
  int64_t size = now[changed]->shape.dims[axis];
  int64_t inner = laci_shape_count_range(&now[changed]->shape, axis + 1, now[changed]->shape.rank);
  for (int64_t i = 0; i < now[changed]->count; i++) {
    int64_t at = i / inner % size;
    if (at == p || at == q) now[changed]->f[i] = net_number("other", i);
  }
  bool same = true;
  for (int n = 0; same && n < graph->n_nodes; n++) same = run_node(graph, n, now, NULL) == LAC_OK;
  for (int i = 0; same && i < graph->n_outputs; i++) {
    int v = graph->outputs[i];
    same = buf_close(now[v], k->old[v], brute_tolerance(k->old[v]));
  }
  run_clear(graph, now);
  return same;
}

/* Some value shows the same content at both places, whatever the parameters: a copy (Gather, edge
 * padding), a constant result. Positions of equal content are no channels to the analysis unless
 * the operator says that they are uniform. */
static bool shows_equal_slices(const complete *k, int64_t n, int64_t p, int64_t q) {
  for (int v = 0; v < k->graph->n_values; v++) {
    const laci_buf *buf = k->old[v];
    bool constant = buf->count > 1; /* x - x, x / x */
    for (int64_t i = 1; i < buf->count && constant; i++)
      constant = buf_element_close(buf, i, buf, 0, 1e-12);
    if (constant && k->graph->values[v].producer >= 0) return true;
    for (int a = 0; a < buf->shape.rank; a++) {
      if (buf->shape.dims[a] == n && brute_slices_close(buf, p, buf, q, a, 0)) return true;
    }
  }
  return false;
}

/* Does a Gather copy a channel twice within a matrix of indices? A row of copies looks the same in
 * another order, though other rows do not. */
static bool gathers_copies(const complete *k) {
  for (int n = 0; n < k->graph->n_nodes; n++) {
    const laci_node *node = &k->graph->nodes[n];
    if (strcmp(node->type, "Gather") != 0) continue;
    const laci_buf *indices = k->old[node->inputs[1]];
    for (int64_t i = 0; indices->shape.rank > 1 && i < indices->count; i++) {
      for (int64_t j = 0; j < i; j++) {
        if (laci_buf_get_i(indices, i) == laci_buf_get_i(indices, j)) return true;
      }
    }
  }
  return false;
}

/* Is there a depthwise layer with a multiplier? */
static bool has_depthwise_copies(const laci_graph *graph) {
  for (int n = 0; n < graph->n_nodes; n++) {
    const laci_node *node = &graph->nodes[n];
    int64_t groups = laci_node_int(node, "group", 1);
    if (groups < 2) continue;
    const laci_shape *w = &graph->values[node->inputs[1]].type.shape,
                     *x = &graph->values[node->inputs[0]].type.shape;
    const laci_shape *y = &graph->values[node->outputs[0]].type.shape;
    if (w->dims[1] == 1 && x->dims[1] != y->dims[1]) return true;
  }
  return false;
}

/* Is there a recurrent layer of one step? Its states before and after share a channel in the
 * analysis, though nothing carries the one into the other. */
static bool has_one_step(const complete *k) {
  for (int n = 0; n < k->graph->n_nodes; n++) {
    const laci_node *node = &k->graph->nodes[n];
    if (!laci_node_attr(node, "hidden_size")) continue;
    bool lengths = node->n_inputs > 4 && node->inputs[4] >= 0;
    const laci_shape *x = &k->old[node->inputs[0]]->shape;
    if (lengths || x->dims[laci_node_int(node, "layout", 0) ? 1 : 0] == 1) return true;
  }
  return false;
}

/* Operators that describe less than could be said: what they freeze is no miss of the analysis. */
static const char *const silent_ops[] = {
    "TopK",            /* sorted values alone do not tell in which order they came */
    "ReverseSequence", /* passes an axis where the lengths happen to reverse nothing */
    "MaxPool",
    "AveragePool",
    "LpPool", /* places of one window may change places */
    "ArgMax",
    "ArgMin", /* where neither of the two is ever the largest */
    "Pad",
    "Resize",
    "Upsample", /* edges and neighbours that random sizes make alike */
    "Hardmax",
    "OneHot", /* order matters only among equals, which random numbers never are */
    "DepthToSpace",
    "SpaceToDepth", /* whole blocks along height and width */
    "LRN",          /* all channels in one window */
    "Trilu",        /* columns that are kept or dropped alike */
    "ScatterND",
    "ScatterElements",
    "GatherND",
    "GatherElements",
    "Scatter",
    "TensorScatter",
    "Compress",
    "CenterCropPad",
    "Col2Im",
    "DeformConv",
    "GridSample",
    "RoiAlign", /* whole slices may be read or written */
    "HannWindow",
    "HammingWindow",
    "BlackmanWindow", /* symmetric: two places are alike */
    "STFT",
    "MaxUnpool",
    "DFT",        /* so are frequencies of real signals, and of one place nothing is changed */
    "EyeLike",    /* places without a one */
    "Unique",     /* what the first elements of a slice decide alone */
    "Det",        /* an even number of exchanges */
    "AffineGrid", /* places that fall outside */
    "Attention",  /* tokens of a single head, heads with their queries */
    "ConvInteger",
    "MatMulInteger",
    "QLinearConv",
    "QLinearMatMul", /* not followed */
    "NegativeLogLikelihoodLoss",
    "SoftmaxCrossEntropyLoss", /* classes that are no label, and what the sum holds of all */
    "CausalConvWithState",     /* time */
    "LSTM",
    "GRU",
    "RNN", /* directions, and time where there is little */
};

static bool value_axis_holds(const complete *k, int value, int axis, int32_t component) {
  const laci_layout *layout = &k->a->tracks->layouts[value];
  if (axis >= layout->rank || layout->set[axis] < 0) return false;
  int root = laci_track_find_root(k->a->tracks, layout->axis_sets[layout->set[axis]].track);
  bool holds = false;
  for (int64_t p = 0; p < k->a->tracks->tracks[root].n; p++) {
    holds |= k->a->classes->component_of[k->a->classes->first[root] + p] == component;
  }
  return holds;
}

/* Height and width of a Conv stay in place, though a window of one place lets them move, and
 * mirrored kernels a mirror image pass: whatever a Conv freezes that is none of its channels. */
static bool is_along_space(const complete *k, const laci_node *node, int32_t component) {
  bool last = strcmp(node->type, "NhwcFusedConv") == 0; /* its channels are there */
  if (strcmp(node->type, "Conv") != 0 && strcmp(node->type, "ConvTranspose") != 0 &&
      strcmp(node->type, "FusedConv") != 0 && !last)
    return false;
  int channel = last ? k->a->tracks->layouts[node->inputs[0]].rank - 1 : 1;
  const int data[2] = {0, channel};
  for (int axis = 0; axis < 2; axis++) {
    if (value_axis_holds(k, node->inputs[0], data[axis], component) ||
        value_axis_holds(k, node->inputs[1], axis, component) ||
        value_axis_holds(k, node->outputs[0], data[axis], component)) {
      return false;
    }
  }
  return true;
}

/* Of two axes that are merged while both could move, one is followed. A Concat of what was merged
 * is no run of either. */
static bool merges_two_axes(const complete *k, const laci_node *node) {
  bool reshape = strcmp(node->type, "Reshape") == 0 || strcmp(node->type, "Flatten") == 0;
  if (reshape) return k->a->tracks->layouts[node->inputs[0]].n_axis_sets > 1;
  for (int i = 0; strcmp(node->type, "Concat") == 0 && i < node->n_inputs; i++) {
    int producer = k->graph->values[node->inputs[i]].producer;
    const laci_node *from = producer < 0 ? NULL : &k->graph->nodes[producer];
    if (from && strcmp(from->type, "Concat") != 0 && merges_two_axes(k, from)) return true;
  }
  return false;
}

/* Does anything of it reach an output? What ends nowhere freezes all the same. */
static bool ends_nowhere(const laci_graph *graph, int node_id) {
  const laci_node *node = &graph->nodes[node_id];
  for (int i = 0; i < node->n_outputs; i++) {
    if (node->outputs[i] < 0) continue;
    const laci_value *v = &graph->values[node->outputs[i]];
    if (v->is_output) return false;
    for (int r = 0; r < v->n_readers; r++) {
      if (!ends_nowhere(graph, v->readers[r])) return false;
    }
  }
  return true;
}

static bool is_frozen_by_choice(const complete *k, int64_t vertex) {
  const laci_classes *classes = k->a->classes;
  if (classes->class_of[vertex] >= 0) return false;
  int id = k->a->tracks->causes[classes->cause_of[vertex]].node;
  if (id < 0) return false;
  const laci_node *node = &k->graph->nodes[id];
  for (size_t i = 0; i < sizeof silent_ops / sizeof *silent_ops; i++) {
    if (strcmp(node->type, silent_ops[i]) == 0) return true;
  }
  return is_along_space(k, node, classes->component_of[vertex]) || merges_two_axes(k, node) ||
         ends_nowhere(k->graph, id);
}

/* Are the channels of the two positions alike but for their tags? Then it was a whole head or group
 * that moved. */
static bool differ_by_tags_only(const complete *k, int64_t a, int64_t b) {
  const laci_classes *classes = k->a->classes;
  uint64_t plain[2] = {0}, tagged[2] = {0};
  for (size_t t = 0; t < k->a->tracks->n_tracks; t++) {
    const laci_track *track = &k->a->tracks->tracks[t];
    for (int64_t p = 0; classes->first[t] >= 0 && p < track->n; p++) {
      int32_t component = classes->component_of[classes->first[t] + p];
      uint64_t colour = track->colour ? track->colour[p] : 0;
      for (int side = 0; side < 2; side++) {
        if (component != classes->component_of[side ? b : a]) continue;
        plain[side] += laci_rng(1, t, 0);
        tagged[side] += laci_rng(1, t, colour);
      }
    }
  }
  return plain[0] == plain[1] && tagged[0] != tagged[1];
}

/* Does it hold for other contents too? */
static bool is_no_accident(const complete *k, int stored, int axis, int64_t p, int64_t q) {
  bool holds = true;
  for (uint64_t salt = 1; salt <= 6 && holds; salt++) {
    *net_salt() = salt;
    laci_graph *graph;
    holds = net_read(k->text, &graph, NULL) == LAC_OK;
    if (!holds) break;
    laci_buf **old = run_graph(graph);
    holds = old && brute_exchange(graph, old, stored, axis, p, q) == BRUTE_YES;
    run_clear(graph, old);
    laci_graph_destroy(graph);
  }
  *net_salt() = 0;
  return holds;
}

static relation relation_of(const complete *k, int stored, int axis, int64_t p, int64_t q) {
  laci_value_axes axes[LACI_MAX_RANK];
  int value = k->graph->stored[stored].value, n = laci_value_find_track_axes(k->a, value, axes);
  const laci_classes *classes = k->a->classes;
  relation r = {.exchangeable = true};
  for (int i = 0; i < n; i++) {
    if (axes[i].axes[0] != axis || axes[i].n_axes != 1) continue;
    r.on_track = true;
    int64_t groups = axes[i].n_groups ? axes[i].n_groups : 1;
    for (int64_t g = 0; g < groups; g++) {
      int64_t group = axes[i].n_groups ? g : -1, first = classes->first[axes[i].track];
      int64_t a = position_of(&axes[i], &k->old[value]->shape, group, p);
      int64_t b = position_of(&axes[i], &k->old[value]->shape, group, q);
      int32_t class = classes->class_of[first + a];
      r.frozen_by_choice |= is_frozen_by_choice(k, first + a) || is_frozen_by_choice(k, first + b);
      r.tagged_apart |= differ_by_tags_only(k, first + a, first + b);
      r.same_channel |= classes->component_of[first + a] == classes->component_of[first + b];
      r.exchangeable &= class >= 0 && class == classes->class_of[first + b] &&
                        in_one_slot(&classes->classes[class], axes[i].track, a, b);
    }
  }
  r.exchangeable &= r.on_track;
  return r;
}

/* Values that are no numbers, or rounded ones: much may change without a trace. */
static bool loses_content(const laci_graph *graph) {
  static const char *const ops[] = {"Sign", "Floor", "Ceil", "Round", "Hardmax", "QuantizeLinear"};
  for (int n = 0; n < graph->n_nodes; n++) {
    const laci_node *node = &graph->nodes[n];
    bool loses =
        node->outputs[0] >= 0 && !laci_dtype_is_float(graph->values[node->outputs[0]].type.dtype);
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) loses |= strcmp(node->type, ops[i]) == 0;
    if (loses || ends_nowhere(graph, n)) return true;
  }
  return false;
}

/* Some output stays though the inputs change: x * (1 / x), or parameters alone. */
static bool ignores_inputs(const complete *k) {
  const laci_graph *graph = k->graph;
  laci_buf **now = laci_alloc((size_t)graph->n_values + 1, sizeof *now);
  assert_non_null(now);
  for (int v = 0; v < graph->n_values; v++) {
    if (graph->values[v].producer < 0) now[v] = buf_copy(k->old[v]);
    for (int64_t i = 0; graph->values[v].is_input && now[v]->f && i < now[v]->count; i++) {
      now[v]->f[i] = net_number("other", i);
    }
  }
  bool ran = true, ignores = false;
  for (int n = 0; ran && n < graph->n_nodes; n++) ran = run_node(graph, n, now, NULL) == LAC_OK;
  for (int i = 0; ran && i < graph->n_outputs; i++) {
    int v = graph->outputs[i];
    ignores |= buf_close(now[v], k->old[v], brute_tolerance(k->old[v]));
  }
  run_clear(graph, now);
  return ignores;
}

static verdict classify(const complete *k, int stored, int axis, int64_t p, int64_t q, relation r) {
  const laci_buf *old = k->old[k->graph->stored[stored].value];
  if (r.exchangeable) return FOUND_ALLOWED;
  if (is_vacuous(k, stored, axis, p, q)) return FOUND_VACUOUS;
  if (shows_equal_slices(k, old->shape.dims[axis], p, q) || gathers_copies(k)) return FOUND_EQUAL;
  if (r.same_channel) return FOUND_WITHIN;
  if (r.frozen_by_choice || has_one_step(k)) return FOUND_SILENT;
  if (r.tagged_apart) return FOUND_WHOLE;
  if (has_depthwise_copies(k->graph)) return FOUND_COPIES;
  if (loses_content(k->graph) || ignores_inputs(k)) return FOUND_DEGENERATE;
  return is_no_accident(k, stored, axis, p, q) ? FOUND_MISSED : FOUND_ACCIDENT;
}

static void try_exchange(complete *k, int stored, int axis, int64_t p, int64_t q, bool *missed) {
  relation r = relation_of(k, stored, axis, p, q);
  brute_answer answer = brute_exchange(k->graph, k->old, stored, axis, p, q);
  verdict v = answer == BRUTE_GAVE_UP ? GAVE_UP : r.exchangeable ? NOT_FOUND_FREE : NOT_FOUND;
  if (answer == BRUTE_YES) v = classify(k, stored, axis, p, q, r);
  k->count[v]++;
  if (v != FOUND_MISSED) return;
  *missed = true;
  (void)snprintf(k->why, sizeof k->why, "%s, axis %d: %lld and %lld may change places",
                 k->graph->stored[stored].name, axis, (long long)p, (long long)q);
}

/* A few exchanges that are allowed, and more that are not. */
static bool misses_exchange(complete *k) {
  bool missed = false;
  int left[2] = {FROZEN_TRIED, FREE_TRIED};
  for (int round = 0; round < 60 && (left[0] || left[1]) && !missed; round++) {
    uint64_t at = (uint64_t)round * 4;
    int stored = (int)laci_rng_integer_below(k->seed, 9, at, (uint64_t)k->graph->n_stored);
    const laci_buf *buf = k->old[k->graph->stored[stored].value];
    int value = k->graph->stored[stored].value;
    if (!brute_may_move(k->graph, value) || !buf->shape.rank || !k->graph->values[value].n_readers)
      continue;
    int axis = (int)laci_rng_integer_below(k->seed, 9, at + 1, (uint64_t)buf->shape.rank);
    int64_t n = buf->shape.dims[axis];
    if (n < 2 || n > 8) continue;
    int64_t q = 1 + (int64_t)laci_rng_integer_below(k->seed, 9, at + 2, (uint64_t)n - 1);
    int64_t p = (int64_t)laci_rng_integer_below(k->seed, 9, at + 3, (uint64_t)q);
    bool is_free = relation_of(k, stored, axis, p, q).exchangeable;
    if (!left[is_free]) continue;
    left[is_free]--;
    try_exchange(k, stored, axis, p, q, &missed);
  }
  return missed;
}

static bool is_incomplete(const char *text, void *context) {
  complete *k = context;
  laci_graph *graph;
  laci_rules rules = all_layers();
  if (net_read(text, &graph, NULL)) return false;
  k->text = text;
  k->graph = graph;
  k->old = run_graph(graph);
  bool missed = false;
  if (k->old && graph->n_outputs && graph->n_stored &&
      laci_analyze(graph, &rules, &k->a, NULL) == LAC_OK) {
    missed = misses_exchange(k);
    laci_analysis_destroy(k->a);
  }
  run_clear(graph, k->old);
  laci_graph_destroy(graph);
  return missed;
}

/* ---- the tests ---- */

static long number_from(const char *variable, long otherwise) {
  const char *text = getenv(variable);
  return text && *text ? strtol(text, NULL, 10) : otherwise;
}

static op_key op_of_graph(long g) {
  int n;
  const laci_op *const *ops = drawn_ops(&n);
  return key_of(ops[g % n]);
}

static void every_operator_has_a_template(void **state) {
  (void)state;
  int n, n_missing = 0;
  const laci_op *const *ops = drawn_ops(&n);
  for (int i = 0; i < n; i++) {
    op_key key = key_of(ops[i]);
    if (find_template(key.text)) continue;
    n_missing++;
    print_error("%s: no template in tests/support/random_ops.def\n", key.text);
  }
  assert_int_equal(n_missing, 0);
}

static long number_of_graphs(void) {
  return number_from("LAC_RANDOM_GRAPHS", tests_are_light() ? DEFAULT_GRAPHS / 3 : DEFAULT_GRAPHS);
}

static void every_allowed_order_keeps_every_value(void **state) {
  (void)state;
  long n = number_of_graphs(), first = number_from("LAC_RANDOM_SEED", 0);
  int n_failed = 0, n_made = 0;
  builder *m = malloc(sizeof *m);
  assert_non_null(m);
  for (long g = first; g < first + n && n_failed < MAX_REPORTS; g++) {
    sound s = {.seed = (uint64_t)g};
    if (make_net(m, (uint64_t)g, op_of_graph(g).text) && (g % 3 || forget_sizes(m))) {
      n_made++;
      if (is_unsound(m->text, &s)) {
        n_failed++;
        make_small(m->text, is_unsound, &s);
        (void)is_unsound(m->text, &s);
        print_error("seed %ld: %s\n%s\n", g, s.why, m->text);
      }
    }
    builder_clear(m);
  }
  free(m);
  print_message("%d networks of %ld seeds\n", n_made, n);
  assert_int_equal(n_failed, 0);
  assert_true(n_made > n * 3 / 4);
}

static void an_operand_of_unknown_shape_keeps_what_it_touches(void **state) {
  (void)state;
  long n = number_of_graphs(), first = number_from("LAC_RANDOM_SEED", 0);
  int n_failed = 0, n_moved = 0;
  builder *m = malloc(sizeof *m);
  assert_non_null(m);
  for (long g = first; g < first + n && n_failed < MAX_REPORTS; g++) {
    sound s = {.seed = (uint64_t)g, .hide = true};
    if (make_net(m, (uint64_t)g, op_of_graph(g).text) && is_unsound(m->text, &s)) {
      n_failed++;
      make_small(m->text, is_unsound, &s);
      (void)is_unsound(m->text, &s);
      print_error("seed %ld: %s\n%s\n", g, s.why, m->text);
    }
    n_moved += s.moves;
    builder_clear(m);
  }
  free(m);
  assert_int_equal(n_failed, 0);
  assert_true(n_moved > n / 8);
}

static void every_harmless_exchange_is_allowed(void **state) {
  (void)state;
  long n = number_of_graphs(), first = number_from("LAC_RANDOM_SEED", 0);
  int n_failed = 0;
  complete all = {0};
  builder *m = malloc(sizeof *m);
  assert_non_null(m);
  for (long g = first; g < first + n && n_failed < MAX_REPORTS; g++) {
    all.seed = (uint64_t)g;
    if (make_net(m, (uint64_t)g, op_of_graph(g).text) && is_incomplete(m->text, &all)) {
      complete small = {.seed = (uint64_t)g};
      n_failed++;
      make_small(m->text, is_incomplete, &small);
      (void)is_incomplete(m->text, &small);
      print_error("seed %ld: %s\n%s\n", g, small.why, m->text);
    }
    builder_clear(m);
  }
  free(m);
  for (int v = 0; v < N_VERDICTS; v++) print_message("%8ld %s\n", all.count[v], verdict_texts[v]);
  assert_int_equal(n_failed, 0);
  assert_true(all.count[FOUND_ALLOWED] >= n / 10);
  assert_true(all.count[NOT_FOUND] >= n / 2);
}

int main(void) {
  lac_log_set(LAC_LOG_ERROR, count_errors, NULL);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_operator_has_a_template),
      cmocka_unit_test(every_allowed_order_keeps_every_value),
      cmocka_unit_test(an_operand_of_unknown_shape_keeps_what_it_touches),
      cmocka_unit_test(every_harmless_exchange_is_allowed),
  };
  if (getenv("LAC_RANDOM_ONLY")) cmocka_set_test_filter(getenv("LAC_RANDOM_ONLY"));
  return cmocka_run_group_tests(tests, NULL, NULL);
}
