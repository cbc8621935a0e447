// Declarations of the part of HCCL (libhccl.so) that adasum calls and its mock implements. C++ only, as the vendor's.
//
// Own text, written from interface facts: names, values, layouts and signatures as in "HCCL API Reference (C)" of
// CANN 8.1.RC1 to 9.1. A program written for the vendor's hccl/hccl.h compiles against this file as long as it stays
// within these functions. HcclCommConfig is that of CANN 9.0.0; a library honours the fields of the version it is given.

#ifndef ADASUM_CANN_HCCL_HCCL_H
#define ADASUM_CANN_HCCL_HCCL_H

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "acl/acl.h"

#if defined(__GNUC__)
#define HCCL_FUNC_VISIBILITY __attribute__((visibility("default")))
#else
#define HCCL_FUNC_VISIBILITY
#endif

extern "C" {

// A communicator; opaque.
typedef void *HcclComm;

// What every call returns. "HcclResult".
typedef enum {
    HCCL_SUCCESS = 0,
    HCCL_E_PARA = 1,
    HCCL_E_PTR = 2,
    HCCL_E_MEMORY = 3,
    HCCL_E_INTERNAL = 4,
    HCCL_E_NOT_SUPPORT = 5,
    HCCL_E_NOT_FOUND = 6,
    HCCL_E_UNAVAIL = 7,
    HCCL_E_SYSCALL = 8,
    HCCL_E_TIMEOUT = 9,
    HCCL_E_OPEN_FILE_FAILURE = 10,
    HCCL_E_TCP_CONNECT = 11,
    HCCL_E_ROCE_CONNECT = 12,
    HCCL_E_TCP_TRANSFER = 13,
    HCCL_E_ROCE_TRANSFER = 14,
    HCCL_E_RUNTIME = 15,
    HCCL_E_DRV = 16,
    HCCL_E_PROFILING = 17,
    HCCL_E_CCE = 18,
    HCCL_E_NETWORK = 19,
    HCCL_E_AGAIN = 20,
    HCCL_E_REMOTE = 21,
    HCCL_E_SUSPENDING = 22,
    HCCL_E_OPRETRY_FAIL = 23, // 8.5.0
    HCCL_E_OOM = 24,          // 9.0.0
    HCCL_E_IN_STATUS = 1041,  // 9.1.0
    HCCL_E_RESERVED,
} HcclResult;

// Arithmetic of a reduction. "HcclReduceOp".
typedef enum {
    HCCL_REDUCE_SUM = 0,
    HCCL_REDUCE_PROD = 1,
    HCCL_REDUCE_MAX = 2,
    HCCL_REDUCE_MIN = 3,
    HCCL_REDUCE_RESERVED = 255,
} HcclReduceOp;

// Element types. The numbers differ from aclDataType. "HcclDataType".
typedef enum {
    HCCL_DATA_TYPE_INT8 = 0,
    HCCL_DATA_TYPE_INT16 = 1,
    HCCL_DATA_TYPE_INT32 = 2,
    HCCL_DATA_TYPE_FP16 = 3,
    HCCL_DATA_TYPE_FP32 = 4,
    HCCL_DATA_TYPE_INT64 = 5,
    HCCL_DATA_TYPE_UINT64 = 6,
    HCCL_DATA_TYPE_UINT8 = 7,
    HCCL_DATA_TYPE_UINT16 = 8,
    HCCL_DATA_TYPE_UINT32 = 9,
    HCCL_DATA_TYPE_FP64 = 10,
    HCCL_DATA_TYPE_BFP16 = 11,
    HCCL_DATA_TYPE_INT128 = 12,
    HCCL_DATA_TYPE_HIF8 = 14, // 8.5.0, with the three below
    HCCL_DATA_TYPE_FP8E4M3 = 15,
    HCCL_DATA_TYPE_FP8E5M2 = 16,
    HCCL_DATA_TYPE_FP8E8M0 = 17,
    HCCL_DATA_TYPE_RESERVED = 255,
} HcclDataType;

// One half of a batch of sends and receives. "HcclSendRecvItem".
typedef enum {
    HCCL_SEND = 0,
    HCCL_RECV = 1,
    HCCL_SEND_RECV_RESERVED,
} HcclSendRecvType;

typedef struct HcclSendRecvItemDef {
    HcclSendRecvType sendRecvType;
    void *buf;
    uint64_t count;
    HcclDataType dataType;
    uint32_t remoteRank;
} HcclSendRecvItem;

// Settings of the process. "HcclSetConfig"; the value is passed itself, not its address.
typedef enum {
    HCCL_DETERMINISTIC = 0,
    HCCL_ACCELERATOR = 1,
    HCCL_CONFIG_RESERVED,
} HcclConfig;

union HcclConfigValue {
    int32_t value;
};

// Lengths of the fixed fields, and the values that mean "not set, take the environment or the default".
const uint32_t HCCL_ROOT_INFO_BYTES = 4108;
const uint32_t COMM_NAME_MAX_LENGTH = 128;
const uint32_t UDI_MAX_LENGTH = 128;
const uint32_t BUFFER_NAME_MAX_LENGTH = 128;
const uint32_t HCCL_COMM_ALGO_MAX_LENGTH = 1600;
const uint32_t HCCL_COMM_RETRY_ENABLE_MAX_LENGTH = 50;
const uint32_t HCCL_COMM_RETRY_PARAMS_MAX_LENGTH = 128;
const uint32_t HCCL_COMM_CONFIG_INFO_BYTES = 24;
const uint32_t HCCL_COMM_CONFIG_MAGIC_WORD = 0xf0f0f0f0;
const uint32_t HCCL_COMM_CONFIG_VERSION = 10;
const uint32_t HCCL_COMM_DEFAULT_BUFFSIZE = 200;
const uint32_t HCCL_COMM_BUFFSIZE_CONFIG_NOT_SET = 0xffffffff;
const uint32_t HCCL_COMM_DEFAULT_DETERMINISTIC = 0;
const uint32_t HCCL_COMM_DETERMINISTIC_CONFIG_NOT_SET = 0xffffffff;
const uint32_t HCCL_COMM_DEFAULT_OP_EXPANSION_MODE = 0;
const uint32_t HCCL_COMM_TRAFFIC_CLASS_CONFIG_NOT_SET = 0xffffffff;
const uint32_t HCCL_COMM_SERVICE_LEVEL_CONFIG_NOT_SET = 0xffffffff;
const int32_t HCCL_COMM_EXECTIMEOUT_CONFIG_NOT_SET = -1;
const uint32_t HCCL_COMM_QOS_CONFIG_NOT_SET = 0xffffffff;

// What rank 0 hands to the others so that they find it. "HcclGetRootInfo".
typedef struct HcclRootInfoDef {
    char internal[HCCL_ROOT_INFO_BYTES];
} HcclRootInfo;

// Settings of one communicator. `reserved` holds size_t size, u32 magic word, u32 version, u64 zero. "HcclCommConfig".
typedef struct HcclCommConfigDef {
    char reserved[HCCL_COMM_CONFIG_INFO_BYTES];
    uint32_t hcclBufferSize;
    uint32_t hcclDeterministic;
    char hcclCommName[COMM_NAME_MAX_LENGTH];
    char hcclUdi[UDI_MAX_LENGTH];
    uint32_t hcclOpExpansionMode;
    uint32_t hcclRdmaTrafficClass;
    uint32_t hcclRdmaServiceLevel;
    uint32_t hcclWorldRankID;
    uint64_t hcclJobID;
    uint8_t aclGraphZeroCopyEnable;
    int32_t hcclExecTimeOut;
    char hcclAlgo[HCCL_COMM_ALGO_MAX_LENGTH];
    char hcclRetryEnable[HCCL_COMM_RETRY_ENABLE_MAX_LENGTH];
    char hcclRetryParams[HCCL_COMM_RETRY_PARAMS_MAX_LENGTH];
    char hcclBufferName[BUFFER_NAME_MAX_LENGTH];
    uint32_t hcclQos;
} HcclCommConfig;

// A library honours setting N if N is below what "HcclGetCommConfigCapability" returns.
typedef enum {
    HCCL_COMM_CONFIG_BUFFER_SIZE = 0,
    HCCL_COMM_CONFIG_DETERMINISTIC = 1,
    HCCL_COMM_CONFIG_COMM_NAME = 2,
    HCCL_COMM_CONFIG_OP_EXPANSION_MODE = 3,
    HCCL_COMM_CONFIG_SUPPORT_INIT_BY_ENV = 4,
    HCCL_COMM_CONFIG_WORLD_RANKID = 5,             // 8.5.0
    HCCL_COMM_CONFIG_JOBID = 6,                    // 8.5.0
    HCCL_COMM_CONFIG_ACLGRAPH_ZEROCOPY_ENABLE = 7, // 9.0.0, with the four below
    HCCL_COMM_CONFIG_EXEC_TIMEOUT = 8,
    HCCL_COMM_CONFIG_ALGO = 9,
    HCCL_COMM_CONFIG_RETRY = 10,
    HCCL_COMM_CONFIG_BUFFER_NAME = 11,
    HCCL_COMM_CONFIG_RESERVED,
} HcclCommConfigCapability;

// Communicators: "Communicator management".
HCCL_FUNC_VISIBILITY HcclResult HcclGetRootInfo(HcclRootInfo *rootInfo);
HCCL_FUNC_VISIBILITY HcclResult HcclCommInitRootInfo(uint32_t nRanks, const HcclRootInfo *rootInfo, uint32_t rank,
                                                     HcclComm *comm);
HCCL_FUNC_VISIBILITY HcclResult HcclCommInitRootInfoConfig(uint32_t nRanks, const HcclRootInfo *rootInfo, uint32_t rank,
                                                           const HcclCommConfig *config, HcclComm *comm);
HCCL_FUNC_VISIBILITY HcclResult HcclCommInitClusterInfo(const char *clusterInfo, uint32_t rank, HcclComm *comm);
HCCL_FUNC_VISIBILITY HcclResult HcclCommInitClusterInfoConfig(const char *clusterInfo, uint32_t rank,
                                                              HcclCommConfig *config, HcclComm *comm);
HCCL_FUNC_VISIBILITY HcclResult HcclCreateSubCommConfig(HcclComm *comm, uint32_t rankNum, uint32_t *rankIds,
                                                        uint64_t subCommId, uint32_t subCommRankId,
                                                        HcclCommConfig *config, HcclComm *subComm);
HCCL_FUNC_VISIBILITY HcclResult HcclCommInitAll(uint32_t ndev, int32_t *devices, HcclComm *comms);
HCCL_FUNC_VISIBILITY HcclResult HcclCommDestroy(HcclComm comm);
HCCL_FUNC_VISIBILITY HcclResult HcclCommSuspend(HcclComm comm);
HCCL_FUNC_VISIBILITY HcclResult HcclCommResume(HcclComm comm);
HCCL_FUNC_VISIBILITY HcclResult HcclSetConfig(HcclConfig config, HcclConfigValue configValue);
HCCL_FUNC_VISIBILITY HcclResult HcclGetConfig(HcclConfig config, HcclConfigValue *configValue);
HCCL_FUNC_VISIBILITY uint32_t HcclGetCommConfigCapability(void);
HCCL_FUNC_VISIBILITY HcclResult HcclGetCommName(HcclComm comm, char *commName);
HCCL_FUNC_VISIBILITY HcclResult HcclGetRankSize(HcclComm comm, uint32_t *rankSize);
HCCL_FUNC_VISIBILITY HcclResult HcclGetRankId(HcclComm comm, uint32_t *rank);
HCCL_FUNC_VISIBILITY HcclResult HcclBarrier(HcclComm comm, aclrtStream stream);
HCCL_FUNC_VISIBILITY const char *HcclGetErrorString(HcclResult code);
HCCL_FUNC_VISIBILITY HcclResult HcclGetCommAsyncError(HcclComm comm, HcclResult *asyncError);

// Point to point: "HcclSend", "HcclRecv", "HcclBatchSendRecv". Ranks count within the communicator.
HCCL_FUNC_VISIBILITY HcclResult HcclSend(void *sendBuf, uint64_t count, HcclDataType dataType, uint32_t destRank,
                                         HcclComm comm, aclrtStream stream);
HCCL_FUNC_VISIBILITY HcclResult HcclRecv(void *recvBuf, uint64_t count, HcclDataType dataType, uint32_t srcRank,
                                         HcclComm comm, aclrtStream stream);
HCCL_FUNC_VISIBILITY HcclResult HcclBatchSendRecv(HcclSendRecvItem *sendRecvInfo, uint32_t itemNum, HcclComm comm,
                                                  aclrtStream stream);

// What a thread calls between the two is done when the group ends, sends and receives as batches. "HcclGroupStart", 9.0.0.
HCCL_FUNC_VISIBILITY HcclResult HcclGroupStart(void);
HCCL_FUNC_VISIBILITY HcclResult HcclGroupEnd(void);
HCCL_FUNC_VISIBILITY HcclResult HcclGroupStatusGet(bool *inGroup);

// Collectives: "Collective communication". They enqueue and return; counts are elements.
HCCL_FUNC_VISIBILITY HcclResult HcclAllReduce(void *sendBuf, void *recvBuf, uint64_t count, HcclDataType dataType,
                                              HcclReduceOp op, HcclComm comm, aclrtStream stream);
HCCL_FUNC_VISIBILITY HcclResult HcclAllGather(void *sendBuf, void *recvBuf, uint64_t sendCount, HcclDataType dataType,
                                              HcclComm comm, aclrtStream stream);
HCCL_FUNC_VISIBILITY HcclResult HcclReduceScatter(void *sendBuf, void *recvBuf, uint64_t recvCount,
                                                  HcclDataType dataType, HcclReduceOp op, HcclComm comm,
                                                  aclrtStream stream);
HCCL_FUNC_VISIBILITY HcclResult HcclBroadcast(void *buf, uint64_t count, HcclDataType dataType, uint32_t root,
                                              HcclComm comm, aclrtStream stream);
HCCL_FUNC_VISIBILITY HcclResult HcclReduce(void *sendBuf, void *recvBuf, uint64_t count, HcclDataType dataType,
                                           HcclReduceOp op, uint32_t root, HcclComm comm, aclrtStream stream);
HCCL_FUNC_VISIBILITY HcclResult HcclScatter(void *sendBuf, void *recvBuf, uint64_t recvCount, HcclDataType dataType,
                                            uint32_t root, HcclComm comm, aclrtStream stream);
HCCL_FUNC_VISIBILITY HcclResult HcclAlltoAll(const void *sendBuf, uint64_t sendCount, HcclDataType sendType,
                                             const void *recvBuf, uint64_t recvCount, HcclDataType recvType,
                                             HcclComm comm, aclrtStream stream);

// Counts and displacements are arrays of uint64_t in host memory, one entry per rank, in elements.
HCCL_FUNC_VISIBILITY HcclResult HcclAlltoAllV(const void *sendBuf, const void *sendCounts, const void *sdispls,
                                              HcclDataType sendType, const void *recvBuf, const void *recvCounts,
                                              const void *rdispls, HcclDataType recvType, HcclComm comm,
                                              aclrtStream stream);
HCCL_FUNC_VISIBILITY HcclResult HcclAlltoAllVC(const void *sendBuf, const void *sendCountMatrix, HcclDataType sendType,
                                               const void *recvBuf, HcclDataType recvType, HcclComm comm,
                                               aclrtStream stream);
HCCL_FUNC_VISIBILITY HcclResult HcclAllGatherV(void *sendBuf, uint64_t sendCount, void *recvBuf, const void *recvCounts,
                                               const void *recvDispls, HcclDataType dataType, HcclComm comm,
                                               aclrtStream stream);
HCCL_FUNC_VISIBILITY HcclResult HcclReduceScatterV(void *sendBuf, const void *sendCounts, const void *sendDispls,
                                                   void *recvBuf, uint64_t recvCount, HcclDataType dataType,
                                                   HcclReduceOp op, HcclComm comm, aclrtStream stream);

// Memory that a communicator may use without copies, and the network cards that it uses.
HCCL_FUNC_VISIBILITY HcclResult HcclCommSetMemoryRange(HcclComm comm, void *baseVirPtr, size_t size, size_t alignment,
                                                       uint64_t flags);
HCCL_FUNC_VISIBILITY HcclResult HcclCommUnsetMemoryRange(HcclComm comm, void *baseVirPtr);
HCCL_FUNC_VISIBILITY HcclResult HcclCommActivateCommMemory(HcclComm comm, void *virPtr, size_t size, size_t offset,
                                                           aclrtDrvMemHandle handle, uint64_t flags);
HCCL_FUNC_VISIBILITY HcclResult HcclCommDeactivateCommMemory(HcclComm comm, void *virPtr);
HCCL_FUNC_VISIBILITY HcclResult HcclCommWorkingDevNicSet(HcclComm comm, uint32_t *ranks, bool *useBackup,
                                                         uint32_t nRanks);
}

// Fills in the header and the values that mean "not set". Not exported by any library: compiled into each caller.
inline void HcclCommConfigInit(HcclCommConfig *config) {
    if (config == nullptr) {
        return;
    }
    struct {
        size_t size;
        uint32_t magicWord;
        uint32_t version;
        uint64_t reserved;
    } const header = {sizeof(HcclCommConfig), HCCL_COMM_CONFIG_MAGIC_WORD, HCCL_COMM_CONFIG_VERSION, 0};
    static_assert(sizeof(header) == HCCL_COMM_CONFIG_INFO_BYTES, "HcclCommConfig.reserved");

    std::memset(config, 0, sizeof(*config));
    std::memcpy(config->reserved, &header, sizeof(header));
    config->hcclBufferSize = HCCL_COMM_BUFFSIZE_CONFIG_NOT_SET;
    config->hcclDeterministic = HCCL_COMM_DETERMINISTIC_CONFIG_NOT_SET;
    config->hcclOpExpansionMode = HCCL_COMM_DEFAULT_OP_EXPANSION_MODE;
    config->hcclRdmaTrafficClass = HCCL_COMM_TRAFFIC_CLASS_CONFIG_NOT_SET;
    config->hcclRdmaServiceLevel = HCCL_COMM_SERVICE_LEVEL_CONFIG_NOT_SET;
    config->hcclExecTimeOut = HCCL_COMM_EXECTIMEOUT_CONFIG_NOT_SET;
    config->hcclQos = HCCL_COMM_QOS_CONFIG_NOT_SET;
}

// The layouts that cross the library border, measured on the vendor's headers.
static_assert(sizeof(HcclRootInfo) == 4108 && alignof(HcclRootInfo) == 1, "HcclRootInfo");
static_assert(sizeof(HcclSendRecvItem) == 32, "HcclSendRecvItem");
static_assert(offsetof(HcclSendRecvItem, buf) == 8, "HcclSendRecvItem.buf");
static_assert(offsetof(HcclSendRecvItem, count) == 16, "HcclSendRecvItem.count");
static_assert(offsetof(HcclSendRecvItem, dataType) == 24, "HcclSendRecvItem.dataType");
static_assert(offsetof(HcclSendRecvItem, remoteRank) == 28, "HcclSendRecvItem.remoteRank");
static_assert(sizeof(HcclCommConfig) == 2232 && alignof(HcclCommConfig) == 8, "HcclCommConfig");
static_assert(offsetof(HcclCommConfig, hcclBufferSize) == 24, "HcclCommConfig.hcclBufferSize");
static_assert(offsetof(HcclCommConfig, hcclCommName) == 32, "HcclCommConfig.hcclCommName");
static_assert(offsetof(HcclCommConfig, hcclUdi) == 160, "HcclCommConfig.hcclUdi");
static_assert(offsetof(HcclCommConfig, hcclOpExpansionMode) == 288, "HcclCommConfig.hcclOpExpansionMode");
static_assert(offsetof(HcclCommConfig, hcclWorldRankID) == 300, "HcclCommConfig.hcclWorldRankID");
static_assert(offsetof(HcclCommConfig, hcclJobID) == 304, "HcclCommConfig.hcclJobID");
static_assert(offsetof(HcclCommConfig, aclGraphZeroCopyEnable) == 312, "HcclCommConfig.aclGraphZeroCopyEnable");
static_assert(offsetof(HcclCommConfig, hcclExecTimeOut) == 316, "HcclCommConfig.hcclExecTimeOut");
static_assert(offsetof(HcclCommConfig, hcclAlgo) == 320, "HcclCommConfig.hcclAlgo");
static_assert(offsetof(HcclCommConfig, hcclRetryEnable) == 1920, "HcclCommConfig.hcclRetryEnable");
static_assert(offsetof(HcclCommConfig, hcclRetryParams) == 1970, "HcclCommConfig.hcclRetryParams");
static_assert(offsetof(HcclCommConfig, hcclBufferName) == 2098, "HcclCommConfig.hcclBufferName");
static_assert(offsetof(HcclCommConfig, hcclQos) == 2228, "HcclCommConfig.hcclQos");

#endif
