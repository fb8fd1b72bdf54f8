/* SPDX-License-Identifier: Apache-2.0
 * Opens plug-ins: shared objects that export lac_plugin_open (lacuna/plugin.h). */
#ifndef LACI_BASE_PLUGIN_H
#define LACI_BASE_PLUGIN_H

#include <stdbool.h>

#include "lacuna/plugin.h"

/** Loads the shared object `path`, checks its version and copies its lac_plugin. global: libraries
 * that are loaded later see its symbols (RTLD_GLOBAL). The object stays loaded, on failure too.
 * *handle is the same for the same file. Fails LAC_NOT_FOUND (no such file), LAC_BAD_FILE (no
 * plug-in), LAC_UNSUPPORTED (a plug-in for another version). */
LAC_MUST_CHECK lac_status laci_plugin_open(const char *path, bool global, lac_plugin *plugin,
                                           void **handle, lac_error *err);

/** The type of a struct that plug-ins pass to this library: its name, its size in bytes in this
 * library (size), and the smallest size that is accepted from a plug-in (least). */
typedef struct laci_plugin_struct {
  const char *name;
  size_t size, least;
} laci_plugin_struct;

/** Copies a plug-in's struct, whose `size` the caller read from it; fields that it lacks become 0.
 * Fails LAC_BAD_FILE (fewer bytes than `least`), LAC_UNSUPPORTED (a field that this library does
 * not know is set). path: for messages. */
LAC_MUST_CHECK lac_status laci_plugin_copy_struct(const char *path, const laci_plugin_struct *type,
                                                  const void *given, size_t size, void *own,
                                                  lac_error *err);

#endif
