// Memory that processes share by a key, a string that is all they need to have in common: "IPC memory".

#include "ipc.h"

#include <map>
#include <mutex>

#include "arena.h"
#include "device.h"
#include "mapping.h"
#include "sharing.h"

namespace mock {
namespace {

constexpr size_t KEY_BYTES = SHARING_KEY_CHARACTERS + 1; // and a 0

struct Export {
    char *address = nullptr;
    std::shared_ptr<SharedRange> range;
    bool closed = false;
};

struct Import {
    std::shared_ptr<ImportedRange> range;
    int used_by = -1;    // the device that it was imported for
    uint64_t opened = 0; // calls of import without one of close
};

struct Keys {
    std::mutex mutex;
    std::map<std::string, Export> exports;
    std::map<std::string, Import> imports;
};

Keys &keys() {
    static Keys &object = *new Keys;
    return object;
}

// Everything of a key but its characters, which are checked by their use.
std::string checked(const char *key) {
    const size_t length = strnlen(key, KEY_BYTES);
    if (length == 0 || length >= KEY_BYTES) {
        fail(ACL_ERROR_RT_PARAM_INVALID, "a key is a string of 1 to %zu characters", KEY_BYTES - 1);
    }
    return std::string(key, length);
}

[[noreturn]] void fail_unknown(const std::string &why) {
    fail(DRIVER_ERROR, "the key leads to no shared memory: %s", why.c_str());
}

// --- the owner

void check_memory(const char *address, size_t size) {
    if (is_imported(address)) {
        fail(DRIVER_ERROR, "%p is imported: only the process that has allocated it shares it",
             static_cast<const void *>(address));
    }
    const Arena *owner = arena_of(address);
    const uint64_t bytes = owner == nullptr ? 0 : owner->allocation_at(address);
    if (bytes == 0) {
        fail(DRIVER_ERROR, "%p is not what aclrtMalloc returned", static_cast<const void *>(address));
    }
    const uint64_t page = page_bytes(bytes);
    if (page == 0 || reinterpret_cast<uintptr_t>(address) % page != 0) {
        fail(DRIVER_ERROR, "%p does not begin a page: only allocations from %llu bytes on have pages of their own",
             static_cast<const void *>(address), static_cast<unsigned long long>(PAGE_BYTES));
    }
    if (size > bytes) {
        fail(DRIVER_ERROR, "%zu bytes from %p on, but its allocation ends after %llu", size,
             static_cast<const void *>(address), static_cast<unsigned long long>(bytes));
    }
}

std::string share(char *address, size_t size, bool anyone) {
    check_memory(address, size);
    Region region;
    find_memory(address, &region);
    auto range = std::make_shared<SharedRange>(region.device, region.offset, size, anyone);
    const std::string key = range->key();
    std::lock_guard<std::mutex> lock(keys().mutex);
    keys().exports[key] = {address, std::move(range), false};
    return key;
}

Export *find_export(const std::string &key) {
    const auto found = keys().exports.find(key);
    return found == keys().exports.end() ? nullptr : &found->second;
}

void allow(const std::string &key, const int32_t *pids, size_t count) {
    std::lock_guard<std::mutex> lock(keys().mutex);
    const Export *owned = find_export(key);
    if (owned == nullptr) {
        fail_unknown("only the process that has shared it names others");
    }
    if (owned->closed) {
        fail(ACL_ERROR_RT_INVALID_HANDLE, "the key is closed");
    }
    if (owned->range->anyone()) {
        fail(ACL_ERROR_RT_NO_PERMISSION, "the memory was shared with any process (DISABLE_PID_VALIDATION)");
    }
    owned->range->allow(pids, count);
}

void close_export(const std::string &key, Export &owned) {
    const size_t left = owned.closed || owned.range->live() ? owned.range->importers() : 0;
    if (owned.closed) {
        if (left > 0) {
            fail(ACL_ERROR_RT_INVALID_HANDLE, "the key is closed already");
        }
        keys().exports.erase(key);
        fail_unknown("it is closed already");
    }
    owned.range->end(Sharing::Ended);
    if (left > 0) {
        owned.closed = true;
        warn_once(
            format("aclrtIpcMemClose by the owner of the memory (process %d) before %zu that have imported it: they "
                   "lose it",
                   static_cast<int>(getpid()), left));
        return;
    }
    keys().exports.erase(key);
}

// --- importers

void *import_memory(const std::string &key, int device, bool access) {
    std::lock_guard<std::mutex> lock(keys().mutex);
    const auto known = keys().imports.find(key);
    if (known != keys().imports.end() && known->second.used_by == device && known->second.range->owner_runs() &&
        known->second.range->live()) {
        known->second.opened++;
        return known->second.range->address();
    }
    ImportedRange::Refusal refusal;
    std::shared_ptr<ImportedRange> range = ImportedRange::open(key, &refusal);
    if (range == nullptr) {
        fail_unknown(refusal.why);
    }
    if (known != keys().imports.end()) {
        fail(DRIVER_ERROR, "this process has imported it for device %d: a key is mapped once per process",
             known->second.used_by);
    }
    const int own = physical_device(device);
    const int peer = range->physical_device();
    if (access && peer != own) {
        check_physical_device(peer);
        enable_peers(own, peer);
        enable_peers(peer, own);
    }
    void *address = range->address();
    range->enter();
    add_imported(address, {range, peer != own});
    keys().imports[key] = {std::move(range), device, 1};
    return address;
}

// By its name alone: an import of this process comes before its export.
void close_key(const std::string &key) {
    std::lock_guard<std::mutex> lock(keys().mutex);
    const auto import = keys().imports.find(key);
    if (import != keys().imports.end()) {
        if (--import->second.opened > 0) {
            return;
        }
        const ImportedRange &range = *import->second.range;
        remove_imported(range.address(), &range);
        import->second.range->leave();
        keys().imports.erase(import);
        return;
    }
    Export *owned = find_export(key);
    if (owned == nullptr) {
        fail_unknown("this process has neither shared nor imported it");
    }
    close_export(key, *owned);
}

} // namespace

void end_sharing(void *address) {
    std::lock_guard<std::mutex> lock(keys().mutex);
    for (auto &entry : keys().exports) {
        Export &owned = entry.second;
        if (owned.address == address && !owned.closed && owned.range->live()) {
            owned.range->end(Sharing::Freed);
            warn_once(
                "aclrtFree of memory whose key is not closed (aclrtIpcMemClose): whoever has imported it loses it");
        }
    }
}

} // namespace mock

using namespace mock;

aclError aclrtIpcMemGetExportKey(void *devPtr, size_t size, char *key, size_t len, uint64_t flags) {
    return guarded("aclrtIpcMemGetExportKey", [&] {
        require(static_cast<char *>(devPtr), "devPtr");
        require(key, "key");
        if (size == 0 || flags > ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION) {
            fail(ACL_ERROR_RT_PARAM_INVALID, "size %zu, flags %llu: size must not be 0, flags 0 or 1", size,
                 static_cast<unsigned long long>(flags));
        }
        require_device();
        if (len != KEY_BYTES) {
            fail(ACL_ERROR_RT_PARAM_INVALID, "len is %zu: it must be %zu", len, KEY_BYTES);
        }
        const bool anyone = flags == ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION;
        const std::string made = share(static_cast<char *>(devPtr), size, anyone);
        std::memcpy(key, made.c_str(), KEY_BYTES);
    });
}

aclError aclrtIpcMemSetImportPid(const char *key, int32_t *pid, size_t num) {
    return guarded("aclrtIpcMemSetImportPid", [&] {
        require(key, "key");
        require(pid, "pid");
        const auto count = static_cast<int32_t>(num); // as the vendor's library passes it on
        if (count <= 0) {
            fail(ACL_ERROR_RT_PARAM_INVALID, "num is %zu", num);
        }
        require_device();
        allow(checked(key), pid, static_cast<size_t>(count));
    });
}

aclError aclrtIpcMemImportByKey(void **devPtr, const char *key, uint64_t flags) {
    return guarded("aclrtIpcMemImportByKey", [&] {
        require(devPtr, "devPtr");
        require(key, "key");
        if (flags > ACL_RT_IPC_MEM_IMPORT_FLAG_ENABLE_PEER_ACCESS) {
            fail(ACL_ERROR_RT_PARAM_INVALID, "flags is %llu: it must be 0 or 1",
                 static_cast<unsigned long long>(flags));
        }
        const int device = require_device();
        *devPtr = import_memory(checked(key), device, flags == ACL_RT_IPC_MEM_IMPORT_FLAG_ENABLE_PEER_ACCESS);
    });
}

aclError aclrtIpcMemClose(const char *key) {
    return guarded("aclrtIpcMemClose", [&] {
        require(key, "key");
        require_device();
        close_key(checked(key));
    });
}
