/* SPDX-License-Identifier: Apache-2.0
 * Decoded images, and the formats they come in: JPEG, PNG and WebP.
 *
 * An image is what a photograph shows and nothing else: three bytes a pixel, red, green, blue, rows
 * from top to bottom. The orientation that a camera notes (EXIF) is ignored, as reference pipelines
 * do that networks were trained and measured with. Next: prepare.h, from an image to a network's
 * input. */
#ifndef LACI_DATA_IMAGE_H
#define LACI_DATA_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/region.h"
#include "lacuna/status.h"

/** Zero-initialised is empty. The memory grows and is used again for the next image. */
typedef struct laci_image {
  int width, height;     /* pixels */
  uint8_t *rgb;          /* [height, width, 3], and LACI_RESIZE_SLACK bytes more */
  size_t capacity_bytes; /* of rgb */
} laci_image;

/** What an image may have at most, so that a small file cannot ask for all memory. */
enum { LACI_IMAGE_MAX_PIXELS = 1 << 26, LACI_IMAGE_MAX_SIDE = 65535 };

/** Gives the image a size (each side at least 1) and memory for it; the pixels are undefined. Fails
 * LAC_UNSUPPORTED beyond the limits, LAC_NO_MEMORY; `name` is put in the text. */
LAC_MUST_CHECK lac_status laci_image_set_size(laci_image *image, const char *name, int64_t width,
                                              int64_t height, lac_error *err);
/** Makes *image empty again; an empty one is fine. */
void laci_image_clear(laci_image *image);

/** Only the region stays, in place. */
void laci_image_crop(laci_image *image, laci_region region);

/** Which part of an image is wanted, and how small it may come. */
typedef struct laci_image_part {
  /* inside of width x height pixels, which are known only when the file is read */
  laci_region (*choose)(const void *context, int width, int height);
  const void *context;
  int least_width, least_height; /* pixels that the part is resized to; 0: it comes as it is */
} laci_image_part;

/** Decodes an image of any of the three formats, told by its first bytes and not by its name: PNG
 * files with a JPEG's name are among ImageNet's. Fails as the three below do, and LAC_BAD_FILE for
 * other bytes. Any thread, each with its own image. */
LAC_MUST_CHECK lac_status laci_image_decode(const char *name, const uint8_t *bytes,
                                            size_t size_bytes, laci_image *image, lac_error *err);
/** The same of a part alone: the pixels of *image are those of the part in the whole image. part:
 * NULL is all of it. */
LAC_MUST_CHECK lac_status laci_image_decode_part(const char *name, const uint8_t *bytes,
                                                 size_t size_bytes, const laci_image_part *part,
                                                 laci_image *image, lac_error *err);
/** The same for a file. */
LAC_MUST_CHECK lac_status laci_image_read(const char *path, laci_image *image, lac_error *err);

/** Is it a JPEG of three colours or of grey, as every reader of such files takes it? Not in four
 * inks, and no other format. Its header is looked at only. */
bool laci_image_is_plain_jpeg(const uint8_t *bytes, size_t size_bytes);

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
/** The same of a part alone; NULL: all of it. A part that is many times larger than it may come is
 * decoded at half, a quarter or an eighth of its size, without pixels at its edges that are no
 * whole one then. What is below the part is not read, and damage there is not seen. */
LAC_MUST_CHECK lac_status laci_jpeg_decode_part(const char *name, const uint8_t *bytes,
                                                size_t size_bytes, const laci_image_part *part,
                                                laci_image *image, lac_error *err);

/** The image as a JPEG of the best quality, with colours at half their resolution: its bytes, the
 * caller's (laci_free). The same bytes from the same image. Fails LAC_UNSUPPORTED, LAC_NO_MEMORY.
 */
LAC_MUST_CHECK lac_status laci_jpeg_encode(const char *name, const laci_image *image,
                                           uint8_t **bytes, size_t *n, lac_error *err);

/** Decodes a PNG of any kind: grey and palettes become colours, of 16 bits the upper 8 count,
 * transparency and gamma are left out: the bytes of Pillow's convert('RGB'), but for grey of 16
 * bits, which Pillow clips. Of an animation, the still image. Fails as laci_jpeg_decode does. */
LAC_MUST_CHECK lac_status laci_png_decode(const char *name, const uint8_t *bytes, size_t size_bytes,
                                          laci_image *image, lac_error *err);

/** Decodes a WebP, lossy or lossless; transparency is left out. Fails as laci_jpeg_decode does, and
 * LAC_UNSUPPORTED for an animation. */
LAC_MUST_CHECK lac_status laci_webp_decode(const char *name, const uint8_t *bytes,
                                           size_t size_bytes, laci_image *image, lac_error *err);

#endif
