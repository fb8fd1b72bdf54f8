/* SPDX-License-Identifier: Apache-2.0
 * ConvTranspose with constant weights: convolutions of stride 1 whose results are interleaved.
 *
 * Along one axis, result o with o + pad = stride * q + r reads
 *
 *     y[o] = sum over j of x[q - j] * w[r + stride * j]
 *
 * so that all results with the same r, a phase, are a convolution of stride 1. Phases whose sums
 * have as many terms read the same windows: they are channels of one convolution. There are one or
 * two such numbers of terms for each axis, hence at most four convolutions. A depthwise one has a
 * convolution for each phase, which is depthwise, too. A last step copies every channel's pixels to
 * where they belong. With stride 1 there is one phase and no such step. */
#include <string.h>

#include "base/memory.h"
#include "cpu/pool.h"
#include "engine/cpu/onednn/convolution.h"

enum {
  AXES = 2,         /* height and width; a row has height 1 */
  MOST_STRIDE = 64, /* maximum number of phases along an axis */
  MOST_GROUPS = 64, /* maximum number of convolutions that compute one node */
};

/** One axis of the node. */
typedef struct axis_plan {
  int64_t in, out, kernel, stride, dilation, pad;
} axis_plan;

typedef struct transposed {
  laci_shape x, y;         /* shapes of the input and the output, [n, c, h, w] */
  int64_t groups, in, out; /* number of groups, and of input and output channels in a group */
  bool depthwise;
  axis_plan axis[AXES];
} transposed;

/** Phases [first, first + n) of an axis whose sums have `terms` terms. */
typedef struct phases {
  int64_t first, n, terms;
  int64_t begin, end; /* range of q, in the formula at the top, of the results */
} phases;

/* ---- Reading the node ---- */

static int64_t floor_divide(int64_t a, int64_t b) { return a >= 0 ? a / b : -((b - 1 - a) / b); }

/** Returns the number of zeros before the axis, as the operator's text defines it. */
static int64_t read_begin_pad(const laci_node *node, int at, const axis_plan *axis) {
  size_t n;
  const char *automatic = laci_node_text(node, "auto_pad", "NOTSET");
  const int64_t *pads = laci_node_ints(node, "pads", &n);
  const int64_t *extra = laci_node_ints(node, "output_padding", &n);
  const bool upper = strcmp(automatic, "SAME_UPPER") == 0;
  const bool same = upper || strcmp(automatic, "SAME_LOWER") == 0;
  if (!same && !laci_node_attr(node, "output_shape")) {
    return strcmp(automatic, "NOTSET") == 0 && pads ? pads[at] : 0;
  }
  const int64_t total = axis->stride * (axis->in - 1) + (extra ? extra[at] : 0) +
                        (axis->kernel - 1) * axis->dilation + 1 - axis->out;
  if (total < 0) return 0;
  return upper ? total / 2 : total - total / 2;
}

/** Returns a shape with height and width: of [n, c, w] that is [n, c, 1, w]. */
static laci_shape add_height_axis(const laci_shape *shape) {
  laci_shape s = *shape;
  if (s.rank != 3) return s;
  s.rank = 4;
  s.dims[3] = s.dims[2];
  s.dims[2] = 1;
  return s;
}

static void read_transposed_node(const laci_net *net, const laci_fused *fused, transposed *t) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  const laci_shape *weight = laci_plan_shape(&net->plan, node->inputs[1]);
  size_t n;
  const int64_t *strides = laci_node_ints(node, "strides", &n);
  const int64_t *dilations = laci_node_ints(node, "dilations", &n);
  *t = (transposed){.x = add_height_axis(laci_plan_shape(&net->plan, node->inputs[0])),
                    .y = add_height_axis(laci_plan_shape(&net->plan, node->outputs[0])),
                    .groups = laci_node_int(node, "group", 1),
                    .out = weight->dims[1]};
  t->in = weight->dims[0] / t->groups;
  t->depthwise = t->groups > 1 && t->in == 1 && t->out == 1;
  const int missing = weight->rank == 3;
  t->axis[0] = (axis_plan){.in = 1, .out = 1, .kernel = 1, .stride = 1, .dilation = 1};
  for (int at = missing; at < AXES; at++) {
    axis_plan *axis = &t->axis[at];
    *axis = (axis_plan){.in = t->x.dims[2 + at],
                        .out = t->y.dims[2 + at],
                        .kernel = weight->dims[2 + at - missing],
                        .stride = strides ? strides[at - missing] : 1,
                        .dilation = dilations ? dilations[at - missing] : 1};
    axis->pad = read_begin_pad(node, at - missing, axis);
  }
}

/** Groups the phases of an axis by their number of terms (each: no phases share a group). Returns
 * the number of groups; 0: the stride is too large, or some results have no terms. */
static int group_phases(const axis_plan *axis, bool each, phases groups[MOST_STRIDE]) {
  int n = 0;
  if (axis->stride > MOST_STRIDE || axis->kernel < axis->stride) return 0;
  for (int64_t phase = 0; phase < axis->stride; phase++) {
    const int64_t terms = (axis->kernel - phase + axis->stride - 1) / axis->stride;
    const int64_t begin = floor_divide(axis->pad - phase + axis->stride - 1, axis->stride);
    const int64_t end = floor_divide(axis->out - 1 + axis->pad - phase, axis->stride) + 1;
    if (n == 0 || each || groups[n - 1].terms != terms) {
      groups[n++] = (phases){.first = phase, .terms = terms, .begin = begin, .end = end};
    }
    phases *last = &groups[n - 1];
    last->n++;
    if (begin < last->begin) last->begin = begin;
    if (end > last->end) last->end = end;
  }
  /* A convolution has no negative pads. So it computes more results than needed, and these are not
   * copied. */
  for (int at = 0; at < n; at++) {
    const int64_t reach = (groups[at].terms - 1) * axis->dilation;
    if (groups[at].begin > reach) groups[at].begin = reach;
    if (groups[at].end < axis->in) groups[at].end = axis->in;
  }
  return n;
}

static bool can_lower_transposed(laci_net *net, const laci_fused *fused, const char **why) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  phases groups[MOST_STRIDE];
  int n = 1;
  transposed t;
  *why = "weights or a bias that change";
  if (!laci_plan_has_input(node, 0) || !laci_plan_is_float(&net->plan, node->inputs[0]) ||
      !laci_plan_has_input(node, 1) || !laci_is_constant_of_floats(net, node->inputs[1]) ||
      (laci_plan_has_input(node, 2) && !laci_is_constant_of_floats(net, node->inputs[2]))) {
    return false;
  }
  *why = "a window that is not composed of short ones";
  if (laci_plan_shape(&net->plan, node->inputs[0])->rank > 4) return false;
  read_transposed_node(net, fused, &t);
  for (int at = 0; at < AXES; at++) {
    if (t.axis[at].stride > 1 && t.axis[at].dilation > 1) return false;
    n *= group_phases(&t.axis[at], t.depthwise, groups);
  }
  return n >= 1 && n <= MOST_GROUPS;
}

/* ---- Weights and bias ---- */

/** One convolution: a group of phases of each axis. */
typedef struct part {
  phases axis[AXES];
  laci_conv conv;
} part;

/** Writes the weights of one output channel of the convolution, in reverse order of the terms.
 * place: group, output channel in the group, phase of the height, phase of the width. */
static void write_channel_weights(const transposed *t, const part *p, const float *from,
                                  float scale, const int64_t place[4], float *to) {
  const int64_t g = place[0], k = place[1];
  const int64_t area = t->axis[0].kernel * t->axis[1].kernel;
  for (int64_t c = 0; c < t->in; c++) {
    const float *window = from + ((g * t->in + c) * t->out + k) * area;
    for (int64_t i = p->axis[0].terms - 1; i >= 0; i--) {
      const int64_t row = place[2] + t->axis[0].stride * i;
      for (int64_t j = p->axis[1].terms - 1; j >= 0; j--) {
        const int64_t column = place[3] + t->axis[1].stride * j;
        *to++ = window[row * t->axis[1].kernel + column] * scale;
      }
    }
  }
}

/** The constants of a convolution. */
typedef struct parameters {
  float *weights, *biases;
} parameters;

/** Writes the weights and biases of all channels of the convolution, from those of the node (bias
 * NULL: none). The order is: groups, phases of the height, phases of the width, output channels in
 * a group. */
static void write_weights_and_bias(const transposed *t, const part *p, const laci_fused *fused,
                                   const float *from, const float *bias, parameters to) {
  const int64_t each = t->in * p->axis[0].terms * p->axis[1].terms;
  for (int64_t g = 0; g < t->groups; g++) {
    for (int64_t phase = 0; phase < p->axis[0].n * p->axis[1].n; phase++) {
      for (int64_t k = 0; k < t->out; k++, to.weights += each, to.biases++) {
        const int64_t channel = g * t->out + k;
        const float scale = fused->scale ? fused->scale[channel] : 1;
        const int64_t place[] = {g, k, p->axis[0].first + phase / p->axis[1].n,
                                 p->axis[1].first + phase % p->axis[1].n};
        write_channel_weights(t, p, from, scale, place, to.weights);
        *to.biases =
            (bias ? bias[channel] * scale : 0) + (fused->scale ? fused->shift[channel] : 0);
      }
    }
  }
}

static void describe_convolution_of_phases(const transposed *t, laci_element result, part *p) {
  const int64_t n_phases = p->axis[0].n * p->axis[1].n;
  const laci_shape weight = laci_shape_of(
      4, (int64_t[]){t->groups * n_phases * t->out, t->in, p->axis[0].terms, p->axis[1].terms});
  laci_conv *c = &p->conv;
  *c = (laci_conv){.x = t->x, .y = t->x, .groups = t->groups, .result = result};
  c->weight = laci_conv_grouped_shape(&weight, t->groups);
  c->y.dims[1] = weight.dims[0];
  c->window.n_spatial = AXES;
  for (int at = 0; at < AXES; at++) {
    const phases *a = &p->axis[at];
    const int64_t reach = (a->terms - 1) * t->axis[at].dilation;
    c->window.kernel[at] = a->terms;
    c->window.strides[at] = 1;
    c->window.dilates[at] = t->axis[at].dilation - 1;
    c->window.pads_begin[at] = reach - a->begin;
    c->window.pads_end[at] = a->end - t->axis[at].in;
    c->y.dims[2 + at] = a->end - a->begin;
  }
}

/** Adds the steps of one convolution; returns its result's tensor. */
static int add_convolution_of_phases(laci_net *net, const laci_fused *fused, const transposed *t,
                                     const part *p, int x) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  const int64_t n = laci_shape_count(&p->conv.weight), channels = p->conv.y.dims[1];
  const float *from = laci_plan_constant_floats(&net->plan, node->inputs[1]), *bias = NULL;
  const bool biased = laci_plan_has_input(node, 2) || fused->scale;
  if (laci_plan_has_input(node, 2)) bias = laci_plan_constant_floats(&net->plan, node->inputs[2]);
  laci_conv_operands operands = {.x = x, .weights = -1, .bias = -1};
  if (net->plan.status ||
      !laci_plan_check_budget(&net->plan, (uint64_t)n * sizeof(float), node->inputs[1])) {
    return -1;
  }
  float *weights = laci_alloc((size_t)n, sizeof *weights);
  float *biases = laci_alloc((size_t)channels, sizeof *biases);
  if (!weights || !biases) laci_plan_fail_no_memory(&net->plan);
  else {
    write_weights_and_bias(t, p, fused, from, bias, (parameters){weights, biases});
    operands.weights = laci_net_weight_from_floats(net, weights, n);
    if (biased) operands.bias = laci_net_weight_from_floats(net, biases, channels);
  }
  laci_free(weights);
  laci_free(biases);
  return net->plan.status ? -1 : laci_conv_add_steps(net, fused, &p->conv, &operands);
}

/* ---- Interleaving ---- */

/** Where the elements of an image [c, h, w] are: strides in bytes. Runs of `together` channels are
 * adjacent in memory. */
typedef struct places {
  int64_t image, channel, row, pixel, together;
} places;

/** The result of one of the convolutions, which is interleaved with the others. */
typedef struct source {
  phases axis[AXES];
  places at;
} source;

/** The step that interleaves: its operands are the results of the convolutions, then the result of
 * the node. */
typedef struct weave {
  int64_t images, channels, group, rows, columns; /* sizes of the node's result; `group`: number of
                                                     channels in a group */
  int64_t together, bytes;                        /* number of channels that are copied at once, and
                                                     their bytes */
  int64_t stride[AXES], pad[AXES];
  places to;
  int n_sources;
  source *sources;
} weave;

typedef struct weave_work {
  const weave *w;
  laci_net *net;
  const laci_net_step *step;
} weave_work;

/** Copies n pixels. Their usual sizes are constants, so that a copy is one move. */
static void copy_strided_pixels(const char *from, int64_t from_step, char *to, int64_t to_step,
                                int64_t n, int64_t bytes) {
#define COPY(size) \
  for (int64_t at = 0; at < n; at++) memcpy(to + at * to_step, from + at * from_step, size)
  switch (bytes) {
    case 2: COPY(2); break;
    case 4: COPY(4); break;
    case 16: COPY(16); break;
    case 32: COPY(32); break;
    case 64: COPY(64); break;
    default: COPY((size_t)bytes); break;
  }
#undef COPY
}

/** Copies those pixels of a row of the result that the convolution `s` computed. from: the image in
 * its result; to: the row. */
static void interleave_phases_of_row(const weave *w, const source *s, const char *from, int64_t row,
                                     int64_t channel, char *to) {
  const int64_t place = row + w->pad[0], phase = place % w->stride[0];
  const phases *high = &s->axis[0], *wide = &s->axis[1];
  if (phase < high->first || phase >= high->first + high->n) return;
  from += (place / w->stride[0] - high->begin) * s->at.row;
  for (int64_t r = 0; r < wide->n; r++) {
    const int64_t number = (phase - high->first) * wide->n + r;
    const int64_t group = channel / w->group * high->n * wide->n + number;
    const int64_t begin = group * w->group + channel % w->group; /* channel of the convolution's
                                                                    result */
    const int64_t first =
        floor_divide(w->pad[1] - wide->first - r + w->stride[1] - 1, w->stride[1]);
    const int64_t column = first * w->stride[1] + wide->first + r - w->pad[1];
    if (column >= w->columns) continue;
    copy_strided_pixels(from + begin * s->at.channel + (first - wide->begin) * s->at.pixel,
                        s->at.pixel, to + column * w->to.pixel, w->stride[1] * w->to.pixel,
                        (w->columns - column + w->stride[1] - 1) / w->stride[1], w->bytes);
  }
}

static void interleave_rows(int64_t begin, int64_t end, void *context) {
  const weave_work *work = context;
  const weave *w = work->w;
  char *y = laci_net_tensor_data(work->net, work->step->tensors[w->n_sources]);
  for (int64_t at = begin; at < end; at++) {
    const int64_t row = at % w->rows, n = w->channels / w->together;
    const int64_t channel = at / w->rows % n * w->together, image = at / w->rows / n;
    char *to = y + image * w->to.image + channel * w->to.channel + row * w->to.row;
    for (int number = 0; number < w->n_sources; number++) {
      const source *s = &w->sources[number];
      const char *from = laci_net_tensor_data(work->net, work->step->tensors[number]);
      interleave_phases_of_row(w, s, from + image * s->at.image, row, channel, to);
    }
  }
}

static lac_status run_interleave(laci_net *net, laci_net_step *step, lac_error *err) {
  enum { GRAIN = 8 };
  const weave *w = step->context;
  weave_work work = {.w = w, .net = net, .step = step};
  (void)err;
  laci_pool_for(net->pool, w->images * (w->channels / w->together) * w->rows, GRAIN,
                interleave_rows, &work);
  return LAC_OK;
}

/** Finds the strides of the tensor's elements; false: its layout has no such strides. */
static bool find_element_strides(laci_net *net, int tensor, places *at) {
  const laci_net_tensor *t = &net->tensors[tensor];
  const int64_t bytes = (int64_t)laci_element_bytes(t->dt),
                block = laci_layout_block_channels(t->md);
  const int64_t rows = t->shape.dims[2], columns = t->shape.dims[3];
  int64_t strides[LACI_MAX_RANK], offset;
  laci_layout *blocks = NULL;
  if (block == 1) {
    if (!laci_layout_get_strides(t->md, 4, strides, &offset) || offset != 0) return false;
    *at = (places){strides[0] * bytes, strides[1] * bytes, strides[2] * bytes, strides[3] * bytes,
                   strides[1] == 1 ? t->shape.dims[1] : 1};
    return true;
  }
  if (block != 8 && block != 16) return false;
  if (!laci_layout_create_blocks(&blocks, t->shape.dims, (int)block, t->dt)) {
    laci_plan_fail_no_memory(&net->plan);
    return false;
  }
  const bool equal = laci_layout_equal(blocks, t->md);
  laci_layout_destroy(blocks);
  const int64_t channels = (t->shape.dims[1] + block - 1) / block * block;
  *at = (places){channels * rows * columns * bytes, rows * columns * bytes, columns * block * bytes,
                 block * bytes, block};
  return equal;
}

/** Returns a layout for the node's result in which whole blocks of channels (or all channels of a
 * pixel) can be copied from the convolutions' results; NULL: there is none. *together: number of
 * channels in such a block. */
static laci_layout *make_common_layout(laci_net *net, const transposed *t, const int *parts, int n,
                                       laci_element dt, int64_t *together) {
  laci_layout *md = NULL;
  places at;
  for (int number = 0; number < n; number++) {
    const int64_t block = laci_layout_block_channels(net->tensors[parts[number]].md);
    if (!find_element_strides(net, parts[number], &at) || at.together == 1) return NULL;
    const int64_t some = block > 1 ? block : t->out;
    if (t->out % some != 0 || (number > 0 && some != *together)) return NULL;
    *together = some;
  }
  if (laci_layout_block_channels(net->tensors[parts[0]].md) == 1) {
    return laci_net_channels_last_layout(net, &t->y, dt);
  }
  if (!laci_layout_create_blocks(&md, t->y.dims, (int)*together, dt)) {
    laci_plan_fail_no_memory(&net->plan);
  }
  return md;
}

/** Adds the step that interleaves the results of the convolutions, tensors parts[n]. Returns the
 * result's tensor. */
static int add_interleave_step(laci_net *net, const laci_fused *fused, const transposed *t,
                               const part *list, int *parts, int n) {
  const laci_element dt = laci_net_result_element(net, fused->output);
  weave *w = laci_plan_alloc(&net->plan, 1, sizeof *w);
  source *sources = laci_plan_alloc(&net->plan, (size_t)n, sizeof *sources);
  if (net->plan.status) return -1;
  int64_t together = 1;
  laci_layout *md = make_common_layout(net, t, parts, n, dt, &together);
  if (!md) {
    together = 1;
    md = laci_net_dense_layout(net, &t->y, dt);
    for (int at = 0; at < n; at++) parts[at] = laci_net_convert_to_dense(net, parts[at], dt);
  }
  if (!md || net->plan.status) {
    laci_layout_destroy(md);
    return -1;
  }
  const int to = laci_net_tensor_new(
      net, &t->y, dt, md, laci_net_buffer_new(net, LACI_PLACE_ARENA, laci_layout_bytes(md)));
  if (to < 0) return -1;
  *w = (weave){.images = t->y.dims[0],
               .channels = t->y.dims[1],
               .group = t->out,
               .rows = t->y.dims[2],
               .columns = t->y.dims[3],
               .together = together,
               .bytes = together * (int64_t)laci_element_bytes(dt),
               .n_sources = n,
               .sources = sources};
  bool known = find_element_strides(net, to, &w->to);
  for (int axis = 0; axis < AXES; axis++) {
    w->stride[axis] = t->axis[axis].stride;
    w->pad[axis] = t->axis[axis].pad;
  }
  for (int at = 0; at < n && known; at++) {
    memcpy(sources[at].axis, list[at].axis, sizeof sources[at].axis);
    known = find_element_strides(net, parts[at], &sources[at].at);
  }
  if (!known && !net->plan.status) {
    laci_net_decline_node(net, "a result in a layout of another kind");
  }
  parts[n] = to;
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  laci_net_step *step = laci_net_step_add_code(net, node, run_interleave, n + 1, parts);
  if (!step) return -1;
  step->context = w;
  step->kernel = "weave";
  step->shown = to;
  return to;
}

/** Is the result of the only convolution the node's result already, so that nothing has to be
 * interleaved? */
static bool is_whole_result(const transposed *t, const part *only) {
  bool whole = laci_shape_equal(&only->conv.y, &t->y);
  for (int at = 0; at < AXES; at++) {
    whole = whole && t->axis[at].stride == 1 && only->axis[at].begin == t->axis[at].pad;
  }
  return whole;
}

static void lower_transposed(laci_net *net, const laci_fused *fused) {
  phases groups[AXES][MOST_STRIDE];
  int n_groups[AXES], parts[MOST_GROUPS + 1], n = 0;
  part *list = laci_plan_alloc(&net->plan, MOST_GROUPS, sizeof *list);
  transposed t;
  if (!list) return;
  read_transposed_node(net, fused, &t);
  for (int at = 0; at < AXES; at++) {
    n_groups[at] = group_phases(&t.axis[at], t.depthwise, groups[at]);
  }
  const int value = net->plan.graph->nodes[fused->node].inputs[0];
  const int x = laci_net_reshape_tensor(net, laci_net_read_value(net, value), &t.x);
  for (int high = 0; high < n_groups[0]; high++) {
    for (int wide = 0; wide < n_groups[1]; wide++, n++) {
      list[n].axis[0] = groups[0][high];
      list[n].axis[1] = groups[1][wide];
      describe_convolution_of_phases(&t, laci_net_result_element(net, fused->output), &list[n]);
      parts[n] = add_convolution_of_phases(net, fused, &t, &list[n], x);
    }
  }
  if (net->plan.status) return;
  const bool whole = n == 1 && is_whole_result(&t, &list[0]);
  laci_net_bind_reshaped(net, fused->output,
                         whole ? parts[0] : add_interleave_step(net, fused, &t, list, parts, n));
}

const laci_implementation laci_implementations_conv_transpose[] = {
    {"convolutions, woven together", LACI_FUSIBLE_SCALE | LACI_FUSIBLE_FUNCTIONS,
     can_lower_transposed, lower_transposed},
    {.name = NULL},
};
