/* SPDX-License-Identifier: Apache-2.0
 * Manages an image's memory: one block that only grows, since it is reused for thousands of
 * images. */
#include "data/image.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "kernel/image/resize.h"

lac_status laci_image_set_size(laci_image *image, const char *name, int64_t width, int64_t height,
                               lac_error *err) {
  if (width < 1 || height < 1 || width > LACI_IMAGE_MAX_SIDE || height > LACI_IMAGE_MAX_SIDE ||
      width * height > LACI_IMAGE_MAX_PIXELS) {
    return laci_fail(err, LAC_UNSUPPORTED,
                     "%s: %" PRId64 " x %" PRId64 " pixels, wanted at least one and at most %d",
                     name, width, height, LACI_IMAGE_MAX_PIXELS);
  }
  size_t wanted = (size_t)(width * height) * 3 + LACI_RESIZE_SLACK;
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

void laci_image_crop(laci_image *image, laci_region region) {
  size_t from_stride = (size_t)image->width * 3, stride = (size_t)region.width * 3;
  const uint8_t *from = image->rgb + (size_t)region.top * from_stride + (size_t)region.left * 3;
  for (int y = 0; y < region.height; y++) {
    memmove(image->rgb + (size_t)y * stride, from + (size_t)y * from_stride, stride);
  }
  image->width = region.width;
  image->height = region.height;
}

void laci_image_clear(laci_image *image) {
  laci_free(image->rgb);
  *image = (laci_image){0};
}
