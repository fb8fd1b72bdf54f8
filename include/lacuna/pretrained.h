/* SPDX-License-Identifier: Apache-2.0
 * Loading pretrained weights from a file into a network that lac_network_create made.
 *
 *     lac_network_options network = lac_network_options_default();
 *     network.name = "resnet50", network.classes = 10;
 *     lac_network_create(&network, &model, &err);
 *     lac_pretrained_read(model, "resnet50.safetensors", NULL, &found, &err);
 *     lac_train(model, "data", NULL, &options, &result, &err); */
#ifndef LACUNA_PRETRAINED_H
#define LACUNA_PRETRAINED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lacuna/model.h"
#include "lacuna/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lac_context lac_context; /* lacuna/context.h */

enum { LAC_PRETRAINED_NAME_BYTES = 128 };

/** What was read from the file. */
typedef struct lac_pretrained {
  size_t size;           /* sizeof of this struct, set by LAC_SIZED */
  int n_taken;           /* number of stored tensors that were replaced by the file's */
  bool fresh_classifier; /* the file has another number of classes, so that the classifier keeps its
                            fresh weights */
  long long classes;     /* number of classes in the file */
  int n_unknown;         /* number of tensors of the file that the network does not have */
  char unknown[LAC_PRETRAINED_NAME_BYTES]; /* name of the first unknown tensor, truncated to fit */
} lac_pretrained;

/** A tensor of a file without a network (lacuna/tensor_file.h). */
typedef struct lac_file_tensor {
  size_t size;      /* sizeof of this struct, set by LAC_SIZED */
  const char *name; /* valid until the file is closed */
  const char *type; /* type of an element, in the format's words: "F32", "BF16", "I64"; valid until
                       the file is closed */
  bool is_float;    /* F64, F32, F16 or BF16: its elements can be read */
  int rank;
  int64_t shape[8];
  int64_t n_elements;
  int64_t n_zeros;  /* number of zeros; -1: not counted, or an element is not finite */
  int pattern_axis; /* axis along which at most n of every m elements are not zero: 1, the input
                       channels of a Conv or of PyTorch's Linear, else 0, those of a right operand
                       of MatMul. -1: neither, a tensor of one axis or of zeros, or not counted */
} lac_file_tensor;

/** Replaces every stored tensor of the model, which lac_network_create made, by that of the file: a
 * safetensors file, one of PyTorch (.pt, .pth, .bin) or an ONNX file. Tensors are found by name, as
 * in torchvision's and timm's ResNet and ResNeXt ("layer1.0.conv1.weight"; a prefix "module." is
 * ignored, and "linear" means "fc"). The file's types may be F32, F16, BF16 and F64. Shapes have to
 * be the same, except for the classifier: if the file has another number of classes, the classifier
 * stays as it is. Tensors "num_batches_tracked" are not counted as unknown. No code of a PyTorch
 * file is run. A file with an object that is neither a tensor nor a plain value fails, and the text
 * names the object. context: log, see context.h; NULL: the process's.
 *
 * On failure some of the model's tensors may have been replaced. Fails LAC_NOT_FOUND,
 * LAC_BAD_SHAPE, LAC_UNSUPPORTED (another type), LAC_IO, LAC_NO_MEMORY. Fails LAC_BAD_FILE if the
 * file is damaged or a tensor is missing: the text names it. */
LAC_API LAC_MUST_CHECK lac_status lac_pretrained_read(lac_model *model, const char *path,
                                                      lac_context *context, lac_pretrained *found,
                                                      lac_error *err);

#ifdef __cplusplus
}
#endif
#endif
