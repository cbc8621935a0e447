#include "sharing.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <shared_mutex>

#include <fcntl.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/syscall.h>

#include "arena.h"
#include "mapping.h"

namespace mock {
namespace {

constexpr size_t GUESTS = 480; // so that a record is a page
constexpr char FILE_NAME[] = "/memfd:ascend-mock-memory (deleted)";

// A process that may import the memory, and whether it has. Other processes write it.
struct Guest {
    std::atomic<int32_t> pid;
    std::atomic<int32_t> open;
};

} // namespace

// Both sides run the same build of the mock. A record whose memory was given back is all zero: Ended.
struct SharingRecord {
    std::atomic<Sharing> sharing;
    uint32_t device;
    uint64_t offset; // of the memory in the owner's file
    uint64_t bytes;
    uint64_t random; // of the key, as another record may come to the same place
    uint32_t anyone; // no list of processes is asked for
    char key[SHARING_KEY_CHARACTERS + 1];
    unsigned char identity[16];
    uint64_t arena_bytes;
    Guest guests[GUESTS];
};

namespace {

using Record = SharingRecord;
static_assert(sizeof(Record) <= PAGE_BYTES, "a record is a page");

// A number of a key; false if that has other characters.
bool part(const std::string &key, size_t from, size_t length, uint64_t *number) {
    const std::string digits = key.substr(from, length);
    *number = std::strtoull(digits.c_str(), nullptr, 16);
    return digits.find_first_not_of("0123456789abcdef") == std::string::npos;
}

// Process, descriptor, place and 16 random bytes.
std::string make_key(int file, uint64_t place, uint64_t *random) {
    uint64_t bytes[2];
    if (getrandom(bytes, sizeof(bytes), 0) != static_cast<ssize_t>(sizeof(bytes))) {
        fail(ACL_ERROR_RT_INTERNAL_ERROR, "%s", system_error("getrandom").c_str());
    }
    *random = bytes[0];
    return format("%08x%08x%016llx%016llx%016llx", static_cast<unsigned>(getpid()), static_cast<unsigned>(file),
                  static_cast<unsigned long long>(place), static_cast<unsigned long long>(bytes[0]),
                  static_cast<unsigned long long>(bytes[1]));
}

struct Key {
    pid_t owner;
    int file;
    uint64_t place;
    uint64_t random;
};

bool read_key(const std::string &text, Key *key) {
    uint64_t owner = 0;
    uint64_t file = 0;
    if (text.size() != SHARING_KEY_CHARACTERS || !part(text, 0, 8, &owner) || !part(text, 8, 8, &file) ||
        !part(text, 16, 16, &key->place) || !part(text, 32, 16, &key->random)) {
        return false;
    }
    key->owner = static_cast<pid_t>(owner);
    key->file = static_cast<int>(file);
    return true;
}

// A process that has ended may wait to be collected: then its number is still there.
bool runs(pid_t pid) {
    const Descriptor process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
    if (!process) {
        return errno != ESRCH;
    }
    pollfd state{process.get(), POLLIN, 0};
    return poll(&state, 1, 0) <= 0; // a signal is no end
}

// The owner's memory file; a reason if there is none. Another file may have its number meanwhile, and opening one can have
// effects: its name is looked at first.
std::string open_owner(const Key &key, Descriptor *file) {
    const int pid = static_cast<int>(key.owner);
    if (!runs(key.owner)) {
        return format("process %d, which shared it, has ended", pid);
    }
    const std::string path = format("/proc/%d/fd/%d", pid, key.file);
    char name[sizeof(FILE_NAME)] = {};
    const ssize_t length = readlink(path.c_str(), name, sizeof(name));
    if (length < 0 && errno == EACCES) {
        return format("process %d belongs to another user", pid);
    }
    if (length != static_cast<ssize_t>(sizeof(FILE_NAME) - 1) || std::memcmp(name, FILE_NAME, sizeof(name) - 1) != 0) {
        return format("process %d has not shared it", pid);
    }
    file->reset(open(path.c_str(), O_RDWR | O_CLOEXEC));
    return *file ? "" : system_error(path.c_str());
}

// The record as it is in the file, if it is that of the key: mapped only when it is known to be right.
std::string read_record(const std::string &text, const Key &key, const Descriptor &file, Record *record) {
    const auto bytes = static_cast<ssize_t>(sizeof(Record));
    if (key.place % PAGE_BYTES != 0 ||
        pread(file.get(), static_cast<void *>(record), sizeof(Record), static_cast<off_t>(key.place)) != bytes) {
        return "it names no place in the memory file";
    }
    const int pid = static_cast<int>(key.owner);
    if (text != std::string(record->key, strnlen(record->key, sizeof(record->key)))) {
        return format("process %d has closed it", pid);
    }
    if (record->sharing != Sharing::Live) {
        return format("process %d has %s it", pid, record->sharing == Sharing::Ended ? "closed" : "freed");
    }
    if (record->offset > record->arena_bytes || record->bytes > record->arena_bytes - record->offset ||
        key.place > record->arena_bytes - sizeof(Record)) {
        return "it names a place outside the memory file";
    }
    return "";
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

struct Places {
    std::shared_mutex mutex;
    std::multimap<const char *, ImportedPlace> all; // two keys of the same memory may lead to the same address
    // Queued work may still use memory that was closed too early, so it stays mapped as long as its process lives.
    std::vector<std::shared_ptr<PeerArena>> closed;
    std::atomic<bool> any{false}; // spares everybody else the search
};

Places &places() {
    static Places &object = *new Places;
    return object;
}

// All that hold the address; those that begin at the same one differ in their length.
template <class Take>
bool search(const void *address, Take take) {
    if (!places().any) {
        return false;
    }
    const auto *byte = static_cast<const char *>(address);
    std::shared_lock<std::shared_mutex> lock(places().mutex);
    auto next = places().all.upper_bound(byte);
    if (next == places().all.begin()) {
        return false;
    }
    const auto same = places().all.equal_range(std::prev(next)->first);
    return std::any_of(same.first, same.second, [&](const auto &entry) {
        const ImportedPlace &place = entry.second;
        return byte < entry.first + place.range->bytes() && take(place, static_cast<uint64_t>(byte - entry.first));
    });
}

} // namespace

SharedRange::SharedRange(int device, uint64_t offset, uint64_t bytes, bool anyone)
    : device_(device), place_(arena(device).control_allocate(sizeof(Record))),
      record_(reinterpret_cast<Record *>(arena(device).view().base + place_)) {
    const ArenaView &view = arena(device).view();
    key_ = make_key(view.file, place_, &record_->random);
    record_->device = static_cast<uint32_t>(physical_device(device));
    record_->offset = offset;
    record_->bytes = bytes;
    record_->anyone = anyone ? 1 : 0;
    copy_text(record_->key, sizeof(record_->key), key_);
    std::memcpy(record_->identity, view.identity, sizeof(record_->identity));
    record_->arena_bytes = view.bytes;
    record_->sharing = Sharing::Live;
}

SharedRange::~SharedRange() { arena(device_).control_free(place_); }

bool SharedRange::live() const { return record_->sharing == Sharing::Live; }

bool SharedRange::anyone() const { return record_->anyone != 0; }

void SharedRange::allow(const int32_t *pids, size_t count) {
    if (count > GUESTS) {
        fail(DRIVER_ERROR, "%zu processes: the mock knows %zu", count, GUESTS);
    }
    size_t named = 0;
    for (size_t i = 0; i < count; i++) {
        if (pids[i] == 0 || pids[i] == getpid()) {
            continue; // the owner is none of them
        }
        if (admit(*record_, pids[i], true) == nullptr) {
            fail(DRIVER_ERROR, "more than %zu processes for one key", GUESTS);
        }
        named++;
    }
    if (named == 0) {
        fail(DRIVER_ERROR, "none of the %zu numbers is another process", count);
    }
}

size_t SharedRange::importers() const {
    return static_cast<size_t>(
        std::count_if(std::begin(record_->guests), std::end(record_->guests), [](const Guest &guest) {
        return guest.pid != 0 && guest.pid != getpid() && guest.open != 0 && runs(guest.pid);
    }));
}

void SharedRange::end(Sharing how) { record_->sharing = how; }

std::shared_ptr<ImportedRange> ImportedRange::open(const std::string &text, Refusal *refusal) {
    *refusal = {false, "it is none of this library"};
    Key key{};
    auto range = std::make_shared<ImportedRange>();
    Record found{};
    if (!read_key(text, &key) || !(refusal->why = open_owner(key, &range->file_)).empty() ||
        !(refusal->why = read_record(text, key, range->file_, &found)).empty()) {
        return nullptr;
    }
    const std::string identity(reinterpret_cast<const char *>(found.identity), sizeof(found.identity));
    std::string error;
    range->arena_ = map_arena(identity, range->file_, found.arena_bytes, key.owner, &error);
    if (range->arena_ == nullptr) {
        fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "%s", error.c_str());
    }
    range->record_ = reinterpret_cast<Record *>(range->arena_->base() + key.place);
    Guest *guest = admit(*range->record_, getpid(), found.anyone != 0);
    if (guest == nullptr) {
        *refusal = {true, found.anyone != 0
                              ? format("%zu processes have imported it: the mock knows no more", GUESTS)
                              : format("process %d is not among those that its owner has named", getpid())};
        return nullptr;
    }
    range->key_ = text;
    range->random_ = key.random;
    range->owner_ = key.owner;
    range->physical_device_ = static_cast<int>(found.device);
    range->offset_ = found.offset;
    range->bytes_ = found.bytes;
    return range;
}

bool ImportedRange::known() const { return record_->random == random_; }

bool ImportedRange::live() const {
    const Sharing now = record_->sharing;
    return (now == Sharing::Live || now == Sharing::Left) && known();
}

void ImportedRange::enter() {
    Guest *guest = known() ? admit(*record_, getpid(), false) : nullptr;
    if (guest != nullptr) {
        guest->open++;
    }
}

void ImportedRange::leave() {
    Guest *guest = known() ? admit(*record_, getpid(), false) : nullptr;
    if (guest != nullptr && guest->open > 0) {
        guest->open--;
    }
}

void add_imported(const void *address, ImportedPlace place) {
    std::unique_lock<std::shared_mutex> lock(places().mutex);
    places().all.emplace(static_cast<const char *>(address), std::move(place));
    places().any = true;
}

void remove_imported(const void *address, const ImportedRange *range) {
    std::unique_lock<std::shared_mutex> lock(places().mutex);
    const auto same = places().all.equal_range(static_cast<const char *>(address));
    const auto found =
        std::find_if(same.first, same.second, [&](const auto &entry) { return entry.second.range.get() == range; });
    if (found == same.second) {
        return;
    }
    auto &closed = places().closed;
    if (std::find(closed.begin(), closed.end(), range->arena()) == closed.end()) {
        closed.push_back(range->arena());
    }
    closed.erase(std::remove_if(closed.begin(), closed.end(), [](const auto &one) { return !one->alive(); }),
                 closed.end());
    places().all.erase(found);
}

bool is_imported(const void *address) {
    return search(address, [](const ImportedPlace &, uint64_t) { return true; });
}

bool find_imported(const void *address, Region *region) {
    return search(address, [&](const ImportedPlace &place, uint64_t offset) {
        const ImportedRange &range = *place.range;
        if (!range.live()) {
            return false;
        }
        *region = {range.physical_device(), range.offset() + offset, range.bytes() - offset, true};
        return true;
    });
}

bool is_across_devices(const void *address) {
    return search(address, [](const ImportedPlace &place, uint64_t) { return place.across; });
}

} // namespace mock
