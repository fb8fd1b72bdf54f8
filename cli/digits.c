/* SPDX-License-Identifier: Apache-2.0
 * The embedded network and images (demo_data.S). The images are gzipped text: 64 pixels 0..16 and
 * the label, one image a line, separated by commas. */
#include "digits.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/error.h"
#include "base/memory.h"

enum { GZIP = 16, BRIGHTEST = 16, TEXT_ROOM = 1 << 20, MOST_IMAGES = 2000 };

extern const unsigned char demo_model[], demo_model_end[];
extern const unsigned char demo_images[], demo_images_end[];

const void *digits_model(size_t *size_bytes) {
  *size_bytes = (size_t)(demo_model_end - demo_model);
  return demo_model;
}

/* The text of the images, with a final 0. */
static lac_status unpack(char *text, size_t room, lac_error *err) {
  z_stream stream = {0};
  if (inflateInit2(&stream, GZIP + MAX_WBITS) != Z_OK) return laci_fail_memory(err, "the digits");
  stream.next_in = (unsigned char *)(uintptr_t)demo_images;
  stream.avail_in = (unsigned)(demo_images_end - demo_images);
  stream.next_out = (unsigned char *)text;
  stream.avail_out = (unsigned)room - 1;
  int end = inflate(&stream, Z_FINISH);
  text[stream.total_out] = 0;
  inflateEnd(&stream);
  return end == Z_STREAM_END
             ? LAC_OK
             : laci_fail(err, LAC_BAD_FILE, "the digits inside the program are damaged");
}

static lac_status parse(char *text, digits *images, lac_error *err) {
  for (char *at = text; *at; images->n++) {
    if (images->n == MOST_IMAGES)
      return laci_fail(err, LAC_BAD_FILE, "more than %d digits", MOST_IMAGES);
    for (int i = 0; i <= DIGITS_PIXELS; i++) {
      char *end = at;
      long value = strtol(at, &end, 10);
      bool is_label = i == DIGITS_PIXELS;
      if (end == at || value < 0 || value > (is_label ? DIGITS_CLASSES - 1 : BRIGHTEST) ||
          *end != (is_label ? '\n' : ',')) {
        return laci_fail(err, LAC_BAD_FILE, "digit %d: wanted 64 pixels of 0..16 and a label",
                         images->n);
      }
      if (is_label) images->labels[images->n] = (uint8_t)value;
      else images->pixels[(size_t)images->n * DIGITS_PIXELS + (size_t)i] = (float)value / BRIGHTEST;
      at = end + 1;
    }
  }
  return LAC_OK;
}

lac_status digits_init(digits *images, lac_error *err) {
  *images = (digits){.n = 0};
  images->pixels = laci_alloc((size_t)MOST_IMAGES * DIGITS_PIXELS, sizeof *images->pixels);
  images->labels = laci_alloc(MOST_IMAGES, 1);
  char *text = laci_alloc(TEXT_ROOM, 1);
  lac_status st =
      images->pixels && images->labels && text ? LAC_OK : laci_fail_memory(err, "the digits");
  if (!st) st = unpack(text, TEXT_ROOM, err);
  if (!st) st = parse(text, images, err);
  laci_free(text);
  return st;
}

void digits_clear(digits *images) {
  laci_free(images->pixels);
  laci_free(images->labels);
  *images = (digits){.n = 0};
}
