/* SPDX-License-Identifier: Apache-2.0
 * Moving data without computing: mostly another view of the same bytes.
 *
 * Reshape, Transpose, Slice and Split cost nothing here: they describe the bytes anew, and whoever
 * needs another layout reorders once. Pad and Gather copy, and so do Concat (ops_concat.c) and
 * slices that step over elements (grad_move.c). */
#include <string.h>

#include "engine/cpu/net_in.h"
#include "base/error.h"

static void unsupported(laci_net *net, const char *why) {
  laci_net_fail(net, LAC_UNSUPPORTED, "%s", why);
}

void laci_build_reshape(laci_net *net, const laci_net_layer *layer) {
  const laci_node *node = &net->graph->nodes[layer->node];
  laci_net_bind_shaped(net, layer->output, laci_net_read(net, node->inputs[0]));
}

void laci_build_same(laci_net *net, const laci_net_layer *layer) {
  const laci_node *node = &net->graph->nodes[layer->node];
  bool fits = strcmp(node->type, "Dropout") != 0 || !laci_net_has(node, 2);
  for (int at = 1; at < node->n_outputs; at++) fits = fits && node->outputs[at] < 0;
  if (fits) laci_net_bind(net, layer->output, laci_net_read(net, node->inputs[0]));
  else unsupported(net, "a mask");
}

/** Do the axes that are longer than 1 stay in order? Then a row-major tensor only gets new axes. */
static bool keeps_order(const laci_shape *x, const int *places) {
  int last = -1;
  for (int axis = 0; axis < x->rank; axis++) {
    if (x->dims[axis] == 1) continue;
    if (places[axis] < last) return false;
    last = places[axis];
  }
  return true;
}

static bool is_dense(laci_net *net, int tensor) {
  const laci_net_tensor t = net->tensors[tensor];
  laci_md dense = laci_net_dense(net, &t.shape, t.dt);
  bool equal = dense && dnnl_memory_desc_equal(dense, t.md);
  laci_md_drop(dense);
  return equal;
}

void laci_build_transpose(laci_net *net, const laci_net_layer *layer) {
  const laci_node *node = &net->graph->nodes[layer->node];
  const laci_shape *y = laci_net_shape(net, layer->output);
  int from = laci_net_read(net, node->inputs[0]), places[LACI_MAX_RANK];
  size_t n = 0;
  const int64_t *order = laci_node_ints(node, "perm", &n);
  laci_md md = NULL;
  if (from < 0 || !net->tensors[from].md || y->rank < 1 || (order && (int)n != y->rank)) {
    unsupported(net, "integers");
    return;
  }
  for (int axis = 0; axis < y->rank; axis++) {
    places[order ? order[axis] : y->rank - 1 - axis] = axis;
  }
  if (keeps_order(&net->tensors[from].shape, places) && is_dense(net, from)) {
    laci_net_bind_shaped(net, layer->output, from);
    return;
  }
  if (!laci_md_permuted(&md, net->tensors[from].md, places)) laci_net_no_memory(net);
  laci_net_bind(net, layer->output, laci_net_view(net, from, y, md, false));
}

/** The part of a tensor that starts at `offsets`, as it lies if blocks allow that. */
static int part_of(laci_net *net, int tensor, const laci_shape *shape, const int64_t *offsets) {
  laci_md md = NULL;
  if (net->status || tensor < 0) return -1;
  if (!laci_md_part(&md, net->tensors[tensor].md, shape->rank, shape->dims, offsets)) {
    tensor = laci_net_as_dense(net, tensor, net->tensors[tensor].dt);
    if (tensor < 0) return -1;
    if (!laci_md_part(&md, net->tensors[tensor].md, shape->rank, shape->dims, offsets)) {
      unsupported(net, "a part of this layout");
      return -1;
    }
  }
  return laci_net_view(net, tensor, shape, md, true);
}

/* ---- Slice ---- */

typedef struct integers {
  size_t n;
  int64_t v[LACI_MAX_RANK];
  bool given, known;
} integers;

/** An attribute (early opsets) or a constant input of few integers. */
static integers read_integers(laci_net *net, const laci_node *node, const char *name, int port) {
  integers out = {.known = true};
  const int64_t *from = laci_node_ints(node, name, &out.n);
  laci_buf *buf = NULL;
  if (!from && laci_net_has(node, port)) {
    buf = laci_net_is_constant(net, node->inputs[port])
              ? laci_net_constant_buf(net, node->inputs[port])
              : NULL;
    from = buf ? buf->i : NULL;
    out.n = buf ? (size_t)buf->count : 0;
    out.known = from != NULL;
  }
  out.given = from != NULL;
  if (out.n > LACI_MAX_RANK) out.known = false;
  for (size_t at = 0; at < out.n && out.known && from; at++) out.v[at] = from[at];
  laci_buf_destroy(buf);
  return out;
}

void laci_build_slice(laci_net *net, const laci_net_layer *layer) {
  const laci_node *node = &net->graph->nodes[layer->node];
  const laci_shape *x = laci_net_shape(net, node->inputs[0]);
  integers starts = read_integers(net, node, "starts", 1);
  integers axes = read_integers(net, node, "axes", 3), steps = read_integers(net, node, "steps", 4);
  int64_t offsets[LACI_MAX_RANK] = {0}, strides[LACI_MAX_RANK];
  int from = laci_net_read(net, node->inputs[0]);
  bool fits = starts.known && axes.known && steps.known && from >= 0 && net->tensors[from].md;
  bool jumps = false;
  for (int axis = 0; axis < x->rank; axis++) strides[axis] = 1;
  for (size_t at = 0; at < starts.n && fits; at++) {
    int64_t axis = axes.given && at < axes.n ? axes.v[at] : (int64_t)at, start = starts.v[at];
    int64_t step = steps.given && at < steps.n ? steps.v[at] : 1;
    if (axis < 0) axis += x->rank;
    fits = axis >= 0 && axis < x->rank && step != 0;
    if (!fits) break;
    int64_t last = step < 0 ? x->dims[axis] - 1 : x->dims[axis];
    if (start < 0) start += x->dims[axis];
    offsets[axis] = start < 0 ? 0 : start > last ? last : start;
    strides[axis] = step;
    jumps = jumps || step != 1;
  }
  if (!fits) {
    unsupported(net, "integers, or places that depend on data");
  } else if (jumps) {
    laci_net_slice_steps(net, layer, offsets, strides);
  } else {
    laci_net_bind(net, layer->output,
                  part_of(net, from, laci_net_shape(net, layer->output), offsets));
  }
}

void laci_build_split(laci_net *net, const laci_net_layer *layer) {
  const laci_node *node = &net->graph->nodes[layer->node];
  const laci_shape *x = laci_net_shape(net, node->inputs[0]);
  int64_t axis = laci_node_int(node, "axis", 0), offsets[LACI_MAX_RANK] = {0};
  int from = laci_net_read(net, node->inputs[0]);
  if (axis < 0) axis += x->rank;
  if (from < 0 || !net->tensors[from].md || axis < 0 || axis >= x->rank) {
    unsupported(net, "integers");
    return;
  }
  for (int at = 0; at < node->n_outputs && !net->status; at++) {
    if (node->outputs[at] < 0) { /* its size is not known here */
      unsupported(net, "a part that is left out");
      return;
    }
    const laci_shape *y = laci_net_shape(net, node->outputs[at]);
    laci_net_bind(net, node->outputs[at], part_of(net, from, y, offsets));
    offsets[axis] += y->dims[axis];
  }
}

/* ---- Pad ---- */

static lac_status clear_bytes(laci_net *net, laci_net_step *step, lac_error *err) {
  (void)err;
  int tensor = step->tensors[0];
  memset(laci_net_data(net, tensor), 0, net->buffers[net->tensors[tensor].buffer].bytes);
  return LAC_OK;
}

/** Zeros around the value, and what goes of it where pads are negative. */
typedef struct padding {
  int64_t begin[LACI_MAX_RANK]; /* zeros before each axis */
  int64_t crop[LACI_MAX_RANK];  /* elements left out before each axis */
  laci_shape kept;              /* of the value */
  bool has_zeros;
} padding;

static bool read_padding(laci_net *net, const laci_node *node, padding *p) {
  const laci_shape *x = laci_net_shape(net, node->inputs[0]);
  double fill = laci_node_float(node, "value", 0);
  size_t n = 0;
  const int64_t *pads = laci_node_ints(node, "pads", &n);
  laci_buf *buf = NULL;
  bool fits = strcmp(laci_node_text(node, "mode", "constant"), "constant") == 0;
  fits = fits && laci_net_is_float(net, node->inputs[0]) && !laci_net_has(node, 3) && x->rank >= 1;
  if (laci_net_has(node, 2)) fits = fits && laci_net_scalar(net, node->inputs[2], &fill);
  if (!pads && fits && laci_net_has(node, 1) && laci_net_is_constant(net, node->inputs[1])) {
    buf = laci_net_constant_buf(net, node->inputs[1]);
    pads = buf ? buf->i : NULL;
    n = buf ? (size_t)buf->count : 0;
  }
  fits = fits && pads && n == 2 * (size_t)x->rank && fill == 0;
  *p = (padding){.kept = *x};
  for (int axis = 0; axis < x->rank && fits; axis++) {
    int64_t before = pads[axis], after = pads[axis + x->rank];
    p->begin[axis] = before > 0 ? before : 0;
    p->crop[axis] = before < 0 ? -before : 0;
    p->kept.dims[axis] -= p->crop[axis] + (after < 0 ? -after : 0);
    p->has_zeros = p->has_zeros || before > 0 || after > 0;
    fits = p->kept.dims[axis] > 0;
  }
  laci_buf_destroy(buf);
  return fits;
}

void laci_build_pad(laci_net *net, const laci_net_layer *layer) {
  const laci_node *node = &net->graph->nodes[layer->node];
  laci_shape y = *laci_net_shape(net, layer->output);
  dnnl_data_type_t dt = laci_net_dt(net);
  dnnl_primitive_desc_t pd = NULL;
  padding p;
  if (!read_padding(net, node, &p)) {
    unsupported(net, "a mode, a value or pads that are not zeros around");
    return;
  }
  int from = part_of(net, laci_net_read(net, node->inputs[0]), &p.kept, p.crop);
  if (!p.has_zeros) {
    laci_net_bind(net, layer->output, from);
    return;
  }
  laci_md md = laci_net_dense(net, &y, dt);
  size_t bytes = md ? dnnl_memory_desc_get_size(md) : 0;
  int to = laci_net_tensor_new(net, &y, dt, md, laci_net_buffer_new(net, LACI_PLACE_ARENA, bytes));
  int inside = part_of(net, to, &p.kept, p.begin);
  (void)laci_net_step_code(net, node, clear_bytes, 1, &to);
  if (net->status) return;
  dnnl_status_t st = dnnl_reorder_primitive_desc_create(
      &pd, net->tensors[from].md, net->engine, net->tensors[inside].md, net->engine, net->attr);
  if (!laci_net_did(net, st, "padding")) return;
  laci_net_step_add(net, layer, pd, 2,
                    (const int[][2]){{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, inside}});
  laci_net_bind(net, layer->output, to);
}

/* ---- Gather: rows of a table ---- */

typedef struct gather {
  int64_t outer, n, tuple;             /* n tuples of indices, for each of `outer` tables */
  int64_t sizes[LACI_MAX_RANK], inner; /* table [sizes[0] .. sizes[tuple - 1], inner] */
  size_t element;                      /* bytes */
} gather;

static lac_status run_gather(laci_net *net, laci_net_step *step, lac_error *err) {
  const gather *g = step->context;
  const char *table = laci_net_data(net, step->tensors[0]);
  const int64_t *indices = laci_net_data(net, step->tensors[1]);
  char *out = laci_net_data(net, step->tensors[2]);
  size_t bytes = (size_t)g->inner * g->element, rows = 1;
  for (int64_t t = 0; t < g->tuple; t++) rows *= (size_t)g->sizes[t];
  for (int64_t o = 0; o < g->outer; o++, table += rows * bytes) {
    const int64_t *index = indices;
    for (int64_t at = 0; at < g->n; at++, out += bytes) {
      int64_t row = 0;
      for (int64_t t = 0; t < g->tuple; t++, index++) {
        int64_t i = *index < 0 ? *index + g->sizes[t] : *index;
        if (i < 0 || i >= g->sizes[t]) {
          return laci_fail(err, LAC_BAD_VALUE, "%s (%s): index %lld, of %lld", step->node->name,
                           step->node->type, (long long)*index, (long long)g->sizes[t]);
        }
        row = row * g->sizes[t] + i;
      }
      memcpy(out, table + (size_t)row * bytes, bytes);
    }
  }
  return LAC_OK;
}

/** Floats as f32, or integers. */
static void gather_step(laci_net *net, const laci_net_layer *layer, gather *g) {
  const laci_node *node = &net->graph->nodes[layer->node];
  const laci_shape *y = laci_net_shape(net, layer->output);
  bool is_float = laci_net_is_float(net, layer->output);
  int table = laci_net_read(net, node->inputs[0]), index = laci_net_read(net, node->inputs[1]);
  if (is_float) table = laci_net_as_dense(net, table, dnnl_f32);
  g->element = is_float ? sizeof(float) : sizeof(int64_t);
  int to = laci_net_tensor_new(
      net, y, is_float ? dnnl_f32 : dnnl_data_type_undef,
      is_float ? laci_net_dense(net, y, dnnl_f32) : NULL,
      laci_net_buffer_new(net, LACI_PLACE_ARENA, (size_t)laci_shape_count(y) * g->element));
  laci_net_step *step = laci_net_step_code(net, node, run_gather, 3, (int[]){table, index, to});
  if (!step) return;
  step->context = g;
  step->shown = to;
  laci_net_bind(net, layer->output, to);
}

/** One index that is known: that part of the table, without the axis. */
static bool build_known_index(laci_net *net, const laci_net_layer *layer, int64_t axis) {
  const laci_node *node = &net->graph->nodes[layer->node];
  const laci_shape *x = laci_net_shape(net, node->inputs[0]);
  int from = laci_net_read(net, node->inputs[0]);
  int64_t offsets[LACI_MAX_RANK] = {0};
  double index = 0;
  if (from < 0 || !net->tensors[from].md || laci_net_is_constant(net, node->inputs[0]))
    return false;
  if (!laci_net_scalar(net, node->inputs[1], &index)) return false;
  if (index < 0) index += (double)x->dims[axis];
  if (!(index >= 0 && index < (double)x->dims[axis])) return false;
  laci_shape part = *x;
  part.dims[axis] = 1;
  offsets[axis] = (int64_t)index;
  laci_net_bind_shaped(net, layer->output, part_of(net, from, &part, offsets));
  return true;
}

void laci_build_gather(laci_net *net, const laci_net_layer *layer) {
  const laci_node *node = &net->graph->nodes[layer->node];
  const laci_shape *x = laci_net_shape(net, node->inputs[0]);
  int64_t axis = laci_node_int(node, "axis", 0);
  if (axis < 0) axis += x->rank;
  if (laci_net_is_float(net, node->inputs[1]) || axis < 0 || axis >= x->rank) {
    unsupported(net, "indices or an axis of this kind");
    return;
  }
  if (laci_net_is_float(net, node->inputs[0]) && build_known_index(net, layer, axis)) return;
  gather *g = laci_net_new(net, 1, sizeof *g);
  if (!g) return;
  *g = (gather){.outer = laci_shape_count_range(x, 0, (int)axis),
                .n = laci_shape_count(laci_net_shape(net, node->inputs[1])),
                .tuple = 1,
                .sizes = {x->dims[axis]},
                .inner = laci_shape_count_range(x, (int)axis + 1, x->rank)};
  gather_step(net, layer, g);
}

void laci_build_gather_nd(laci_net *net, const laci_net_layer *layer) {
  const laci_node *node = &net->graph->nodes[layer->node];
  const laci_shape *x = laci_net_shape(net, node->inputs[0]);
  const laci_shape *i = laci_net_shape(net, node->inputs[1]);
  int64_t tuple = i->rank > 0 ? i->dims[i->rank - 1] : 0;
  bool fits = laci_node_int(node, "batch_dims", 0) == 0 && tuple >= 1 && tuple <= x->rank;
  if (!fits || laci_net_is_float(net, node->inputs[1])) {
    unsupported(net, "indices or batch axes of this kind");
    return;
  }
  gather *g = laci_net_new(net, 1, sizeof *g);
  if (!g) return;
  *g = (gather){.outer = 1,
                .n = laci_shape_count_range(i, 0, i->rank - 1),
                .tuple = tuple,
                .inner = laci_shape_count_range(x, (int)tuple, x->rank)};
  for (int64_t t = 0; t < tuple; t++) g->sizes[t] = x->dims[t];
  gather_step(net, layer, g);
}

/* ---- Resize ---- */

/** Planes only, by whole factors (nearest) or by half-pixel centres (linear); anything else is the
 * plain operator's. */
static bool fits_resize(const laci_node *node, const laci_shape *x, const laci_shape *y,
                        bool nearest) {
  const char *mode = laci_node_text(node, "mode", "nearest");
  bool upsample = strcmp(node->type, "Upsample") == 0 || node->version < 11;
  const char *where = laci_node_text(node, "coordinate_transformation_mode",
                                     upsample ? "asymmetric" : "half_pixel");
  const char *rounding =
      laci_node_text(node, "nearest_mode", upsample ? "floor" : "round_prefer_floor");
  if (x->rank < 3 || x->rank > 5 || laci_node_int(node, "antialias", 0) != 0) return false;
  if (laci_node_attr(node, "axes")) return false;
  if (strcmp(laci_node_text(node, "keep_aspect_ratio_policy", "stretch"), "stretch") != 0) {
    return false;
  }
  if (x->dims[0] != y->dims[0] || x->dims[1] != y->dims[1]) return false;
  bool half = strcmp(where, "half_pixel") == 0;
  for (int axis = 2; axis < x->rank && nearest; axis++) {
    if (y->dims[axis] % x->dims[axis] != 0) return false;
  }
  if (nearest) {
    bool floors = strcmp(where, "asymmetric") == 0 && strcmp(rounding, "floor") == 0;
    return floors || (half && strncmp(rounding, "round", 5) == 0);
  }
  return half && strcmp(mode, "linear") == 0;
}

/** Sizes must be what the scales say exactly, since oneDNN knows the sizes only. */
static bool scales_fit(laci_net *net, const laci_node *node, const laci_shape *x,
                       const laci_shape *y) {
  int port = strcmp(node->type, "Upsample") == 0 || node->version < 11 ? 1 : 2;
  if (!laci_net_has(node, port)) return port == 2; /* sizes are given */
  if (!laci_net_is_constant(net, node->inputs[port])) return false;
  laci_buf *scales = laci_net_constant_buf(net, node->inputs[port]);
  bool fits = scales && scales->f && (scales->count == 0 || scales->count == x->rank);
  for (int axis = 0; fits && scales->count && axis < x->rank; axis++) {
    fits = scales->f[axis] * (double)x->dims[axis] == (double)y->dims[axis];
  }
  laci_buf_destroy(scales);
  return fits;
}

void laci_build_resize(laci_net *net, const laci_net_layer *layer) {
  const laci_node *node = &net->graph->nodes[layer->node];
  const laci_shape *x = laci_net_shape(net, node->inputs[0]);
  laci_shape y = *laci_net_shape(net, layer->output);
  bool nearest = strcmp(laci_node_text(node, "mode", "nearest"), "nearest") == 0;
  dnnl_primitive_desc_t pd = NULL;
  laci_md md = NULL;
  if (!laci_net_is_float(net, layer->output) || !fits_resize(node, x, &y, nearest) ||
      !scales_fit(net, node, x, &y)) {
    unsupported(net, "a way to resize that oneDNN lacks");
    return;
  }
  int from = laci_net_whole(net, laci_net_read(net, node->inputs[0]));
  laci_md any = laci_net_any(net, &y, laci_net_dt(net));
  if (!net->status) {
    dnnl_status_t st = laci_pd_resample(
        &pd, net->engine, nearest ? dnnl_resampling_nearest : dnnl_resampling_linear,
        (const laci_md_view[]){net->tensors[from].md, any}, net->attr);
    (void)laci_net_did(net, st, "resampling");
  }
  laci_md_drop(any);
  if (net->status) return;
  laci_md_view dst = dnnl_primitive_desc_query_md(pd, dnnl_query_dst_md, 0);
  if (!laci_md_copy(&md, dst)) laci_net_no_memory(net);
  int to = laci_net_tensor_new(
      net, &y, laci_net_dt(net), md,
      laci_net_buffer_new(net, LACI_PLACE_ARENA, dnnl_memory_desc_get_size(dst)));
  laci_net_step_add(net, layer, pd, 2, (const int[][2]){{DNNL_ARG_SRC, from}, {DNNL_ARG_DST, to}});
  laci_net_bind(net, layer->output, to);
}
