// The older layer of HCCL, in libhccl.so: one world per process, made from a rank table, and groups by name. Own text,
// written from interface facts as hccl/hccl.h is.

#ifndef ADASUM_CANN_HCCL_HCOM_H
#define ADASUM_CANN_HCCL_HCOM_H

#include "hccl/hccl.h"

// The group of all ranks: it exists from the start to the end and cannot be made or destroyed.
#define HCCL_WORLD_GROUP "hccl_world_group"

extern "C" {

// `identify` is the rank, as text. The second form takes the content of a rank table.
HCCL_FUNC_VISIBILITY HcclResult HcomInitByFile(const char *rankTablePath, const char *identify);
HCCL_FUNC_VISIBILITY HcclResult HcomInitByRankTable(const char *rankTable, uint32_t rankId);
HCCL_FUNC_VISIBILITY HcclResult HcomDestroy(void);

// Members call, with the same list of world ranks. Before the initialisation a group is only noted.
HCCL_FUNC_VISIBILITY HcclResult HcomCreateGroup(const char *group, uint32_t rankNum, uint32_t *rankIds);
HCCL_FUNC_VISIBILITY HcclResult HcomDestroyGroup(const char *group);

HCCL_FUNC_VISIBILITY HcclResult HcomGetRankSize(const char *group, uint32_t *rankSize);
HCCL_FUNC_VISIBILITY HcclResult HcomGetRankId(const char *group, uint32_t *rankId);
HCCL_FUNC_VISIBILITY HcclResult HcomGetLocalRankSize(const char *group, uint32_t *localRankSize);
HCCL_FUNC_VISIBILITY HcclResult HcomGetLocalRankId(const char *group, uint32_t *localRankId);
HCCL_FUNC_VISIBILITY HcclResult HcomGetWorldRankFromGroupRank(const char *group, uint32_t groupRank,
                                                              uint32_t *worldRank);
HCCL_FUNC_VISIBILITY HcclResult HcomGetGroupRankFromWorldRank(uint32_t worldRank, const char *group,
                                                              uint32_t *groupRank);
HCCL_FUNC_VISIBILITY HcclResult HcomGetCommHandleByGroup(const char *group, HcclComm *commHandle);

} // extern "C"

#endif
