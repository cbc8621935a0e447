#include "secret.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "failure.h"

namespace mock {
namespace {

constexpr size_t FEWEST = 16;
constexpr size_t MOST = 4096;
constexpr mode_t OTHERS = 077;

[[noreturn]] void refuse(const char *path, const std::string &reason) {
    fault(HCCL_E_PARA, "EI0001: environment variable ADASUM_JOB_SECRET_FILE [%s]: %s", path, reason.c_str());
}

std::string read_secret(const char *path) {
    // Without O_NONBLOCK a named pipe would wait for a writer.
    const Descriptor file(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat facts {};
    if (!file || fstat(file.get(), &facts) != 0) {
        refuse(path, std::strerror(errno));
    }
    if (!S_ISREG(facts.st_mode)) {
        refuse(path, "not a regular file");
    }
    if (facts.st_uid != geteuid()) {
        refuse(path, format("it belongs to user %u, this process to user %u", facts.st_uid, geteuid()));
    }
    if ((facts.st_mode & OTHERS) != 0) {
        refuse(path, format("its mode is %04o, so that others may use it", facts.st_mode & 07777U));
    }
    std::string text(MOST + 1, '\0');
    const ssize_t count = read(file.get(), &text[0], text.size());
    if (count < 0) {
        refuse(path, std::strerror(errno));
    }
    if (static_cast<size_t>(count) > MOST) {
        refuse(path, format("it has more than %zu bytes", MOST));
    }
    text.resize(static_cast<size_t>(count));
    text.erase(text.find_last_not_of(" \t\r\n") + 1);
    return text;
}

} // namespace

std::string job_secret() {
    const char *direct = environment("ADASUM_JOB_SECRET");
    const char *path = environment("ADASUM_JOB_SECRET_FILE");
    if (direct == nullptr && path == nullptr) {
        return {};
    }
    if (direct != nullptr && path != nullptr) {
        fault(HCCL_E_PARA, "EI0001: environment variables ADASUM_JOB_SECRET and ADASUM_JOB_SECRET_FILE are both set");
    }
    std::string secret = direct != nullptr ? direct : read_secret(path);
    if (secret.size() < FEWEST) {
        fault(HCCL_E_PARA, "EI0001: environment variable %s: the secret has %zu bytes, at least %zu are needed",
              direct != nullptr ? "ADASUM_JOB_SECRET" : "ADASUM_JOB_SECRET_FILE", secret.size(), FEWEST);
    }
    return secret;
}

} // namespace mock
