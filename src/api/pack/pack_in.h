/* SPDX-License-Identifier: Apache-2.0
 * A report of packing with what belongs to it. */
#ifndef LACI_API_PACK_PACK_IN_H
#define LACI_API_PACK_PACK_IN_H

#include "base/memory.h"
#include "lacuna/pack.h"

typedef struct laci_pack_report {
  lac_pack_report pub; /* first: a lac_pack_report * is a laci_pack_report * */
  laci_arena arena;    /* texts and layers */
  lac_pack_layer *layers;
} laci_pack_report;

/** lac_pack_load before the network is looked at (graph/typing.h). */
LAC_MUST_CHECK lac_status laci_pack_load(const char *path, lac_model **model, lac_error *err);

#endif
