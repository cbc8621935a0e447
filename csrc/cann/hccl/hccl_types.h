// Programs include this name for the types of HCCL; everything is declared in one file here.

#ifndef ADASUM_CANN_HCCL_HCCL_TYPES_H
#define ADASUM_CANN_HCCL_HCCL_TYPES_H

#include "hccl/hccl.h"

#endif
