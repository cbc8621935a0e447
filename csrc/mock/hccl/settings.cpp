#include "settings.h"

#include <atomic>
#include <cctype>

namespace mock {
namespace {

constexpr uint32_t NOT_SET = 0xffffffff;
constexpr uint32_t NEWEST_VERSION = 10;

std::atomic<int> determinism{0}; // by HcclSetConfig

struct Header {
    size_t size;
    uint32_t magic;
    uint32_t version;
    uint64_t reserved;
};
static_assert(sizeof(Header) == HCCL_COMM_CONFIG_INFO_BYTES, "HcclCommConfig.reserved");

long long environment_number(const char *name, long long standard, long long low, long long high) {
    const char *text = environment(name);
    long long value = standard;
    if (text != nullptr && !parse_number(text, low, high, &value)) {
        fault(HCCL_E_PARA, "EI0001: environment variable %s [%s] is not a number from %lld to %lld", name, text, low,
              high);
    }
    return value;
}

// A copy of the client's structure in our own layout: as many bytes as it has, defaults for the rest.
HcclCommConfig read_config(const HcclCommConfig *client, Header *header) {
    require(client, "config");
    std::memcpy(header, client->reserved, sizeof(*header));
    if (header->magic != HCCL_COMM_CONFIG_MAGIC_WORD) {
        fault(HCCL_E_PARA,
              "EI0003: Invalid magic word[0x%x]. Please make sure the config has been initialized by "
              "HcclCommConfigInit().",
              header->magic);
    }
    if (header->version == 0 || header->size < offsetof(HcclCommConfig, hcclCommName)) {
        fault(HCCL_E_PARA, "EI0003: config of version %u and %zu bytes: version 1 with 32 bytes is the smallest",
              header->version, header->size);
    }
    if (header->version > NEWEST_VERSION) {
        warn_once(format("HcclCommConfig has version %u; fields after version %u are not read", header->version,
                         NEWEST_VERSION));
    }
    HcclCommConfig config;
    HcclCommConfigInit(&config);
    std::memcpy(static_cast<void *>(&config), client, header->size < sizeof(config) ? header->size : sizeof(config));
    return config;
}

void apply_name(const HcclCommConfig &config, Settings *settings) {
    const size_t length = strnlen(config.hcclCommName, COMM_NAME_MAX_LENGTH);
    if (length == COMM_NAME_MAX_LENGTH) {
        fault(HCCL_E_PARA, "EI0003: hcclCommName has no end within its %u bytes", COMM_NAME_MAX_LENGTH);
    }
    settings->name.assign(config.hcclCommName, length);
}

} // namespace

int process_determinism() {
    const char *deterministic = environment("HCCL_DETERMINISTIC");
    if (deterministic == nullptr) {
        return determinism;
    }
    std::string text = deterministic;
    for (char &letter : text) {
        letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    }
    if (text != "strict" && text != "true" && text != "false") {
        fault(HCCL_E_PARA, "EI0001: environment variable HCCL_DETERMINISTIC [%s] is not false, true or strict",
              deterministic);
    }
    return text == "strict" ? 2 : text == "true" ? 1 : 0;
}

void set_process_determinism(int32_t value) {
    if (environment("HCCL_DETERMINISTIC") != nullptr) {
        warn_once("HCCL_DETERMINISTIC is set in the environment, so HcclSetConfig has no effect");
        return;
    }
    const bool strict = family() == Family::Ascend910B || family() == Family::Ascend910C;
    if (value < 0 || value > (strict ? 2 : 1)) {
        fault(HCCL_E_PARA, "EI0003: HCCL_DETERMINISTIC is %d: it must be 0 or 1%s", value, strict ? " or 2" : "");
    }
    determinism = value;
}

Settings environment_settings() {
    Settings settings;
    const long long connect = environment_number("HCCL_CONNECT_TIMEOUT", 120, 1, 7200);
    const long long execution = environment_number("HCCL_EXEC_TIMEOUT", 1836, 0, 2147483647);
    if (connect < 120) {
        warn_once("HCCL_CONNECT_TIMEOUT is below 120 s, the least that the vendor's library takes");
    }
    if (execution != 0 && connect >= execution) {
        warn_once("HCCL_CONNECT_TIMEOUT should be smaller than HCCL_EXEC_TIMEOUT");
    }
    settings.connect_timeout = std::chrono::seconds(connect);
    settings.execution_timeout = std::chrono::seconds(execution);
    settings.buffer_mb = static_cast<uint32_t>(environment_number("HCCL_BUFFSIZE", 200, 1, 1 << 20));
    settings.deterministic = process_determinism();
    return settings;
}

Settings config_settings(const HcclCommConfig *client) {
    Settings settings = environment_settings();
    Header header;
    const HcclCommConfig config = read_config(client, &header);
    if (config.hcclBufferSize == 0) {
        fault(HCCL_E_PARA, "EI0003: hcclBufferSize is 0: it must be 1 MB or more");
    }
    if (config.hcclBufferSize != NOT_SET) {
        settings.buffer_mb = config.hcclBufferSize;
    }
    if (config.hcclDeterministic != NOT_SET) {
        if (config.hcclDeterministic > 2) {
            fault(HCCL_E_PARA, "EI0003: hcclDeterministic is %u: it must be 0, 1 or 2", config.hcclDeterministic);
        }
        settings.deterministic = static_cast<int>(config.hcclDeterministic);
    }
    if (header.version >= 2) {
        apply_name(config, &settings);
    }
    if (header.version >= 4 && config.hcclOpExpansionMode > 6) {
        warn_once(format("hcclOpExpansionMode %u is unknown and has no effect", config.hcclOpExpansionMode));
    }
    if (header.version >= 8 && config.hcclExecTimeOut >= 0) {
        settings.execution_timeout = std::chrono::seconds(config.hcclExecTimeOut);
    }
    return settings;
}

} // namespace mock
