/* SPDX-License-Identifier: Apache-2.0
 * Finds the pickle and the storages in the file, then the bytes of every tensor of the state dict.
 * */
#include "data/torch_file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/reader.h"
#include "data/pickle.h"
#include "data/zip.h"
#include "safetensors/safetensors.h"

/* A file in the old format begins with the pickled number 0x1950a86a20f9469cfc6c (MAGIC), then the
 * pickled number 1001 (VERSION). */
static const uint8_t MAGIC[] = {0x80, 2,    0x8a, 10,   0x6c, 0xfc, 0x9c, 0x46,
                                0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19, '.'};
static const uint8_t VERSION[] = {0x80, 2, 'M', 0xe9, 3, '.'};
enum { COUNT_BYTES = 8 };

/** Where the bytes of a PyTorch storage (an array to which tensors refer) are in the file. */
typedef struct place {
  const uint8_t *key;
  size_t n_key, first, size_bytes;
} place;

typedef struct torch_file {
  const char *path;
  laci_reader *reader;
  laci_arena arena;
  laci_pickle_torch pickle;
  place *storages; /* [n_storages] storages of the file, in the arena */
  size_t n_storages;
  laci_safetensor *tensors; /* [n] tensors of the file, in the arena */
  int n;
} torch_file;

bool laci_torch_file_begins(const uint8_t *bytes, size_t n) {
  bool zip = n >= 4 && memcmp(bytes, "PK\3\4", 4) == 0;
  return zip || (n >= sizeof MAGIC && memcmp(bytes, MAGIC, sizeof MAGIC) == 0);
}

static lac_status fail_file(const torch_file *c, const char *what, lac_error *err) {
  return laci_fail(err, LAC_BAD_FILE, "%s: %s", c->path, what);
}

/* ---- Types ---- */

/** A type of elements: the name of its storage in PyTorch, the type's name, and the bytes of an
 * element. */
typedef struct element {
  const char *storage, *name;
  size_t bytes;
  bool is_float;
  lac_dtype dtype;
} element;

static const element *find_element_type(const laci_pickle_value *type) {
  static const element elements[] = {
      {"DoubleStorage", "F64", 8, true, LAC_DTYPE_F64},
      {"FloatStorage", "F32", 4, true, LAC_DTYPE_F32},
      {"HalfStorage", "F16", 2, true, LAC_DTYPE_F16},
      {"BFloat16Storage", "BF16", 2, true, LAC_DTYPE_BF16},
      {"LongStorage", "I64", 8, false, LAC_DTYPE_F32},
      {"IntStorage", "I32", 4, false, LAC_DTYPE_F32},
      {"ShortStorage", "I16", 2, false, LAC_DTYPE_F32},
      {"CharStorage", "I8", 1, false, LAC_DTYPE_F32},
      {"ByteStorage", "U8", 1, false, LAC_DTYPE_F32},
      {"BoolStorage", "BOOL", 1, false, LAC_DTYPE_F32},
  };
  for (size_t k = 0; k < sizeof elements / sizeof *elements; k++) {
    if (type->n_bytes == strlen(elements[k].storage) &&
        memcmp(type->bytes, elements[k].storage, type->n_bytes) == 0)
      return &elements[k];
  }
  return NULL;
}

/* ---- The zip archive ---- */

/** Returns the member's name without the archive's folder, such as "data.pkl". NULL: the member is
 * in no folder. */
static const char *name_in_archive_folder(const laci_zip_member *member) {
  const char *slash = strchr(member->name, '/');
  return slash ? slash + 1 : NULL;
}

static lac_status check_little_endian(const torch_file *c, const laci_zip *zip,
                                      const laci_zip_member *member, lac_error *err) {
  uint8_t *bytes = NULL;
  lac_status st = laci_zip_read(zip, member, &bytes, err);
  if (!st && (member->size_bytes != 6 || memcmp(bytes, "little", 6) != 0))
    st = laci_fail(err, LAC_UNSUPPORTED, "%s: its byte order is none of little", c->path);
  laci_free(bytes);
  return st;
}

static lac_status add_storage(torch_file *c, const laci_zip *zip, const laci_zip_member *member,
                              lac_error *err) {
  const char *key = name_in_archive_folder(member) + strlen("data/");
  if (member->deflated) {
    return laci_fail(err, LAC_UNSUPPORTED, "%s: %.200s is deflated, wanted it stored", c->path,
                     member->name);
  }
  c->storages[c->n_storages++] =
      (place){(const uint8_t *)key, strlen(key), member->offset, member->size_bytes};
  return laci_zip_check(zip, member, err);
}

static lac_status parse_member(torch_file *c, const laci_zip *zip, const laci_zip_member *member,
                               lac_error *err) {
  uint8_t *bytes = NULL;
  lac_status st = laci_zip_read(zip, member, &bytes, err);
  if (st) return st;
  uint8_t *kept = laci_arena_alloc(&c->arena, member->size_bytes + 1, 1);
  if (kept) memcpy(kept, bytes, member->size_bytes);
  laci_free(bytes);
  if (!kept) return laci_fail_memory(err, c->path);
  laci_pickle_bytes from = {kept, member->size_bytes};
  return laci_pickle_parse_torch(&c->arena, c->path, &from, &c->pickle, err);
}

static lac_status read_members(torch_file *c, const laci_zip *zip, const laci_zip_member *members,
                               size_t n, lac_error *err) {
  lac_status st = LAC_OK;
  c->storages = laci_arena_alloc(&c->arena, n + 1, sizeof *c->storages);
  if (!c->storages) return laci_fail_memory(err, c->path);
  for (size_t k = 0; k < n && !st; k++) {
    const char *name = name_in_archive_folder(&members[k]);
    if (!name) continue;
    if (strcmp(name, "data.pkl") == 0) st = parse_member(c, zip, &members[k], err);
    if (strcmp(name, "byteorder") == 0) st = check_little_endian(c, zip, &members[k], err);
    if (strncmp(name, "data/", 5) == 0 && name[5]) st = add_storage(c, zip, &members[k], err);
  }
  if (!st && !c->pickle.root)
    st = fail_file(c, "a zip archive without data.pkl: no file of PyTorch", err);
  return st;
}

static lac_status read_zip(torch_file *c, lac_error *err) {
  const laci_zip zip = {c->reader, c->path};
  laci_zip_member *members = NULL;
  size_t n = 0;
  lac_status st = laci_zip_list(&zip, &c->arena, &members, &n, err);
  if (!st) st = read_members(c, &zip, members, n, err);
  laci_free(members);
  return st;
}

/* ---- The old format ---- */

static lac_status skip_expected_bytes(const torch_file *c, laci_pickle_bytes *from,
                                      const uint8_t *wanted, size_t n, lac_error *err) {
  if (from->n < n || memcmp(from->at, wanted, n) != 0)
    return fail_file(c, "it is no file of PyTorch: another beginning", err);
  from->at += n;
  from->n -= n;
  return LAC_OK;
}

static int compare_bytes(const uint8_t *a, size_t n_a, const uint8_t *b, size_t n_b) {
  int order = memcmp(a, b, n_a < n_b ? n_a : n_b);
  return order ? order : (n_a > n_b) - (n_a < n_b);
}

static int compare_references(const void *a, const void *b) {
  const laci_pickle_value *x = (*(laci_pickle_value *const *)a)->items[2],
                          *y = (*(laci_pickle_value *const *)b)->items[2];
  return compare_bytes(x->bytes, x->n_bytes, y->bytes, y->n_bytes);
}

/** Returns the type of the elements of the storage with this key, from the pickle's references to
 * storages, which are sorted; NULL: there is no reference to it. */
static const laci_pickle_value *find_storage_type(const torch_file *c, laci_pickle_value *key) {
  laci_pickle_value *parts[] = {NULL, NULL, key}, wanted = {.items = parts, .n = 3};
  const laci_pickle_value *sought = &wanted;
  laci_pickle_value *const *found = c->pickle.n_storages
                                        ? bsearch(&sought, c->pickle.storages, c->pickle.n_storages,
                                                  sizeof(void *), compare_references)
                                        : NULL;
  return found ? (*found)->items[1] : NULL;
}

static lac_status find_storages_in_file(torch_file *c, const laci_pickle_value *keys,
                                        laci_pickle_bytes from, lac_error *err) {
  const uint8_t *begin = laci_reader_bytes(c->reader);
  if (keys->kind != LACI_PICKLE_LIST) return fail_file(c, "it has no list of storages", err);
  if (c->pickle.n_storages)
    qsort(c->pickle.storages, c->pickle.n_storages, sizeof(void *), compare_references);
  c->storages = laci_arena_alloc(&c->arena, keys->n + 1, sizeof *c->storages);
  if (!c->storages) return laci_fail_memory(err, c->path);
  for (size_t k = 0; k < keys->n; k++) {
    laci_pickle_value *key = keys->items[k];
    if (key->kind != LACI_PICKLE_TEXT) return fail_file(c, "a storage's key is no text", err);
    const laci_pickle_value *its = find_storage_type(c, key);
    const element *type = its ? find_element_type(its) : NULL;
    if (!type) return fail_file(c, "a storage of unknown elements", err);
    if (from.n < COUNT_BYTES) return fail_file(c, "it is cut off", err);
    uint64_t count = 0;
    for (int at = COUNT_BYTES - 1; at >= 0; at--) count = count << 8 | from.at[at];
    if (count > (from.n - COUNT_BYTES) / type->bytes) return fail_file(c, "it is cut off", err);
    const size_t size = (size_t)count * type->bytes;
    c->storages[c->n_storages++] =
        (place){key->bytes, key->n_bytes, (size_t)(from.at + COUNT_BYTES - begin), size};
    from.at += COUNT_BYTES + size;
    from.n -= COUNT_BYTES + size;
  }
  return LAC_OK;
}

static lac_status read_old_format(torch_file *c, lac_error *err) {
  const size_t size = laci_reader_size(c->reader);
  laci_pickle_torch machine = {0}, keys = {0};
  lac_status st = laci_reader_load_range(c->reader, 0, size, err);
  if (st) return st;
  laci_pickle_bytes from = {laci_reader_bytes(c->reader), size};
  st = skip_expected_bytes(c, &from, MAGIC, sizeof MAGIC, err);
  if (!st) st = skip_expected_bytes(c, &from, VERSION, sizeof VERSION, err);
  if (!st) st = laci_pickle_parse_torch(&c->arena, c->path, &from, &machine, err);
  if (!st) st = laci_pickle_parse_torch(&c->arena, c->path, &from, &c->pickle, err);
  if (!st) st = laci_pickle_parse_torch(&c->arena, c->path, &from, &keys, err);
  return st ? st : find_storages_in_file(c, keys.root, from, err);
}

/* ---- The state dict ---- */

static bool has_tensor_entry(const laci_pickle_value *dict) {
  for (size_t k = 1; dict && dict->kind == LACI_PICKLE_DICT && k < dict->n; k += 2) {
    if (dict->items[k]->kind == LACI_PICKLE_TENSOR) return true;
  }
  return false;
}

static const laci_pickle_value *find_state_dict(const laci_pickle_value *root) {
  static const char *const keys[] = {"state_dict", "model_state_dict", "model_state", "model",
                                     "module"};
  if (has_tensor_entry(root)) return root;
  for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
    const laci_pickle_value *entry = laci_pickle_find_in_dict(root, keys[k]);
    if (has_tensor_entry(entry)) return entry;
  }
  return NULL;
}

static lac_status fail_tensor(const torch_file *c, const char *name, lac_status status,
                              const char *what, lac_error *err) {
  return laci_fail(err, status, "%s: %.200s: %s", c->path, name, what);
}

static lac_status read_shape(const torch_file *c, const laci_pickle_value *shape,
                             laci_safetensor *t, lac_error *err) {
  if (shape->n > LACI_SAFETENSORS_MOST_RANK)
    return fail_tensor(c, t->name, LAC_BAD_FILE, "more than 8 axes", err);
  t->rank = (int)shape->n;
  t->count = 1;
  for (int axis = 0; axis < t->rank; axis++) {
    const laci_pickle_value *size = shape->items[axis];
    bool is_size = size->kind == LACI_PICKLE_NUMBER && size->number >= 0 &&
                   !__builtin_mul_overflow(t->count, size->number, &t->count);
    if (!is_size) return fail_tensor(c, t->name, LAC_BAD_FILE, "its shape is none", err);
    t->shape[axis] = size->number;
  }
  return LAC_OK;
}

/** Is the tensor stored in row-major order? An axis of one element may have any stride. */
static bool is_contiguous(const laci_safetensor *t, const laci_pickle_value *strides) {
  int64_t wanted = 1;
  if (strides->n != (size_t)t->rank) return false;
  for (int axis = t->rank - 1; axis >= 0 && t->count > 0; axis--) {
    const laci_pickle_value *stride = strides->items[axis];
    if (stride->kind != LACI_PICKLE_NUMBER) return false;
    if (t->shape[axis] != 1 && stride->number != wanted) return false;
    wanted *= t->shape[axis];
  }
  return true;
}

static int compare_storages(const void *a, const void *b) {
  const place *x = a, *y = b;
  return compare_bytes(x->key, x->n_key, y->key, y->n_key);
}

/** Returns the storage with this key, from the sorted storages; NULL: there is none. */
static const place *find_storage(const torch_file *c, const laci_pickle_value *key) {
  const place wanted = {.key = key->bytes, .n_key = key->n_bytes};
  return bsearch(&wanted, c->storages, c->n_storages, sizeof wanted, compare_storages);
}

static lac_status find_tensor_in_file(const torch_file *c, const laci_pickle_value *tensor,
                                      laci_safetensor *t, lac_error *err) {
  const laci_pickle_value *reference = tensor->items[0], *type = reference->items[1];
  const place *from = find_storage(c, reference->items[2]);
  const element *e = find_element_type(type);
  if (!e) {
    return laci_fail(err, LAC_UNSUPPORTED, "%s: %.200s: elements of %.*s are unknown", c->path,
                     t->name, (int)type->n_bytes, (const char *)type->bytes);
  }
  lac_status st = read_shape(c, tensor->items[2], t, err);
  if (st) return st;
  if (!is_contiguous(t, tensor->items[3])) {
    return fail_tensor(c, t->name, LAC_UNSUPPORTED,
                       "it is not stored row by row; tensor.contiguous() is", err);
  }
  if (!from) return fail_tensor(c, t->name, LAC_BAD_FILE, "its storage is not in the file", err);
  const int64_t offset = tensor->items[1]->number, most = (int64_t)(from->size_bytes / e->bytes);
  if (offset < 0 || offset > most || t->count > most - offset) {
    return laci_fail(err, LAC_BAD_FILE,
                     "%s: %.200s: %" PRId64 " elements from %" PRId64
                     ", but its storage has %" PRId64,
                     c->path, t->name, t->count, offset, most);
  }
  t->type = e->name;
  t->is_float = e->is_float;
  t->dtype = e->dtype;
  t->first = from->first + (size_t)offset * e->bytes;
  t->size_bytes = (size_t)t->count * e->bytes;
  return LAC_OK;
}

static lac_status list_tensors(torch_file *c, lac_error *err) {
  const laci_pickle_value *state = find_state_dict(c->pickle.root);
  if (!state) {
    return fail_file(c,
                     "it has no dictionary of tensors, alone or as its state_dict, "
                     "model_state_dict, model_state, model or module",
                     err);
  }
  qsort(c->storages, c->n_storages, sizeof *c->storages, compare_storages);
  c->tensors = laci_arena_alloc(&c->arena, state->n / 2 + 1, sizeof *c->tensors);
  if (!c->tensors) return laci_fail_memory(err, c->path);
  for (size_t k = 0; k + 1 < state->n; k += 2) {
    const laci_pickle_value *key = state->items[k], *tensor = state->items[k + 1];
    if (tensor->kind != LACI_PICKLE_TENSOR) continue;
    if (key->kind != LACI_PICKLE_TEXT || memchr(key->bytes, '\0', key->n_bytes))
      return fail_file(c, "a tensor's name is no text", err);
    laci_safetensor *t = &c->tensors[c->n];
    *t = (laci_safetensor){
        .name = laci_arena_text_n(&c->arena, (const char *)key->bytes, key->n_bytes)};
    if (!t->name) return laci_fail_memory(err, c->path);
    lac_status st = find_tensor_in_file(c, tensor, t, err);
    if (st) return st;
    c->n++;
  }
  return LAC_OK;
}

lac_status laci_torch_file_open(const char *path, laci_safetensors **tensors, lac_error *err) {
  torch_file c = {.path = path};
  uint8_t head[sizeof MAGIC] = {0};
  *tensors = NULL;
  lac_status st = laci_reader_open(path, &c.reader, err);
  if (st) return st;
  const size_t size = laci_reader_size(c.reader), n = size < sizeof head ? size : sizeof head;
  st = n ? laci_reader_copy_range(c.reader, 0, n, head, err) : fail_file(&c, "an empty file", err);
  if (!st && !laci_torch_file_begins(head, n)) {
    st = fail_file(&c, "no file that torch.save wrote: neither a zip archive nor PyTorch's number",
                   err);
  }
  if (!st) st = head[0] == 'P' ? read_zip(&c, err) : read_old_format(&c, err);
  if (!st) st = list_tensors(&c, err);
  if (!st) st = laci_safetensors_wrap_tensors(path, c.reader, c.tensors, c.n, tensors, err);
  if (st) laci_reader_close(c.reader);
  laci_arena_clear(&c.arena);
  return st;
}
