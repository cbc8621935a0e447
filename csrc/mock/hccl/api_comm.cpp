// The exported calls about communicators.

#include <set>

#include "creation.h"

using namespace mock;

namespace {

// The way for a rank that is not in a sub-communicator to say so: no list, and this id.
constexpr uint64_t NOT_A_MEMBER = 0xffffffff;

__attribute__((constructor)) void stay_loaded() { keep_library_of(reinterpret_cast<void *>(&stay_loaded)); }

} // namespace

// One text for both libraries: it is how a client tells the mock from the vendor's.
extern "C" ASCEND_MOCK_SHARED const char *adasum_mock_version(void) { return ASCEND_MOCK_VERSION; }

HcclResult HcclGetRootInfo(HcclRootInfo *rootInfo) {
    return guarded("HcclGetRootInfo", [&] {
        require(rootInfo, "rootInfo");
        make_root_info(rootInfo);
    });
}

HcclResult HcclCommInitRootInfo(uint32_t nRanks, const HcclRootInfo *rootInfo, uint32_t rank, HcclComm *comm) {
    return guarded("HcclCommInitRootInfo", [&] {
        require(rootInfo, "rootInfo");
        require(comm, "comm");
        *comm = publish(create_from_root_info(*rootInfo, nRanks, rank, environment_settings()));
    });
}

HcclResult HcclCommInitRootInfoConfig(uint32_t nRanks, const HcclRootInfo *rootInfo, uint32_t rank,
                                      const HcclCommConfig *config, HcclComm *comm) {
    return guarded("HcclCommInitRootInfoConfig", [&] {
        require(rootInfo, "rootInfo");
        require(comm, "comm");
        *comm = publish(create_from_root_info(*rootInfo, nRanks, rank, config_settings(config)));
    });
}

HcclResult HcclCommInitClusterInfo(const char *clusterInfo, uint32_t rank, HcclComm *comm) {
    return guarded("HcclCommInitClusterInfo", [&] {
        require(clusterInfo, "clusterInfo");
        require(comm, "comm");
        *comm = publish(create_from_table(clusterInfo, rank, environment_settings(), false));
    });
}

HcclResult HcclCommInitClusterInfoConfig(const char *clusterInfo, uint32_t rank, HcclCommConfig *config,
                                         HcclComm *comm) {
    return guarded("HcclCommInitClusterInfoConfig", [&] {
        require(clusterInfo, "clusterInfo");
        require(comm, "comm");
        *comm = publish(create_from_table(clusterInfo, rank, config_settings(config), true));
    });
}

HcclResult HcclCreateSubCommConfig(HcclComm *comm, uint32_t rankNum, uint32_t *rankIds, uint64_t subCommId,
                                   uint32_t subCommRankId, HcclCommConfig *config, HcclComm *subComm) {
    return guarded("HcclCreateSubCommConfig", [&] {
        require(comm, "comm");
        const std::shared_ptr<Comm> parent = find_comm(*comm);
        if (rankIds == nullptr || subCommId == NOT_A_MEMBER) {
            if (rankIds == nullptr && subCommId == NOT_A_MEMBER) {
                return;
            }
            fault(HCCL_E_PARA, "EI0003: a rank that is no member passes rankIds NULL and subCommId 0xFFFFFFFF, not one "
                               "of them");
        }
        require(config, "config");
        require(subComm, "subComm");
        const std::vector<uint32_t> ranks(rankIds, rankIds + rankNum);
        *subComm = publish(create_sub_comm(*parent, ranks, subCommId, subCommRankId, config_settings(config)));
    });
}

HcclResult HcclCommDestroy(HcclComm comm) {
    return guarded("HcclCommDestroy", [&] {
        if (comm == nullptr) {
            warn_once("An empty comm given, skip destroy.");
            return;
        }
        find_comm(comm)->destroy();
        unpublish(comm);
    });
}

// Number of the first setting that is not honoured; later versions honour more.
uint32_t HcclGetCommConfigCapability(void) {
    const int version = cann_version();
    if (version >= 900) {
        return HCCL_COMM_CONFIG_RESERVED;
    }
    return version >= 805 ? HCCL_COMM_CONFIG_ACLGRAPH_ZEROCOPY_ENABLE : HCCL_COMM_CONFIG_WORLD_RANKID;
}

HcclResult HcclGetCommName(HcclComm comm, char *commName) {
    return guarded("HcclGetCommName", [&] {
        const std::shared_ptr<Comm> found = find_comm(comm);
        require(commName, "commName");
        copy_text(commName, COMM_NAME_MAX_LENGTH, found->plan().name);
    });
}

HcclResult HcclGetRankSize(HcclComm comm, uint32_t *rankSize) {
    return guarded("HcclGetRankSize", [&] {
        const std::shared_ptr<Comm> found = find_comm(comm);
        require(rankSize, "rankSize");
        *rankSize = found->size();
    });
}

HcclResult HcclGetRankId(HcclComm comm, uint32_t *rank) {
    return guarded("HcclGetRankId", [&] {
        const std::shared_ptr<Comm> found = find_comm(comm);
        require(rank, "rank");
        *rank = found->rank();
    });
}

HcclResult HcclCommInitAll(uint32_t ndev, int32_t *devices, HcclComm *comms) {
    return guarded("HcclCommInitAll", [&] {
        if (ndev == 0) {
            fault(HCCL_E_PARA, "EI0003: ndev is 0");
        }
        require(comms, "comms");
        require(devices, "devices");
        const std::vector<int32_t> list(devices, devices + ndev);
        const std::set<int32_t> different(list.begin(), list.end());
        if (different.size() != list.size()) {
            fault(HCCL_E_PARA, "EI0003: Duplicate device id exist in the device list.");
        }
        if (*different.begin() < 0 || *different.rbegin() >= static_cast<int32_t>(device_count())) {
            fault(HCCL_E_PARA, "EI0003: devices holds one that does not exist");
        }
        create_for_devices(list, comms);
    });
}

// A suspended communicator takes no operations. What is queued goes on, as that of the vendor's host does.
HcclResult HcclCommSuspend(HcclComm comm) {
    return guarded("HcclCommSuspend", [&] { find_comm(comm)->suspended = true; });
}

// Does not mend a communicator that has failed: its ranks are no longer in step.
HcclResult HcclCommResume(HcclComm comm) {
    return guarded("HcclCommResume", [&] {
        const std::shared_ptr<Comm> found = find_comm(comm);
        found->check_failed();
        found->suspended = false;
    });
}

HcclResult HcclSetConfig(HcclConfig config, HcclConfigValue configValue) {
    return guarded("HcclSetConfig", [&] {
        if (config != HCCL_DETERMINISTIC) {
            fault(HCCL_E_PARA, "EI0003: no setting has number %d", static_cast<int>(config));
        }
        set_process_determinism(configValue.value);
    });
}

HcclResult HcclGetConfig(HcclConfig config, HcclConfigValue *configValue) {
    return guarded("HcclGetConfig", [&] {
        require(configValue, "configValue");
        if (config != HCCL_DETERMINISTIC) {
            fault(HCCL_E_PARA, "EI0003: no setting has number %d", static_cast<int>(config));
        }
        configValue->value = process_determinism();
    });
}

// Tells of a peer that ended, nothing else: as the vendor's, it is no detector of hangs.
HcclResult HcclGetCommAsyncError(HcclComm comm, HcclResult *asyncError) {
    return guarded("HcclGetCommAsyncError", [&] {
        const std::shared_ptr<Comm> found = find_comm(comm);
        require(asyncError, "asyncError");
        *asyncError = found->asynchronous_error();
    });
}

const char *HcclGetErrorString(HcclResult code) {
    static const char *const TEXTS[] = {
        "no error",           "parameter error",
        "empty pointer",      "memory error",
        "internal error",     "not support feature",
        "not found specific resource", "resource unavailable",
        "call system interface error", "timeout",
        "open file fail",     "tcp connect fail",
        "roce connect fail",  "tcp transfer fail",
        "roce transfer fail", "call runtime api fail",
        "call driver api fail", "call profiling api fail",
        "call cce api fail",  "call network api fail",
        "try again",          "error cqe",
    };
    const auto index = static_cast<size_t>(code);
    return index < sizeof(TEXTS) / sizeof(TEXTS[0]) ? TEXTS[index] : "unknow error"; // as the vendor spells it
}
