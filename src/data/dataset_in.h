/* SPDX-License-Identifier: Apache-2.0
 * What a kind of data set has to offer: it fills the common part when it is opened, and brings two
 * functions. dataset.c does the rest. */
#ifndef LACI_DATA_DATASET_IN_H
#define LACI_DATA_DATASET_IN_H

#include "base/memory.h"
#include "data/dataset.h"

/** The bytes of a stored image: JPEG, PNG or WebP. Zero-initialised is empty. */
typedef struct laci_encoded {
  uint8_t *memory; /* what holds them; free it */
  const uint8_t *bytes;
  size_t size_bytes;
} laci_encoded;

typedef struct laci_dataset_kind {
  /* One of the two, the other is NULL: pixels, or bytes to be decoded; on failure, too, the caller
   * frees. Any thread. */
  lac_status (*image)(const laci_dataset *set, int64_t at, laci_image *image, lac_error *err);
  lac_status (*encoded)(const laci_dataset *set, int64_t at, laci_encoded *encoded, lac_error *err);
  /* What to call image `at` in an error's text. */
  void (*name)(const laci_dataset *set, int64_t at, char *text, size_t size_bytes);
  void (*close)(laci_dataset *set); /* frees `own` and what hangs on it; own may be NULL */
} laci_dataset_kind;

struct laci_dataset {
  const laci_dataset_kind *kind;
  laci_arena arena; /* all texts */
  const char *folder;
  const char *format; /* as laci_dataset_format says */
  int64_t count;
  int32_t *labels; /* [count] */
  int n_classes;
  laci_numbering numbering;
  const char **class_names;   /* [n_classes], or NULL */
  const char **class_folders; /* [n_classes] in the arena, where they are called otherwise; NULL */
  laci_preprocessing preprocessing;
  laci_augment augment;
  void *own; /* the kind's */
};

/** Both fill a set whose folder is set; on failure the caller closes it. */
LAC_MUST_CHECK lac_status laci_cifar_open(laci_dataset *set, const laci_dataset_options *options,
                                          lac_error *err);
LAC_MUST_CHECK lac_status laci_folder_open(laci_dataset *set, const laci_dataset_options *options,
                                           lac_error *err);
LAC_MUST_CHECK lac_status laci_digits_open(laci_dataset *set, const laci_dataset_options *options,
                                           lac_error *err);
/** The same from the bytes of digits.csv.gz. */
LAC_MUST_CHECK lac_status laci_digits_read(laci_dataset *set, const char *name,
                                           const uint8_t *bytes, size_t size_bytes,
                                           laci_dataset_part part, lac_error *err);
/** Images in one folder, and a text file that says which class each is. */
LAC_MUST_CHECK lac_status laci_flat_open(laci_dataset *set, const laci_dataset_options *options,
                                         lac_error *err);
/** TFRecords in ImageNet's layout: train-00000-of-01024 ..., validation-00000-of-00128 ... */
LAC_MUST_CHECK lac_status laci_records_open(laci_dataset *set, const laci_dataset_options *options,
                                            lac_error *err);
bool laci_records_are_there(const char *folder);
bool laci_digits_is_there(const char *folder);
/** Whether images are in the folder itself, and a file of labels is there for them. */
bool laci_flat_is_there(const char *folder);
bool laci_flat_has_images(const char *folder);
/** Whether the folder holds one of CIFAR's files. */
bool laci_cifar_is_there(const char *folder);

/** folder/name in the arena; NULL: no memory. */
char *laci_path_in(laci_arena *arena, const char *folder, const char *name);

/** The lines of a text file of at most 16 MiB, without their ends and without empty lines at
 * the end of the file; copies in the arena. */
LAC_MUST_CHECK lac_status laci_read_lines(laci_arena *arena, const char *path, const char ***lines,
                                          int *n_lines, lac_error *err);

/** The set's classes from a list, as dataset.h says. */
LAC_MUST_CHECK lac_status laci_list_classes(laci_dataset *set, const char *classes_path,
                                            lac_error *err);

/** The class of "n01440764" in ImageNet; -1: none. */
int laci_imagenet_class(const char *name);
/** ... and back: the synset of class 0..999, 9 letters. */
void laci_imagenet_synset(int class_number, char synset[16]);
/** The set's classes are ImageNet's. Fails LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_imagenet_classes(laci_dataset *set, lac_error *err);

/** Gives the folders (sorted names) their class numbers and the set its classes, as dataset.h says.
 */
LAC_MUST_CHECK lac_status laci_number_classes(laci_dataset *set, const char *const *folders, int n,
                                              const laci_dataset_options *options, int32_t *numbers,
                                              lac_error *err);

#endif
