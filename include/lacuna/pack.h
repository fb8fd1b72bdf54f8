/* SPDX-License-Identifier: Apache-2.0
 * Packed N:M weights in a file: a network without the zeros of the layers that hold the pattern,
 * from which every byte of its ONNX file comes back. docs/pack.md describes the format.
 *
 * Threads. A report of packing and an open pack are only read until they are destroyed: any number
 * of threads may share them. A model that is saved belongs to its thread meanwhile. */
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

/** A layer, as lac_layer has it, and what became of its weight. */
typedef struct lac_pack_layer {
  const char *name;   /* node */
  const char *op;     /* "Conv" */
  const char *weight; /* stored tensor; of a weight that is computed from such, the value */
  lac_dtype dtype;
  int rank;
  int64_t shape[8];
  bool packed;
  uint64_t dense_bytes;  /* of the stored tensor; 0: it is computed, and its parts stay */
  uint64_t packed_bytes; /* values, places, signs of zeros; dense_bytes where it stays dense */
  const char *reason;    /* why it stays dense, or that another layer has the same weight; NULL:
                            nothing to say */
} lac_pack_layer;

/** What lac_pack_save packed; lac_pack_report_destroy frees it. */
typedef struct lac_pack_report {
  const char *model; /* path, or "(memory)" */
  int pattern_n, pattern_m;
  int n_layers;
  int n_packed; /* stored tensors */
  const lac_pack_layer *layers;
  uint64_t dense_bytes;  /* the model's file and its data files */
  uint64_t packed_bytes; /* the pack */
} lac_pack_report;

/** Writes the model, with every weight that holds options->n : options->m in packed form, to path.
 * External data goes into the pack. Of the options only n, m, threads, assume and input_shapes
 * count. *report (it may be NULL: not wanted) is the caller's. Atomic; the same model
 * gives the same bytes. A model that was changed in memory, or did not come from a file, is first
 * saved to a temporary folder ($TMPDIR). Fails LAC_EXISTS unless force; never overwrites a file
 * that the model was read from (LAC_BAD_ARGUMENT). */
LAC_API LAC_MUST_CHECK lac_status lac_pack_save(lac_model *model, const char *path,
                                                const lac_options *options, bool force,
                                                lac_pack_report **report, lac_error *err);

/** Frees the report and all that it points to. NULL is fine. */
LAC_API void lac_pack_report_destroy(lac_pack_report *report);

/** The report as JSON text (UTF-8, two-space indent, final newline); free with lac_text_free. */
LAC_API LAC_MUST_CHECK lac_status lac_pack_report_json(const lac_pack_report *report, char **text,
                                                       lac_error *err);

/** The model in a pack (lac_model_load does the same). Its weights are dense again when a caller
 * reads them in place; an engine unpacks rows as it needs them. Where it had external data, that is
 * unpacked to a temporary folder ($TMPDIR) whose files have no name any more when this returns.
 * *model is NULL on failure. Fails LAC_BAD_FILE where any byte of the pack is not what was written.
 */
LAC_API LAC_MUST_CHECK lac_status lac_pack_load(const char *path, lac_model **model,
                                                lac_error *err);

/** The ONNX file that was packed, byte for byte, as out; its external data next to it, under the
 * names that it had. All of them or none. Fails LAC_EXISTS unless force, LAC_INTERRUPTED. */
LAC_API LAC_MUST_CHECK lac_status lac_pack_restore(const char *path, const char *out, bool force,
                                                   lac_error *err);

/* ---- Packed weights in place ---- */

/** An open pack: all of it in memory, and checked. */
typedef struct lac_pack lac_pack;

/** Reads a pack into memory and checks all of it. Fails LAC_BAD_FILE, LAC_IO, LAC_NO_MEMORY. */
LAC_API LAC_MUST_CHECK lac_status lac_pack_open(const char *path, lac_pack **pack, lac_error *err);
/** Frees the pack; views of it die. NULL is fine. */
LAC_API void lac_pack_close(lac_pack *pack);

/** Size in bytes of the files that were packed. */
LAC_API uint64_t lac_pack_dense_bytes(const lac_pack *pack);
/** Size in bytes of the pack. */
LAC_API uint64_t lac_pack_packed_bytes(const lac_pack *pack);

/** A packed weight, seen as [outer, columns, inner], columns being its input channels, cut into
 * runs that blocks of m do not cross. Row o * inner + i holds the elements (o, every column, i).
 * Views into the pack; arrays begin at multiples of 64 bytes. */
typedef struct lac_packed_tensor {
  const char *name;
  lac_dtype dtype;
  int n, m;
  int64_t outer, columns, inner, run;
  int64_t n_rows;        /* outer * inner */
  int64_t row_values;    /* elements that a row keeps */
  int64_t index_words;   /* 32-bit words of index a row */
  int64_t sign_words;    /* of signs, where there are any */
  int index_bits;        /* of a value: its column inside its block, lowest bit first */
  uint64_t fill;         /* bits of an element that was left out */
  const void *values;    /* [n_rows, row_values] little-endian elements */
  const uint32_t *index; /* [n_rows, index_words] */
  const uint32_t *signs; /* [n_rows, sign_words], one bit an element left out: -0.0; or NULL */
} lac_packed_tensor;

/** How many tensors are packed. */
LAC_API int lac_pack_tensor_count(const lac_pack *pack);
/** index outside [0, count): an empty record. */
LAC_API void lac_pack_tensor(const lac_pack *pack, int index, lac_packed_tensor *tensor);

#ifdef __cplusplus
}
#endif
#endif
