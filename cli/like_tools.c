/* SPDX-License-Identifier: Apache-2.0
 * Scripts that train nothing: they prepare images, check masks, measure accuracy or speed. */
#include <stdlib.h>
#include <string.h>

#include "base/ending.h"
#include "base/error.h"
#include "like_items.h"
#include "like_scripts.h"

/* Makes the network that an option names an operand. Refuses formats of other programs; the text
 * says what to give instead. */
static lac_status set_network_operand(like *l, const char *name, lac_error *err) {
  const like_item *item = script_find_item(l, name);
  if (!item) return LAC_OK;
  if (laci_ends_with(item->value, ".pth") || laci_ends_with(item->value, ".pt")) {
    return laci_fail(err, LAC_BAD_ARGUMENT,
                     "%s %s: a checkpoint of PyTorch; wanted the ONNX file of the same training",
                     item->typed, item->value);
  }
  if (laci_ends_with(item->value, ".trt") || laci_ends_with(item->value, ".engine")) {
    return laci_fail(err, LAC_BAD_ARGUMENT,
                     "%s %s: an engine of TensorRT; wanted the ONNX file that it was built from",
                     item->typed, item->value);
  }
  return script_add_operand(l, item->value, err);
}

/* Checks that a network was given, by an option or as a word. */
static lac_status check_network_given(like *l, const char *wanted, lac_error *err) {
  if (l->n_operands || script_is_only_printed(l)) return LAC_OK;
  return laci_fail(err, LAC_BAD_ARGUMENT, "%s is missing: the network, an ONNX file", wanted);
}

/* ---- preprocess_imagenet ---- */

lac_status script_complete_preprocess_imagenet(like *l, lac_error *err) {
  const char *raw = script_find_value(l, "*raw", NULL);
  if (!raw && !l->n_operands) {
    return laci_fail(err, LAC_BAD_ARGUMENT,
                     "--raw_data_dir DIR is missing: the archives; nothing is downloaded");
  }
  if (!script_is_option_given(l, "output") && !script_is_only_printed(l)) {
    return laci_fail(err, LAC_BAD_ARGUMENT,
                     "--local_scratch_dir DIR is missing: where the shards go");
  }
  lac_status st = LAC_OK;
  char *const word = l->n_operands ? l->operands[0] : NULL;
  l->n_operands = 0;
  st = script_add_operand(l, "imagenet", err);
  return st ? st : script_add_operand(l, raw ? raw : word, err);
}

/* ---- MN_check ---- */

lac_status script_complete_mn_check(like *l, lac_error *err) {
  lac_status st = set_network_operand(l, "*network", err);
  if (!st) st = check_network_given(l, "--pthFile FILE", err);
  return st ? st : script_set_default(l, "show", "2", err);
}

/* ---- trt_accuracy ---- */

lac_status script_complete_trt_accuracy(like *l, lac_error *err) {
  lac_status st = set_network_operand(l, "*network", err);
  if (!st) st = check_network_given(l, "--onnxFile FILE", err);
  if (!st && !script_is_option_given(l, "data") && !script_is_only_printed(l))
    st = laci_fail(err, LAC_BAD_ARGUMENT, "--img_path DIR is missing: the images");
  return st;
}

/* ---- tftrt_infer ---- */

static lac_status set_dtype_from_precision(like *l, lac_error *err) {
  const char *precision = script_find_value(l, "*precision", NULL);
  if (!precision) return LAC_OK;
  const char *typed = script_find_item(l, "*precision")->typed;
  if (strcmp(precision, "fp32") == 0) return script_set_option(l, "dtype", "fp32", typed, err);
  if (strcmp(precision, "fp16") != 0)
    return script_fail_value(l, "*precision", "fp16 or fp32 (lacuna prune --quantize makes int8)",
                             err);
  lac_status st = script_add_note(l, typed, "half precision is bf16 here", err);
  return st ? st : script_set_option(l, "dtype", "bf16", typed, err);
}

lac_status script_complete_tftrt_infer(like *l, lac_error *err) {
  const char *mode = getenv("TF_TRT_SPARSE_MODE");
  const bool dense = script_find_item(l, "*native") || (mode && strcmp(mode, "0") == 0);
  lac_status st = set_network_operand(l, "*network", err);
  if (!st) st = check_network_given(l, "MODEL", err);
  if (!st) st = set_dtype_from_precision(l, err);
  return st || !dense ? st : script_set_default(l, "no-sparse-kernels", NULL, err);
}
