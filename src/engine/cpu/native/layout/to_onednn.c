/* SPDX-License-Identifier: Apache-2.0
 * Makes copies of tensors in native layouts, for oneDNN's kernels. */
#include "cpu/cpu.h"
#include "engine/cpu/native/layout/tensors.h"
#include "engine/cpu/onednn/onednn.h"
#include "kernel/sparse/reorder.h"

laci_layout *laci_native_dense_layout(laci_net *net, const laci_shape *shape, bool rows) {
  const bool try_blocks = !rows && laci_cpu_has_avx512f();
  if (net->plan.bf16 && !rows)
    return laci_net_channels_last_layout(net, shape, laci_net_float_element(net));
  laci_layout *blocks =
      try_blocks ? laci_net_blocks_layout(net, shape, laci_net_float_element(net)) : NULL;
  return blocks ? blocks : laci_net_dense_layout(net, shape, laci_net_float_element(net));
}

int laci_native_copy_for_onednn(laci_net *net, int tensor) {
  laci_sparse_layout layout;
  tensor = laci_native_copy_as_floats(net, tensor);
  if (tensor < 0) return -1;
  const laci_shape shape = net->tensors[tensor].shape;
  const laci_native_layout have = *net->tensors[tensor].native;
  const int content = net->tensors[tensor].content;
  laci_layout *md = laci_native_dense_layout(net, &shape, have.rows);
  int to = md ? laci_net_find_tensor(net, content, md) : -1;
  if (to >= 0) {
    laci_layout_destroy(md);
    return laci_net_reuse_tensor(net, to, tensor);
  }
  to = md ? laci_net_new_result(net, &shape, laci_net_float_element(net), md) : -1;
  laci_layout_destroy(md);
  if (to < 0 || !laci_native_find_layout(net, to, have.rows, &layout)) return -1;
  const laci_sparse_reorder r = {.from = have.layout,
                                 .to = layout,
                                 .size = laci_native_value_size(net, &shape, have.rows),
                                 .stride_h = 1,
                                 .stride_w = 1};
  (void)laci_native_add_reorder_step(net, tensor, to, &r);
  laci_net_set_content(net, to, content);
  return to;
}
