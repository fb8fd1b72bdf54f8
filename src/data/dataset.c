/* SPDX-License-Identifier: Apache-2.0
 * The common part of all data sets. Next: cifar.c, folder.c, flat.c, digits.c, records.c, the kinds
 * of data sets; classes.c, the numbering of classes. */
#include "data/dataset.h"

#include <assert.h>

#include "base/error.h"
#include "data/dataset_in.h"
#include "data/image.h"
#include "data/policy.h"

/* Are arrays the only data in the folder? Arrays next to data of another format do not count, since
 * other programs leave such files. */
static bool has_only_arrays(const char *folder) {
  return laci_arrays_exist_in(folder) && !laci_cifar_exists_in(folder) &&
         !laci_digits_exist_in(folder) && !laci_records_exist_in(folder) &&
         !laci_is_flat_image_folder(folder);
}

lac_status laci_dataset_open(const char *folder, const laci_dataset_options *options,
                             laci_dataset **set, lac_error *err) {
  *set = NULL;
  laci_dataset *made = laci_alloc(1, sizeof *made);
  if (!made) return laci_fail_memory(err, folder);
  made->folder = laci_arena_text(&made->arena, folder);
  lac_status st = LAC_OK;
  if (!made->folder) st = laci_fail_memory(err, folder);
  else if (options->arrays || has_only_arrays(folder)) st = laci_arrays_open(made, options, err);
  else if (laci_cifar_exists_in(folder)) st = laci_cifar_open(made, options, err);
  else if (laci_digits_exist_in(folder)) st = laci_digits_open(made, options, err);
  else if (laci_records_exist_in(folder)) st = laci_records_open(made, options, err);
  else if (laci_is_flat_image_folder(folder)) st = laci_flat_folder_open(made, options, err);
  else st = laci_folder_open(made, options, err);
  if (st) laci_dataset_close(made);
  else *set = made;
  return st;
}

lac_status laci_dataset_open_digits(const char *name, const uint8_t *bytes, size_t size_bytes,
                                    laci_dataset_part part, laci_dataset **set, lac_error *err) {
  *set = NULL;
  laci_dataset *made = laci_alloc(1, sizeof *made);
  if (!made) return laci_fail_memory(err, name);
  made->folder = laci_arena_text(&made->arena, name);
  lac_status st = made->folder ? laci_digits_open_memory(made, name, bytes, size_bytes, part, err)
                               : laci_fail_memory(err, name);
  if (st) laci_dataset_close(made);
  else *set = made;
  return st;
}

void laci_dataset_close(laci_dataset *set) {
  if (!set) return;
  if (set->kind) set->kind->close(set);
  laci_free(set->labels);
  laci_free(set->class_names);
  laci_arena_clear(&set->arena);
  laci_free(set);
}

int64_t laci_dataset_count(const laci_dataset *set) { return set->count; }
int laci_dataset_count_classes(const laci_dataset *set) { return set->n_classes; }
const char *laci_dataset_format(const laci_dataset *set) { return set->format; }
laci_numbering laci_dataset_numbering(const laci_dataset *set) { return set->numbering; }
laci_preprocessing laci_dataset_preprocessing(const laci_dataset *set) {
  return set->preprocessing;
}
laci_augment laci_dataset_augment(const laci_dataset *set) { return set->augment; }

const char *laci_dataset_class_name(const laci_dataset *set, int class_number) {
  bool known = set->class_names && class_number >= 0 && class_number < set->n_classes;
  return known ? set->class_names[class_number] : NULL;
}

const char *laci_dataset_class_folder(const laci_dataset *set, int class_number) {
  bool known = set->class_folders && class_number >= 0 && class_number < set->n_classes;
  return known ? set->class_folders[class_number] : laci_dataset_class_name(set, class_number);
}

int laci_dataset_label(const laci_dataset *set, int64_t at) {
  assert(at >= 0 && at < set->count);
  return set->labels[at];
}

/** Decodes the stored image with index `at`, or a part of it; part NULL: the whole image. */
static lac_status decode_stored_image(const laci_dataset *set, int64_t at,
                                      const laci_image_part *part, laci_image *image,
                                      lac_error *err) {
  char name[512];
  laci_encoded encoded = {0};
  lac_status st = set->kind->encoded(set, at, &encoded, err);
  set->kind->name(set, at, name, sizeof name);
  if (!st) st = laci_image_decode_part(name, encoded.bytes, encoded.size_bytes, part, image, err);
  laci_free(encoded.memory);
  return st;
}

lac_status laci_dataset_read_image(const laci_dataset *set, int64_t at, laci_image *image,
                                   lac_error *err) {
  assert(at >= 0 && at < set->count);
  if (set->kind->ready) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "%s: its samples are no images", set->folder);
  }
  return set->kind->image ? set->kind->image(set, at, image, err)
                          : decode_stored_image(set, at, NULL, image, err);
}

static lac_status read_image_part(const laci_dataset *set, int64_t at, const laci_image_part *part,
                                  laci_image *image, lac_error *err) {
  if (!set->kind->image) return decode_stored_image(set, at, part, image, err);
  lac_status st = set->kind->image(set, at, image, err);
  if (!st) laci_image_crop(image, part->choose(part->context, image->width, image->height));
  return st;
}

lac_status laci_dataset_read_sample(const laci_dataset *set, int64_t at, laci_preparer *preparer,
                                    laci_image *image, float *out, lac_error *err) {
  char name[512];
  if (set->kind->ready) return set->kind->ready(set, at, out, err);
  lac_status st = laci_dataset_read_image(set, at, image, err);
  if (st) return st;
  set->kind->name(set, at, name, sizeof name);
  return laci_prepare_image(preparer, name, image, out, err);
}

/* ---- Training samples ---- */

static laci_region choose_region(const void *context, int width, int height) {
  const laci_sample_change *change = context;
  return laci_draw_region(change->seed, change->sample, width, height);
}

/** Prepares a training sample that a policy changes (policy.h). The image is resized to bytes
 * first, since the policy works on pixels of the crop. */
static lac_status prepare_policy_sample(const laci_sample_change *change, const char *name,
                                        laci_preparer *preparer, laci_image *scratch, float *out,
                                        lac_error *err) {
  laci_augment_draw draw = laci_augment_draw_change(&change->augment, change->seed, change->sample);
  lac_status st = laci_prepare_resize_part(preparer, name, &scratch[0], &scratch[1], err);
  if (!st && draw.flipped) laci_image_mirror(&scratch[1]);
  if (!st) st = laci_policy_apply(change, name, &scratch[1], &scratch[0], err);
  return st ? st : laci_prepare_crop(preparer, name, &scratch[1], out, err);
}

static lac_status read_resized_sample(const laci_dataset *set, const laci_sample_change *change,
                                      laci_preparer *preparer, laci_image *scratch, float *out,
                                      lac_error *err) {
  char name[512];
  laci_image_part part = {.choose = choose_region, .context = change};
  laci_preparer_output_size(preparer, &part.least_width, &part.least_height);
  lac_status st = read_image_part(set, change->image, &part, &scratch[0], err);
  if (st) return st;
  set->kind->name(set, change->image, name, sizeof name);
  if (change->augment.policy.kind != LACI_POLICY_NONE) {
    return prepare_policy_sample(change, name, preparer, scratch, out, err);
  }
  laci_augment_draw draw = laci_augment_draw_change(&change->augment, change->seed, change->sample);
  return laci_prepare_image_part(preparer, name, &scratch[0], draw.flipped, out, err);
}

static lac_status read_padded_sample(const laci_dataset *set, const laci_sample_change *change,
                                     laci_preparer *preparer, laci_image *scratch, float *out,
                                     lac_error *err) {
  char name[512];
  lac_status st = laci_dataset_read_image(set, change->image, &scratch[0], err);
  if (st) return st;
  set->kind->name(set, change->image, name, sizeof name);
  laci_augment_draw draw = laci_augment_draw_change(&change->augment, change->seed, change->sample);
  st = laci_augment_apply(&change->augment, &draw, name, &scratch[0], &scratch[1], err);
  if (!st) st = laci_policy_apply(change, name, &scratch[0], &scratch[1], err);
  return st ? st : laci_prepare_image(preparer, name, &scratch[0], out, err);
}

lac_status laci_dataset_read_changed_sample(const laci_dataset *set,
                                            const laci_sample_change *change,
                                            laci_preparer *preparer, laci_image *scratch,
                                            float *out, lac_error *err) {
  if (set->kind->ready) return set->kind->ready(set, change->image, out, err);
  if (!change->augment.resized) return read_padded_sample(set, change, preparer, scratch, out, err);
  return read_resized_sample(set, change, preparer, scratch, out, err);
}
