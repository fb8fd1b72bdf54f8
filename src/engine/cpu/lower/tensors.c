/* SPDX-License-Identifier: Apache-2.0
 * Tensors, buffers and steps: the words that implementations lower in.
 *
 * A value has one tensor; the same content in another layout is another tensor, made by a reorder
 * step the first time somebody wants it and found again afterwards. What is constant is reordered
 * at once and kept as a weight (weights.c). Buffers in the arena note the first and the last step
 * that touches them, which is all that plan/memory.c needs. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/cpu/net_in.h"
#include "base/error.h"
#include "graph/sizes.h"

/* ---- Failing ---- */

void laci_net_fail(laci_net *net, lac_status status, const char *format, ...) {
  char text[sizeof net->err->text];
  va_list args;
  if (net->status) return;
  va_start(args, format);
  (void)vsnprintf(text, sizeof text, format, args);
  va_end(args);
  net->status = laci_fail(net->err, status, "%s", text);
}

void laci_net_no_memory(laci_net *net) {
  laci_net_fail(net, LAC_NO_MEMORY, "not enough memory for the plan");
}

void laci_net_decline(laci_net *net, const char *why) {
  if (net->status) return;
  net->declined = true;
  laci_net_fail(net, LAC_UNSUPPORTED, "%s", why);
}

bool laci_net_did(laci_net *net, lac_status status, const char *what) {
  if (status == LAC_OK) return !net->status;
  if (status == LAC_NO_MEMORY) laci_net_no_memory(net);
  if (status != LAC_NO_MEMORY) {
    char text[128];
    (void)snprintf(text, sizeof text, "oneDNN has no %s for this", what);
    laci_net_decline(net, text);
  }
  return false;
}

bool laci_net_has_room(laci_net *net) {
  if (!net->status && !laci_memory_has_room(LACI_NET_ROOM)) laci_net_no_memory(net);
  return !net->status;
}

bool laci_net_may_take(laci_net *net, uint64_t bytes, int value) {
  char text[256] = "weights";
  laci_budget now = net->budget;
  if (net->status) return false;
  laci_budget_add(&now, net->weight_bytes, "weights");
  laci_budget_add(&now, net->constant_bytes, "constants");
  if (laci_budget_has(&now, bytes)) return true;
  if (value >= 0) {
    const laci_net_value *v = &net->values[value];
    laci_value_text(net->graph, value, &v->type, text, sizeof text);
  }
  now.largest = 0; /* what does not fit is named, whatever else is large */
  laci_budget_add(&now, bytes, "%s", text);
  net->status = laci_budget_check(&now, "the plan", net->err);
  return false;
}

void *laci_net_new(laci_net *net, size_t n, size_t size) {
  void *memory = net->status ? NULL : laci_arena_alloc(&net->memory, n, size);
  if (!memory) laci_net_no_memory(net);
  return memory;
}

/* ---- Descriptors ---- */

/** oneDNN has no scalars: rank 0 becomes one axis of size 1. */
static laci_shape with_axis(const laci_shape *shape) {
  return shape->rank > 0 ? *shape : laci_shape_of(1, (int64_t[]){1});
}

laci_layout *laci_net_dense(laci_net *net, const laci_shape *shape, laci_element dt) {
  laci_shape s = with_axis(shape);
  int64_t strides[LACI_MOST_AXES];
  laci_layout *md = NULL;
  int64_t stride = 1;
  for (int axis = s.rank - 1; axis >= 0; axis--) {
    strides[axis] = stride;
    stride *= s.dims[axis] > 0 ? s.dims[axis] : 1;
  }
  if (!net->status && !laci_layout_strided(&md, s.rank, s.dims, dt, strides))
    laci_net_no_memory(net);
  return md;
}

laci_layout *laci_net_any(laci_net *net, const laci_shape *shape, laci_element dt) {
  laci_shape s = with_axis(shape);
  laci_layout *md = NULL;
  if (!net->status && !laci_layout_any(&md, s.rank, s.dims, dt)) laci_net_no_memory(net);
  return md;
}

laci_layout *laci_net_channels_last(laci_net *net, const laci_shape *shape, laci_element dt) {
  int64_t strides[LACI_MOST_AXES];
  laci_layout *md = NULL;
  int64_t stride = shape->rank > 1 ? shape->dims[1] : 1;
  for (int axis = shape->rank - 1; axis >= 0; axis--) {
    strides[axis] = axis == 1 ? 1 : stride;
    if (axis != 1) stride *= shape->dims[axis];
  }
  if (!net->status && !laci_layout_strided(&md, shape->rank, shape->dims, dt, strides)) {
    laci_net_no_memory(net);
  }
  return md;
}

laci_layout *laci_net_blocks(laci_net *net, const laci_shape *shape, laci_element dt) {
  laci_layout *md = NULL;
  bool fits = shape->rank == 4 && shape->dims[1] % LACI_NET_BLOCK == 0;
  if (!fits || net->status) return NULL;
  if (!laci_layout_blocks(&md, shape->dims, dt)) laci_net_no_memory(net);
  return md;
}

bool laci_net_in_blocks(laci_net *net, int tensor) {
  if (net->status || tensor < 0 || !net->tensors[tensor].md) return false;
  const laci_net_tensor t = net->tensors[tensor];
  laci_layout *md = laci_net_blocks(net, &t.shape, laci_net_dt(net));
  bool equal = md && !t.partial && laci_layout_equal(md, t.md);
  laci_layout_destroy(md);
  return equal;
}

/* ---- Buffers and tensors ---- */

int laci_net_buffer_new(laci_net *net, laci_place place, size_t bytes) {
  if (net->status) return -1;
  if (!laci_grow((void **)&net->buffers, net->n_buffers, &net->buffer_room, sizeof *net->buffers)) {
    laci_net_no_memory(net);
    return -1;
  }
  net->buffers[net->n_buffers] =
      (laci_net_buffer){.place = place, .bytes = bytes, .first = -1, .last = -1};
  return (int)net->n_buffers++;
}

int laci_net_tensor_new(laci_net *net, const laci_shape *shape, laci_element dt, laci_layout *md,
                        int buffer) {
  bool fits = !net->status && buffer >= 0;
  if (fits &&
      !laci_grow((void **)&net->tensors, net->n_tensors, &net->tensor_room, sizeof *net->tensors)) {
    laci_net_no_memory(net);
    fits = false;
  }
  if (!fits) {
    laci_layout_destroy(md);
    return -1;
  }
  int id = (int)net->n_tensors++;
  net->tensors[id] = (laci_net_tensor){
      .shape = with_axis(shape), .dt = dt, .md = md, .buffer = buffer, .content = id};
  return id;
}

int laci_net_view(laci_net *net, int tensor, const laci_shape *shape, laci_layout *md,
                  bool partial) {
  if (net->status || tensor < 0) {
    laci_layout_destroy(md);
    return -1;
  }
  const laci_net_tensor from = net->tensors[tensor];
  int view = laci_net_tensor_new(net, shape, from.dt, md, from.buffer);
  if (view >= 0) net->tensors[view].partial = partial || from.partial;
  if (view >= 0) net->tensors[view].shared = from.shared;
  return view;
}

int laci_net_as_blocks(laci_net *net, int value) {
  laci_layout *md = laci_net_blocks(net, laci_net_shape(net, value), laci_net_dt(net));
  int tensor = md ? laci_net_as(net, laci_net_read(net, value), md, laci_net_dt(net)) : -1;
  laci_layout_destroy(md);
  return tensor;
}

void laci_net_bind(laci_net *net, int value, int tensor) {
  if (net->status || tensor < 0) return;
  laci_net_value *v = &net->values[value];
  if (net->recomputing && v->tensor >= 0 && v->n_uses_again == 0) return;
  v->tensor = tensor;
  net->buffers[net->tensors[tensor].buffer].pending +=
      net->recomputing ? v->n_uses_again : v->n_uses;
}

/** The elements in their order, with the axes of `shape`: as they lie where strides can say that.
 */
static int reshaped(laci_net *net, int tensor, const laci_shape *shape) {
  laci_element dt = net->tensors[tensor].dt;
  const laci_layout *from = net->tensors[tensor].md;
  int64_t strides[LACI_MAX_RANK], offset;
  laci_layout *md = NULL;
  bool strided =
      from && laci_layout_strides(from, net->tensors[tensor].shape.rank, strides, &offset);
  if (strided && laci_layout_reshaped(&md, from, shape->rank, shape->dims)) {
    return laci_net_view(net, tensor, shape, md, false);
  }
  int dense = from ? laci_net_as_dense(net, tensor, dt) : tensor;
  bool has_layout = dense >= 0 && net->tensors[dense].md;
  return laci_net_view(net, dense, shape, has_layout ? laci_net_dense(net, shape, dt) : NULL,
                       false);
}

void laci_net_bind_shaped(laci_net *net, int value, int tensor) {
  const laci_shape shape = with_axis(laci_net_shape(net, value));
  if (net->status || tensor < 0) return;
  if (!laci_shape_equal(&shape, &net->tensors[tensor].shape)) {
    tensor = reshaped(net, tensor, &shape);
  }
  laci_net_bind(net, value, tensor);
}

/** The bytes will hold something else: copies of older content that lie there are not to be found
 * again. (A value and its copy in another layout have buffers of their own.) */
static int overwrite(laci_net *net, int tensor) {
  int buffer = net->tensors[tensor].buffer;
  for (size_t at = 0; at < net->n_tensors; at++) {
    if (net->tensors[at].buffer == buffer) net->tensors[at].content = -1;
  }
  return buffer;
}

int laci_net_result_like(laci_net *net, int like, bool in_place) {
  if (net->status || like < 0) return -1;
  const laci_net_tensor from = net->tensors[like];
  laci_layout *md = NULL;
  if (!laci_layout_copy(&md, from.md)) laci_net_no_memory(net);
  int buffer = in_place && laci_net_dies(net, like)
                   ? overwrite(net, like)
                   : laci_net_buffer_new(net, LACI_PLACE_ARENA, laci_layout_bytes(from.md));
  return laci_net_tensor_new(net, &from.shape, from.dt, md, buffer);
}

int laci_net_result(laci_net *net, const laci_shape *shape, laci_element dt,
                    const laci_layout *md) {
  laci_layout *copy = NULL;
  if (net->status) return -1;
  if (!laci_layout_copy(&copy, md)) laci_net_no_memory(net);
  int buffer = laci_net_buffer_new(net, LACI_PLACE_ARENA, laci_layout_bytes(md));
  return laci_net_tensor_new(net, shape, dt, copy, buffer);
}

int laci_net_scratch(laci_net *net, size_t bytes) {
  const laci_shape shape = laci_shape_of(1, (int64_t[]){(int64_t)bytes});
  return laci_net_tensor_new(net, &shape, LACI_ELEMENT_NONE, NULL,
                             laci_net_buffer_new(net, LACI_PLACE_ARENA, bytes));
}

int laci_net_workspace(laci_net *net, int node, const laci_primitive *pd) {
  const laci_layout *md = laci_primitive_layout(pd, LACI_ARG_WORKSPACE);
  size_t bytes = md ? laci_layout_bytes(md) : 0;
  if (bytes == 0 || net->status) return -1;
  laci_shape shape = laci_shape_of(1, (int64_t[]){(int64_t)bytes});
  net->workspaces[node] = laci_net_result(net, &shape, LACI_ELEMENT_BYTE, md);
  return net->workspaces[node];
}

laci_element laci_net_result_dt(const laci_net *net, int value) {
  return net->graph->values[value].is_output ? LACI_ELEMENT_F32 : laci_net_dt(net);
}

bool laci_net_dies(const laci_net *net, int tensor) {
  if (net->status || tensor < 0) return false;
  const laci_net_buffer *buffer = &net->buffers[net->tensors[tensor].buffer];
  return buffer->place == LACI_PLACE_ARENA && buffer->pending == 1 && !buffer->continued_by &&
         !net->tensors[tensor].partial && !net->tensors[tensor].shared;
}

/* ---- Reading ---- */

int laci_net_read(laci_net *net, int value) {
  if (net->status) return -1;
  laci_net_value *v = &net->values[value];
  if (v->tensor < 0 && v->constant) laci_net_bind(net, value, laci_net_constant_tensor(net, value));
  if (v->tensor < 0) {
    laci_net_fail(net, LAC_INTERNAL, "%s: read before it is there", net->graph->values[value].name);
  }
  return v->tensor;
}

/** A tensor of the same content in that layout, or -1. */
static int find_content(const laci_net *net, int content, const laci_layout *md) {
  for (size_t at = 0; at < net->n_tensors; at++) {
    const laci_net_tensor *t = &net->tensors[at];
    if (content >= 0 && t->content == content && t->md && laci_layout_equal(t->md, md))
      return (int)at;
  }
  return -1;
}

static void reorder_step(laci_net *net, int from, int to) {
  laci_primitive *pd = NULL;
  lac_status st =
      laci_primitive_reorder(&pd, net->onednn, net->tensors[from].md, net->tensors[to].md);
  if (!laci_net_did(net, st, "reorder")) return;
  laci_net_step_add(net, NULL, pd, 2, (const int[][2]){{LACI_ARG_SRC, from}, {LACI_ARG_DST, to}});
}

/** A copy that was made for another reader. What is still to be read of its buffer is other values,
 * not the one that was copied. */
static int share(laci_net *net, int found) {
  const laci_net_tensor copy = net->tensors[found];
  laci_layout *md = NULL;
  if (!laci_layout_copy(&md, copy.md)) laci_net_no_memory(net);
  int view = laci_net_view(net, found, &copy.shape, md, false);
  if (view < 0) return -1;
  net->tensors[view].content = copy.content;
  net->tensors[view].shared = true;
  return view;
}

int laci_net_as(laci_net *net, int tensor, const laci_layout *md, laci_element dt) {
  if (net->status || tensor < 0 || !md) return -1;
  const laci_net_tensor from = net->tensors[tensor];
  int found = find_content(net, from.content, md);
  if (found >= 0) return net->tensors[found].buffer == from.buffer ? found : share(net, found);
  int to;
  const laci_net_buffer *source = &net->buffers[from.buffer];
  if (source->place == LACI_PLACE_WEIGHT) {
    to = laci_net_weight_from(net, &from, source->data, md, dt);
  } else {
    laci_layout *copy = NULL;
    if (!laci_layout_copy(&copy, md)) laci_net_no_memory(net);
    int buffer = laci_net_buffer_new(net, LACI_PLACE_ARENA, laci_layout_bytes(md));
    to = laci_net_tensor_new(net, &from.shape, dt, copy, buffer);
    if (to >= 0) reorder_step(net, tensor, to);
  }
  if (to >= 0) net->tensors[to].content = from.content;
  return to;
}

int laci_net_as_dense(laci_net *net, int tensor, laci_element dt) {
  if (net->status || tensor < 0) return -1;
  laci_shape shape = net->tensors[tensor].shape;
  laci_layout *md = laci_net_dense(net, &shape, dt);
  int to = laci_net_as(net, tensor, md, dt);
  laci_layout_destroy(md);
  return to;
}

int laci_net_whole(laci_net *net, int tensor) {
  if (net->status || tensor < 0) return -1;
  const laci_net_tensor *t = &net->tensors[tensor];
  if (!t->partial && t->dt == laci_net_dt(net)) return tensor;
  return laci_net_as_dense(net, tensor, laci_net_dt(net));
}

/* ---- Posts ---- */

laci_posts *laci_net_posts(laci_net *net, const laci_fused *fused, int *sum) {
  laci_posts *posts = NULL;
  *sum = -1;
  if (net->status) return NULL;
  for (int at = 0; at < fused->n_posts; at++) {
    if (fused->posts[at].value >= 0) *sum = fused->posts[at].value;
  }
  lac_status st = laci_posts_create(net->onednn, fused->posts, fused->n_posts, &posts);
  return laci_net_did(net, st, "post operations") ? posts : NULL;
}

int laci_net_sum_target(laci_net *net, int have, const laci_layout *md, laci_element dt) {
  if (net->status || have < 0) return -1;
  laci_shape shape = net->tensors[have].shape;
  laci_layout *copy = NULL;
  if (!laci_layout_copy(&copy, md)) laci_net_no_memory(net);
  if (laci_layout_equal(net->tensors[have].md, md) && laci_net_dies(net, have)) {
    return laci_net_tensor_new(net, &shape, dt, copy, overwrite(net, have));
  }
  int buffer = laci_net_buffer_new(net, LACI_PLACE_ARENA, laci_layout_bytes(md));
  int to = laci_net_tensor_new(net, &shape, dt, copy, buffer);
  if (to >= 0) reorder_step(net, have, to);
  return to;
}

/* ---- Steps ---- */

static laci_net_step *new_step(laci_net *net, int n_args) {
  if (net->status) return NULL;
  if (!laci_grow((void **)&net->steps, net->n_steps, &net->step_room, sizeof *net->steps)) {
    laci_net_no_memory(net);
    return NULL;
  }
  laci_net_step *step = &net->steps[net->n_steps];
  *step = (laci_net_step){.shown = -1, .recomputed = net->recomputing, .n_args = n_args};
  step->codes = laci_net_new(net, (size_t)n_args, sizeof *step->codes);
  step->tensors = laci_net_new(net, (size_t)n_args, sizeof *step->tensors);
  if (net->status) return NULL;
  net->n_steps++;
  return step;
}

static void touch(laci_net *net, int tensor, int step) {
  laci_net_buffer *buffer = &net->buffers[net->tensors[tensor].buffer];
  if (buffer->first < 0) buffer->first = step;
  buffer->last = step;
}

static const char *describe(laci_net *net, const laci_fused *fused) {
  char text[256];
  size_t used = 0;
  if (!fused) return "reorder";
  used += (size_t)snprintf(text, sizeof text, "%s%s", net->graph->nodes[fused->node].type,
                           fused->scale ? " + scale" : "");
  for (int at = 0; at < fused->n_posts && used < sizeof text; at++) {
    used += (size_t)snprintf(text + used, sizeof text - used, "%s",
                             fused->posts[at].value >= 0 ? " + sum" : " + function");
  }
  const char *copy = laci_arena_text(&net->memory, text);
  if (!copy) laci_net_no_memory(net);
  return copy;
}

static int scratchpad_tensor(laci_net *net, const laci_primitive *pd) {
  const laci_layout *md = laci_primitive_layout(pd, LACI_ARG_SCRATCHPAD);
  size_t bytes = md ? laci_layout_bytes(md) : 0;
  laci_layout *copy = NULL;
  if (bytes == 0) return -1;
  if (!laci_layout_copy(&copy, md)) laci_net_no_memory(net);
  laci_shape shape = laci_shape_of(1, (int64_t[]){(int64_t)bytes});
  int buffer = laci_net_buffer_new(net, LACI_PLACE_ARENA, bytes);
  return laci_net_tensor_new(net, &shape, LACI_ELEMENT_BYTE, copy, buffer);
}

static bool is_result(int arg) {
  return arg == LACI_ARG_DST || arg == LACI_ARG_DIFF_SRC || arg == LACI_ARG_DIFF_WEIGHTS;
}

void laci_net_step_add(laci_net *net, const laci_fused *fused, laci_primitive *pd, int n_args,
                       const int (*args)[2]) {
  int scratchpad = net->status ? -1 : scratchpad_tensor(net, pd);
  laci_net_step *step = new_step(net, n_args + (scratchpad >= 0));
  for (int at = 0; at < n_args && step; at++) {
    if (args[at][1] < 0) laci_net_fail(net, LAC_INTERNAL, "a step lacks an operand");
    if (net->status) break;
    step->codes[at] = args[at][0];
    step->tensors[at] = args[at][1];
    touch(net, args[at][1], (int)net->n_steps - 1);
    if (is_result(args[at][0])) step->shown = args[at][1];
  }
  if (step && scratchpad >= 0) {
    step->codes[n_args] = LACI_ARG_SCRATCHPAD;
    step->tensors[n_args] = scratchpad;
    touch(net, scratchpad, (int)net->n_steps - 1);
  }
  if (step) {
    step->kernel = laci_arena_text(&net->memory, laci_primitive_kernel(pd));
    step->what = describe(net, fused);
    step->node = fused ? &net->graph->nodes[fused->node] : NULL;
    step->primitive = pd;
    return;
  }
  laci_primitive_destroy(pd);
}

laci_net_step *laci_net_step_code(laci_net *net, const laci_node *node, laci_net_code *code,
                                  int n_tensors, const int *tensors) {
  laci_net_step *step = new_step(net, n_tensors);
  for (int at = 0; at < n_tensors && step; at++) {
    step->tensors[at] = tensors[at];
    if (tensors[at] >= 0) touch(net, tensors[at], (int)net->n_steps - 1);
  }
  if (!step) return NULL;
  step->node = node;
  step->what = node->type;
  step->code = code;
  step->kernel = "";
  return step;
}

laci_net_mark laci_net_mark_now(const laci_net *net) {
  return (laci_net_mark){.n_steps = net->n_steps, .n_tensors = net->n_tensors};
}

void laci_net_take_back(laci_net *net, laci_net_mark mark) {
  for (size_t at = mark.n_steps; at < net->n_steps; at++) {
    laci_primitive_destroy(net->steps[at].primitive);
  }
  net->n_steps = mark.n_steps;
  for (size_t at = mark.n_tensors; at < net->n_tensors; at++) {
    laci_net_tensor *t = &net->tensors[at];
    if (net->buffers[t->buffer].place == LACI_PLACE_ARENA) t->content = -1;
  }
}

void *laci_net_data(const laci_net *net, int tensor) {
  const laci_net_buffer *buffer = &net->buffers[net->tensors[tensor].buffer];
  return buffer->place == LACI_PLACE_ARENA ? net->arena + buffer->offset : buffer->data;
}
