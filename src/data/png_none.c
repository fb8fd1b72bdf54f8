/* SPDX-License-Identifier: Apache-2.0
 * Replaces png.c if Lacuna is built without libpng (-DLAC_PNG=OFF): reading any PNG fails. */
#include "base/error.h"
#include "data/image.h"

lac_status laci_png_decode(const char *name, const uint8_t *bytes, size_t size_bytes,
                           laci_image *image, lac_error *err) {
  (void)bytes, (void)size_bytes, (void)image;
  return laci_fail(err, LAC_UNSUPPORTED, "%s: this Lacuna was built without PNG", name);
}
