/* SPDX-License-Identifier: Apache-2.0
 * Packs: files that hold a network without the zeros of its N:M layers, and from which the ONNX
 * file can be restored byte for byte. lac_model_load reads a pack like any model.
 * docs/reference/pack.md describes the format.
 *
 * Threads. Any number of threads may share a report of packing or an open pack, which are only read
 * until they are destroyed. No other thread may use a model while it is saved. */
#ifndef LACUNA_PACK_H
#define LACUNA_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lacuna/model.h"
#include "lacuna/prune.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lac_context lac_context; /* lacuna/context.h */

/** A layer (see lac_layer), and whether its weight was packed. */
typedef struct lac_pack_layer {
  const char *name;   /* name of the node */
  const char *op;     /* operator of the node, such as "Conv" */
  const char *weight; /* name of the stored tensor; if the weight is computed from stored tensors,
                         name of the computed value */
  lac_dtype dtype;
  int rank;
  int64_t shape[8];
  bool packed;           /* its weight is packed; false: `reason` says why not */
  uint64_t dense_bytes;  /* bytes of the stored tensor; 0: the weight is computed, and the tensors
                            that it is computed from stay in the pack */
  uint64_t packed_bytes; /* bytes of the kept values, their indices and the signs of zeros;
                            dense_bytes if the tensor stays dense */
  const char *reason;    /* why the weight stays dense, or that another layer has the same weight;
                            NULL: neither */
} lac_pack_layer;

/** What lac_pack_save packed; lac_pack_report_destroy frees it. */
typedef struct lac_pack_report {
  const char *model; /* path, or "(memory)" */
  int pattern_n, pattern_m;
  int n_layers;
  int n_packed; /* number of packed stored tensors */
  const lac_pack_layer *layers;
  uint64_t dense_bytes;  /* bytes of the model's file and its data files */
  uint64_t packed_bytes; /* bytes of the pack */
} lac_pack_report;

/** Writes the model, with every weight that holds options->n : options->m in packed form, to path.
 * External data is included in the pack. Of the options only n, m, threads, assume and input_shapes
 * are used. report may be NULL; *report belongs to the caller. The file appears completely or not
 * at all; the same model gives the same bytes. A model that was changed in memory, or did not come
 * from a file, is first saved to a temporary folder ($TMPDIR). Fails LAC_EXISTS unless force; never
 * overwrites a file that the model was read from (LAC_BAD_ARGUMENT). */
LAC_API LAC_MUST_CHECK lac_status lac_pack_save(lac_model *model, const char *path,
                                                const lac_options *options, bool force,
                                                lac_pack_report **report, lac_error *err);

/** Does lac_pack_save, but writes an ONNX model of one node, EPContext, that holds the pack. It has
 * the inputs and outputs of the network. ONNX Runtime runs it with the provider of plugins/ort
 * alone; lac_model_load, lac_pack_open and lac_pack_restore read it as the pack. Packs in $TMPDIR
 * first, and needs the pack's size in memory. Fails LAC_UNSUPPORTED beyond 2 GiB, and as
 * lac_pack_save does. */
LAC_API LAC_MUST_CHECK lac_status lac_pack_save_context(lac_model *model, const char *path,
                                                        const lac_options *options, bool force,
                                                        lac_pack_report **report, lac_error *err);

/** Frees the report and all that it points to. NULL is fine. */
LAC_API void lac_pack_report_destroy(lac_pack_report *report);

/** Sets *text to the report as JSON text (UTF-8, two-space indent, final newline). Free it with
 * lac_text_free. */
LAC_API LAC_MUST_CHECK lac_status lac_pack_report_json(const lac_pack_report *report, char **text,
                                                       lac_error *err);

/** Restores the ONNX file that was packed, byte for byte, as the file `out`, and its external data
 * under the original names next to it. Writes all of these files or none. context: its interrupt
 * ends the call (NULL: the process's). Fails LAC_EXISTS unless force, LAC_INTERRUPTED. */
LAC_API LAC_MUST_CHECK lac_status lac_pack_restore(const char *path, const char *out, bool force,
                                                   lac_context *context, lac_error *err);

/* ---- Packed weights in place ---- */

/** An open pack: all of it in memory, and checked. */
typedef struct lac_pack lac_pack;

/** Reads a pack into memory and checks all of it. Fails LAC_BAD_FILE, LAC_IO, LAC_NO_MEMORY. */
LAC_API LAC_MUST_CHECK lac_status lac_pack_open(const char *path, lac_pack **pack, lac_error *err);
/** Frees the pack; pointers into it become invalid. NULL is fine. */
LAC_API void lac_pack_close(lac_pack *pack);

/** Size in bytes of the files that were packed. */
LAC_API uint64_t lac_pack_dense_bytes(const lac_pack *pack);
/** Size in bytes of the pack. */
LAC_API uint64_t lac_pack_packed_bytes(const lac_pack *pack);

/** A packed weight, seen as an array [outer, columns, inner] whose columns are the input channels.
 * Row o * inner + i consists of the elements (o, all columns, i). The columns are divided into runs
 * of `run` columns (one per convolution group), and blocks of m do not extend over two runs. The
 * pointers point into the pack; arrays are aligned to 64 bytes. */
typedef struct lac_packed_tensor {
  size_t size; /* sizeof of this struct, set by LAC_SIZED */
  const char *name;
  lac_dtype dtype;
  int n, m;
  int64_t outer, columns, inner, run; /* sizes of the array [outer, columns, inner], and columns of
                                         a run */
  int64_t n_rows;                     /* number of rows: outer * inner */
  int64_t row_values;                 /* kept elements per row */
  int64_t index_words;                /* 32-bit words of indices per row */
  int64_t sign_words;                 /* 32-bit words of signs per row */
  int index_bits;        /* bits of the index of one value: its column within its block of m; packed
                            from the lowest bit on */
  uint64_t fill;         /* bit pattern of the elements that were left out (zero) */
  const void *values;    /* [n_rows, row_values] the kept elements, little-endian */
  const uint32_t *index; /* [n_rows, index_words] indices of the kept elements, see index_bits */
  const uint32_t *signs; /* [n_rows, sign_words], one bit per element that was left out, 1: it is
                            -0.0; NULL: none is */
} lac_packed_tensor;

/** Returns the number of packed tensors. */
LAC_API int lac_pack_tensor_count(const lac_pack *pack);
/** Fills *tensor with packed tensor number `index`. Fails LAC_NOT_FOUND (no such number). */
LAC_API LAC_MUST_CHECK lac_status lac_pack_tensor(const lac_pack *pack, int index,
                                                  lac_packed_tensor *tensor, lac_error *err);

#ifdef __cplusplus
}
#endif
#endif
