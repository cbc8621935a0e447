// Memory that processes share by a key, a string that is all they need to have in common.
//
// The owner keeps a record of each key in the control area of its memory file: what is shared, who may import it, who has.
// The key says where the record is: process, descriptor of the file, place. An importer opens the file through /proc, which
// the kernel allows to processes of the same user, finds the same key there, and maps the file. The record tells it later
// whether the owner still shares the memory.

#include "ipc.h"

#include <algorithm>
#include <map>
#include <shared_mutex>

#include <fcntl.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/syscall.h>

#include "arena.h"
#include "device.h"
#include "mapping.h"
#include "peers.h"

namespace mock {
namespace {

constexpr size_t KEY_BYTES = 65; // 64 characters and a 0
constexpr size_t GUESTS = 480;   // so that a record is a page
constexpr char FILE_NAME[] = "/memfd:ascend-mock-memory (deleted)";

enum class Sharing : uint32_t { Ended, Live, Freed };

// A process that may import the memory, and whether it has. Other processes write it.
struct Guest {
    std::atomic<int32_t> pid;
    std::atomic<int32_t> open;
};

// Both sides run the same build of the mock. A record whose memory was given back is all zero: Ended.
struct Record {
    std::atomic<Sharing> sharing;
    uint32_t device;
    uint64_t offset; // of the memory in the owner's file
    uint64_t bytes;
    uint64_t random; // of the key, as another record may come to the same place
    uint32_t anyone; // no list of processes is asked for
    char key[KEY_BYTES];
    unsigned char identity[16];
    uint64_t arena_bytes;
    Guest guests[GUESTS];
};
static_assert(sizeof(Record) <= PAGE_BYTES, "a record is a page");

struct Export {
    char *address = nullptr;
    int device = -1;
    uint64_t place = 0; // of the record, in the control area
    Record *record = nullptr;
    bool closed = false;
};

struct Import {
    std::shared_ptr<PeerArena> arena;
    Record *record = nullptr;
    uint64_t random = 0;
    char *address = nullptr;
    uint64_t offset = 0; // in the owner's file
    uint64_t bytes = 0;
    int device = -1;  // whose memory it is
    int used_by = -1; // the device that it was imported for
    std::string key;
    uint64_t opened = 0; // calls of import without one of close

    // Whether the record is still that of the key: the owner keeps it as long as others have the memory.
    bool known() const { return record->random == random; }
    // Whether the owner has neither closed nor freed it. If its process has ended without that, the content stays.
    bool live() const { return record->sharing == Sharing::Live && known(); }
};

struct Shared {
    std::shared_mutex mutex;
    std::map<std::string, Export> exports;
    std::multimap<const char *, Import> imports; // two keys of the same memory lead to the same address
    // Queued work may still use memory that was closed too early, so it stays mapped as long as its process lives.
    std::vector<std::shared_ptr<PeerArena>> closed;
    std::atomic<bool> any{false}; // spares everybody else the search
};

Shared &shared() {
    static Shared &object = *new Shared;
    return object;
}

// The driver's answer to most that is wrong reaches the program as its internal error.
constexpr aclError DRIVER = ACL_ERROR_RT_DRV_INTERNAL_ERROR;

// Everything of a key but its characters, which are checked by their use.
std::string checked(const char *key) {
    const size_t length = strnlen(key, KEY_BYTES);
    if (length == 0 || length >= KEY_BYTES) {
        fail(ACL_ERROR_RT_PARAM_INVALID, "a key is a string of 1 to %zu characters", KEY_BYTES - 1);
    }
    return std::string(key, length);
}

[[noreturn]] void fail_unknown(const std::string &why) {
    fail(DRIVER, "the key leads to no shared memory: %s", why.c_str());
}

uint64_t part(const std::string &key, size_t from, size_t length) {
    const std::string digits = key.substr(from, length);
    if (digits.find_first_not_of("0123456789abcdef") != std::string::npos) {
        fail_unknown("it is none of this library");
    }
    return std::strtoull(digits.c_str(), nullptr, 16);
}

// Process, descriptor, place and 16 random bytes.
std::string make_key(int file, uint64_t place) {
    uint64_t random[2];
    if (getrandom(random, sizeof(random), 0) != static_cast<ssize_t>(sizeof(random))) {
        fail(ACL_ERROR_RT_INTERNAL_ERROR, "%s", system_error("getrandom").c_str());
    }
    return format("%08x%08x%016llx%016llx%016llx", static_cast<unsigned>(getpid()), static_cast<unsigned>(file),
                  static_cast<unsigned long long>(place), static_cast<unsigned long long>(random[0]),
                  static_cast<unsigned long long>(random[1]));
}

pid_t owner_of(const std::string &key) {
    if (key.size() != KEY_BYTES - 1) {
        fail_unknown("it is none of this library");
    }
    return static_cast<pid_t>(part(key, 0, 8));
}

// A process that has ended may wait to be collected: then its number is still there.
bool runs(pid_t pid) {
    const Descriptor process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
    if (!process) {
        return errno != ESRCH;
    }
    pollfd state{process.get(), POLLIN, 0};
    return poll(&state, 1, 0) == 0;
}

// The owner's memory file. Another file may have its number meanwhile, and opening one can have effects: its name is looked
// at first.
Descriptor open_owner(const std::string &key) {
    const pid_t pid = owner_of(key);
    if (!runs(pid)) {
        fail_unknown(format("process %d, which shared it, has ended", static_cast<int>(pid)));
    }
    const std::string path = format("/proc/%d/fd/%d", static_cast<int>(pid), static_cast<int>(part(key, 8, 8)));
    char name[sizeof(FILE_NAME)] = {};
    const ssize_t length = readlink(path.c_str(), name, sizeof(name));
    if (length < 0 && errno == EACCES) {
        fail_unknown(format("process %d belongs to another user", static_cast<int>(pid)));
    }
    if (length != static_cast<ssize_t>(sizeof(FILE_NAME) - 1) || std::memcmp(name, FILE_NAME, sizeof(name) - 1) != 0) {
        fail_unknown(format("process %d has not shared it", static_cast<int>(pid)));
    }
    Descriptor file(open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (!file) {
        fail_unknown(system_error(path.c_str()));
    }
    return file;
}

// What of a record does not change, as far as the key leads to one. Mapped only when it is known to be right.
struct Description {
    Sharing sharing = Sharing::Ended;
    int device = -1;
    uint64_t offset = 0;
    uint64_t bytes = 0;
    std::string identity;
    uint64_t arena_bytes = 0;
};

Description describe(const std::string &key, const Descriptor &file) {
    alignas(Record) char bytes[sizeof(Record)];
    const uint64_t place = part(key, 16, 16);
    if (place % PAGE_BYTES != 0 ||
        pread(file.get(), bytes, sizeof(bytes), static_cast<off_t>(place)) != static_cast<ssize_t>(sizeof(bytes))) {
        fail_unknown("it names no place in the memory file");
    }
    const auto &record = *reinterpret_cast<const Record *>(bytes);
    if (key != std::string(record.key, strnlen(record.key, KEY_BYTES))) {
        fail_unknown(format("process %d has closed it", static_cast<int>(owner_of(key))));
    }
    return {record.sharing.load(),
            static_cast<int>(record.device),
            record.offset,
            record.bytes,
            std::string(reinterpret_cast<const char *>(record.identity), sizeof(record.identity)),
            record.arena_bytes};
}

// The entry of this process; a new one, in the place of one that has ended if need be, if the owner lets in anyone.
Guest *admit(Record &record, pid_t pid, bool anyone) {
    for (Guest &guest : record.guests) {
        if (guest.pid == pid) {
            return &guest;
        }
    }
    for (size_t i = 0; anyone && i < GUESTS; i++) {
        Guest &guest = record.guests[i];
        int32_t before = guest.pid;
        if ((before == 0 || !runs(before)) && guest.pid.compare_exchange_strong(before, pid)) {
            guest.open = 0;
            return &guest;
        }
    }
    return nullptr;
}

size_t guests_with_it(const Record &record) {
    return static_cast<size_t>(
        std::count_if(std::begin(record.guests), std::end(record.guests), [](const Guest &guest) {
        return guest.pid != 0 && guest.pid != getpid() && guest.open != 0 && runs(guest.pid);
    }));
}

// --- the owner

void check_memory(const char *address, size_t size) {
    if (is_imported(address)) {
        fail(DRIVER, "%p is imported: only the process that has allocated it shares it",
             static_cast<const void *>(address));
    }
    const Arena *owner = arena_of(address);
    const uint64_t bytes = owner == nullptr ? 0 : owner->allocation_at(address);
    if (bytes == 0) {
        fail(DRIVER, "%p is not what aclrtMalloc returned", static_cast<const void *>(address));
    }
    const uint64_t page = page_bytes(bytes);
    if (page == 0 || reinterpret_cast<uintptr_t>(address) % page != 0) {
        fail(DRIVER, "%p does not begin a page: only allocations from %llu bytes on have pages of their own",
             static_cast<const void *>(address), static_cast<unsigned long long>(PAGE_BYTES));
    }
    if (size > bytes) {
        fail(DRIVER, "%zu bytes from %p on, but its allocation ends after %llu", size,
             static_cast<const void *>(address), static_cast<unsigned long long>(bytes));
    }
}

std::string share(char *address, size_t size, bool anyone) {
    check_memory(address, size);
    Region region;
    find_memory(address, &region);
    Arena &memory = arena(region.device);
    const uint64_t place = memory.control_allocate(sizeof(Record));
    auto *record = reinterpret_cast<Record *>(memory.view().base + place);
    const std::string key = make_key(memory.view().file, place);
    record->device = static_cast<uint32_t>(region.device);
    record->offset = region.offset;
    record->bytes = size;
    record->random = part(key, 32, 16);
    record->anyone = anyone ? 1 : 0;
    copy_text(record->key, sizeof(record->key), key);
    std::memcpy(record->identity, memory.view().identity, sizeof(record->identity));
    record->arena_bytes = memory.view().bytes;
    record->sharing = Sharing::Live;
    std::unique_lock<std::shared_mutex> lock(shared().mutex);
    shared().exports[key] = {address, region.device, place, record, false};
    return key;
}

Export *find_export(const std::string &key) {
    const auto found = shared().exports.find(key);
    return found == shared().exports.end() ? nullptr : &found->second;
}

void allow(const std::string &key, const int32_t *pids, size_t count) {
    std::unique_lock<std::shared_mutex> lock(shared().mutex);
    const Export *owned = find_export(key);
    if (owned == nullptr) {
        fail_unknown("only the process that has shared it names others");
    }
    if (owned->closed) {
        fail(ACL_ERROR_RT_INVALID_HANDLE, "the key is closed");
    }
    if (owned->record->anyone != 0) {
        fail(ACL_ERROR_RT_NO_PERMISSION, "the memory was shared with any process (DISABLE_PID_VALIDATION)");
    }
    if (count > GUESTS) {
        fail(DRIVER, "%zu processes: the mock knows %zu", count, GUESTS);
    }
    size_t named = 0;
    for (size_t i = 0; i < count; i++) {
        if (pids[i] == 0 || pids[i] == getpid()) {
            continue; // the owner is none of them
        }
        if (admit(*owned->record, pids[i], true) == nullptr) {
            fail(DRIVER, "more than %zu processes for one key", GUESTS);
        }
        named++;
    }
    if (named == 0) {
        fail(DRIVER, "none of the %zu numbers is another process", count);
    }
}

void close_export(const std::string &key, Export &owned) {
    const size_t left = owned.closed || owned.record->sharing == Sharing::Live ? guests_with_it(*owned.record) : 0;
    if (owned.closed) {
        if (left > 0) {
            fail(ACL_ERROR_RT_INVALID_HANDLE, "the key is closed already");
        }
        arena(owned.device).control_free(owned.place);
        shared().exports.erase(key);
        fail_unknown("it is closed already");
    }
    owned.record->sharing = Sharing::Ended;
    if (left > 0) {
        owned.closed = true;
        warn_once(
            format("aclrtIpcMemClose by the owner of the memory (process %d) before %zu that have imported it: they "
                   "lose it",
                   static_cast<int>(getpid()), left));
        return;
    }
    arena(owned.device).control_free(owned.place);
    shared().exports.erase(key);
}

// --- importers

// All that hold the address; those that begin at the same one differ in their length.
template <class Take>
bool search(const void *address, Take take) {
    if (!shared().any) {
        return false;
    }
    const auto *byte = static_cast<const char *>(address);
    std::shared_lock<std::shared_mutex> lock(shared().mutex);
    auto next = shared().imports.upper_bound(byte);
    if (next == shared().imports.begin()) {
        return false;
    }
    const auto same = shared().imports.equal_range(std::prev(next)->first);
    return std::any_of(same.first, same.second, [&](const auto &entry) {
        const Import &import = entry.second;
        return byte < import.address + import.bytes && take(import, static_cast<uint64_t>(byte - import.address));
    });
}

auto find_import(const std::string &key) {
    return std::find_if(shared().imports.begin(), shared().imports.end(),
                        [&](const auto &entry) { return entry.second.key == key; });
}

void bury(std::shared_ptr<PeerArena> arena) {
    auto &closed = shared().closed;
    closed.push_back(std::move(arena));
    closed.erase(std::remove_if(closed.begin(), closed.end(), [](const auto &one) { return !one->alive(); }),
                 closed.end());
}

void *import_memory(const std::string &key, int device, bool access) {
    std::unique_lock<std::shared_mutex> lock(shared().mutex);
    const auto known = find_import(key);
    if (known != shared().imports.end() && known->second.used_by == device && known->second.arena->alive() &&
        known->second.live()) {
        known->second.opened++;
        return known->second.address;
    }
    const Descriptor file = open_owner(key);
    const Description found = describe(key, file);
    if (found.sharing != Sharing::Live) {
        fail_unknown(format("process %d has %s it", static_cast<int>(owner_of(key)),
                            found.sharing == Sharing::Freed ? "freed" : "closed"));
    }
    if (known != shared().imports.end()) {
        fail(DRIVER, "this process has imported it for device %d: a key is mapped once per process",
             known->second.used_by);
    }
    if (access && found.device != device) {
        check_device(found.device);
        enable_peers(device, found.device);
        enable_peers(found.device, device);
    }
    const uint64_t place = part(key, 16, 16);
    if (found.offset > found.arena_bytes || found.bytes > found.arena_bytes - found.offset ||
        place > found.arena_bytes - sizeof(Record)) {
        fail_unknown("it names a place outside the memory file");
    }
    Import made;
    std::string error;
    made.arena = map_arena(found.identity, file, found.arena_bytes, owner_of(key), &error);
    if (made.arena == nullptr) {
        fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "%s", error.c_str());
    }
    made.record = reinterpret_cast<Record *>(made.arena->base() + place);
    Guest *guest = admit(*made.record, getpid(), made.record->anyone != 0);
    if (guest == nullptr && made.record->anyone != 0) {
        fail(DRIVER, "%zu processes have imported it: the mock knows no more", GUESTS);
    }
    if (guest == nullptr) {
        fail(DRIVER, "process %d is not among those of aclrtIpcMemSetImportPid", static_cast<int>(getpid()));
    }
    guest->open = 1;
    made.random = made.record->random;
    made.offset = found.offset;
    made.address = made.arena->base() + found.offset;
    made.bytes = found.bytes;
    made.device = found.device;
    made.used_by = device;
    made.key = key;
    made.opened = 1;
    void *address = made.address;
    shared().imports.emplace(made.address, std::move(made));
    shared().any = true;
    return address;
}

// By its name alone: an import of this process comes before its export.
void close_key(const std::string &key) {
    std::unique_lock<std::shared_mutex> lock(shared().mutex);
    const auto import = find_import(key);
    if (import != shared().imports.end()) {
        if (--import->second.opened > 0) {
            return;
        }
        Guest *guest = import->second.known() ? admit(*import->second.record, getpid(), false) : nullptr;
        if (guest != nullptr) {
            guest->open = 0;
        }
        bury(std::move(import->second.arena));
        shared().imports.erase(import);
        return;
    }
    Export *owned = find_export(key);
    if (owned == nullptr) {
        fail_unknown("this process has neither shared nor imported it");
    }
    close_export(key, *owned);
}

} // namespace

bool is_imported(const void *address) {
    return search(address, [](const Import &, uint64_t) { return true; });
}

bool find_imported(const void *address, Region *region) {
    return search(address, [&](const Import &import, uint64_t offset) {
        if (!import.live()) {
            return false;
        }
        *region = {import.device, import.offset + offset, import.bytes - offset, true};
        return true;
    });
}

bool is_across_devices(const void *address) {
    return search(address, [](const Import &import, uint64_t) { return import.device != import.used_by; });
}

void end_sharing(void *address) {
    std::unique_lock<std::shared_mutex> lock(shared().mutex);
    for (auto &entry : shared().exports) {
        Export &owned = entry.second;
        if (owned.address == address && !owned.closed && owned.record->sharing == Sharing::Live) {
            owned.record->sharing = Sharing::Freed;
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
