/* SPDX-License-Identifier: Apache-2.0
 * Reorders between memory layouts (kernel/sparse/reorder.h) on one core, compared with memcpy of as
 * many bytes and with oneDNN's reorder where it has one. All are run alternately; the least time of
 * all repeats counts. *norm* is ours with a scale, a shift and a lower bound.
 *
 *     reorder_bench [--rounds N] [--only TEXT] [--isa scalar|avx2] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cpu/cpu.h"
#include "cpu/openmp.h"
#include "engine/cpu/onednn/compat.h"
#include "kernel/sparse/reorder.h"
#include "large_pages.h"

enum { OURS, NORM, ZEROS, COPY, ONEDNN, METHODS };

typedef struct settings {
  int rounds;
  const char *only;
} settings;

/* The layouts as networks have them: PADDED (CHW), PHASES (CHW split by stride) and HWC16N for a
 * 3x3, PC16P for a 1x1. DENSE is CHW without padding. */
typedef enum kind { DENSE, CHW16C, HWC, PADDED, PHASES, PC16P, HWC16N } kind;
static const char *const kind_names[] = {"CHW",    "CHW16C", "HWC",   "padded CHW",
                                         "phases", "PC16P",  "HWC16N"};

typedef struct row {
  kind from, to;
  laci_sparse_size size;
  int64_t stride;
} row;

static const row rows[] = {
    {DENSE, CHW16C, {64, 56, 56, 1}, 1},   {CHW16C, DENSE, {64, 56, 56, 1}, 1},
    {CHW16C, PC16P, {64, 56, 56, 1}, 1},   {PC16P, CHW16C, {64, 56, 56, 1}, 1},
    {CHW16C, PC16P, {256, 56, 56, 1}, 1},  {PC16P, CHW16C, {256, 56, 56, 1}, 1},
    {CHW16C, PC16P, {256, 14, 14, 1}, 1},  {CHW16C, PC16P, {2048, 7, 7, 1}, 1},
    {PC16P, CHW16C, {2048, 7, 7, 1}, 1},   {CHW16C, PADDED, {64, 56, 56, 1}, 1},
    {PADDED, CHW16C, {64, 56, 56, 1}, 1},  {CHW16C, PADDED, {256, 14, 14, 1}, 1},
    {CHW16C, PHASES, {128, 56, 56, 1}, 1}, {PC16P, PHASES, {128, 56, 56, 1}, 1},
    {PC16P, PADDED, {64, 56, 56, 1}, 1},   {PC16P, PC16P, {256, 28, 28, 1}, 2},
    {CHW16C, CHW16C, {256, 28, 28, 1}, 2}, {HWC, PC16P, {768, 1, 197, 1}, 1},
    {PC16P, HWC, {768, 1, 197, 1}, 1},     {HWC, HWC16N, {768, 1, 197, 16}, 1},
    {DENSE, HWC16N, {3, 224, 224, 16}, 1}, {DENSE, HWC16N, {64, 56, 56, 16}, 1},
    {HWC16N, DENSE, {64, 56, 56, 16}, 1},  {CHW16C, HWC16N, {64, 56, 56, 16}, 1},
    {HWC16N, CHW16C, {64, 56, 56, 16}, 1}, {CHW16C, HWC16N, {2048, 7, 7, 16}, 1},
    {HWC16N, CHW16C, {2048, 7, 7, 16}, 1}, {DENSE, CHW16C, {64, 56, 56, 16}, 1},
};

static laci_sparse_layout layout_of(kind k, const laci_sparse_size *s) {
  static const laci_memory_format format[] = {
      LACI_FORMAT_CHW, LACI_FORMAT_CHW16C, LACI_FORMAT_HWC,   LACI_FORMAT_CHW,
      LACI_FORMAT_CHW, LACI_FORMAT_PC16P,  LACI_FORMAT_HWC16N};
  laci_sparse_border border = {.stride_h = 1, .stride_w = 1};
  if (k <= HWC) return laci_sparse_layout_contiguous(format[k], s->channels, s->h, s->w);
  if (k != PC16P && s->h > 1) border = (laci_sparse_border){1, 1, 1, 1, 1, 1};
  if (k == PHASES) border.stride_h = border.stride_w = 2;
  return laci_sparse_padded_layout(format[k], s->channels, s->h, s->w, border);
}

/* ---- oneDNN ---- */

typedef struct peer {
  dnnl_primitive_t primitive; /* NULL: it has none */
  dnnl_memory_t from, to;
  dnnl_stream_t stream;
} peer;

static void must(dnnl_status_t status, const char *what) {
  if (status == dnnl_success) return;
  (void)fprintf(stderr, "reorder_bench: %s\n", what);
  exit(1);
}

static laci_md tagged(const int64_t dims[4], dnnl_format_tag_t tag) {
  laci_md md;
  if (!laci_md_create_tagged(&md, 4, dims, dnnl_f32, tag)) must(dnnl_out_of_memory, "a descriptor");
  return md;
}

static void peer_init(peer *p, dnnl_engine_t engine, const row *r, void *from, void *to) {
  static const dnnl_format_tag_t tags[] = {dnnl_nchw, dnnl_nChw16c, dnnl_nhwc};
  const int64_t dims[4] = {r->size.n_images, r->size.channels, r->size.h, r->size.w};
  *p = (peer){.primitive = NULL};
  if (r->from > HWC || r->to > HWC || r->stride > 1) return;
  laci_md in = tagged(dims, tags[r->from]), out = tagged(dims, tags[r->to]);
  dnnl_primitive_desc_t pd;
  must(dnnl_memory_create(&p->from, in, engine, from), "dnnl_memory_create");
  must(dnnl_memory_create(&p->to, out, engine, to), "dnnl_memory_create");
  must(dnnl_reorder_primitive_desc_create(&pd, in, engine, out, engine, NULL), "a reorder");
  must(dnnl_primitive_create(&p->primitive, pd), "dnnl_primitive_create");
  must(dnnl_stream_create(&p->stream, engine, dnnl_stream_default_flags), "dnnl_stream_create");
  (void)dnnl_primitive_desc_destroy(pd);
  laci_md_destroy(in);
  laci_md_destroy(out);
}

static void peer_run(const peer *p) {
  const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, p->from}, {DNNL_ARG_TO, p->to}};
  must(dnnl_primitive_execute(p->primitive, p->stream, 2, args), "dnnl_primitive_execute");
  (void)dnnl_stream_wait(p->stream);
}

static void peer_clear(peer *p) {
  if (!p->primitive) return;
  (void)dnnl_memory_destroy(p->from);
  (void)dnnl_memory_destroy(p->to);
  (void)dnnl_primitive_destroy(p->primitive);
  (void)dnnl_stream_destroy(p->stream);
}

/* ---- the table ---- */

typedef struct operands {
  laci_sparse_reorder r;
  float *from, *to;
  float *scale, *shift; /* [channels] */
  size_t n_bytes;       /* of what is read, pixels alone */
  peer peer;
} operands;

static int64_t floats_of(const laci_sparse_layout *l, int64_t n_images) {
  const int64_t lanes = l->format == LACI_FORMAT_HWC16N ? LACI_SPARSE_LANES : 1;
  return (n_images + lanes - 1) / lanes * l->n_floats;
}

static void operands_init(operands *o, dnnl_engine_t engine, const row *r) {
  const laci_sparse_size source = {r->size.channels, r->size.h * r->stride, r->size.w * r->stride,
                                   r->size.n_images};
  o->r = (laci_sparse_reorder){.from = layout_of(r->from, &source),
                               .to = layout_of(r->to, &r->size),
                               .size = r->size,
                               .stride_h = r->stride,
                               .stride_w = r->stride};
  o->scale = large_pages((size_t)r->size.channels, sizeof *o->scale);
  o->shift = large_pages((size_t)r->size.channels, sizeof *o->shift);
  o->from = large_pages((size_t)floats_of(&o->r.from, source.n_images), sizeof *o->from);
  o->to = large_pages((size_t)floats_of(&o->r.to, source.n_images), sizeof *o->to);
  o->n_bytes =
      (size_t)(r->size.n_images * r->size.channels * r->size.h * r->size.w) * sizeof(float);
  peer_init(&o->peer, engine, r, o->from, o->to);
}

static bool has_method(const operands *o, int method) {
  if (method == NORM)
    return o->r.to.format != LACI_FORMAT_CHW16C && o->r.to.format != LACI_FORMAT_HWC;
  return method != ONEDNN || o->peer.primitive;
}

static void run(const operands *o, int method) {
  const laci_sparse_reorder *r = &o->r;
  if (method == COPY) {
    memcpy(o->to, o->from, o->n_bytes);
  } else if (method == ONEDNN) {
    peer_run(&o->peer);
  } else if (method == ZEROS) {
    laci_sparse_fill_border(&r->to, &r->size, 0, o->to, 0,
                            laci_sparse_border_n_items(&r->to, &r->size));
  } else if (method == NORM) {
    laci_sparse_reorder with = *r;
    with.norm = (laci_sparse_norm){o->scale, o->shift, 0};
    laci_sparse_reorder_variant()(&with, o->from, o->to, 0, laci_sparse_reorder_n_items(r));
  } else {
    laci_sparse_reorder_variant()(r, o->from, o->to, 0, laci_sparse_reorder_n_items(r));
  }
}

static void show(const row *r, dnnl_engine_t engine, const settings *set) {
  char name[96];
  double least[METHODS] = {0};
  operands o;
  (void)snprintf(name, sizeof name, "%s to %s, %lld of %lldx%lld%s, b%lld", kind_names[r->from],
                 kind_names[r->to], (long long)r->size.channels, (long long)r->size.h,
                 (long long)r->size.w, r->stride > 1 ? " subsampled" : "",
                 (long long)r->size.n_images);
  if (set->only && !strstr(name, set->only)) return;
  operands_init(&o, engine, r);
  for (int round = 0; round < set->rounds; round++) {
    for (int method = 0; method < METHODS; method++) {
      if (!has_method(&o, method)) continue;
      const double start = laci_clock_seconds();
      run(&o, method);
      const double seconds = laci_clock_seconds() - start;
      if (least[method] == 0 || seconds < least[method]) least[method] = seconds;
    }
  }
  printf("%-46s %9.1f %7.1f %9.1f %6.2f", name, 1e6 * least[OURS],
         2e-9 * (double)o.n_bytes / least[OURS], 1e6 * least[COPY], least[COPY] / least[OURS]);
  for (int method = NORM; method <= ONEDNN; method += ONEDNN - NORM) {
    if (has_method(&o, method)) printf(" %9.1f", 1e6 * least[method]);
    else printf(" %9s", "-");
  }
  printf(" %9.1f\n", 1e6 * least[ZEROS]);
  (void)fflush(stdout);
  peer_clear(&o.peer);
}

static settings settings_of(int argc, char **argv) {
  settings set = {.rounds = 30};
  for (int at = 1; at + 1 < argc; at += 2) {
    const char *word = argv[at], *value = argv[at + 1];
    if (!strcmp(word, "--rounds")) set.rounds = atoi(value);
    else if (!strcmp(word, "--only")) set.only = value;
    else if (!strcmp(word, "--isa") && !strcmp(value, "avx2"))
      (void)laci_cpu_limit_level(LACI_CPU_AVX2);
    else if (!strcmp(word, "--isa") && !strcmp(value, "scalar"))
      (void)laci_cpu_limit_level(LACI_CPU_ANY);
    else must(dnnl_invalid_arguments, "usage: see the head of bench/reorder_bench.c");
  }
  return set;
}

int main(int argc, char **argv) {
  const settings set = settings_of(argc, argv);
  dnnl_engine_t engine;
  (void)laci_openmp_set_threads(1);
  must(dnnl_engine_create(&engine, dnnl_cpu, 0), "dnnl_engine_create");
  printf("%s; one core; microseconds; GB/s count what is read and what is written\n",
         laci_cpu_level_name(laci_cpu_level_in_force()));
  printf("%-46s %9s %7s %9s %6s %9s %9s %9s\n", "reorder", "ours", "GB/s", "memcpy", "ratio",
         "norm", "oneDNN", "zeros");
  for (size_t at = 0; at < sizeof rows / sizeof *rows; at++) show(&rows[at], engine, &set);
  (void)dnnl_engine_destroy(engine);
  return 0;
}
