// The Ascend C interface of the kernels: the vendor's header on the device, its CPU twin under ADASUM_TWIN.
//
// The kernels may use only what the twin declares, so that whatever compiles here compiles there.
#ifndef ADASUM_ASCENDC_H
#define ADASUM_ASCENDC_H

#include <cstdint>

#ifdef ADASUM_TWIN
#include "twin/kernel_operator.h"
#else
#include "kernel_operator.h"
#endif

#endif
