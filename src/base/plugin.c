/* SPDX-License-Identifier: Apache-2.0
 * Opens plug-ins. The version is the first field of lac_plugin in every version, and read before
 * anything else of it. */
#include "base/plugin.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

/* A plug-in's struct with a larger `size` was certainly not initialized, and is refused. */
enum { MOST_BYTES = 1 << 16 };

lac_status laci_plugin_copy_struct(const char *path, const laci_plugin_struct *type,
                                   const void *given, size_t size, void *own, lac_error *err) {
  const unsigned char *bytes = given;
  if (size < type->least || size > MOST_BYTES) {
    return laci_fail(err, LAC_BAD_FILE, "%s: %s.size is %zu, wanted sizeof(%s)", path, type->name,
                     size, type->name);
  }
  for (size_t at = type->size; at < size; at++) {
    if (bytes[at] == 0) continue;
    return laci_fail(err, LAC_UNSUPPORTED,
                     "%s: the field at byte %zu of %s is set, and this library knows %zu bytes: a "
                     "newer library is needed",
                     path, at, type->name, type->size);
  }
  memset(own, 0, type->size);
  memcpy(own, given, size < type->size ? size : type->size);
  return LAC_OK;
}

/* Loads the file. A name without '/' is a file of the working folder if there is one, else one of
 * the loader's folders. */
static lac_status load_shared_object(const char *path, bool global, void **handle, lac_error *err) {
  char *found = realpath(path, NULL);
  if (!found && strchr(path, '/')) return laci_fail_errno(err, path, "loading the plug-in");
  *handle = dlopen(found ? found : path, RTLD_NOW | (global ? RTLD_GLOBAL : RTLD_LOCAL));
  free(found);
  if (*handle) return LAC_OK;
  const char *why = dlerror();
  return laci_fail(err, LAC_BAD_FILE, "%s: no shared object for this program: %s", path,
                   why ? why : "the loader does not say why");
}

lac_status laci_plugin_open(const char *path, bool global, lac_plugin *plugin, void **handle,
                            lac_error *err) {
  static const laci_plugin_struct type = {
      "lac_plugin", sizeof *plugin, offsetof(lac_plugin, open_engine) + sizeof plugin->open_engine};
  lac_plugin_open_function *open = NULL;
  lac_status st = load_shared_object(path, global, handle, err);
  if (st) return st;
  *(void **)&open = dlsym(*handle, LAC_PLUGIN_SYMBOL);
  if (!open) {
    return laci_fail(err, LAC_BAD_FILE, "%s: no plug-in of Lacuna: it exports no %s", path,
                     LAC_PLUGIN_SYMBOL);
  }
  const lac_plugin *given = open();
  if (!given) {
    return laci_fail(err, LAC_BAD_FILE, "%s: its %s returns NULL", path, LAC_PLUGIN_SYMBOL);
  }
  if (given->version != LAC_PLUGIN_VERSION) {
    return laci_fail(err, LAC_UNSUPPORTED,
                     "%s: a plug-in for version %d of the interface, and this library has version "
                     "%d: compile it with this library's headers",
                     path, given->version, LAC_PLUGIN_VERSION);
  }
  return laci_plugin_copy_struct(path, &type, given, given->size, plugin, err);
}
