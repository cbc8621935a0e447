// Programs of CANN 9.1 include this name for communicators. Beside what hccl.h has it finds them by name and tells their state.

#ifndef ADASUM_CANN_HCCL_HCCL_COMM_H
#define ADASUM_CANN_HCCL_HCCL_COMM_H

#include "hccl/hccl.h"

// "HcclCommStatus", as the functions since 9.1.0.
typedef enum {
    HCCL_COMM_STATUS_READY = 0,
    HCCL_COMM_STATUS_SUSPENDING = 1,
    HCCL_COMM_STATUS_INVALID = 254,
    HCCL_COMM_STATUS_RESERVED = 255,
} HcclCommStatus;

extern "C" {
HCCL_FUNC_VISIBILITY HcclResult HcclCommGetHandleWithName(const char *commName, HcclComm *comm);
HCCL_FUNC_VISIBILITY HcclResult HcclCommGetStatus(const char *commId, HcclCommStatus *status);
}

#endif
