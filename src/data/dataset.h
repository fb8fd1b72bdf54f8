/* SPDX-License-Identifier: Apache-2.0
 * Labelled images in any supported format: a count, and a label and an image for each number.
 *
 * Supported are CIFAR-10 and CIFAR-100 (binary or pickled), folders of images (CLASS/NAME.jpg),
 * images with a file of labels, TFRecords of ImageNet, and a small set of handwritten digits
 * (digits.csv.gz). Opening only lists the images; they are read on request, by any thread. Next:
 * loader.h, which reads them ahead of time.
 */
#ifndef LACI_DATA_DATASET_H
#define LACI_DATA_DATASET_H

#include <stdbool.h>
#include <stdint.h>

#include "lacuna/status.h"

typedef struct laci_augment laci_augment;
typedef struct laci_image laci_image;
typedef struct laci_preparer laci_preparer;
typedef struct laci_preprocessing laci_preprocessing;
typedef struct laci_sample_change laci_sample_change;

typedef struct laci_dataset laci_dataset;
typedef struct laci_rows_memory laci_rows_memory;

typedef enum laci_dataset_part {
  LACI_PART_TEST,  /* the part for testing; of CIFAR: test_batch.bin or test.bin */
  LACI_PART_TRAIN, /* the part for training; of CIFAR: data_batch_1.bin ... or train.bin */
} laci_dataset_part;

/** How the numbers of the classes, which are indices of the network's outputs, were determined. */
typedef enum laci_numbering {
  LACI_NUMBERED_BY_DATA, /* the data have class numbers: CIFAR, digits, TFRecords without synsets */
  LACI_NUMBERED_BY_LIST, /* classes are numbered by the lines of the file classes_path */
  LACI_NUMBERED_BY_WORDNET, /* class folders are named by WordNet ids and are numbered as ImageNet's
                               1000 classes */
  LACI_NUMBERED_IN_ORDER, /* classes are numbered in the order of the class folders' sorted names */
  LACI_NUMBERED_BY_NETWORK, /* classes are numbered by the options `known` or trained_on */
} laci_numbering;

typedef struct laci_dataset_options {
  laci_dataset_part
      part; /* which part of CIFAR, digits or TFRecords to open (default: test); a folder of images
               has only one */
  const char *classes_path; /* a file with a line for each class, NAME or NAME<TAB>TEXT, in the
                               order of the network's outputs; NAME is the class folder; NULL: see
                               laci_dataset_open */
  const char *known;        /* names of the network's classes, one in each line, in the order of its
                               outputs; NULL: not known. Folders are numbered by them, unless
                               classes_path is given */
  const char *trained_on;   /* a data folder whose sorted class folders give the numbers of the
                               classes, if `known` is NULL and there are `outputs` of them; NULL:
                               not known */
  int64_t outputs;          /* number of the network's outputs; 0: not known, and trained_on is used
                               with any number of class folders */
  bool may_be_new;          /* true: if a folder is missing in `known` or trained_on, all folders
                               are numbered as if these two were NULL; false: that is a failure */
  const char *input; /* name of the network's input, which the array of samples must have; NULL: any
                        name */
  const laci_rows_memory *arrays; /* [n_arrays] the caller's arrays, which are opened instead of a
                                     folder; the structs are read only while the set is opened, the
                                     elements until it is closed */
  int n_arrays;
  bool quiet; /* true: files that are left out are not logged, since an earlier open has logged
                 them */
} laci_dataset_options;

/** Opens the data in `folder`, whose format follows from the names in it.
 *
 * CIFAR-10: data_batch_N.bin from 1 on, one after the other, or test_batch.bin; records of a label
 * and 3072 bytes. CIFAR-100: train.bin, test.bin; records of two labels, of which the second (fine)
 * one is used. Class names come from batches.meta.txt or fine_label_names.txt if these exist. Both
 * also as pickled by Python: data_batch_N, test_batch, batches.meta; train, test, meta.
 *
 * Images: classes are sorted by their folders' names (bytes). Images are the files .jpg .jpeg .png
 * .webp ... in them at any depth, sorted; names that begin with a dot are ignored. The class number
 * is the line in classes_path, or the place in `known`, or the place among the folders of
 * trained_on; each folder must be found there. Otherwise, if every folder's name is one of
 * ImageNet's 1000 WordNet ids (n01440764), it is ImageNet's number; else it is the place in sorted
 * order. Folders of which only some are such ids are refused, since either numbering could be
 * wrong. The class's name is TEXT, or the folder's name.
 *
 * Images in one folder: labels as described in flat.c; class names are treated like folder names.
 *
 * TFRecords in ImageNet's layout, train-00000-of-01024 ..., validation-00000-of-00128 ...: as
 * described in records.c; LAC_BAD_FILE names the shard and the byte.
 *
 * Arrays: a .npz, a folder of .npy with labels.npy, or options->arrays, with folder only a name for
 * messages: an array of samples and one of labels, which are numbers of outputs. Floats are samples
 * that nothing prepares or changes. Bytes (U8) are images [N, C, H, W] or [N, H, W, C] of 1 or 3
 * channels. A network may have more outputs than the labels show.
 *
 * Digits: lines of 64 pixels 0..16 and a label, gzipped; the first four fifths are for training,
 * the others for testing.
 *
 * Fails LAC_NOT_FOUND, LAC_BAD_FILE (no images, a record cut off, a label beyond the classes),
 * LAC_BAD_ARGUMENT for classes_path with CIFAR or digits, LAC_IO, LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_dataset_open(const char *folder, const laci_dataset_options *options,
                                            laci_dataset **set, lac_error *err);
/** Opens a set of digits from the bytes of a digits.csv.gz, which are copied. name: for error
 * texts. */
LAC_MUST_CHECK lac_status laci_dataset_open_digits(const char *name, const uint8_t *bytes,
                                                   size_t size_bytes, laci_dataset_part part,
                                                   laci_dataset **set, lac_error *err);
void laci_dataset_close(laci_dataset *set); /* NULL is fine */

int64_t laci_dataset_count(const laci_dataset *set);
int laci_dataset_count_classes(const laci_dataset *set);
/** Returns the class's name, which lives as long as the set; NULL if the data have no names. */
const char *laci_dataset_class_name(const laci_dataset *set, int class_number);
/** Returns the name of the class's folder, which lives as long as the set; NULL if there is
 * none. */
const char *laci_dataset_class_folder(const laci_dataset *set, int class_number);
/** Returns the format: "cifar10", "cifar100", "digits", "folder", "tfrecords" or "arrays". */
const char *laci_dataset_format(const laci_dataset *set);
laci_numbering laci_dataset_numbering(const laci_dataset *set);
/** Checks that the data and the network have the same number of classes, even if a list names the
 * classes. outputs: the network's classes; name: its output. Fails LAC_BAD_SHAPE with both numbers
 * and advice. */
LAC_MUST_CHECK lac_status laci_dataset_check_outputs(const laci_dataset *set, const char *name,
                                                     int64_t outputs, lac_error *err);
/** Returns the class of the image with index `at`, 0 <= at < count. */
int laci_dataset_label(const laci_dataset *set, int64_t at);
/** Returns the usual preprocessing for the format. Digits: grey, 8 x 8, pixels divided by 16.
 * CIFAR: 32 x 32 as stored, with the mean and std of ImageNet. Others:
 * laci_preprocessing_default. */
laci_preprocessing laci_dataset_preprocessing(const laci_dataset *set);
/** Returns the usual augmentation for the format. CIFAR and bytes in arrays: padded by 4, cropped,
 * mirrored. Digits: padded by 1 and cropped. Floats in arrays: none. Others: a random part,
 * mirrored. */
laci_augment laci_dataset_augment(const laci_dataset *set);

/** Reads the image with index `at`, at its stored size. Fails as laci_image_decode does, naming the
 * file. Any thread, each with its own *image. */
LAC_MUST_CHECK lac_status laci_dataset_read_image(const laci_dataset *set, int64_t at,
                                                  laci_image *image, lac_error *err);
/** Reads the image with index `at` and prepares it by the preparer's preprocessing, into
 * out[laci_preprocessing_sample_size]; *image is scratch. */
LAC_MUST_CHECK lac_status laci_dataset_read_sample(const laci_dataset *set, int64_t at,
                                                   laci_preparer *preparer, laci_image *image,
                                                   float *out, lac_error *err);

/** Reads a training sample: like laci_dataset_read_sample, but changes the image at random, as
 * `change` says, before its preparation. scratch: two images. */
LAC_MUST_CHECK lac_status laci_dataset_read_changed_sample(const laci_dataset *set,
                                                           const laci_sample_change *change,
                                                           laci_preparer *preparer,
                                                           laci_image *scratch, float *out,
                                                           lac_error *err);

#endif
