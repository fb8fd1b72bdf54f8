/* SPDX-License-Identifier: Apache-2.0
 * One labelled image as TensorFlow's reference scripts store it: a tf.train.Example, a map of
 *
 *     image/encoded         the file's bytes                image/height, image/width
 *     image/class/label     1..1000; 0 would be background  image/channels      3
 *     image/class/synset    n01440764                       image/colorspace    RGB
 *     image/class/text      what people call it             image/format        JPEG
 *     image/filename        n01440764_18.JPEG
 */
#ifndef LACI_DATA_EXAMPLE_H
#define LACI_DATA_EXAMPLE_H

#include <stddef.h>
#include <stdint.h>

#include "lacuna/status.h"

typedef struct laci_reader laci_reader;

/** What is written. */
typedef struct laci_example {
  const uint8_t *encoded; /* a JPEG */
  size_t encoded_bytes;
  int height, width; /* pixels */
  int label;         /* 1..1000 */
  const char *synset, *text, *filename;
} laci_example;

/** The message's bytes, *n of them, the caller's (laci_free). Fails LAC_NO_MEMORY. The same for the
 * same example, always. */
LAC_MUST_CHECK lac_status laci_example_pack(const laci_example *example, uint8_t **bytes, size_t *n,
                                            lac_error *err);

/** Where an Example is: in memory, or in a part of a file, of which as little is read as will
 * do. */
typedef struct laci_example_source {
  const char *name;     /* for messages */
  size_t at;            /* ... and where it begins */
  size_t n;             /* bytes of it */
  const uint8_t *bytes; /* NULL: in the file */
  laci_reader *reader;
  size_t offset; /* of its first byte in the file */
} laci_example_source;

enum { LACI_SYNSET_BYTES = 32 };

/** What is read of an Example. */
typedef struct laci_example_view {
  size_t encoded, encoded_bytes;  /* image/encoded begins here, in the Example */
  int64_t label;                  /* image/class/label as it is there */
  char synset[LACI_SYNSET_BYTES]; /* "": none, or longer */
} laci_example_view;

/** Fails LAC_BAD_FILE for what is no Example or has no image, no label or two, LAC_IO. Any thread.
 */
LAC_MUST_CHECK lac_status laci_example_find(const laci_example_source *source,
                                            laci_example_view *view, lac_error *err);

#endif
