/* SPDX-License-Identifier: Apache-2.0
 * Every file that the program writes says which version wrote it, so that the version lies below
 * all rooms. */
#include "lacuna/prune.h"

const char *lac_version(void) { return LAC_VERSION; }
