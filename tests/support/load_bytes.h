/* SPDX-License-Identifier: Apache-2.0
 * Loads a model from its bytes in memory. */
#ifndef SUPPORT_LOAD_BYTES_H
#define SUPPORT_LOAD_BYTES_H

#include "lacuna/model.h"

static inline lac_status load_bytes(const void *bytes, size_t size_bytes, lac_model **model,
                                    lac_error *err) {
  lac_load_options options = lac_load_options_default();
  options.bytes = bytes;
  options.size_bytes = size_bytes;
  return lac_model_load(NULL, &options, model, err);
}

#endif
