/* SPDX-License-Identifier: Apache-2.0
 * ImageNet as it is distributed: archives, or folders into which they were unpacked.
 *
 *     RAW/ILSVRC2012_img_train.tar   archives n01440764.tar ... of images; or img_train/WNID/NAME
 *     RAW/ILSVRC2012_img_val.tar     images; or img_val/NAME
 *     RAW/synset_labels.txt          the synset of each validation image, in their names' order
 *     RAW/imagenet_metadata.txt      SYNSET<TAB>a readable name; may be missing
 *
 * Archives and folders give the same images in the same order. Next: imagenet_shard.h. */
#ifndef LACI_DATA_RAW_H
#define LACI_DATA_RAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "lacuna/status.h"

typedef struct laci_reader laci_reader;

enum { LACI_IMAGENET_CLASSES = 1000 };

typedef struct laci_raw_image {
  const char *name; /* path below the part's folder; in an archive, the member's name */
  int32_t label;    /* number of the image's class, 0..999 */
  size_t offset, n; /* position and length of the image in the archive; both 0 for an image in a
                       folder */
} laci_raw_image;

/** The training or the validation images, sorted by label, then by name. Zero-initialized is
 * empty. */
typedef struct laci_raw_part {
  laci_arena arena;    /* memory of the texts */
  const char *path;    /* path of the archive or folder; NULL: the part is missing */
  laci_reader *reader; /* reader of the archive; NULL: the part is a folder */
  laci_raw_image *images;
  size_t n, capacity;
  size_t n_left_out; /* number of files that were left out because their names are not those of
                        images */
} laci_raw_part;

/** Lists the training or the validation images of RAW. A missing part is empty. Fails LAC_BAD_FILE
 * (a folder or archive that is no class of ImageNet; an archive that is cut off; labels that do not
 * fit), LAC_NOT_FOUND where validation images have no labels, LAC_UNSUPPORTED for archives where
 * Lacuna was built without libarchive, LAC_IO, LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_raw_part_open(const char *raw, bool is_training, laci_raw_part *part,
                                             lac_error *err);
void laci_raw_part_close(laci_raw_part *part);

/** Reads the encoded bytes of an image, which the caller frees (laci_free). Any thread. Fails
 * LAC_NOT_FOUND, LAC_IO, LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_raw_read_image(const laci_raw_part *part,
                                              const laci_raw_image *image, uint8_t **bytes,
                                              size_t *n, lac_error *err);

/** Reads the readable names of the classes, "" where not known; they live in the arena. */
LAC_MUST_CHECK lac_status laci_raw_read_class_names(const char *raw, laci_arena *arena,
                                                    const char *texts[LACI_IMAGENET_CLASSES],
                                                    lac_error *err);

#endif
