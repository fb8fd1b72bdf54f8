/* SPDX-License-Identifier: Apache-2.0
 * A network, loaded from ONNX and written back as ONNX.
 *
 * Threads. Several models are independent of each other. A function that takes a `lac_model *` may
 * change the model, which belongs to its thread meanwhile. One that takes a `const lac_model *`
 * leaves network and weights as they are, and several threads may call such functions on one model
 * at the same time: what they read from its files or infer of it meanwhile is kept under a lock.
 * One order counts: lac_inspect, lac_inspect_why, lac_check and lac_mask_from_model infer shapes
 * when the first of them is called on a model, and what runs a network (engines, lac_run,
 * lac_infer, lac_eval) reads it without that lock, so that first call has to be over before threads
 * of both kinds meet. Views may be read by any number of threads. */
#ifndef LACUNA_MODEL_H
#define LACUNA_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lacuna/dtype.h"
#include "lacuna/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A loaded network; opaque. */
typedef struct lac_model lac_model;

/** A stored tensor: view, dies with the model or with its next change. rank is -1 above 8
 * dimensions. */
typedef struct lac_tensor {
  const char *name;
  lac_dtype dtype;
  int rank;
  int64_t shape[8];
  const void *bytes; /* little-endian, row-major, packed; any alignment */
  size_t size_bytes;
} lac_tensor;

/** Reads FILE.onnx, or a pack (lacuna/pack.h) under any name; external data is in files next to it.
 * Large tensors stay in their files until they are wanted: an engine reads each once, whatever else
 * needs them brings all into memory. To replace a file meanwhile, rename another over it: one that
 * is changed or cut in place fails LAC_IO later. *model is NULL on failure. Fails LAC_IO,
 * LAC_BAD_FILE, LAC_UNSUPPORTED (opset or IR outside the range), LAC_NO_MEMORY. */
LAC_API LAC_MUST_CHECK lac_status lac_model_load(const char *path, lac_model **model,
                                                 lac_error *err);

/** How to read a model. Start from lac_load_options_default() and set fields. */
typedef struct lac_load_options {
  bool lenient; /* a node whose attributes or weight break ONNX's typing is taken as one that no one
                   knows: it freezes what reaches it and cannot be run; else it is LAC_BAD_FILE
                   (false)
                 */
  const char *data_dir; /* from memory: where external data is; NULL: there must be none (NULL) */
} lac_load_options;

/** Every field's default, which its line names. */
LAC_API lac_load_options lac_load_options_default(void);

/** lac_model_load and lac_model_load_memory with options; NULL: the default ones. */
LAC_API LAC_MUST_CHECK lac_status lac_model_load_with(const char *path,
                                                      const lac_load_options *options,
                                                      lac_model **model, lac_error *err);
/** lac_model_load_memory with options. */
LAC_API LAC_MUST_CHECK lac_status lac_model_load_memory_with(const void *bytes, size_t size_bytes,
                                                             const lac_load_options *options,
                                                             lac_model **model, lac_error *err);

/** The same from memory (copied as far as needed). data_dir: where external data is; NULL: there
 * must be none. */
LAC_API LAC_MUST_CHECK lac_status lac_model_load_memory(const void *bytes, size_t size_bytes,
                                                        const char *data_dir, lac_model **model,
                                                        lac_error *err);

/** Which weights lac_model_fold stores. */
typedef enum lac_fold {
  LAC_FOLD_ALONE, /* those whose parts nothing else reads: the parts leave the file */
  LAC_FOLD_ALL,   /* those whose parts stay for others, too */
} lac_fold;

/** Weights of layers (Conv, Gemm, MatMul, ConvTranspose ...) that are computed from stored tensors
 * alone, such as a mask's product, a sum of branches or W + B A, become one stored tensor each,
 * under the name of the value that was computed. It is evaluated in float64, without rounding but
 * where the network casts, and rounded to its type once. Nodes and parts that nothing reads then
 * leave the model; all else stays. To be called before the model is used: views of its tensors die.
 * What is stored but for steps that pruning follows (a transpose, scales, a weight normalization),
 * is quantized, may be replaced by a caller or cannot be evaluated stays as it is; so does a model
 * that comes from no ONNX file, or was folded before. *n_folded (may be NULL): how many tensors
 * that made. max_memory: bytes of all that is held, 0: most of the machine's. Fails
 * LAC_BAD_ARGUMENT, LAC_IO, LAC_INTERRUPTED, LAC_NO_MEMORY, with the model as it was. */
LAC_API LAC_MUST_CHECK lac_status lac_model_fold(lac_model *model, lac_fold how,
                                                 uint64_t max_memory, int *n_folded,
                                                 lac_error *err);

/** The same of those weights only that `like` does not compute: of an original, to be compared with
 * what pruning made of it (lac_check). */
LAC_API LAC_MUST_CHECK lac_status lac_model_fold_like(lac_model *model, const lac_model *like,
                                                      uint64_t max_memory, lac_error *err);

/** Writes the model with its stored tensors as they are now; all else as it was read. Atomic: a
 * temporary name, then renamed. Fails LAC_EXISTS unless force; never overwrites the model's own
 * input. */
LAC_API LAC_MUST_CHECK lac_status lac_model_save(lac_model *model, const char *path, bool force,
                                                 lac_error *err);

/** Takes the next bytes of a file; what it fails with ends the writing. */
typedef lac_status lac_write_bytes(const void *bytes, size_t size_bytes, void *context,
                                   lac_error *err);

/** The bytes that lac_model_save would write, part by part to a function: for a pipe. Fails
 * LAC_UNSUPPORTED where the model has external data, which needs a file of its own. */
LAC_API LAC_MUST_CHECK lac_status lac_model_stream(lac_model *model, lac_write_bytes *write,
                                                   void *context, lac_error *err);

/** True where path names a file that the model was read from, its own or one of its data files, by
 *  whatever name: for callers that write files next to it. */
LAC_API bool lac_model_reads(const lac_model *model, const char *path);

/** The name of external data file `at`, 0, 1 ..., as the model has it, relative to the model's
 * folder; a view. NULL: it was read from fewer. */
LAC_API const char *lac_model_data_file(const lac_model *model, int at);

/** Frees the model. NULL is fine. */
LAC_API void lac_model_destroy(lac_model *model);

/** How many stored tensors the network has. */
LAC_API int lac_model_tensor_count(const lac_model *model);
/** rank -1 and no bytes where index is outside, model is NULL, or the file cannot be read any
 * more. */
LAC_API void lac_model_tensor(const lac_model *model, int index, lac_tensor *tensor);
/** Fails LAC_NOT_FOUND. */
LAC_API LAC_MUST_CHECK lac_status lac_model_find_tensor(const lac_model *model, const char *name,
                                                        lac_tensor *tensor, lac_error *err);

#ifdef __cplusplus
}
#endif
#endif
