// Memory that processes share by a handle which reaches all servers of a supernode: "Virtual memory". The mock's servers lie
// on one machine, so it leads where a key of sharing.h leads.

#include <algorithm>
#include <cstring>
#include <mutex>

#include "device.h"
#include "physical.h"
#include "sharing.h"

namespace mock {
namespace {

// Only A3 reaches other servers.
void check_kind(aclrtMemSharedHandleType kind) {
    if (kind != ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT && kind != ACL_MEM_SHARE_HANDLE_TYPE_FABRIC) {
        fail(ACL_ERROR_RT_PARAM_INVALID, "no kind of handle has number %d", static_cast<int>(kind));
    }
    if (kind == ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT) {
        fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "handles within a server are not modelled");
    }
    if (soc().family != Family::Ascend910C) {
        fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "%s shares no memory across servers", soc().name.c_str());
    }
}

std::string key_of(const void *handle) {
    const auto *text = static_cast<const aclrtMemFabricHandle *>(handle)->data;
    const auto *end = std::find(text, text + sizeof(aclrtMemFabricHandle), 0);
    if (end - text != static_cast<std::ptrdiff_t>(SHARING_KEY_CHARACTERS)) {
        fail(ACL_ERROR_RT_PARAM_INVALID, "these bytes are no shared handle");
    }
    return std::string(text, end);
}

aclrtDrvMemHandle import_memory(const std::string &key, int device) {
    static std::mutex &one_by_one = *new std::mutex;
    std::lock_guard<std::mutex> lock(one_by_one);
    for (const std::shared_ptr<Physical> &known : physical().all()) {
        if (known->imported != nullptr && known->imported->key() == key && known->device == device &&
            arena(device).hold_physical(*known)) {
            return known.get();
        }
    }
    ImportedRange::Refusal refusal;
    auto memory = std::make_shared<Physical>();
    memory->imported = ImportedRange::open(key, &refusal);
    if (memory->imported == nullptr) {
        fail(refusal.forbidden ? ACL_ERROR_RT_INTERNAL_ERROR : ACL_ERROR_RT_INVALID_HANDLE,
             "the handle leads to no shared memory: %s", refusal.why.c_str());
    }
    if (memory->imported->owner() == getpid()) {
        fail(ACL_ERROR_RT_INTERNAL_ERROR, "the process that shares memory does not import it");
    }
    memory->device = device;
    memory->bytes = memory->imported->bytes();
    memory->imported->enter();
    return physical().add(std::move(memory));
}

} // namespace
} // namespace mock

using namespace mock;

aclError aclrtMemExportToShareableHandleV2(aclrtDrvMemHandle handle, uint64_t flags, aclrtMemSharedHandleType shareType,
                                           void *shareableHandle) {
    return guarded("aclrtMemExportToShareableHandleV2", [&] {
        require(static_cast<char *>(handle), "handle");
        require(static_cast<char *>(shareableHandle), "shareableHandle");
        if (flags > ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION) {
            fail(ACL_ERROR_RT_PARAM_INVALID, "flags is %llu: it must be 0 or 1",
                 static_cast<unsigned long long>(flags));
        }
        check_kind(shareType);
        require_device();
        const std::shared_ptr<Physical> memory = find_physical(handle);
        const bool anyone = flags == ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION;
        aclrtMemFabricHandle made{};
        arena(memory->device)
            .share_physical(*memory, anyone)
            .copy(reinterpret_cast<char *>(made.data), SHARING_KEY_CHARACTERS);
        std::memcpy(shareableHandle, &made, sizeof(made));
    });
}

aclError aclrtMemSetPidToShareableHandleV2(void *shareableHandle, aclrtMemSharedHandleType shareType, int32_t *pid,
                                           size_t pidNum) {
    return guarded("aclrtMemSetPidToShareableHandleV2", [&] {
        require(static_cast<char *>(shareableHandle), "shareableHandle");
        require(pid, "pid");
        if (pidNum == 0) {
            fail(ACL_ERROR_INVALID_PARAM, "pidNum is 0");
        }
        check_kind(shareType);
        const std::string key = key_of(shareableHandle);
        for (const std::shared_ptr<Physical> &memory : physical().all()) {
            const std::shared_ptr<SharedRange> shared = arena(memory->device).shared(*memory);
            if (shared == nullptr || shared->key() != key) {
                continue;
            }
            if (shared->anyone()) {
                fail(ACL_ERROR_RT_NO_PERMISSION, "the memory was shared with any process (DISABLE_PID_VALIDATION)");
            }
            shared->allow(pid, pidNum);
            return;
        }
        fail(ACL_ERROR_RT_INVALID_HANDLE, "this process shares no memory by that handle");
    });
}

aclError aclrtMemImportFromShareableHandleV2(void *shareableHandle, aclrtMemSharedHandleType shareType, uint64_t flags,
                                             aclrtDrvMemHandle *handle) {
    return guarded("aclrtMemImportFromShareableHandleV2", [&] {
        require(static_cast<char *>(shareableHandle), "shareableHandle");
        require(handle, "handle");
        if (flags != 0) {
            fail(ACL_ERROR_INVALID_PARAM, "flags is %llu: it must be 0", static_cast<unsigned long long>(flags));
        }
        const int device = require_device();
        check_kind(shareType);
        *handle = import_memory(key_of(shareableHandle), device);
    });
}
