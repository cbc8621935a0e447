// The Ascend C interface of the kernels: the vendor's header on the device, a CPU twin under ADASUM_TWIN (the fast one;
// with ADASUM_TWIN_STRICT the one for tests, which refuses what the hardware would; with ADASUM_TWIN_UNFUSED, for a test, the
// fast one without the steps that it fuses).
//
// The kernels may use only what the twin declares, so that whatever compiles here compiles there.
#ifndef ADASUM_ASCENDC_H
#define ADASUM_ASCENDC_H

#include <cstdint>

#if defined(ADASUM_TWIN_STRICT)
#include "strict/kernel_operator.h"
#elif defined(ADASUM_TWIN)
#include "twin/kernel_operator.h"
#else
// Tensors without the shapes that nobody reads here: each holds 64 bytes less of a stack of 16 KB (arch 1001).
#define K_MAX_SHAPE_DIM 0
#include "kernel_operator.h"
#endif

#if defined(ADASUM_TWIN) && !defined(ADASUM_TWIN_STRICT) && !defined(ADASUM_TWIN_UNFUSED)
#include "twin/fused.h"
#include "twin/fused_gram.h"
#include "twin/fused_gram_exact.h"
#include "twin/fused_gram_many.h"
#endif

#endif
