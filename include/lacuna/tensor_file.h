/* SPDX-License-Identifier: Apache-2.0
 * Files of named tensors without a network: safetensors, and what torch.save writes (.pt, .pth,
 * .bin). The functions read names, types and shapes of the tensors, which N:M patterns they hold,
 * and their elements as floats. No code of a PyTorch file is run. A file with an object that is
 * neither a tensor nor a plain value fails, and the text names the object.
 *
 *     lac_tensor_file_open("net.safetensors", NULL, &file, &err);
 *     for (int at = 0; at < lac_tensor_file_count(file); at++) {
 *       lac_file_tensor tensor = LAC_SIZED(lac_file_tensor);
 *       lac_tensor_file_measure(file, at, 2, 4, &tensor, &err);
 *       printf("%s %g\n", tensor.name, (double)tensor.n_zeros / (double)tensor.n_elements);
 *     }
 *     lac_tensor_file_close(file);
 *
 * Any number of threads may use an open file. */
#ifndef LACUNA_TENSOR_FILE_H
#define LACUNA_TENSOR_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lacuna/pretrained.h"
#include "lacuna/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lac_context lac_context; /* lacuna/context.h */

/** An open file; opaque. */
typedef struct lac_tensor_file lac_tensor_file;

/** Is this a file of tensors: safetensors, or of PyTorch by its first bytes and its name? False
 * where it cannot be read. */
LAC_API bool lac_tensor_file_is(const char *path);

/** Opens a file and checks what it says of its tensors. context: log, see context.h; NULL: the
 * process's. *file is NULL on failure. Fails LAC_BAD_FILE (the text says what is damaged),
 * LAC_UNSUPPORTED (a PyTorch file holds an object that is refused), LAC_NOT_FOUND, LAC_IO,
 * LAC_NO_MEMORY. */
LAC_API LAC_MUST_CHECK lac_status lac_tensor_file_open(const char *path, lac_context *context,
                                                       lac_tensor_file **file, lac_error *err);
LAC_API void lac_tensor_file_close(lac_tensor_file *file); /* NULL is fine */

/** Returns the number of tensors in the file, which are sorted by name; 0 for NULL. */
LAC_API int lac_tensor_file_count(const lac_tensor_file *file);

/** Fills *tensor with what the file says of tensor number `at`; nothing is counted. Fails
 * LAC_NOT_FOUND (no such number). */
LAC_API LAC_MUST_CHECK lac_status lac_tensor_file_get(const lac_tensor_file *file, int at,
                                                      lac_file_tensor *tensor, lac_error *err);
/** Does lac_tensor_file_get, and reads the elements: counts zeros, and looks for the pattern n:m, 1
 * <= n < m <= 64. Also fails LAC_BAD_ARGUMENT, LAC_IO, LAC_NO_MEMORY. */
LAC_API LAC_MUST_CHECK lac_status lac_tensor_file_measure(const lac_tensor_file *file, int at,
                                                          int n, int m, lac_file_tensor *tensor,
                                                          lac_error *err);
/** Reads the elements of tensor number `at` as floats, row-major, to[count]. NaN and infinities are
 * kept. Fails LAC_NOT_FOUND, LAC_BAD_SHAPE (another count), LAC_UNSUPPORTED (no floats), LAC_IO. */
LAC_API LAC_MUST_CHECK lac_status lac_tensor_file_read(const lac_tensor_file *file, int at,
                                                       float *to, size_t count, lac_error *err);

/** Sets *text to all tensors, measured as by lac_tensor_file_measure, as JSON
 * (docs/reference/json.md); free it with lac_text_free. Fails as lac_tensor_file_measure. */
LAC_API LAC_MUST_CHECK lac_status lac_tensor_file_json(const lac_tensor_file *file, int n, int m,
                                                       char **text, lac_error *err);

#ifdef __cplusplus
}
#endif
#endif
