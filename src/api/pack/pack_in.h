/* SPDX-License-Identifier: Apache-2.0
 * A report of packing with its memory. */
#ifndef LACI_API_PACK_PACK_IN_H
#define LACI_API_PACK_PACK_IN_H

#include "base/memory.h"
#include "lacuna/pack.h"

typedef struct laci_pack_report {
  lac_pack_report pub; /* must be first: a lac_pack_report * is cast to laci_pack_report * */
  laci_arena arena;    /* memory of texts and layers */
  lac_pack_layer *layers;
} laci_pack_report;

typedef struct laci_packfile laci_packfile;
typedef struct laci_reader laci_reader;

/** Opens the pack that a file is, or that it holds as an ONNX model of one node. *pack is NULL
 * where the file is neither, or cannot be read. whole: as laci_packfile_open_whole. Fails as
 * laci_packfile_open. */
LAC_MUST_CHECK lac_status laci_pack_find_in_file(const char *path, bool whole, laci_packfile **pack,
                                                 lac_error *err);
/** Does the same as laci_pack_find_in_file for a file that a reader reads. The call owns the
 * reader, unless it succeeds and finds no pack. name: begins the text of failures. */
LAC_MUST_CHECK lac_status laci_pack_find_in_reader(laci_reader *reader, const char *name,
                                                   bool whole, laci_packfile **pack,
                                                   lac_error *err);

/** Makes a model from a pack, which it owns from then on, even on failure, without checking the
 * network's types (graph/typing.h). name: the model's path, which begins the text of failures. */
LAC_MUST_CHECK lac_status laci_pack_load(const char *name, laci_packfile *pack, lac_model **model,
                                         lac_error *err);

#endif
