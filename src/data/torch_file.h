/* SPDX-License-Identifier: Apache-2.0
 * Files of PyTorch: a state dict, alone or in a checkpoint, as torch.save writes it.
 *
 *     since 1.6: a zip archive, NAME/data.pkl | NAME/data/0 | NAME/data/1 ...
 *     before:    magic | version | machine | the pickle | keys of storages | storages
 *
 * The pickle is read by pickle.h, which calls no function. A file that holds more than tensors and
 * plain values is refused, with the name of the function that it wants to call. Read next:
 * pickle.h. */
#ifndef LACI_DATA_TORCH_FILE_H
#define LACI_DATA_TORCH_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lacuna/status.h"

typedef struct laci_safetensors laci_safetensors;

/** Do these first n bytes look like the beginning of a file of PyTorch? True for every zip
 * archive. */
bool laci_torch_file_begins(const uint8_t *bytes, size_t n);

/** Opens a file of PyTorch and finds its tensors. They are those of the outer dictionary. If it has
 * none, they are those of its entry "state_dict", "model_state_dict", "model_state", "model" or
 * "module". *tensors is used by the functions of safetensors.h. Fails LAC_BAD_FILE with what is
 * damaged. Fails LAC_UNSUPPORTED for a name that is no tensor's, an unknown element type, and a
 * tensor that is not stored in row-major order. Fails as laci_reader_open does; *tensors is then
 * NULL. `path` must outlive *tensors. */
LAC_MUST_CHECK lac_status laci_torch_file_open(const char *path, laci_safetensors **tensors,
                                               lac_error *err);

#endif
