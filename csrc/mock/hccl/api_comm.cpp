// The exported calls about communicators.

#include <set>

#include "hccl/hccl_comm.h"

#include "config.h"
#include "creation.h"
#include "group.h"

using namespace mock;

namespace {

// The way for a rank that is not in a sub-communicator to say so: no list, and this id.
constexpr uint64_t NOT_A_MEMBER = 0xffffffff;

// In the vendor's order. Source: hcomm, src/legacy/ascend910/framework/op_base/src/op_base.cc:2010-2030 and :2148-2172.
void check_root_info_call(uint32_t size, const HcclRootInfo *info, uint32_t rank, const HcclComm *comm) {
    require_device();
    if (size == 0 || rank >= size) {
        fault(HCCL_E_PARA, "EI0003: rank %u and nRanks %u: nRanks must be 1 or more, rank below it", rank, size);
    }
    require(comm, "comm");
    require(info, "rootInfo");
}

void run_or_defer(const std::function<void()> &run) {
    if (!defer_job(run)) {
        run();
    }
}

__attribute__((constructor)) void stay_loaded() { keep_library_of(reinterpret_cast<void *>(&stay_loaded)); }

} // namespace

// One text for both libraries: it is how a client tells the mock from the vendor's.
extern "C" ASCEND_MOCK_SHARED const char *adasum_mock_version(void) { return ASCEND_MOCK_VERSION; }

HcclResult HcclGetRootInfo(HcclRootInfo *rootInfo) {
    return guarded("HcclGetRootInfo", [&] {
        require_device();
        require(rootInfo, "rootInfo");
        refuse_if(Deviation::RootInfoRefused, HCCL_E_INTERNAL, "root info");
        make_root_info(rootInfo);
    });
}

// In a group a communicator is made when the group ends, and so it is with the ends of communicators. What the pointers
// lead to is read then.
HcclResult HcclCommInitRootInfo(uint32_t nRanks, const HcclRootInfo *rootInfo, uint32_t rank, HcclComm *comm) {
    return guarded("HcclCommInitRootInfo", [&] {
        const auto run = [=] {
            check_root_info_call(nRanks, rootInfo, rank, comm);
            *comm = publish(create_from_root_info(*rootInfo, nRanks, rank, environment_settings()));
        };
        run_or_defer(run);
    });
}

HcclResult HcclCommInitRootInfoConfig(uint32_t nRanks, const HcclRootInfo *rootInfo, uint32_t rank,
                                      const HcclCommConfig *config, HcclComm *comm) {
    return guarded("HcclCommInitRootInfoConfig", [&] {
        const auto run = [=] {
            check_root_info_call(nRanks, rootInfo, rank, comm);
            if (config == nullptr && family() != Family::Ascend950) {
                fault(HCCL_E_PARA, "EI0003: config is NULL");
            }
            refuse_if(Deviation::WorldRefused, HCCL_E_INTERNAL, "the world");
            *comm = publish(create_from_root_info(*rootInfo, nRanks, rank, config_settings(config, For::RootInfo)));
        };
        run_or_defer(run);
    });
}

HcclResult HcclCommInitClusterInfo(const char *clusterInfo, uint32_t rank, HcclComm *comm) {
    return guarded("HcclCommInitClusterInfo", [&] {
        const auto run = [=] {
            require_device();
            require(clusterInfo, "clusterInfo");
            require(comm, "comm");
            *comm = publish(create_from_table(clusterInfo, rank, Origin::Table, environment_settings(), false));
        };
        run_or_defer(run);
    });
}

HcclResult HcclCommInitClusterInfoConfig(const char *clusterInfo, uint32_t rank, HcclCommConfig *config,
                                         HcclComm *comm) {
    return guarded("HcclCommInitClusterInfoConfig", [&] {
        const auto run = [=] {
            require_device();
            require(clusterInfo, "clusterInfo");
            require(comm, "comm");
            *comm =
                publish(create_from_table(clusterInfo, rank, Origin::Table, config_settings(config, For::Table), true));
        };
        run_or_defer(run);
    });
}

HcclResult HcclCreateSubCommConfig(HcclComm *comm, uint32_t rankNum, uint32_t *rankIds, uint64_t subCommId,
                                   uint32_t subCommRankId, HcclCommConfig *config, HcclComm *subComm) {
    return guarded("HcclCreateSubCommConfig", [&] {
        require_device();
        require(subComm, "subComm");
        if (rankIds == nullptr || subCommId == NOT_A_MEMBER) {
            if (rankIds == nullptr && subCommId == NOT_A_MEMBER) {
                return;
            }
            fault(HCCL_E_PARA, "EI0003: a rank that is no member passes rankIds NULL and subCommId 0xFFFFFFFF, not one "
                               "of them");
        }
        if (subCommRankId >= rankNum) {
            fault(HCCL_E_PARA, "EI0003: subCommRankId %u must be below rankNum %u", subCommRankId, rankNum);
        }
        require(config, "config");
        require(comm, "comm");
        const std::shared_ptr<Comm> parent = find_comm(*comm);
        const std::vector<uint32_t> ranks(rankIds, rankIds + rankNum);
        Settings settings = config_settings(config, For::Part);
        write_back(config);
        refuse_if(Deviation::SubRefused, HCCL_E_INTERNAL, "the sub-communicator");
        *subComm = publish(create_sub_comm(*parent, ranks, subCommId, subCommRankId, std::move(settings)));
    });
}

// Looks for the communicator among those of the thread's device.
HcclResult HcclCommDestroy(HcclComm comm) {
    return guarded("HcclCommDestroy", [&] {
        const auto run = [=] {
            const int device = require_device();
            if (comm == nullptr) {
                warn_once("An empty comm given, skip destroy.");
                return;
            }
            const std::shared_ptr<Comm> found = find_comm(comm);
            if (found->device() != device) {
                fault(HCCL_E_PARA, "EI0003: %s belongs to device %d, this thread works on device %d",
                      found->self().c_str(), found->device(), device);
            }
            found->destroy();
            unpublish(comm);
        };
        run_or_defer(run);
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

HcclResult HcclCommGetHandleWithName(const char *commName, HcclComm *comm) {
    return guarded("HcclCommGetHandleWithName", [&] {
        require(commName, "commName");
        require(comm, "comm");
        *comm = find_named(commName);
    });
}

// Of the A2 and the 950 only.
HcclResult HcclCommGetStatus(const char *commId, HcclCommStatus *status) {
    return guarded("HcclCommGetStatus", [&] {
        require(commId, "commId");
        require(status, "status");
        const std::shared_ptr<Comm> found = find_comm(find_named(commId));
        if (family() != Family::Ascend910B && family() != Family::Ascend950) {
            fault(HCCL_E_NOT_SUPPORT, "EI9999: this processor does not tell the state of communicators");
        }
        *status = found->suspended ? HCCL_COMM_STATUS_SUSPENDING : HCCL_COMM_STATUS_READY;
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
        *rank = found->rank() + (deviates(Deviation::RankWrong) ? 1 : 0);
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

// Tells of a peer on the network that ended, nothing else: as the vendor's, it is no detector of hangs. The 950 writes nothing.
HcclResult HcclGetCommAsyncError(HcclComm comm, HcclResult *asyncError) {
    return guarded("HcclGetCommAsyncError", [&] {
        const std::shared_ptr<Comm> found = find_comm(comm);
        require(asyncError, "asyncError");
        if (family() != Family::Ascend950) {
            *asyncError = found->asynchronous_error();
        }
    });
}

const char *HcclGetErrorString(HcclResult code) {
    static const char *const TEXTS[] = {
        "no error",
        "parameter error",
        "empty pointer",
        "memory error",
        "internal error",
        "not support feature",
        "not found specific resource",
        "resource unavailable",
        "call system interface error",
        "timeout",
        "open file fail",
        "tcp connect fail",
        "roce connect fail",
        "tcp transfer fail",
        "roce transfer fail",
        "call runtime api fail",
        "call driver api fail",
        "call profiling api fail",
        "call cce api fail",
        "call network api fail",
        "try again",
        "error cqe",
    };
    const auto index = static_cast<size_t>(code);
    return index < sizeof(TEXTS) / sizeof(TEXTS[0]) ? TEXTS[index] : "unknow error"; // as the vendor spells it
}
