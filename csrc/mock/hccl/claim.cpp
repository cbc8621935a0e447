#include "claim.h"

#include <mutex>
#include <set>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>

#include "failure.h"
#include "network.h"

namespace mock {
namespace {

// The first file that nobody else can use. It is empty for ever: claims are locks on places in it, which the kernel ends with
// the process, so that nothing is left behind.
Descriptor open_claims() {
    constexpr mode_t OTHERS = 077;
    const unsigned user = geteuid();
    std::vector<std::string> folders = {format("/run/user/%u", user), "/tmp"};
    if (const char *home = environment("HOME")) {
        const std::string cache = std::string(home) + "/.cache";
        mkdir(cache.c_str(), 0700);
        folders.insert(folders.begin() + 1, cache);
    }
    std::string reasons;
    for (const std::string &folder : folders) {
        const std::string path = folder + format("/ascend-mock-claims-%u", user);
        Descriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
        struct stat facts {};
        if (!file || fstat(file.get(), &facts) != 0) {
            reasons += format("; %s: %s", path.c_str(), std::strerror(errno));
        } else if (!S_ISREG(facts.st_mode) || facts.st_uid != user || (facts.st_mode & OTHERS) != 0) {
            reasons += format("; %s: other users may use it", path.c_str());
        } else {
            return file;
        }
    }
    fault(HCCL_E_SYSCALL, "EI9999: there is no file of this user for the claims of ranks%s", reasons.c_str());
}

// Locks belong to the process, and closing any descriptor of the file would end them all: it is opened once.
struct Claims {
    std::mutex mutex;
    Descriptor file = open_claims();
    std::set<off_t> own;
};

Claims &claims() {
    static Claims &object = *new Claims;
    return object;
}

// `place` as fcntl wants it.
struct flock lock_on(off_t place, short type) {
    struct flock lock {};
    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    lock.l_start = place;
    lock.l_len = 1;
    return lock;
}

[[noreturn]] void held(uint32_t rank, pid_t holder) {
    fault(
        HCCL_E_PARA,
        "EI0003: rank %u of this job is held by process %d%s already; different jobs over one ranktable need different "
        "values of HCCL_MOCK_JOB",
        rank, static_cast<int>(holder), holder == getpid() ? ", which is this process," : "");
}

} // namespace

Claim::Claim(const std::string &job, uint32_t rank) {
    const std::string name = format("%s %s %u", machine_identity().c_str(), job.c_str(), rank);
    place_ = static_cast<off_t>(hash64(name, 0) >> 2); // and one more is an off_t, too
    Claims &all = claims();
    std::lock_guard<std::mutex> guard(all.mutex);
    if (all.own.count(place_) != 0) {
        held(rank, getpid());
    }
    for (;;) {
        struct flock lock = lock_on(place_, F_WRLCK);
        if (fcntl(all.file.get(), F_SETLK, &lock) == 0) {
            all.own.insert(place_);
            return;
        }
        if ((errno != EACCES && errno != EAGAIN) || fcntl(all.file.get(), F_GETLK, &lock) != 0) {
            fault(HCCL_E_SYSCALL, "EI9999: %s", system_error("fcntl").c_str());
        }
        if (lock.l_type != F_UNLCK) { // else it ended just now
            held(rank, lock.l_pid);
        }
    }
}

Claim::~Claim() {
    Claims &all = claims();
    std::lock_guard<std::mutex> guard(all.mutex);
    struct flock lock = lock_on(place_, F_UNLCK);
    fcntl(all.file.get(), F_SETLK, &lock);
    all.own.erase(place_);
}

} // namespace mock
