// HcclCommConfig, HcclSetConfig and the variables of the environment as programs see them.

#include "conform.h"

using namespace harness;

namespace {

// --- determinism of the process

// HcclSetConfig sets determinism of the process: 0 and 1, and 2 (strict) on the A2.
// Source: hcomm src/legacy/ascend910/framework/op_base/src/op_base.cc:2300.
HcclResult set_determinism(int32_t value) {
    HcclConfigValue wanted;
    wanted.value = value;
    return HcclSetConfig(HCCL_DETERMINISTIC, wanted);
}
int32_t determinism() {
    HcclConfigValue value;
    value.value = -7;
    OK(HcclGetConfig(HCCL_DETERMINISTIC, &value));
    return value.value;
}
const Behaviour set_config("set-config", [](const Rank &) {
    CHECK(determinism() == 0);
    OK(set_determinism(1));
    CHECK(determinism() == 1);
    OK(set_determinism(2));
    CHECK(determinism() == 2);
    RETURNS(HCCL_E_PARA, set_determinism(3));
    RETURNS(HCCL_E_PTR, HcclGetConfig(HCCL_DETERMINISTIC, nullptr));
});
// The environment overrules it.
const Behaviour set_config_env("set-config-environment-wins", [](const Rank &) {
    CHECK(determinism() == 1);
    OK(set_determinism(0));
    CHECK(determinism() == 1);
}, {{"HCCL_DETERMINISTIC", "true"}});
void not_strict(const Rank &) {
    RETURNS(HCCL_E_NOT_SUPPORT, set_determinism(2));
    RETURNS(HCCL_E_PARA, set_determinism(-1));
    CHECK(determinism() == 0);
}
const Behaviour set_config_a("set-config-910A-not-strict", not_strict, {{"ASCEND_MOCK_SOC", "Ascend910A"}});
const Behaviour set_config_a3("set-config-A3-not-strict", not_strict, {{"ASCEND_MOCK_SOC", "Ascend910_9391"}});
// The 950 computes deterministically, whatever it is told.
// Source: hcomm src/legacy/ascend950/framework/entrance/op_base/op_base_v2.cc:2991.
const Behaviour set_config_950("set-config-950-has-no-effect", [](const Rank &) {
    OK(set_determinism(0));
    OK(set_determinism(7));
    CHECK(determinism() == 1);
}, {{"ASCEND_MOCK_SOC", "Ascend950PR_9599"}});

// --- configuration

struct Header {
    size_t size;
    uint32_t magic;
    uint32_t version;
    uint64_t reserved;
};

// A client's structure of a version and size; what lies behind the size is rubbish.
HcclResult create_with(uint32_t version, size_t size, const std::function<void(HcclCommConfig *)> &change,
                       HcclComm *comm) {
    std::vector<char> memory(sizeof(HcclCommConfig) + 64, 0x55);
    auto *config = reinterpret_cast<HcclCommConfig *>(memory.data());
    HcclCommConfigInit(config);
    const Header header = {size, HCCL_COMM_CONFIG_MAGIC_WORD, version, 0};
    std::memcpy(config->reserved, &header, sizeof(header));
    change(config);
    std::memset(memory.data() + size, 0x55, memory.size() - size);
    return HcclCommInitClusterInfoConfig(table_path().c_str(), 0, config, comm);
}

std::string name_of(HcclComm comm) {
    char name[128];
    OK(HcclGetCommName(comm, name));
    return name;
}

// One case per layout that vendor headers have had.
struct Layout {
    Layout(const char *name, uint32_t version, size_t size, bool named)
        : behaviour(name, [=](const Rank &) {
              OK(aclrtSetDevice(0));
              HcclComm comm = nullptr;
              OK(create_with(version, size, [](HcclCommConfig *config) {
                  config->hcclBufferSize = 20;
                  std::snprintf(config->hcclCommName, sizeof(config->hcclCommName), "mine");
              }, &comm));
              CHECK(name_of(comm) == (named ? "mine" : "hccl_world_group"));
              OK(HcclCommDestroy(comm));
          }) {}
    Behaviour behaviour;
};
const Layout version_1("config-version-1-32-bytes", 1, 32, false);
const Layout version_2("config-version-2-160-bytes", 2, 160, true);
const Layout version_5("config-version-5-300-bytes", 5, 300, true);
const Layout version_6("config-version-6-312-bytes", 6, 312, true);
const Layout version_10("config-version-10-2232-bytes", 10, 2232, true); // torch_npu 2.7.1
const Layout version_10_large("config-version-10-2240-bytes", 10, 2240, true);
const Layout version_11("config-version-11-newer", 11, 2256, true);

// Fields are honoured by version, not by size: a version 1 in a large structure has no name, a version 0 nothing at all.
// Source: hcomm src/legacy/ascend910/framework/communicator/comm_config.cc:88, :153.
const Layout by_version("config-fields-by-version", 1, 2232, false);
const Layout version_0("config-version-0", 0, 24, false);
// What a version has and the size leaves out is memory of chance there, and refused here.
const Behaviour too_short("config-shorter-than-its-version", [](const Rank &) {
    OK(aclrtSetDevice(0));
    HcclComm comm = nullptr;
    FAILS(HCCL_E_PARA, "fields take", create_with(2, 159, [](HcclCommConfig *) {}, &comm));
    FAILS(HCCL_E_PARA, "fields take", create_with(8, 300, [](HcclCommConfig *) {}, &comm));
});

void config_refused(int code, const char *message, const std::function<void(HcclCommConfig *)> &change) {
    OK(aclrtSetDevice(0));
    HcclComm comm = nullptr;
    FAILS(code, message, create_with(10, sizeof(HcclCommConfig), change, &comm));
}
// A structure without the magic word was not initialised.
const Behaviour magic("config-magic", [](const Rank &) {
    config_refused(HCCL_E_PARA, "Invalid magic word", [](HcclCommConfig *config) { config->reserved[8] = 1; });
});
const Behaviour buffer_0("config-buffer-size-0", [](const Rank &) {
    config_refused(HCCL_E_PARA, "hcclBufferSize", [](HcclCommConfig *config) { config->hcclBufferSize = 0; });
});
const Behaviour deterministic_3("config-deterministic-3", [](const Rank &) {
    config_refused(HCCL_E_PARA, "hcclDeterministic", [](HcclCommConfig *config) { config->hcclDeterministic = 3; });
});
// Strict is for the A2. Source: hcomm src/legacy/ascend910/framework/communicator/comm_config.cc:284.
const Behaviour deterministic_a3("config-deterministic-strict-A3", [](const Rank &) {
    config_refused(HCCL_E_PARA, "hcclDeterministic", [](HcclCommConfig *config) { config->hcclDeterministic = 2; });
}, {{"ASCEND_MOCK_SOC", "Ascend910_9391"}});
// Source: hcomm src/legacy/ascend910/framework/communicator/comm_config.cc:196.
const Behaviour zero_copy("config-zero-copy-2", [](const Rank &) {
    config_refused(HCCL_E_PARA, "aclGraphZeroCopyEnable",
                   [](HcclCommConfig *config) { config->aclGraphZeroCopyEnable = 2; });
});

// hcclAlgo names levels and algorithms that exist, for all operations or for each.
// Source: hcomm src/legacy/ascend910/algorithm/impl/alg_env_config.cc:99, :149, :192, :210, :234.
HcclResult create_with_algorithms(const std::string &text, uint32_t version = 10) {
    HcclComm comm = nullptr;
    const HcclResult code = create_with(version, sizeof(HcclCommConfig), [&](HcclCommConfig *config) {
        std::snprintf(config->hcclAlgo, sizeof(config->hcclAlgo), "%s", text.c_str());
    }, &comm);
    if (code == HCCL_SUCCESS) {
        OK(HcclCommDestroy(comm));
    }
    return code;
}
const Behaviour algorithms("config-algorithms", [](const Rank &) {
    OK(aclrtSetDevice(0));
    OK(create_with_algorithms("level0:NA;level1:ring"));
    OK(create_with_algorithms(" level0:fullmesh ; level1:H-D_R;level2:NHR_V1;level3:AHC_BROKE "));
    OK(create_with_algorithms("allreduce=level0:NA;level1:NB/others=level0:ring"));
    OK(create_with_algorithms("  "));
    OK(create_with_algorithms("nonsense", 7)); // a field of version 8
    for (const char *wrong :
         {"level0", "level4:NA", "level0:best", "level0:NA;level0:ring", ";level0:NA", "level0:NA;",
          "level0:NA;level1:NA;level2:NA;level3:NA;level3:NA", "level0:NA/level1:NA", "allreduce=level0:NA/level1:NA",
          "=level0:NA", "allreduce=", "/level0:NA", "level0:NA/"}) {
        FAILS(HCCL_E_PARA, "hcclAlgo", create_with_algorithms(wrong));
    }
    FAILS(HCCL_E_PARA, "hcclAlgo", create_with_algorithms(std::string(1599, 'a')));
});

// Source: hcomm src/legacy/ascend910/framework/communicator/comm_config.cc:504, :596.
const Behaviour retry("config-retry", [](const Rank &) {
    const auto create = [](const char *levels, const char *params) {
        OK(aclrtSetDevice(0));
        HcclComm comm = nullptr;
        const HcclResult code = create_with(10, sizeof(HcclCommConfig), [&](HcclCommConfig *config) {
            std::snprintf(config->hcclRetryEnable, sizeof(config->hcclRetryEnable), "%s", levels);
            std::snprintf(config->hcclRetryParams, sizeof(config->hcclRetryParams), "%s", params);
        }, &comm);
        if (code == HCCL_SUCCESS) {
            OK(HcclCommDestroy(comm));
        }
        return code;
    };
    OK(create("L1:0, L2:1", "MaxCnt:3, HoldTime:5000, IntervalTime:1000"));
    FAILS(HCCL_E_PARA, "hcclRetryEnable", create(",L1:0", ""));
    FAILS(HCCL_E_PARA, "hcclRetryEnable", create("L0:0,L1:0,L2:0,L2:1", ""));
    FAILS(HCCL_E_PARA, "hcclRetryParams", create("", "MaxCnt:11, HoldTime:5000, IntervalTime:1000"));
    FAILS(HCCL_E_PARA, "hcclRetryParams", create("", "3 times"));
});

// --- the 950

// It reads the client's structure itself: hcclAlgo behind the end of a version 5 that is 300 bytes long, and the traffic class.
// Source: hcomm src/coll_communicator_mgr/config_mgr/coll_comm_config.cc:84, :112.
const Environment ON_950 = {{"ASCEND_MOCK_SOC", "Ascend950PR_9599"}};
HcclResult create_on_950(const std::function<void(HcclCommConfig *)> &change, HcclComm *comm) {
    const World device({0, 1, false}, false);
    HcclRootInfo root;
    OK(HcclGetRootInfo(&root));
    HcclCommConfig config;
    HcclCommConfigInit(&config);
    const Header header = {300, HCCL_COMM_CONFIG_MAGIC_WORD, 5, 0};
    std::memcpy(config.reserved, &header, sizeof(header));
    change(&config);
    const HcclResult code = HcclCommInitRootInfoConfig(1, &root, 0, &config, comm);
    if (code == HCCL_SUCCESS) {
        OK(HcclCommDestroy(*comm));
    }
    return code;
}
const Behaviour reads_on("config-950-reads-behind-the-end", [](const Rank &) {
    HcclComm comm = nullptr;
    OK(create_on_950([](HcclCommConfig *) {}, &comm));
    FAILS(HCCL_E_PARA, "hcclAlgo",
          create_on_950([](HcclCommConfig *config) { std::strcpy(config->hcclAlgo, "rubbish"); }, &comm));
    FAILS(HCCL_E_PARA, "hcclRdmaTrafficClass",
          create_on_950([](HcclCommConfig *config) { config->hcclRdmaTrafficClass = 2; }, &comm));
    FAILS(HCCL_E_PARA, "hcclRdmaServiceLevel",
          create_on_950([](HcclCommConfig *config) { config->hcclRdmaServiceLevel = 8; }, &comm));
    // Stands for the default there.
    OK(create_on_950([](HcclCommConfig *config) { config->hcclBufferSize = 0; }, &comm));
}, ON_950);

// It writes into the configuration of a part of a world, which so serves once: 0 MB are refused the second time.
// Source: hcomm src/legacy/ascend950/framework/entrance/op_base/op_base_v2.cc:950-955, :1007.
const Behaviour writes_back("config-950-is-written-to", [](const Rank &me) {
    const World world(me);
    HcclCommConfig config;
    HcclCommConfigInit(&config);
    HcclComm parent = world.comm;
    HcclComm comm = nullptr;
    uint32_t ranks[] = {0};
    OK(HcclCreateSubCommConfig(&parent, 1, ranks, 1, 0, &config, &comm));
    CHECK(config.hcclBufferSize == 0 && config.hcclDeterministic == 1);
    OK(HcclCommDestroy(comm));
    FAILS(HCCL_E_PARA, "hcclBufferSize", HcclCreateSubCommConfig(&parent, 1, ranks, 2, 0, &config, &comm));
}, ON_950);
const Behaviour writes_nothing("config-A2-is-not-written-to", [](const Rank &me) {
    const World world(me);
    HcclCommConfig config;
    HcclCommConfigInit(&config);
    const HcclCommConfig before = config;
    HcclComm parent = world.comm;
    HcclComm comm = nullptr;
    uint32_t ranks[] = {0};
    OK(HcclCreateSubCommConfig(&parent, 1, ranks, 1, 0, &config, &comm));
    CHECK(std::memcmp(&before, &config, sizeof(config)) == 0);
    OK(HcclCommDestroy(comm));
});

// --- the environment
const Behaviour config_null("config-null", [](const Rank &) {
    OK(aclrtSetDevice(0));
    HcclComm comm = nullptr;
    RETURNS(HCCL_E_PTR, HcclCommInitClusterInfoConfig(table_path().c_str(), 0, nullptr, &comm));
});
// A bad expansion mode only warns.
const Behaviour expansion("config-expansion-mode-warns", [](const Rank &) {
    OK(aclrtSetDevice(0));
    HcclComm comm = nullptr;
    OK(create_with(5, 300, [](HcclCommConfig *config) { config->hcclOpExpansionMode = 99; }, &comm));
    OK(HcclCommDestroy(comm));
});
// A wrong variable of the environment is named: EI0001.
const Behaviour bad_variable("environment-is-checked", [](const Rank &) {
    OK(aclrtSetDevice(0));
    HcclComm comm = nullptr;
    FAILS(HCCL_E_PARA, "EI0001", HcclCommInitClusterInfo(table_path().c_str(), 0, &comm));
    FAILS(HCCL_E_PARA, "HCCL_BUFFSIZE", HcclCommInitClusterInfo(table_path().c_str(), 0, &comm));
}, {{"HCCL_BUFFSIZE", "0"}});

// The limit of operations: seconds with at most two decimal places, from 0 (for ever) to 2147483647.
// Source: hcomm src/legacy/ascend910/platform/common/externalinput.cc:496, :972; externalinput.h:27.
void limit(const std::vector<const char *> &taken, const std::vector<const char *> &refused) {
    OK(aclrtSetDevice(0));
    HcclComm comm = nullptr;
    for (const char *value : taken) {
        setenv("HCCL_EXEC_TIMEOUT", value, 1);
        OK(HcclCommInitClusterInfo(table_path().c_str(), 0, &comm));
        OK(HcclCommDestroy(comm));
    }
    for (const char *value : refused) {
        setenv("HCCL_EXEC_TIMEOUT", value, 1);
        FAILS(HCCL_E_PARA, "HCCL_EXEC_TIMEOUT", HcclCommInitClusterInfo(table_path().c_str(), 0, &comm));
    }
}
const Behaviour execution("environment-execution-limit", [](const Rank &) {
    limit({"0", "200", "300.25", "2147483647"}, {"-1", "1.", ".5", "1.125", "2147483648", "1e3", "+3", "ten", " 3"});
});
// On the 910A from above 0 to 17340, in steps of 68 s.
const Behaviour execution_910a("environment-execution-limit-910A", [](const Rank &) {
    limit({"0.5", "200", "17340"}, {"0", "17340.1", "17341"});
}, {{"ASCEND_MOCK_SOC", "Ascend910A"}});
const Behaviour strict_910a("environment-strict-910A", [](const Rank &) {
    OK(aclrtSetDevice(0));
    HcclComm comm = nullptr;
    // Source: hcomm src/legacy/ascend910/platform/common/externalinput.cc:591.
    RETURNS(HCCL_E_NOT_SUPPORT, HcclCommInitClusterInfo(table_path().c_str(), 0, &comm));
}, {{"ASCEND_MOCK_SOC", "Ascend910A"}, {"HCCL_DETERMINISTIC", "strict"}});

const Behaviour bad_determinism("environment-determinism", [](const Rank &) {
    OK(aclrtSetDevice(0));
    HcclComm comm = nullptr;
    FAILS(HCCL_E_PARA, "HCCL_DETERMINISTIC [perhaps]", HcclCommInitClusterInfo(table_path().c_str(), 0, &comm));
}, {{"HCCL_DETERMINISTIC", "perhaps"}});

} // namespace

int main(int argc, char **argv) { return conform(argc, argv); }
