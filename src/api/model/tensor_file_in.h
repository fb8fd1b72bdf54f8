/* SPDX-License-Identifier: Apache-2.0
 * How files of named tensors are told from networks. Private to api/model. */
#ifndef LACI_API_MODEL_TENSOR_FILE_IN_H
#define LACI_API_MODEL_TENSOR_FILE_IN_H

#include <stdbool.h>

#include "base/error.h"

/** What a file looks like. An ONNX file may have any name, and other formats, too, are zip archives
 * and pickles: so neither name nor bytes alone make a file of PyTorch. */
typedef struct laci_tensor_file_signs {
  bool safetensors;            /* by its name or its first bytes */
  bool torch_name, torch_head; /* the name, or the first bytes, of a file that torch.save wrote */
} laci_tensor_file_signs;

/** Fails LAC_IO if the file cannot be read. */
LAC_MUST_CHECK lac_status laci_tensor_file_detect_format(const char *path,
                                                         laci_tensor_file_signs *signs,
                                                         lac_error *err);

#endif
