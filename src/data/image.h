/* SPDX-License-Identifier: Apache-2.0
 * Decoded images, and decoders of JPEG, PNG and WebP.
 *
 * An image has three bytes for each pixel (red, green, blue), in rows from top to bottom. The
 * orientation noted by a camera (EXIF) is ignored, as it is in the reference pipelines with which
 * networks were trained and measured. Next: prepare.h, from an image to a network's input. */
#ifndef LACI_DATA_IMAGE_H
#define LACI_DATA_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/region.h"
#include "lacuna/status.h"

/** An image; zero-initialized, it is empty. The memory grows as needed and is reused for the next
 * image. */
typedef struct laci_image {
  int width, height;     /* size in pixels */
  uint8_t *rgb;          /* [height, width, 3], and LACI_RESIZE_SLACK bytes more */
  size_t capacity_bytes; /* allocated bytes of rgb */
} laci_image;

/** Limits of an image, so that a small file cannot claim all memory. */
enum { LACI_IMAGE_MAX_PIXELS = 1 << 26, LACI_IMAGE_MAX_SIDE = 65535 };

/** Sets the image's size (each side at least 1) and allocates its memory; the pixels are undefined.
 * Fails LAC_UNSUPPORTED beyond the limits, LAC_NO_MEMORY. name: for error texts. */
LAC_MUST_CHECK lac_status laci_image_set_size(laci_image *image, const char *name, int64_t width,
                                              int64_t height, lac_error *err);
/** Makes *image empty again; an empty one is fine. */
void laci_image_clear(laci_image *image);

/** Crops the image to the region, in place. */
void laci_image_crop(laci_image *image, laci_region region);

/** Which part of an image to decode, and down to which size the decoder may reduce it. */
typedef struct laci_image_part {
  /* chooses the part to decode, from the image's width and height in pixels, which are known when
   * the header is read */
  laci_region (*choose)(const void *context, int width, int height);
  const void *context;
  int least_width, least_height; /* size in pixels to which the caller will resize the part, so that
                                    the decoder may reduce it to no less; 0: it must not be
                                    reduced */
} laci_image_part;

/** Decodes a JPEG, PNG or WebP, recognized by its first bytes and not by its name: ImageNet has PNG
 * files with a JPEG's name. Fails as the three decoders below do, and LAC_BAD_FILE for other bytes.
 * Any thread, each with its own image. */
LAC_MUST_CHECK lac_status laci_image_decode(const char *name, const uint8_t *bytes,
                                            size_t size_bytes, laci_image *image, lac_error *err);
/** Decodes like laci_image_decode, but only a part of the image; part NULL: the whole image. If the
 * part is not reduced, its pixels are those of the whole image's decoding. */
LAC_MUST_CHECK lac_status laci_image_decode_part(const char *name, const uint8_t *bytes,
                                                 size_t size_bytes, const laci_image_part *part,
                                                 laci_image *image, lac_error *err);
/** Reads a file and decodes it like laci_image_decode. */
LAC_MUST_CHECK lac_status laci_image_read(const char *path, laci_image *image, lac_error *err);

/** Are the bytes a JPEG in RGB or in grey, which every reader supports? False for CMYK and for
 * other formats. Reads only the header. */
bool laci_image_is_common_jpeg(const uint8_t *bytes, size_t size_bytes);

/** Decodes a JPEG: baseline, progressive or arithmetic, 8 bits; grey becomes three equal bytes,
 * CMYK and YCCK (inverted, as Adobe writes them) are multiplied by their black. The inverse
 * transform is the exact integer one and colours are interpolated: the bytes that Pillow and
 * torchvision give.
 *
 * Fails LAC_BAD_FILE for what is no JPEG and for one that is cut off or damaged where pixels would
 * be lost, LAC_UNSUPPORTED beyond the limits above or more than a hundred scans or
 * where Lacuna was built without JPEG, LAC_NO_MEMORY.
 * Any thread, each with its own image. */
LAC_MUST_CHECK lac_status laci_jpeg_decode(const char *name, const uint8_t *bytes,
                                           size_t size_bytes, laci_image *image, lac_error *err);
/** Decodes like laci_jpeg_decode, but only a part (NULL: the whole image). A part that is many
 * times larger than needed is decoded at 1/2, 1/4 or 1/8 of its size, without pixels at its edges
 * that would be incomplete. Data below the part are not read, and damage there is not detected. */
LAC_MUST_CHECK lac_status laci_jpeg_decode_part(const char *name, const uint8_t *bytes,
                                                size_t size_bytes, const laci_image_part *part,
                                                laci_image *image, lac_error *err);

/** Encodes the image as a JPEG of the best quality, with colours at half their resolution. The
 * caller frees *bytes (laci_free). The result depends only on the image. Fails LAC_UNSUPPORTED,
 * LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_jpeg_encode(const char *name, const laci_image *image,
                                           uint8_t **bytes, size_t *n, lac_error *err);

/** Decodes a PNG of any kind. Grey and palettes become colours, 16-bit samples lose their lower 8
 * bits, and transparency and gamma are ignored. These are the bytes of Pillow's convert('RGB'),
 * except for 16-bit grey, which Pillow clips. Of an animation, the still image is decoded. Fails as
 * laci_jpeg_decode does. */
LAC_MUST_CHECK lac_status laci_png_decode(const char *name, const uint8_t *bytes, size_t size_bytes,
                                          laci_image *image, lac_error *err);

/** Decodes a WebP, lossy or lossless; transparency is ignored. Fails as laci_jpeg_decode does, and
 * LAC_UNSUPPORTED for an animation. */
LAC_MUST_CHECK lac_status laci_webp_decode(const char *name, const uint8_t *bytes,
                                           size_t size_bytes, laci_image *image, lac_error *err);

#endif
