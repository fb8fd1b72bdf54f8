/* SPDX-License-Identifier: Apache-2.0
 * All of the library's interface.
 *
 * Generators of bindings (cffi, SWIG, bindgen) read it after a preprocessor with
 * LAC_DECLARATIONS_ONLY defined, which leaves out attributes and inline functions. */
#ifndef LACUNA_LACUNA_H
#define LACUNA_LACUNA_H

#include "lacuna/array.h"
#include "lacuna/bench.h"
#include "lacuna/calibration.h"
#include "lacuna/compare.h"
#include "lacuna/context.h"
#include "lacuna/data.h"
#include "lacuna/dtype.h"
#include "lacuna/engine.h"
#include "lacuna/engine_plugin.h"
#include "lacuna/eval.h"
#include "lacuna/finetune.h"
#include "lacuna/infer.h"
#include "lacuna/log.h"
#include "lacuna/mask.h"
#include "lacuna/model.h"
#include "lacuna/pack.h"
#include "lacuna/page.h"
#include "lacuna/plan.h"
#include "lacuna/plugin.h"
#include "lacuna/pretrained.h"
#include "lacuna/process_group.h"
#include "lacuna/prune.h"
#include "lacuna/quantization.h"
#include "lacuna/report.h"
#include "lacuna/run.h"
#include "lacuna/session.h"
#include "lacuna/status.h"
#include "lacuna/tensor_file.h"
#include "lacuna/train.h"
#include "lacuna/version.h"

#endif
