/* SPDX-License-Identifier: Apache-2.0
 * Data sets of images with one folder for each class, which may contain nested folders. Files are
 * listed and sorted when the set is opened, and read on request. Only names are kept, so that a
 * million images take about fifty megabytes. */
#include "base/error.h"
#include "data/image_files_in.h"

/** Lists the images of all class folders, one folder after the other. ends[k]: the number of images
 * of classes 0 to k. */
static lac_status list_images(laci_dataset *set, const laci_name_list *classes, int64_t *ends,
                              lac_error *err) {
  laci_image_files *f = set->own;
  laci_listing where = {.root = set->folder, .deep = true, .n_left_out = &f->n_left_out};
  for (size_t k = 0; k < classes->n; k++) {
    lac_status st = laci_list_images(&set->arena, &where, classes->at[k], &f->images, err);
    if (st) return st;
    ends[k] = (int64_t)f->images.n;
  }
  return LAC_OK;
}

/** Sets the label of each image to the number of its class folder. */
static lac_status set_labels_by_folder(laci_dataset *set, const laci_name_list *classes,
                                       const int64_t *ends, const laci_dataset_options *options,
                                       lac_error *err) {
  int n = (int)classes->n;
  int32_t *numbers = laci_alloc(classes->n, sizeof *numbers);
  set->labels = laci_alloc((size_t)set->count, sizeof *set->labels);
  lac_status st = LAC_OK;
  if (!numbers || !set->labels) st = laci_fail_memory(err, set->folder);
  else st = laci_number_class_folders(set, classes->at, n, options, numbers, err);
  for (int64_t k = 0, at = 0; k < n && !st; k++) {
    for (; at < ends[k]; at++) set->labels[at] = numbers[k];
  }
  laci_free(numbers);
  return st;
}

lac_status laci_folder_open(laci_dataset *set, const laci_dataset_options *options,
                            lac_error *err) {
  laci_name_list classes = {0};
  int64_t *ends = NULL;
  lac_status st = laci_image_files_init(set, err);
  if (!st) st = laci_list_folders(&set->arena, set->folder, &classes, err);
  if (st) goto out;
  ends = laci_alloc(classes.n, sizeof *ends);
  st = ends ? list_images(set, &classes, ends, err) : laci_fail_memory(err, set->folder);
  if (st) goto out;
  if (!options->quiet) laci_image_files_warn_of_left_out(set);
  set->count = (int64_t)((laci_image_files *)set->own)->images.n;
  if (set->count == 0 && laci_flat_folder_has_images(set->folder)) {
    st = laci_fail(err, LAC_BAD_FILE,
                   "%s: images, but no labels: wanted folders CLASS/NAME.jpg, or labels.txt or "
                   "synset_labels.txt in it",
                   set->folder);
    goto out;
  }
  if (set->count == 0) {
    st = laci_fail(err, LAC_BAD_FILE,
                   "%s: no data, wanted CIFAR's files, folders CLASS/NAME.jpg, images with a file "
                   "of labels, or TFRecords",
                   set->folder);
    goto out;
  }
  st = set_labels_by_folder(set, &classes, ends, options, err);
out:
  laci_free(ends);
  laci_free(classes.at);
  return st;
}
