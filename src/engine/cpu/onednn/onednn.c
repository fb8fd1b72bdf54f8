/* SPDX-License-Identifier: Apache-2.0
 * Wraps the library's engine, layouts, memory and primitives. A layout is the library's memory
 * descriptor under another name; a primitive holds its description until it is created. */
#include "engine/cpu/onednn/onednn_in.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "cpu/cpu.h"
#include "engine/cpu/onednn/onednn.h"

_Static_assert(LACI_MOST_SOURCES == DNNL_ARG_MULTIPLE_DST - DNNL_ARG_MULTIPLE_SRC,
               "oneDNN has numbers for so many sources");
_Static_assert(LACI_MOST_AXES == DNNL_MAX_NDIMS, "oneDNN's layouts have so many axes");

/* ---- The library ---- */

void laci_onednn_limit_isa(void) {
#if defined(__x86_64__)
  laci_cpu_level level = laci_cpu_level_in_force();
  if (level == LACI_CPU_ANY) (void)dnnl_set_max_cpu_isa(dnnl_cpu_isa_sse41);
  if (level == LACI_CPU_AVX2) {
    (void)dnnl_set_max_cpu_isa(laci_cpu_has_avx512f() ? dnnl_cpu_isa_avx512_core
                                                      : dnnl_cpu_isa_avx2);
  }
#endif
}

bool laci_onednn_has_bf16(void) {
#if defined(__x86_64__)
  unsigned wanted = (unsigned)dnnl_cpu_isa_avx512_core_bf16;
  return ((unsigned)dnnl_get_effective_cpu_isa() & wanted) == wanted;
#else
  return false;
#endif
}

lac_status laci_onednn_create(laci_onednn **made, lac_error *err) {
  laci_onednn *dnn = laci_alloc(1, sizeof *dnn);
  *made = dnn;
  if (!dnn) return laci_fail_memory(err, "oneDNN");
  dnnl_status_t st = dnnl_engine_create(&dnn->engine, dnnl_cpu, 0);
  if (!st) st = dnnl_stream_create(&dnn->stream, dnn->engine, dnnl_stream_default_flags);
  if (!st) st = dnnl_primitive_attr_create(&dnn->attr);
  if (!st) st = dnnl_primitive_attr_set_scratchpad_mode(dnn->attr, dnnl_scratchpad_mode_user);
  return st ? laci_fail(err, LAC_NO_MEMORY, "oneDNN did not start (its status %d)", (int)st)
            : LAC_OK;
}

void laci_onednn_destroy(laci_onednn *dnn) {
  if (!dnn) return;
  if (dnn->attr) (void)dnnl_primitive_attr_destroy(dnn->attr);
  if (dnn->stream) (void)dnnl_stream_destroy(dnn->stream);
  if (dnn->engine) (void)dnnl_engine_destroy(dnn->engine);
  laci_free(dnn);
}

bool laci_onednn_wait_for_all(const laci_onednn *dnn) {
  return dnnl_stream_wait(dnn->stream) == dnnl_success;
}

/* ---- Layouts ---- */

static dnnl_data_type_t dnnl_type_of_element(laci_element element) {
  switch (element) {
    case LACI_ELEMENT_F32: return dnnl_f32;
    case LACI_ELEMENT_BF16: return dnnl_bf16;
    case LACI_ELEMENT_BYTE: return dnnl_u8;
    default: return dnnl_data_type_undef;
  }
}

static bool set_layout_if_created(bool good, laci_md md, laci_layout **made) {
  *made = good ? (laci_layout *)(void *)md : NULL;
  return good;
}

bool laci_layout_create_strided(laci_layout **made, int n, const int64_t *dims,
                                laci_element element, const int64_t *strides) {
  laci_md md = NULL;
  bool good = laci_md_create_strided(&md, n, dims, dnnl_type_of_element(element), strides);
  return set_layout_if_created(good, md, made);
}

bool laci_layout_create_any(laci_layout **made, int n, const int64_t *dims, laci_element element) {
  laci_md md = NULL;
  bool good = laci_md_create_any(&md, n, dims, dnnl_type_of_element(element));
  return set_layout_if_created(good, md, made);
}

bool laci_layout_create_blocks(laci_layout **made, const int64_t *dims, int channels,
                               laci_element element) {
  laci_md md = NULL;
  const dnnl_format_tag_t tag = channels == 8 ? dnnl_nChw8c : dnnl_nChw16c;
  bool good = laci_md_create_tagged(&md, 4, dims, dnnl_type_of_element(element), tag);
  return set_layout_if_created(good, md, made);
}

bool laci_layout_create_copy(laci_layout **made, const laci_layout *of) {
  laci_md md = NULL;
  bool good = laci_md_create_copy(&md, laci_layout_descriptor(of));
  return set_layout_if_created(good, md, made);
}

bool laci_layout_create_part(laci_layout **made, const laci_layout *of, int n, const int64_t *dims,
                             const int64_t *offsets) {
  laci_md md = NULL;
  bool good = laci_md_create_part(&md, laci_layout_descriptor(of), n, dims, offsets);
  return set_layout_if_created(good, md, made);
}

bool laci_layout_create_permuted(laci_layout **made, const laci_layout *of, const int *places) {
  laci_md md = NULL;
  bool good = laci_md_create_permuted(&md, laci_layout_descriptor(of), places);
  return set_layout_if_created(good, md, made);
}

bool laci_layout_create_reshaped(laci_layout **made, const laci_layout *of, int n,
                                 const int64_t *dims) {
  laci_md md = NULL;
  bool good = laci_md_create_reshaped(&md, laci_layout_descriptor(of), n, dims);
  return set_layout_if_created(good, md, made);
}

bool laci_layout_get_strides(const laci_layout *of, int n, int64_t *strides, int64_t *offset) {
  return laci_md_get_strides(laci_layout_descriptor(of), n, strides, offset);
}

int64_t laci_layout_block_channels(const laci_layout *layout) {
  return laci_md_block_channels(laci_layout_descriptor(layout));
}

size_t laci_layout_bytes(const laci_layout *layout) {
  return dnnl_memory_desc_get_size(laci_layout_descriptor(layout));
}

bool laci_layout_equal(const laci_layout *a, const laci_layout *b) {
  return dnnl_memory_desc_equal(laci_layout_descriptor(a), laci_layout_descriptor(b)) != 0;
}

void laci_layout_destroy(laci_layout *layout) { laci_md_destroy((laci_md)(void *)layout); }

size_t laci_element_bytes(laci_element element) {
  return dnnl_data_type_size(dnnl_type_of_element(element));
}

/* ---- Memory ---- */

lac_status laci_memory_create(const laci_onednn *dnn, const laci_layout *layout, void *data,
                              laci_memory **made) {
  dnnl_memory_t memory = NULL;
  dnnl_status_t st = dnnl_memory_create(&memory, laci_layout_descriptor(layout), dnn->engine,
                                        data ? data : DNNL_MEMORY_NONE);
  *made = (laci_memory *)(void *)memory;
  return laci_onednn_status(st);
}

lac_status laci_memory_set_data(laci_memory *memory, void *data) {
  return laci_onednn_status(dnnl_memory_set_data_handle((dnnl_memory_t)(void *)memory, data));
}

void laci_memory_destroy(laci_memory *memory) {
  if (memory) (void)dnnl_memory_destroy((dnnl_memory_t)(void *)memory);
}

lac_status laci_layout_convert_data(const laci_onednn *dnn, const laci_layout *from,
                                    const void *data, const laci_layout *to, void *out) {
  dnnl_memory_t source = NULL, target = NULL;
  dnnl_primitive_desc_t pd = NULL;
  dnnl_primitive_t primitive = NULL;
  laci_md_view a = laci_layout_descriptor(from), b = laci_layout_descriptor(to);
  dnnl_status_t st = dnnl_memory_create(&source, a, dnn->engine, (void *)(uintptr_t)data);
  if (!st) st = dnnl_memory_create(&target, b, dnn->engine, out);
  if (!st) st = dnnl_reorder_primitive_desc_create(&pd, a, dnn->engine, b, dnn->engine, NULL);
  if (!st) st = dnnl_primitive_create(&primitive, pd);
  if (!st) {
    dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, source}, {DNNL_ARG_TO, target}};
    st = dnnl_primitive_execute(primitive, dnn->stream, 2, args);
  }
  if (!st) st = dnnl_stream_wait(dnn->stream);
  if (primitive) (void)dnnl_primitive_destroy(primitive);
  if (pd) (void)dnnl_primitive_desc_destroy(pd);
  if (source) (void)dnnl_memory_destroy(source);
  if (target) (void)dnnl_memory_destroy(target);
  return laci_onednn_status(st);
}

/* ---- Properties of primitives ---- */

const laci_layout *laci_primitive_layout(const laci_primitive *p, laci_arg arg) {
  static const dnnl_query_t queries[LACI_N_ARGS] = {
      [LACI_ARG_SRC] = dnnl_query_src_md,
      [LACI_ARG_WEIGHTS] = dnnl_query_weights_md,
      [LACI_ARG_DST] = dnnl_query_dst_md,
      [LACI_ARG_WORKSPACE] = dnnl_query_workspace_md,
      [LACI_ARG_SCRATCHPAD] = dnnl_query_scratchpad_md,
      [LACI_ARG_DIFF_SRC] = dnnl_query_diff_src_md,
      [LACI_ARG_DIFF_WEIGHTS] = dnnl_query_diff_weights_md,
      [LACI_ARG_DIFF_DST] = dnnl_query_diff_dst_md,
  };
  return (const laci_layout *)(const void *)dnnl_primitive_desc_query_md(p->pd, queries[arg], 0);
}

const char *laci_primitive_kernel_name(const laci_primitive *p) {
  const char *kernel = NULL;
  (void)dnnl_primitive_desc_query(p->pd, dnnl_query_impl_info_str, 0, (void *)&kernel);
  return kernel ? kernel : "";
}

bool laci_primitive_is_reference(const laci_primitive *p) {
  return strncmp(laci_primitive_kernel_name(p), "ref", 3) == 0;
}

bool laci_primitive_copies_windows(const laci_primitive *p) {
  return strstr(laci_primitive_kernel_name(p), "gemm") != NULL;
}

static const_dnnl_primitive_desc_t descriptor_of_primitive(const laci_primitive *p) {
  const_dnnl_primitive_desc_t pd = p->pd;
  if (pd) return pd;
  return dnnl_primitive_get_primitive_desc(p->primitive, &pd) ? NULL : pd;
}

bool laci_primitive_adds_to_result(const laci_primitive *p) {
  const_dnnl_primitive_attr_t attr = NULL;
  const_dnnl_post_ops_t posts = NULL;
  const_dnnl_primitive_desc_t pd = descriptor_of_primitive(p);
  if (!pd || dnnl_primitive_desc_get_attr(pd, &attr) || !attr) return false;
  if (dnnl_primitive_attr_get_post_ops(attr, &posts) || !posts) return false;
  for (int at = 0; at < dnnl_post_ops_len(posts); at++) {
    if (dnnl_post_ops_get_kind(posts, at) == dnnl_sum) return true;
  }
  return false;
}

laci_product_kind laci_primitive_product_kind(const laci_primitive *p) {
  const_dnnl_primitive_desc_t pd = descriptor_of_primitive(p);
  dnnl_primitive_kind_t kind = dnnl_undefined_primitive;
  if (pd) (void)dnnl_primitive_desc_query(pd, dnnl_query_primitive_kind, 0, &kind);
  if (kind == dnnl_convolution || kind == dnnl_inner_product) return LACI_PRODUCT_CONV;
  return kind == dnnl_matmul ? LACI_PRODUCT_MATMUL : LACI_PRODUCT_NONE;
}

/* ---- Making and running ---- */

static int onednn_argument_code(int arg) {
  static const int codes[LACI_N_ARGS] = {
      [LACI_ARG_SRC] = DNNL_ARG_SRC,
      [LACI_ARG_SRC_1] = DNNL_ARG_SRC_1,
      [LACI_ARG_WEIGHTS] = DNNL_ARG_WEIGHTS,
      [LACI_ARG_BIAS] = DNNL_ARG_BIAS,
      [LACI_ARG_DST] = DNNL_ARG_DST,
      [LACI_ARG_MEAN] = DNNL_ARG_MEAN,
      [LACI_ARG_VARIANCE] = DNNL_ARG_VARIANCE,
      [LACI_ARG_SCALE] = DNNL_ARG_SCALE,
      [LACI_ARG_SHIFT] = DNNL_ARG_SHIFT,
      [LACI_ARG_WORKSPACE] = DNNL_ARG_WORKSPACE,
      [LACI_ARG_SCRATCHPAD] = DNNL_ARG_SCRATCHPAD,
      [LACI_ARG_DIFF_SRC] = DNNL_ARG_DIFF_SRC,
      [LACI_ARG_DIFF_WEIGHTS] = DNNL_ARG_DIFF_WEIGHTS,
      [LACI_ARG_DIFF_DST] = DNNL_ARG_DIFF_DST,
      [LACI_ARG_DIFF_SCALE] = DNNL_ARG_DIFF_SCALE,
      [LACI_ARG_DIFF_SHIFT] = DNNL_ARG_DIFF_SHIFT,
  };
  return arg < LACI_N_ARGS ? codes[arg] : DNNL_ARG_MULTIPLE_SRC + arg - LACI_ARG_MULTIPLE_SRC;
}

lac_status laci_primitive_create(laci_primitive *p) {
  dnnl_status_t st = dnnl_primitive_create(&p->primitive, p->pd);
  (void)dnnl_primitive_desc_destroy(p->pd);
  p->pd = NULL;
  return laci_onednn_status(st);
}

lac_status laci_primitive_bind(laci_primitive *p, int n, const int *args,
                               laci_memory *const *memory) {
  p->args = laci_alloc((size_t)n, sizeof *p->args);
  if (!p->args) return LAC_NO_MEMORY;
  p->n_args = n;
  for (int at = 0; at < n; at++) {
    p->args[at] = (dnnl_exec_arg_t){.arg = onednn_argument_code(args[at]),
                                    .memory = (dnnl_memory_t)(void *)memory[at]};
  }
  return LAC_OK;
}

lac_status laci_primitive_run(const laci_primitive *p, const laci_onednn *dnn, int *status) {
  dnnl_status_t st = dnnl_primitive_execute(p->primitive, dnn->stream, p->n_args, p->args);
  if (status) *status = (int)st;
  return laci_onednn_status(st);
}

void laci_primitive_destroy(laci_primitive *p) {
  if (!p) return;
  if (p->primitive) (void)dnnl_primitive_destroy(p->primitive);
  if (p->pd) (void)dnnl_primitive_desc_destroy(p->pd);
  laci_free(p->args);
  laci_free(p);
}
