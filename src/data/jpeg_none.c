/* SPDX-License-Identifier: Apache-2.0
 * Replaces jpeg.c if Lacuna is built without libjpeg (-DLAC_JPEG=OFF): reading any JPEG fails. */
#include "base/error.h"
#include "data/image.h"

lac_status laci_jpeg_decode(const char *name, const uint8_t *bytes, size_t size_bytes,
                            laci_image *image, lac_error *err) {
  (void)bytes, (void)size_bytes, (void)image;
  return laci_fail(err, LAC_UNSUPPORTED, "%s: this Lacuna was built without JPEG", name);
}

lac_status laci_jpeg_decode_part(const char *name, const uint8_t *bytes, size_t size_bytes,
                                 const laci_image_part *part, laci_image *image, lac_error *err) {
  (void)part;
  return laci_jpeg_decode(name, bytes, size_bytes, image, err);
}

lac_status laci_jpeg_encode(const char *name, const laci_image *image, uint8_t **bytes, size_t *n,
                            lac_error *err) {
  (void)image, (void)n;
  *bytes = NULL;
  return laci_jpeg_decode(name, NULL, 0, NULL, err);
}
