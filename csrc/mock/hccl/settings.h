// What a communicator is told: by its HcclCommConfig, else by the environment, else by default.

#ifndef ASCEND_MOCK_HCCL_SETTINGS_H
#define ASCEND_MOCK_HCCL_SETTINGS_H

#include <chrono>
#include <string>

#include "failure.h"

namespace mock {

struct Settings {
    std::string name; // empty: the library makes one
    uint32_t buffer_mb = 200;
    int deterministic = 0;
    std::chrono::seconds connect_timeout{120};
    std::chrono::seconds execution_timeout{1836}; // 0: never
};

// Determinism of the process: 0 off, 1 on, 2 strict. The environment overrules HcclSetConfig.
int process_determinism();
void set_process_determinism(int32_t value);

// Settings from the environment alone.
Settings environment_settings();
// The same, overruled by a client's structure of any size and version.
Settings config_settings(const HcclCommConfig *config);

} // namespace mock

#endif
