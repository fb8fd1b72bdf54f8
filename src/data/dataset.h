/* SPDX-License-Identifier: Apache-2.0
 * Labelled images, wherever they are stored: a count, a label and an image for each number.
 *
 * Known are CIFAR-10 and CIFAR-100, binary or pickled, folders of images, CLASS/NAME.jpg, images
 * with a file of labels, TFRecords of ImageNet, and a small set of handwritten digits,
 * digits.csv.gz. What is opened is only listed; images are read when they are asked for, from any
 * thread. Next: loader.h, which asks for them ahead of time.
 */
#ifndef LACI_DATA_DATASET_H
#define LACI_DATA_DATASET_H

#include "data/augment.h"
#include "data/prepare.h"

typedef struct laci_image laci_image;

typedef struct laci_dataset laci_dataset;

typedef enum laci_dataset_part {
  LACI_PART_TEST,  /* test_batch.bin, test.bin */
  LACI_PART_TRAIN, /* data_batch_1.bin ..., train.bin */
} laci_dataset_part;

/** Who says which output of a network a label means. */
typedef enum laci_numbering {
  LACI_NUMBERED_BY_DATA,    /* CIFAR, digits */
  LACI_NUMBERED_BY_LIST,    /* classes_path */
  LACI_NUMBERED_BY_WORDNET, /* ids: ImageNet's 1000 classes */
  LACI_NUMBERED_IN_ORDER,   /* of the class folders' names */
  LACI_NUMBERED_BY_NETWORK, /* known, or trained_on */
} laci_numbering;

typedef struct laci_dataset_options {
  laci_dataset_part
      part; /* of CIFAR and TFRecords (default: test); a folder of images has one part only */
  const char *classes_path; /* numbers of the class folders: a line each, NAME or NAME<TAB>TEXT, in
                               the order of the network's outputs; NULL: see below */
  const char *known;        /* names of the network's classes, one a line, in its order; NULL: not
                               known. Folders get its numbers, unless classes_path says others */
  const char *trained_on;   /* the same by the class folders of this folder, where `known` is NULL
                               and they are as many as `outputs`; NULL: not known */
  int64_t outputs;          /* of the network; 0: not known, and trained_on counts */
  bool may_be_new;          /* folders that `known` has not are no failure: all are then numbered as
                               if nothing were known */
  bool quiet;               /* no word of files that are left out: it was said already */
} laci_dataset_options;

/** What is in `folder` is found out from the names in it.
 *
 * CIFAR-10: data_batch_N.bin from 1 on, test_batch.bin, one after the other; records of a label and
 * 3072 bytes. CIFAR-100: train.bin, test.bin; records of two labels, the second (fine) one counts.
 * Class names come from batches.meta.txt, fine_label_names.txt where they are there. Both also as
 * Python pickles them: data_batch_N, test_batch, batches.meta; train, test, meta.
 *
 * Images: classes sorted by their folders' names (bytes), in them at any depth the files .jpg .jpeg
 * .png .webp ..., sorted; names that begin with a dot do not count. The class number is the line in
 * classes_path, or its place in `known`, or among the folders of trained_on; every folder must be
 * there; else ImageNet's (of 1000) where every folder's name is
 * such a WordNet id (n01440764); else the place in sorted order. Folders of which only some are
 * such ids are refused, since either reading would be wrong. The class's name is TEXT, or the
 * folder's name.
 *
 * Images in one folder: labels as flat.c says; names of classes count as folders' names.
 *
 * TFRecords in ImageNet's layout, train-00000-of-01024 ..., validation-00000-of-00128 ...: as
 * records.c says; LAC_BAD_FILE names the shard and the byte.
 *
 * Digits: lines of 64 pixels 0..16 and a label, gzipped; the first four fifths are for training,
 * the others for testing.
 *
 * Fails LAC_NOT_FOUND, LAC_BAD_FILE (no images, a record cut off, a label beyond the classes),
 * LAC_BAD_ARGUMENT for classes_path with CIFAR or digits, LAC_IO, LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_dataset_open(const char *folder, const laci_dataset_options *options,
                                            laci_dataset **set, lac_error *err);
/** Digits from the bytes of such a file, which may go away afterwards; `name` is put in texts. */
LAC_MUST_CHECK lac_status laci_dataset_open_digits(const char *name, const uint8_t *bytes,
                                                   size_t size_bytes, laci_dataset_part part,
                                                   laci_dataset **set, lac_error *err);
void laci_dataset_close(laci_dataset *set); /* NULL is fine; nothing can fail */

int64_t laci_dataset_count(const laci_dataset *set);
int laci_dataset_classes(const laci_dataset *set);
/** NULL where the data do not say. Lives as long as the set. */
const char *laci_dataset_class_name(const laci_dataset *set, int class_number);
/** What the class's folder is called; NULL as above. */
const char *laci_dataset_class_folder(const laci_dataset *set, int class_number);
/** What kind of data it is: "cifar10", "cifar100", "digits", "folder", "tfrecords". */
const char *laci_dataset_format(const laci_dataset *set);
laci_numbering laci_dataset_numbering(const laci_dataset *set);
/** Do labels mean outputs of a network that has `outputs` of them, the output called `name`?
 * Classes and outputs have to be as many, also where a list names the classes. Fails
 * LAC_BAD_SHAPE, saying both numbers and what helps. */
LAC_MUST_CHECK lac_status laci_dataset_check_outputs(const laci_dataset *set, const char *name,
                                                     int64_t outputs, lac_error *err);
/** The class of image at, 0 <= at < count. */
int laci_dataset_label(const laci_dataset *set, int64_t at);
/** The preprocessing that is usual with such data: CIFAR as it is, 32 x 32; else
 * laci_preprocessing_default. Mean and std are ImageNet's in both. Digits: grey, 8 x 8, pixels
 * / 16. */
laci_preprocessing laci_dataset_preprocessing(const laci_dataset *set);
/** What is usually done to such images in training: CIFAR: padded by 4, cropped, flipped; digits:
 * padded by 1 and cropped; others: a part of it, flipped. */
laci_augment laci_dataset_augment(const laci_dataset *set);

/** The image as it is stored. Fails as laci_image_decode does, naming the file. Any thread, each
 * with its own *image. */
LAC_MUST_CHECK lac_status laci_dataset_image(const laci_dataset *set, int64_t at, laci_image *image,
                                             lac_error *err);
/** The image as the preparer's preprocessing wants it, out[laci_preprocessing_sample]; *image is
 * scratch. */
LAC_MUST_CHECK lac_status laci_dataset_sample(const laci_dataset *set, int64_t at,
                                              laci_preparer *preparer, laci_image *image,
                                              float *out, lac_error *err);

/** A sample of training: an image changed at random before it is prepared. */
typedef struct laci_sample_change {
  int64_t image;
  laci_augment augment;
  uint64_t seed, sample; /* as augment.h says */
} laci_sample_change;
/** scratch: [2]. */
LAC_MUST_CHECK lac_status laci_dataset_changed_sample(const laci_dataset *set,
                                                      const laci_sample_change *change,
                                                      laci_preparer *preparer, laci_image *scratch,
                                                      float *out, lac_error *err);

#endif
