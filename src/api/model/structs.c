/* SPDX-License-Identifier: Apache-2.0
 * Copies structs of the API between callers and the library, which may know fewer or more fields.
 * Next: struct_types.c, for each of these structs. */
#include "api/model/structs.h"

#include <string.h>

#include "base/error.h"
#include "lacuna/version.h"

/* A struct of more bytes was never initialized: its size is not looked at further. */
enum { MOST_BYTES = 1 << 16 };

static size_t read_struct_size(const void *given) {
  size_t size;
  memcpy(&size, given, sizeof size);
  return size;
}

static size_t smaller_size(size_t a, size_t b) { return a < b ? a : b; }

lac_status laci_struct_check(const laci_struct_type *type, const void *given, lac_error *err) {
  const unsigned char *bytes = given;
  const size_t size = read_struct_size(given);
  if (size < type->least || size > MOST_BYTES) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "%s.size is %zu, wanted sizeof(%s): begin with %s%s%s",
                     type->name, size, type->name, type->has_defaults ? "" : "LAC_SIZED(",
                     type->name, type->has_defaults ? "_default()" : ")");
  }
  for (size_t at = type->size; at < size; at++) {
    if (bytes[at] == 0) continue;
    return laci_fail(err, LAC_UNSUPPORTED,
                     "%s: the field at byte %zu is set, and this library, version %s, knows %zu "
                     "bytes: a newer library is needed",
                     type->name, at, lac_version(), type->size);
  }
  return LAC_OK;
}

lac_status laci_struct_copy_from_caller(const laci_struct_type *type, const void *given, void *own,
                                        lac_error *err) {
  if (!given) return LAC_OK;
  lac_status st = laci_struct_check(type, given, err);
  if (st) return st;
  memcpy(own, given, smaller_size(type->size, read_struct_size(given)));
  memcpy(own, &type->size, sizeof type->size);
  return LAC_OK;
}

void laci_struct_copy_to_caller(const laci_struct_type *type, const void *own, void *given) {
  const size_t size = read_struct_size(given);
  memset(given, 0, size);
  memcpy(given, own, smaller_size(type->size, size));
  memcpy(given, &size, sizeof size);
}

void laci_struct_set_defaults(const void *defaults, size_t own_size, void *options, size_t size) {
  if (!options || size < sizeof size) return;
  memset(options, 0, size);
  memcpy(options, defaults, smaller_size(own_size, size));
  memcpy(options, &size, sizeof size);
}
