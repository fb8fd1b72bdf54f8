/* SPDX-License-Identifier: Apache-2.0
 * The definitions of onednn.h's opaque types, for the files of this folder. */
#ifndef LACI_ENGINE_CPU_ONEDNN_IN_H
#define LACI_ENGINE_CPU_ONEDNN_IN_H

#include "engine/cpu/onednn/backward.h"
#include "engine/cpu/onednn/onednn.h"

struct laci_onednn {
  dnnl_engine_t engine;
  dnnl_stream_t stream;
  dnnl_primitive_attr_t attr; /* attributes of primitives without posts: the caller provides
                                 scratchpads */
};

struct laci_primitive {
  dnnl_primitive_desc_t pd; /* the description; set until the primitive is created */
  dnnl_primitive_t primitive;
  int n_args;
  dnnl_exec_arg_t *args;
};

/** Converts a layout, which is the library's memory descriptor under another name. */
static inline laci_md_view laci_layout_descriptor(const laci_layout *layout) {
  return (laci_md_view)(const void *)layout;
}

static inline lac_status laci_onednn_status(dnnl_status_t status) {
  if (status == dnnl_success) return LAC_OK;
  return status == dnnl_out_of_memory ? LAC_NO_MEMORY : LAC_UNSUPPORTED;
}

#endif
