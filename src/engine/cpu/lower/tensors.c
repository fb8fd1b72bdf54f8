/* SPDX-License-Identifier: Apache-2.0
 * Layouts, buffers and tensors: where values are stored, while steps are added.
 *
 * A value has one tensor. A buffer in the arena records the first and the last step that use it,
 * which is all that plan/memory.c needs. It also counts the reads that are still to come, so that
 * the last one may overwrite it. Next: values.c. */
#include "base/memory.h"
#include "engine/cpu/net_in.h"
#include "engine/cpu/onednn/onednn.h"

/* ---- Descriptors ---- */

laci_layout *laci_net_dense_layout(laci_net *net, const laci_shape *shape, laci_element dt) {
  laci_shape s = laci_net_shape_with_axis(shape);
  int64_t strides[LACI_MOST_AXES];
  laci_layout *md = NULL;
  int64_t stride = 1;
  for (int axis = s.rank - 1; axis >= 0; axis--) {
    strides[axis] = stride;
    stride *= s.dims[axis] > 0 ? s.dims[axis] : 1;
  }
  if (!net->plan.status && !laci_layout_create_strided(&md, s.rank, s.dims, dt, strides))
    laci_plan_fail_no_memory(&net->plan);
  return md;
}

laci_layout *laci_net_any_layout(laci_net *net, const laci_shape *shape, laci_element dt) {
  laci_shape s = laci_net_shape_with_axis(shape);
  laci_layout *md = NULL;
  if (!net->plan.status && !laci_layout_create_any(&md, s.rank, s.dims, dt))
    laci_plan_fail_no_memory(&net->plan);
  return md;
}

laci_layout *laci_net_channels_last_layout(laci_net *net, const laci_shape *shape,
                                           laci_element dt) {
  int64_t strides[LACI_MOST_AXES];
  laci_layout *md = NULL;
  int64_t stride = shape->rank > 1 ? shape->dims[1] : 1;
  for (int axis = shape->rank - 1; axis >= 0; axis--) {
    strides[axis] = axis == 1 ? 1 : stride;
    if (axis != 1) stride *= shape->dims[axis];
  }
  if (!net->plan.status &&
      !laci_layout_create_strided(&md, shape->rank, shape->dims, dt, strides)) {
    laci_plan_fail_no_memory(&net->plan);
  }
  return md;
}

laci_layout *laci_net_blocks_layout(laci_net *net, const laci_shape *shape, laci_element dt) {
  laci_layout *md = NULL;
  bool fits = shape->rank == 4 && shape->dims[1] % LACI_NET_BLOCK == 0;
  if (!fits || net->plan.status) return NULL;
  if (!laci_layout_create_blocks(&md, shape->dims, LACI_NET_BLOCK, dt))
    laci_plan_fail_no_memory(&net->plan);
  return md;
}

bool laci_net_is_in_blocks(laci_net *net, int tensor) {
  if (net->plan.status || tensor < 0 || !net->tensors[tensor].md) return false;
  const laci_net_tensor t = net->tensors[tensor];
  laci_layout *md = laci_net_blocks_layout(net, &t.shape, laci_net_float_element(net));
  bool equal = md && !t.partial && laci_layout_equal(md, t.md);
  laci_layout_destroy(md);
  return equal;
}

bool laci_net_is_row_major(laci_net *net, int tensor) {
  const laci_net_tensor t = net->tensors[tensor];
  laci_layout *rows = laci_net_dense_layout(net, &t.shape, t.dt);
  const bool equal = rows && laci_layout_equal(rows, t.md);
  laci_layout_destroy(rows);
  return equal;
}

/* ---- Buffers and tensors ---- */

int laci_net_buffer_new(laci_net *net, laci_place place, size_t bytes) {
  if (net->plan.status) return -1;
  if (!laci_grow((void **)&net->buffers, net->n_buffers, &net->buffer_capacity,
                 sizeof *net->buffers)) {
    laci_plan_fail_no_memory(&net->plan);
    return -1;
  }
  net->buffers[net->n_buffers] =
      (laci_buffer){.place = place, .bytes = bytes, .first = -1, .last = -1};
  return (int)net->n_buffers++;
}

int laci_net_tensor_new(laci_net *net, const laci_shape *shape, laci_element dt, laci_layout *md,
                        int buffer) {
  bool fits = !net->plan.status && buffer >= 0;
  if (fits && !laci_grow((void **)&net->tensors, net->n_tensors, &net->tensor_capacity,
                         sizeof *net->tensors)) {
    laci_plan_fail_no_memory(&net->plan);
    fits = false;
  }
  if (!fits) {
    laci_layout_destroy(md);
    return -1;
  }
  int id = (int)net->n_tensors++;
  net->tensors[id] = (laci_net_tensor){.shape = laci_net_shape_with_axis(shape),
                                       .dt = dt,
                                       .md = md,
                                       .buffer = buffer,
                                       .content = id,
                                       .next = -1,
                                       .last = id};
  return id;
}

int laci_net_view_new(laci_net *net, int tensor, const laci_shape *shape, laci_layout *md,
                      bool partial) {
  if (net->plan.status || tensor < 0) {
    laci_layout_destroy(md);
    return -1;
  }
  const laci_net_tensor from = net->tensors[tensor];
  int view = laci_net_tensor_new(net, shape, from.dt, md, from.buffer);
  if (view >= 0) net->tensors[view].partial = partial || from.partial;
  if (view >= 0) net->tensors[view].shared = from.shared;
  return view;
}

void laci_net_bind_value(laci_net *net, int value, int tensor) {
  if (net->plan.status || tensor < 0) return;
  laci_plan_value *v = &net->plan.values[value];
  if (net->recomputing && v->tensor >= 0 && v->n_copy_uses == 0) return;
  v->tensor = tensor;
  net->buffers[net->tensors[tensor].buffer].pending +=
      net->recomputing ? v->n_copy_uses : v->n_uses;
}

void laci_net_note_read_done(laci_net *net, int value) {
  int tensor = net->plan.values[value].tensor;
  if (tensor >= 0) net->buffers[net->tensors[tensor].buffer].pending--;
}

/** Prepares a tensor's buffer to be overwritten: other tensors in it must no longer be found as
 * copies of their old content. (A value and its copy in another layout have separate buffers.) */
static int prepare_overwrite(laci_net *net, int tensor) {
  int buffer = net->tensors[tensor].buffer;
  for (size_t at = 0; at < net->n_tensors; at++) {
    if (net->tensors[at].buffer == buffer) net->tensors[at].content = -1;
  }
  return buffer;
}

int laci_net_new_result_like(laci_net *net, int like, bool in_place) {
  if (net->plan.status || like < 0) return -1;
  const laci_net_tensor from = net->tensors[like];
  laci_layout *md = NULL;
  if (from.md && !laci_layout_create_copy(&md, from.md)) laci_plan_fail_no_memory(&net->plan);
  int buffer = in_place && laci_net_is_last_read(net, like)
                   ? prepare_overwrite(net, like)
                   : laci_net_buffer_new(net, LACI_PLACE_ARENA, net->buffers[from.buffer].bytes);
  int tensor = laci_net_tensor_new(net, &from.shape, from.dt, md, buffer);
  if (tensor >= 0) net->tensors[tensor].native = from.native;
  return tensor;
}

int laci_net_new_result(laci_net *net, const laci_shape *shape, laci_element dt,
                        const laci_layout *md) {
  laci_layout *copy = NULL;
  if (net->plan.status) return -1;
  if (!laci_layout_create_copy(&copy, md)) laci_plan_fail_no_memory(&net->plan);
  int buffer = laci_net_buffer_new(net, LACI_PLACE_ARENA, laci_layout_bytes(md));
  return laci_net_tensor_new(net, shape, dt, copy, buffer);
}

int laci_net_scratch_new(laci_net *net, size_t bytes) {
  const laci_shape shape = laci_shape_of(1, (int64_t[]){(int64_t)bytes});
  return laci_net_tensor_new(net, &shape, LACI_ELEMENT_NONE, NULL,
                             laci_net_buffer_new(net, LACI_PLACE_ARENA, bytes));
}

int laci_net_workspace_new(laci_net *net, int node, const laci_primitive *pd) {
  const laci_layout *md = laci_primitive_layout(pd, LACI_ARG_WORKSPACE);
  size_t bytes = md ? laci_layout_bytes(md) : 0;
  if (bytes == 0 || net->plan.status) return -1;
  laci_shape shape = laci_shape_of(1, (int64_t[]){(int64_t)bytes});
  net->workspaces[node] = laci_net_new_result(net, &shape, LACI_ELEMENT_BYTE, md);
  return net->workspaces[node];
}

laci_element laci_net_result_element(const laci_net *net, int value) {
  return net->plan.graph->values[value].is_output ? LACI_ELEMENT_F32 : laci_net_float_element(net);
}

bool laci_net_is_last_read(const laci_net *net, int tensor) {
  if (net->plan.status || tensor < 0) return false;
  const laci_buffer *buffer = &net->buffers[net->tensors[tensor].buffer];
  return buffer->place == LACI_PLACE_ARENA && buffer->pending == 1 && !buffer->continued_by &&
         !net->tensors[tensor].partial && !net->tensors[tensor].shared;
}

/* ---- Tensors with the same content ---- */

void laci_net_set_content(laci_net *net, int tensor, int content) {
  bool alone = net->tensors[tensor].content == tensor && net->tensors[tensor].next < 0;
  net->tensors[tensor].content = content;
  if (!alone || content < 0 || content == tensor) return; /* a tensor is in at most one chain */
  net->tensors[net->tensors[content].last].next = tensor;
  net->tensors[content].last = tensor;
}

int laci_net_find_tensor(const laci_net *net, int content, const laci_layout *md) {
  for (int at = content; at >= 0; at = net->tensors[at].next) {
    const laci_net_tensor *t = &net->tensors[at];
    if (t->content == content && t->md && laci_layout_equal(t->md, md)) return at;
  }
  return -1;
}

int laci_net_reuse_tensor(laci_net *net, int found, int like) {
  const laci_net_tensor copy = net->tensors[found];
  laci_layout *md = NULL;
  if (copy.buffer == net->tensors[like].buffer) return found;
  if (copy.md && !laci_layout_create_copy(&md, copy.md)) laci_plan_fail_no_memory(&net->plan);
  int view = laci_net_view_new(net, found, &copy.shape, md, false);
  if (view < 0) return -1;
  net->tensors[view].native = copy.native;
  laci_net_set_content(net, view, copy.content);
  net->tensors[view].shared = true;
  return view;
}

void *laci_net_tensor_data(const laci_net *net, int tensor) {
  const laci_buffer *buffer = &net->buffers[net->tensors[tensor].buffer];
  return buffer->place == LACI_PLACE_ARENA ? net->arena + buffer->offset : buffer->data;
}
