#include "config.h"

#include "algorithms.h"

namespace mock {
namespace {

constexpr uint32_t NOT_SET = 0xffffffff;
constexpr uint32_t NEWEST_VERSION = 10;

struct Header {
    size_t size;
    uint32_t magic;
    uint32_t version;
    uint64_t reserved;
};
static_assert(sizeof(Header) == HCCL_COMM_CONFIG_INFO_BYTES, "HcclCommConfig.reserved");

Header header_of(const HcclCommConfig *client) {
    require(client, "config");
    Header header;
    std::memcpy(&header, client->reserved, sizeof(header));
    if (header.magic != HCCL_COMM_CONFIG_MAGIC_WORD) {
        fault(HCCL_E_PARA,
              "EI0003: Invalid magic word[0x%x]. Please make sure the config has been initialized by "
              "HcclCommConfigInit().",
              header.magic);
    }
    return header;
}

// Where the last field of a version ends. What a shorter structure lacks is memory of chance in the vendor's library.
size_t bytes_of(uint32_t version) {
#define END_OF(field) (offsetof(HcclCommConfig, field) + sizeof(HcclCommConfig::field))
    static const size_t ENDS[] = {sizeof(Header),
                                  END_OF(hcclDeterministic),
                                  END_OF(hcclCommName),
                                  END_OF(hcclUdi),
                                  END_OF(hcclOpExpansionMode),
                                  END_OF(hcclRdmaServiceLevel),
                                  END_OF(hcclJobID),
                                  END_OF(aclGraphZeroCopyEnable),
                                  END_OF(hcclRetryParams),
                                  END_OF(hcclBufferName),
                                  END_OF(hcclQos)};
#undef END_OF
    static_assert(sizeof(ENDS) / sizeof(ENDS[0]) == NEWEST_VERSION + 1, "an entry for each version");
    return ENDS[version < NEWEST_VERSION ? version : NEWEST_VERSION];
}

// A copy in our own layout: as many bytes as the client's has, defaults for the rest.
HcclCommConfig copy_of(const HcclCommConfig *client, const Header &header) {
    if (header.size < bytes_of(header.version)) {
        fault(HCCL_E_PARA, "EI0003: config of version %u has %zu bytes, its fields take %zu", header.version,
              header.size, bytes_of(header.version));
    }
    if (header.version > NEWEST_VERSION) {
        warn_once(format("HcclCommConfig has version %u; fields after version %u are not read", header.version,
                         NEWEST_VERSION));
    }
    HcclCommConfig config;
    HcclCommConfigInit(&config);
    std::memcpy(static_cast<void *>(&config), client, header.size < sizeof(config) ? header.size : sizeof(config));
    return config;
}

template <size_t Size>
std::string text_of(const char (&field)[Size], const char *name) {
    const size_t length = strnlen(field, Size);
    if (length == Size) {
        fault(HCCL_E_PARA, "EI0003: %s has no end within its %zu bytes", name, Size);
    }
    return std::string(field, length);
}

void apply_buffer(uint32_t megabytes, Settings *settings) {
    if (megabytes == 0) {
        fault(HCCL_E_PARA, "EI0003: hcclBufferSize is 0: it must be 1 MB or more");
    }
    if (megabytes != NOT_SET) {
        settings->buffer_mb = megabytes;
    }
}

void check_determinism(uint32_t value) {
    if (value != NOT_SET && (value > 2 || (value == 2 && family() != Family::Ascend910B))) {
        fault(HCCL_E_PARA, "EI0003: hcclDeterministic is %u: it must be 0 or 1, or 2 on the A2", value);
    }
}

// Out of range it changes nothing.
void apply_execution(int32_t seconds, Settings *settings) {
    constexpr int FIRST_VERSION = 900;
    const std::chrono::seconds taken = execution_limit(seconds);
    if (seconds != HCCL_COMM_EXECTIMEOUT_CONFIG_NOT_SET && taken.count() < 0) {
        warn_once(format("hcclExecTimeOut %d is out of range and has no effect", seconds));
    } else if (seconds != HCCL_COMM_EXECTIMEOUT_CONFIG_NOT_SET && cann_version() >= FIRST_VERSION) {
        settings->execution_timeout = taken;
    }
}

void check_retry(const HcclCommConfig &config) {
    const std::string levels = text_of(config.hcclRetryEnable, "hcclRetryEnable");
    const std::string params = text_of(config.hcclRetryParams, "hcclRetryParams");
    if (!levels.empty()) {
        check_retry_levels(levels);
    }
    if (!params.empty()) {
        check_retry_params(params);
    }
}

Settings settings_by_version(const HcclCommConfig *client) {
    Settings settings = environment_settings();
    const Header header = header_of(client);
    const HcclCommConfig config = copy_of(client, header);
    if (header.version >= 1) {
        apply_buffer(config.hcclBufferSize, &settings);
        check_determinism(config.hcclDeterministic);
    }
    if (header.version >= 2) {
        settings.name = text_of(config.hcclCommName, "hcclCommName");
    }
    if (header.version >= 4 && config.hcclOpExpansionMode > 4) {
        warn_once(format("hcclOpExpansionMode %u is unknown and has no effect", config.hcclOpExpansionMode));
    }
    if (header.version >= 7 && config.aclGraphZeroCopyEnable > 1) {
        fault(HCCL_E_PARA, "EI0003: aclGraphZeroCopyEnable is %u: it must be 0 or 1", config.aclGraphZeroCopyEnable);
    }
    if (header.version >= 8) {
        apply_execution(config.hcclExecTimeOut, &settings);
        check_algorithms(text_of(config.hcclAlgo, "hcclAlgo"), "hcclAlgo");
        check_retry(config);
    }
    return settings;
}

void check_number(const char *name, uint32_t value, uint32_t most, uint32_t step) {
    if (value != NOT_SET && (value > most || value % step != 0)) {
        fault(HCCL_E_PARA, "EI0003: %s is %u: it must be 0xFFFFFFFF, or from 0 to %u in steps of %u", name, value, most,
              step);
    }
}

// The 950 reads the client's own structure, and asks neither its size nor, for most fields, its version.
Settings settings_of_950(const HcclCommConfig *client, For use) {
    Settings settings = environment_settings();
    const Header header = header_of(client);
    if (client->hcclBufferSize != 0 || use != For::RootInfo) {
        apply_buffer(client->hcclBufferSize, &settings);
    }
    if (client->hcclDeterministic == 0) {
        warn_once("hcclDeterministic 0 has no effect: this processor computes deterministically");
    }
    settings.name = text_of(client->hcclCommName, "hcclCommName");
    check_number("hcclRdmaTrafficClass", client->hcclRdmaTrafficClass, 255, 4);
    check_number("hcclRdmaServiceLevel", client->hcclRdmaServiceLevel, 7, 1);
    if (header.version >= 10) {
        check_number("hcclQos", client->hcclQos, 7, 1);
    }
    if (client->hcclAlgo[0] != '\0') {
        check_algorithms(text_of(client->hcclAlgo, "hcclAlgo"), "hcclAlgo");
    }
    return settings;
}

} // namespace

Settings config_settings(const HcclCommConfig *config, For use) {
    return family() == Family::Ascend950 ? settings_of_950(config, use) : settings_by_version(config);
}

void write_back(HcclCommConfig *config) {
    if (family() != Family::Ascend950) {
        return;
    }
    if (config->hcclBufferSize == NOT_SET) {
        config->hcclBufferSize = 0;
    }
    config->hcclDeterministic = 1;
}

} // namespace mock
