/* SPDX-License-Identifier: Apache-2.0
 * Checks that the versions of a file's operator sets can be read. */
#include <inttypes.h>

#include "base/error.h"
#include "onnx/import_in.h"

enum { MIN_OPSET = 7, MAX_OPSET = 28 };

lac_status laci_import_check_opsets(Onnx__OperatorSetIdProto *const *sets, size_t n,
                                    lac_error *err) {
  for (size_t at = 0; at < n; at++) {
    if (laci_onnx_canonical_domain(sets[at]->domain)[0]) continue;
    if (sets[at]->version >= MIN_OPSET && sets[at]->version <= MAX_OPSET) continue;
    return laci_fail(err, LAC_UNSUPPORTED, "opset %" PRId64 " of ai.onnx; %d to %d are supported",
                     sets[at]->version, MIN_OPSET, MAX_OPSET);
  }
  return LAC_OK;
}
