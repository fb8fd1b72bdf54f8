/* SPDX-License-Identifier: Apache-2.0
 * Replaces webp.c if Lacuna is built without libwebp (-DLAC_WEBP=OFF): reading any WebP fails. */
#include "base/error.h"
#include "data/image.h"

lac_status laci_webp_decode(const char *name, const uint8_t *bytes, size_t size_bytes,
                            laci_image *image, lac_error *err) {
  (void)bytes, (void)size_bytes, (void)image;
  return laci_fail(err, LAC_UNSUPPORTED, "%s: this Lacuna was built without WebP", name);
}
