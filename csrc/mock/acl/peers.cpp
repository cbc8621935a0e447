#include "peers.h"

#include <map>
#include <mutex>

#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "mapping.h"

namespace mock {
namespace {

struct Mapped {
    std::mutex mutex;
    std::map<std::string, std::weak_ptr<PeerArena>> arenas;
};

Mapped &mapped() {
    static Mapped &object = *new Mapped;
    return object;
}

std::shared_ptr<PeerArena> make_mapping(const Descriptor &file, uint64_t bytes, pid_t pid, std::string *error) {
    struct stat status {};
    if (fstat(file.get(), &status) != 0 || static_cast<uint64_t>(status.st_size) < bytes) {
        *error = format("the memory file of process %d is too short", pid);
        return nullptr;
    }
    void *base = map_aligned(file.get(), bytes);
    if (base == MAP_FAILED) {
        *error = format("no address space for the %llu MB of process %d (%s); ASCEND_MOCK_HBM_MB makes them fewer",
                        static_cast<unsigned long long>(bytes >> 20), pid, std::strerror(errno));
        return nullptr;
    }
    madvise(base, bytes, MADV_DONTDUMP);
    madvise(base, bytes, MADV_HUGEPAGE);
    return std::make_shared<PeerArena>(static_cast<char *>(base), bytes, pid);
}

} // namespace

PeerArena::PeerArena(char *base, uint64_t bytes, pid_t pid) : base_(base), bytes_(bytes), pid_(pid) {
    if (pid > 0) {
        process_.reset(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
    }
}

PeerArena::~PeerArena() { munmap(base_, bytes_); }

bool PeerArena::alive() const {
    if (!process_) {
        // No descriptor (an old kernel): ask for the process id. 0 is a process of a container that cannot be seen.
        return pid_ <= 0 || kill(pid_, 0) == 0 || errno != ESRCH;
    }
    pollfd process{process_.get(), POLLIN, 0};
    return poll(&process, 1, 0) <= 0; // a signal is no end
}

std::shared_ptr<PeerArena> map_arena(const std::string &identity, const Descriptor &file, uint64_t bytes, pid_t pid,
                                     std::string *error) {
    Mapped &all = mapped();
    std::lock_guard<std::mutex> lock(all.mutex);
    std::weak_ptr<PeerArena> &known = all.arenas[identity];
    std::shared_ptr<PeerArena> arena = known.lock();
    if (arena == nullptr) {
        arena = make_mapping(file, bytes, pid, error);
        known = arena;
    } else if (arena->bytes() < bytes) {
        *error = format("it says %llu bytes, and said %llu before", static_cast<unsigned long long>(bytes),
                        static_cast<unsigned long long>(arena->bytes()));
        return nullptr;
    }
    return arena;
}

} // namespace mock
