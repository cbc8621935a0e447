// What a communicator is told by the environment, or by default.

#ifndef ASCEND_MOCK_HCCL_SETTINGS_H
#define ASCEND_MOCK_HCCL_SETTINGS_H

#include <chrono>
#include <string>

#include "failure.h"

namespace mock {

struct Settings {
    std::string name; // empty: the library makes one
    uint32_t buffer_mb = 200;
    std::chrono::seconds connect_timeout{120};
    std::chrono::seconds execution_timeout{1836}; // 0: never
};

// Determinism of the process: 0 off, 1 on, 2 strict. The environment overrules HcclSetConfig.
int process_determinism();
void set_process_determinism(int32_t value);

// Whether HCCL runs an operation on the AI CPUs: then it has streams of its own in stop mode, which is a mode of the context.
bool runs_on_ai_cpus(bool in_group);

// Settings from the environment alone.
Settings environment_settings();
// What this processor makes of a limit for operations: the 910A and 310P know multiples of 68 s only. Negative if it takes
// no such limit.
std::chrono::seconds execution_limit(double seconds);

} // namespace mock

#endif
