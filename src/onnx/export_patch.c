/* SPDX-License-Identifier: Apache-2.0
 * Replaces values in the decoded file while it is written, and restores them afterwards. */
#include <string.h>

#include "base/error.h"
#include "onnx/export_in.h"

lac_status laci_export_patch_bytes(laci_export *x, void *place, const void *bytes,
                                   size_t size_bytes, lac_error *err) {
  void *array = x->patches;
  if (!laci_grow(&array, x->n_patches, &x->patch_capacity, sizeof *x->patches)) {
    return laci_fail_memory(err, x->path);
  }
  x->patches = array;
  laci_patch *patch = &x->patches[x->n_patches++];
  *patch = (laci_patch){.place = place, .size_bytes = size_bytes};
  memcpy(patch->old, place, size_bytes);
  memcpy(place, bytes, size_bytes);
  return LAC_OK;
}

lac_status laci_export_write_message(const laci_export *x, laci_writer *writer, lac_error *err) {
  const laci_onnx_message message = {&x->file->model->base, laci_onnx_byte_source(x->file),
                                     x->path};
  return laci_onnx_serialize_to_writer(&message, writer, err);
}

void laci_export_undo_patches(laci_export *x) {
  while (x->n_patches > 0) {
    const laci_patch *patch = &x->patches[--x->n_patches];
    memcpy(patch->place, patch->old, patch->size_bytes);
  }
}
