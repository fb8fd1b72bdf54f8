/* SPDX-License-Identifier: Apache-2.0
 * An image's memory: one block that only grows, since thousands of images go through it. */
#include "data/image.h"

#include <inttypes.h>

#include "base/error.h"
#include "base/memory.h"

lac_status laci_image_set_size(laci_image *image, const char *name, int64_t width, int64_t height,
                               lac_error *err) {
  if (width < 1 || height < 1 || width > LACI_IMAGE_MAX_SIDE || height > LACI_IMAGE_MAX_SIDE ||
      width * height > LACI_IMAGE_MAX_PIXELS) {
    return laci_fail(err, LAC_UNSUPPORTED,
                     "%s: %" PRId64 " x %" PRId64 " pixels, wanted at least one and at most %d",
                     name, width, height, LACI_IMAGE_MAX_PIXELS);
  }
  size_t wanted = (size_t)(width * height) * 3;
  if (wanted > image->capacity_bytes) {
    laci_image_clear(image);
    image->rgb = laci_alloc(wanted, 1);
    if (!image->rgb) return laci_fail_memory(err, name);
    image->capacity_bytes = wanted;
  }
  image->width = (int)width;
  image->height = (int)height;
  return LAC_OK;
}

void laci_image_clear(laci_image *image) {
  laci_free(image->rgb);
  *image = (laci_image){0};
}
