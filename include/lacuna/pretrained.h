/* SPDX-License-Identifier: Apache-2.0
 * Weights of a file for a network that was made here: what others trained, to go on from.
 *
 *     lac_network_create(&(lac_network_options){.name = "resnet50", .classes = 10}, &model, &err);
 *     lac_pretrained_read(model, "resnet50.safetensors", &found, &err);
 *     lac_train(model, "data", NULL, &options, &result, &err); */
#ifndef LACUNA_PRETRAINED_H
#define LACUNA_PRETRAINED_H

#include <stdbool.h>

#include "lacuna/model.h"
#include "lacuna/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { LAC_PRETRAINED_NAME_BYTES = 128 };

/** What was found in the file. */
typedef struct lac_pretrained {
  int n_taken;           /* tensors that are the file's now */
  bool fresh_classifier; /* the file knows another number of classes: the classifier is as it was */
  long long classes;     /* the file's */
  int n_unknown;         /* tensors of the file that the network has not */
  char unknown[LAC_PRETRAINED_NAME_BYTES]; /* the first of them, cut to fit */
} lac_pretrained;

/** Takes every stored tensor of the model, a network of lac_network_create, from the file: a
 * safetensors file, or an ONNX file with the same names, which are those of torchvision's and
 * timm's ResNet and ResNeXt ("layer1.0.conv1.weight"; a prefix "module." is ignored,
 * and "linear" is "fc"). Types F32, F16, BF16 and F64; shapes have to be the same, but for the
 * classifier where the number of classes is another one: it stays as it is. Counts of batches
 * ("num_batches_tracked") do not count as unknown. PyTorch's own files (.pth, .pt, .bin) are
 * refused, never parsed: they are programs.
 *
 * On failure the model may have some of the tensors. Fails LAC_NOT_FOUND, LAC_BAD_FILE (no such
 * file, damaged, or a tensor that is missing: the text names it), LAC_BAD_SHAPE, LAC_UNSUPPORTED
 * (another type), LAC_IO, LAC_NO_MEMORY. */
LAC_API LAC_MUST_CHECK lac_status lac_pretrained_read(lac_model *model, const char *path,
                                                      lac_pretrained *found, lac_error *err);

#ifdef __cplusplus
}
#endif
#endif
