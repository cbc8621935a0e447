// Devices and the processor that is played.

#ifndef ASCEND_MOCK_ACL_DEVICE_H
#define ASCEND_MOCK_ACL_DEVICE_H

#include <string>

#include "failure.h"

namespace mock {

constexpr uint32_t MAX_DEVICES = 1024; // of a machine

// Figures of one processor: cores and memories that the runtime reports.
struct Soc {
    std::string name;
    Family family;
    int64_t ai_cores;
    int64_t vector_cores; // 0 where vector and cube units are not split
    int64_t unified_buffer;
    int64_t l2_bytes;
    int64_t arch;
};

const Soc &soc();

// Places of a stream's queue. Source: runtime, src/runtime/config/*/dev_info_reg.cc (rtsqDepth).
uint64_t queue_places();
// Device of the calling thread, or a failure with 107002.
int require_device();
// Fails with 107001 if there is no such device.
void check_device(int64_t device);
// Device memory of one device, in bytes (ASCEND_MOCK_HBM_MB).
uint64_t device_memory_bytes();
// Fails with 107000 if this machine has no device with the number on the server.
void check_physical_device(int device);
// Whether one of the two may reach the other's memory, by their numbers on the server.
bool peers_have_access(int first, int second);
// aclrtDeviceEnablePeerAccess of one of them for the other, by those numbers.
void enable_peers(int device, int peer);
// Fails in a child that was forked after the first device was set: it has neither the threads nor memory of its own.
void check_not_forked();

} // namespace mock

#endif
