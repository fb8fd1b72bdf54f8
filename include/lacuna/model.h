/* SPDX-License-Identifier: Apache-2.0
 * A network, loaded from ONNX and written back as ONNX.
 *
 * Threads. Different models are independent of each other. A function that takes a `lac_model *`
 * may change the model: no other thread may use the model during the call. A function that takes a
 * `const lac_model *` does not change network or weights. Several threads may call such functions
 * on one model at the same time, in any order. What they cache (data read from files, inferred
 * shapes) is guarded by a lock. Any number of threads may read texts and tensors of the model. */
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

typedef struct lac_array lac_array;     /* lacuna/array.h */
typedef struct lac_context lac_context; /* lacuna/context.h */

/** A loaded network; opaque. */
typedef struct lac_model lac_model;

/** A stored tensor (initializer). Its pointers are valid until the model is destroyed or changed.
 * `rank` is -1 for tensors of more than 8 dimensions. */
typedef struct lac_tensor {
  size_t size; /* sizeof of this struct, set by LAC_SIZED */
  const char *name;
  lac_dtype dtype;
  int rank;
  int64_t shape[8];
  const void *bytes; /* little-endian, row-major, packed; any alignment */
  size_t size_bytes; /* number of bytes at `bytes` */
} lac_tensor;

/** How to read a model, and from where. Start from lac_load_options_default() and set fields. */
typedef struct lac_load_options {
  size_t size;  /* sizeof of this struct, set by lac_load_options_init */
  bool lenient; /* true: a node whose attributes or weight break ONNX's typing is treated as an
                   unknown operator: the channels that reach it are frozen, and it cannot be run.
                   false: loading fails LAC_BAD_FILE (default false) */
  const char *data_dir; /* if `bytes` or `read` is set: the folder of the external data (default
                           NULL) */
  const void *bytes;    /* the model's bytes, instead of a path. What is needed of them is copied
                           during the call (default NULL) */
  uint64_t size_bytes;  /* number of bytes at `bytes`, or size of the model's file, which `read`
                           delivers (default 0) */
  /** Delivers the model's bytes, instead of a path: from an archive, an encrypted store, a network.
   * Reads up to *n bytes at `offset` of the file `name` to `to`, and sets *n to their number. Fewer
   * bytes are no failure, none is the file's end. `name` is "" for the model. For external data it
   * is the location as the model gives it, a relative path without "..". Large tensors are read
   * when needed. So the function must work, and give the same bytes, until lac_model_destroy. The
   * threads that use the model and those of an engine call it, one call at a time for a model. It
   * must not use the model itself. Its failure is the failure of the function that needs the bytes
   * (default NULL) */
  lac_status (*read)(void *context, const char *name, uint64_t offset, void *to, size_t *n,
                     lac_error *err);
  /** Sets *size_bytes to the size of a file of external data, and is called like `read`. NULL: the
   * model must have no external data, or have it in data_dir (default NULL) */
  lac_status (*find_size)(void *context, const char *name, uint64_t *size_bytes, lac_error *err);
  void *read_context;   /* passed to read and find_size (default NULL) */
  lac_context *context; /* log of the call, see context.h. NULL: the process's (default NULL) */
} lac_load_options;

/** Fills the first `size` bytes of *options with the defaults, which the comments of the fields
 * name. size: sizeof(lac_load_options). */
LAC_API void lac_load_options_init(lac_load_options *options, size_t size);
LAC_DEFAULT(lac_load_options)

/** Loads a model from one of three sources: a file (path), memory (options->bytes) or a function
 * (options->read). It is an ONNX model or a pack (lacuna/pack.h), under any name. options NULL: the
 * default ones.
 *
 * External data of a path is in files next to it. Large tensors stay in their files until they are
 * needed. An engine reads each of them once; any other function that needs one loads all of them
 * into memory. To replace a file while the model exists, rename another one over it. After a file
 * was changed or truncated in place, later calls fail LAC_IO. The weights of a pack are dense for a
 * caller that reads them (lac_model_tensor); an engine unpacks rows as it needs them.
 *
 * *model is NULL on failure. Fails LAC_BAD_ARGUMENT (no source, or more than one), LAC_UNSUPPORTED
 * (opset or IR outside the range), LAC_NO_MEMORY. Fails LAC_IO if a file cannot be read, or `read`
 * gives fewer bytes than the size or other bytes than before. Fails LAC_BAD_FILE if it is no ONNX
 * model, or if any byte of a pack differs from what was written. */
LAC_API LAC_MUST_CHECK lac_status lac_model_load(const char *path, const lac_load_options *options,
                                                 lac_model **model, lac_error *err);

/** Which weights lac_model_fold stores. */
typedef enum lac_fold {
  LAC_FOLD_ALONE = 0, /* only weights that are computed from tensors which no other node reads:
                         these tensors are removed from the model */
  LAC_FOLD_ALL = 1,   /* also weights that are computed from tensors which other nodes read: such
                         tensors stay in the model */
} lac_fold;

/** Replaces computed weights by stored tensors. A layer (Conv, Gemm, MatMul, ConvTranspose ...) may
 * have a weight that is computed from stored tensors alone. Examples are a mask's product, a sum of
 * branches or W + B A. Each such weight becomes one stored tensor with the name of the computed
 * value. It is evaluated in float64, rounded only where the network casts, and at the end once to
 * its own type. Nodes and tensors that nothing reads any more are removed; all else stays. Call it
 * before the model is used otherwise: pointers to its tensors become invalid. A weight stays as it
 * is if only steps that pruning can follow are computed: a transpose, scales, a weight
 * normalization. It also stays if it is quantized, if a caller may replace one of its parts, or if
 * it cannot be evaluated. A model that comes from no ONNX file, or was folded before, is not
 * changed. *n_folded (may be NULL): the number of tensors made. max_memory: limit in bytes for
 * everything in memory; 0: most of the machine's. context: log and interrupt (context.h); NULL: the
 * process's. Fails LAC_BAD_ARGUMENT, LAC_IO, LAC_INTERRUPTED, LAC_NO_MEMORY; the model is then
 * unchanged. */
LAC_API LAC_MUST_CHECK lac_status lac_model_fold(lac_model *model, lac_fold how,
                                                 uint64_t max_memory, lac_context *context,
                                                 int *n_folded, lac_error *err);

/** Does lac_model_fold for those weights only that the network `like` does not compute. It prepares
 * an original for a comparison with `like`, the pruned network that was made from it (lac_check).
 */
LAC_API LAC_MUST_CHECK lac_status lac_model_fold_like(lac_model *model, const lac_model *like,
                                                      uint64_t max_memory, lac_context *context,
                                                      lac_error *err);

/** Writes the model with its stored tensors as they are now; everything else as it was read.
 * Atomic: the file is written under a temporary name and then renamed. Fails LAC_EXISTS unless
 * force; never overwrites the model's own input. */
LAC_API LAC_MUST_CHECK lac_status lac_model_save(lac_model *model, const char *path, bool force,
                                                 lac_error *err);

/** A caller's function that receives the next bytes of a file, on the thread that called
 * lac_model_stream. If it fails, writing ends with its status. */
typedef lac_status lac_write_bytes(const void *bytes, size_t size_bytes, void *context,
                                   lac_error *err);

/** Passes the bytes that lac_model_save would write to `write`, part by part, for example into a
 * pipe. Fails LAC_UNSUPPORTED if the model has external data, which needs a separate file. */
LAC_API LAC_MUST_CHECK lac_status lac_model_stream(lac_model *model, lac_write_bytes *write,
                                                   void *context, lac_error *err);

/** Is path, under any name or link, a file that the model was read from: the model's file or one of
 * its external data files? For callers that write files next to the model. */
LAC_API bool lac_model_reads(const lac_model *model, const char *path);

/** Returns the name of external data file number `at` (0, 1 ...) as written in the model, relative
 * to the model's folder; valid until the model is destroyed or changed. NULL: the model has at most
 * `at` such files. */
LAC_API const char *lac_model_data_file(const lac_model *model, int at);

/** Frees the model. NULL is fine. */
LAC_API void lac_model_destroy(lac_model *model);

/** Returns the number of stored tensors of the network. */
LAC_API int lac_model_tensor_count(const lac_model *model);
/** Fills *tensor with stored tensor number `index`. Fails LAC_NOT_FOUND (no such number), LAC_IO
 * (the file cannot be read any more). */
LAC_API LAC_MUST_CHECK lac_status lac_model_tensor(const lac_model *model, int index,
                                                   lac_tensor *tensor, lac_error *err);
/** Fills *tensor with the stored tensor of this name. Fails LAC_NOT_FOUND. */
LAC_API LAC_MUST_CHECK lac_status lac_model_find_tensor(const lac_model *model, const char *name,
                                                        lac_tensor *tensor, lac_error *err);

/** Replaces the elements of the stored tensor that has the array's name; its type and shape stay.
 * The elements are of the tensor's type. For any float type they may be LAC_DTYPE_F32, which is
 * rounded to nearest even. Pointers to the tensor's bytes become invalid. Engines and sessions that
 * exist may have the old elements: create them again. Fails LAC_NOT_FOUND, LAC_BAD_SHAPE,
 * LAC_NO_MEMORY, and LAC_BAD_ARGUMENT if elements are missing, or their number of bytes is wrong.
 * Fails LAC_UNSUPPORTED for another type, and for tensors that shapes may depend on: booleans, and
 * integers of more than a byte. After a failure the model is unchanged. */
LAC_API LAC_MUST_CHECK lac_status lac_model_set_tensor(lac_model *model, const lac_array *values,
                                                       lac_error *err);

#ifdef __cplusplus
}
#endif
#endif
