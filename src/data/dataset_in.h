/* SPDX-License-Identifier: Apache-2.0
 * The interface of one kind of data set. Its open function fills the common part, and its functions
 * read images and free its data. dataset.c does the rest. */
#ifndef LACI_DATA_DATASET_IN_H
#define LACI_DATA_DATASET_IN_H

#include "base/memory.h"
#include "data/augment.h"
#include "data/dataset.h"
#include "data/prepare.h"

/** The encoded bytes of a stored image: JPEG, PNG or WebP. Zero-initialized is empty. */
typedef struct laci_encoded {
  uint8_t *memory; /* allocated memory that holds the bytes; to be freed */
  const uint8_t *bytes;
  size_t size_bytes;
} laci_encoded;

typedef struct laci_dataset_kind {
  /* Functions that read the image with index `at`; exactly one of the three is set. `image` returns
   * its pixels; `encoded` the bytes of its file; `ready` a sample that needs no preparation,
   * [laci_preprocessing_sample_size] floats. The caller frees the result, also after a failure. Any
   * thread. */
  lac_status (*image)(const laci_dataset *set, int64_t at, laci_image *image, lac_error *err);
  lac_status (*encoded)(const laci_dataset *set, int64_t at, laci_encoded *encoded, lac_error *err);
  lac_status (*ready)(const laci_dataset *set, int64_t at, float *out, lac_error *err);
  /* Writes the name of image `at` for error texts. */
  void (*name)(const laci_dataset *set, int64_t at, char *text, size_t size_bytes);
  void (*close)(laci_dataset *set); /* frees the set's private data `own`, which may be NULL, and
                                       all that it points to */
} laci_dataset_kind;

struct laci_dataset {
  const laci_dataset_kind *kind;
  laci_arena arena; /* memory of all texts */
  const char *folder;
  const char *format; /* name of the format, as laci_dataset_format returns it */
  int64_t count;
  int32_t *labels; /* [count] the class of each image */
  int n_classes;
  bool may_lack_classes; /* n_classes was found from the labels alone; the network may have more
                            outputs */
  laci_numbering numbering;
  const char **class_names;   /* [n_classes] the name of each class; NULL: the data have no names */
  const char **class_folders; /* [n_classes] name of each class's folder, in the arena, if these
                                 differ from the class names; else NULL */
  laci_preprocessing preprocessing;
  laci_augment augment;
  void *own; /* private data of the file that reads this format */
};

/** Each of these opens a data set of one format: fills *set, whose `folder` is already set. On
 * failure the caller closes the set. */
LAC_MUST_CHECK lac_status laci_cifar_open(laci_dataset *set, const laci_dataset_options *options,
                                          lac_error *err);
LAC_MUST_CHECK lac_status laci_folder_open(laci_dataset *set, const laci_dataset_options *options,
                                           lac_error *err);
LAC_MUST_CHECK lac_status laci_digits_open(laci_dataset *set, const laci_dataset_options *options,
                                           lac_error *err);
/** Opens digits like laci_digits_open, but from the bytes of a digits.csv.gz. */
LAC_MUST_CHECK lac_status laci_digits_open_memory(laci_dataset *set, const char *name,
                                                  const uint8_t *bytes, size_t size_bytes,
                                                  laci_dataset_part part, lac_error *err);
/** Opens images that are all in one folder, with a text file that gives the class of each
 * (flat.c). */
LAC_MUST_CHECK lac_status laci_flat_folder_open(laci_dataset *set,
                                                const laci_dataset_options *options,
                                                lac_error *err);
/** Opens an array of samples and one of labels: those of a path, or the caller's. */
LAC_MUST_CHECK lac_status laci_arrays_open(laci_dataset *set, const laci_dataset_options *options,
                                           lac_error *err);
/** Is the path a .npz or .npy, or a folder with labels.npy? */
bool laci_arrays_exist_in(const char *path);
/** Opens TFRecords in ImageNet's layout: train-00000-of-01024 ..., validation-00000-of-00128 ... */
LAC_MUST_CHECK lac_status laci_records_open(laci_dataset *set, const laci_dataset_options *options,
                                            lac_error *err);
bool laci_records_exist_in(const char *folder);
bool laci_digits_exist_in(const char *folder);
/** Does the folder itself contain images, and is there a file of labels for them? */
bool laci_is_flat_image_folder(const char *folder);
bool laci_flat_folder_has_images(const char *folder);
/** Does the folder contain one of CIFAR's files? */
bool laci_cifar_exists_in(const char *folder);

/** Returns folder/name, in the arena; NULL: no memory. */
char *laci_path_join(laci_arena *arena, const char *folder, const char *name);

/** Reads the lines of a text file of at most 16 MiB, without line ends and without empty lines at
 * the end of the file; they are copies in the arena. */
LAC_MUST_CHECK lac_status laci_read_lines(laci_arena *arena, const char *path, const char ***lines,
                                          int *n_lines, lac_error *err);

/** Sets the classes from the file classes_path, as dataset.h describes. */
LAC_MUST_CHECK lac_status laci_classes_read_from_file(laci_dataset *set, const char *classes_path,
                                                      lac_error *err);

/** Returns the number in ImageNet of the class of a synset (WordNet id) such as "n01440764"; -1:
 * ImageNet has no such class. */
int laci_imagenet_class_of_synset(const char *name);
/** Writes the synset (WordNet id) of ImageNet's class 0..999: 9 characters. */
void laci_imagenet_write_synset(int class_number, char synset[16]);
/** Sets the classes to those of ImageNet. Fails LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_imagenet_set_classes(laci_dataset *set, lac_error *err);

/** Sets numbers [n] to the class number of each class folder, and sets the classes of the set, as
 * dataset.h describes. folders: their sorted names. */
LAC_MUST_CHECK lac_status laci_number_class_folders(laci_dataset *set, const char *const *folders,
                                                    int n, const laci_dataset_options *options,
                                                    int32_t *numbers, lac_error *err);

#endif
