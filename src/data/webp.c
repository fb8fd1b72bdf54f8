/* SPDX-License-Identifier: Apache-2.0
 * Decodes WebP images in memory with libwebp. The library gives no reason for a failure. */
#include <webp/decode.h>

#include "base/error.h"
#include "data/image.h"

static lac_status fail_with_webp_status(const char *name, VP8StatusCode code, lac_error *err) {
  if (code == VP8_STATUS_OUT_OF_MEMORY) return laci_fail_memory(err, name);
  return laci_fail(err, LAC_BAD_FILE, "%s: no whole WebP: %s", name,
                   code == VP8_STATUS_NOT_ENOUGH_DATA ? "it is cut off" : "it is damaged");
}

lac_status laci_webp_decode(const char *name, const uint8_t *bytes, size_t size_bytes,
                            laci_image *image, lac_error *err) {
  WebPDecoderConfig config;
  if (!WebPInitDecoderConfig(&config)) {
    return laci_fail(err, LAC_UNSUPPORTED, "%s: libwebp is another one than Lacuna was built with",
                     name);
  }
  VP8StatusCode code = WebPGetFeatures(bytes, size_bytes, &config.input);
  if (code != VP8_STATUS_OK) return fail_with_webp_status(name, code, err);
  if (config.input.has_animation) {
    return laci_fail(err, LAC_UNSUPPORTED, "%s: an animated WebP, wanted a still image", name);
  }
  lac_status st = laci_image_set_size(image, name, config.input.width, config.input.height, err);
  if (st) return st;
  config.output.colorspace = MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA = (WebPRGBABuffer){.rgba = image->rgb,
                                          .stride = image->width * 3,
                                          .size = (size_t)image->width * (size_t)image->height * 3};
  code = WebPDecode(bytes, size_bytes, &config);
  return code == VP8_STATUS_OK ? LAC_OK : fail_with_webp_status(name, code, err);
}
