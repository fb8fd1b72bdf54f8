/* SPDX-License-Identifier: Apache-2.0
 * The functions of structs.h for each struct of structs.def. Next: structs.c, what they do. */
#include "api/model/structs.h"

#include <stddef.h>

#include "lacuna/array.h"
#include "lacuna/bench.h"
#include "lacuna/calibration.h"
#include "lacuna/compare.h"
#include "lacuna/data.h"
#include "lacuna/engine.h"
#include "lacuna/eval.h"
#include "lacuna/finetune.h"
#include "lacuna/infer.h"
#include "lacuna/mask.h"
#include "lacuna/model.h"
#include "lacuna/pack.h"
#include "lacuna/page.h"
#include "lacuna/plan.h"
#include "lacuna/pretrained.h"
#include "lacuna/process_group.h"
#include "lacuna/prune.h"
#include "lacuna/quantization.h"
#include "lacuna/session.h"
#include "lacuna/train.h"

#define TYPE(name, last, has_defaults)                                                     \
  (&(const laci_struct_type){"lac_" #name, sizeof(lac_##name),                             \
                             offsetof(lac_##name, last) + sizeof(((lac_##name *)0)->last), \
                             has_defaults})
#define FUNCTIONS(name, last, has_defaults, first)                                         \
  lac_status laci_take_##name(const lac_##name *given, lac_##name *own, lac_error *err) {  \
    *own = first;                                                                          \
    return laci_struct_copy_from_caller(TYPE(name, last, has_defaults), given, own, err);  \
  }                                                                                        \
  lac_status laci_check_struct_##name(const lac_##name *given, lac_error *err) {           \
    return given ? laci_struct_check(TYPE(name, last, has_defaults), given, err) : LAC_OK; \
  }                                                                                        \
  void laci_give_##name(const lac_##name *own, lac_##name *given) {                        \
    if (given) laci_struct_copy_to_caller(TYPE(name, last, has_defaults), own, given);     \
  }
#define LAC_OPTIONS(name, last) FUNCTIONS(name, last, true, lac_##name##_default())
#define LAC_SIZED_STRUCT(name, last) FUNCTIONS(name, last, false, (lac_##name)LAC_SIZED(lac_##name))
#include "api/model/structs.def"
