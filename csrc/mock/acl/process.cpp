// The process as a whole: initialisation, versions, the recent message of each thread.

#include <mutex>
#include <set>

#include "deviate.h"
#include "device.h"
#include "failure.h"

namespace mock {
namespace {

// Plain arrays: they need no destructor, so a message can be read at any time until the thread ends.
struct Messages {
    char recent[4096];
    char returned[4096];
};
thread_local Messages messages;
thread_local aclError last_error = ACL_SUCCESS;

struct Process {
    std::mutex mutex;
    uint64_t users = 0;     // calls of aclInit since the last aclFinalize
    bool finalized = false; // it was initialised and is no more
    std::set<std::string> warnings;
};

Process &process() {
    static Process &object = *new Process; // never destroyed: worker threads may outlive exit handlers
    return object;
}

__attribute__((constructor)) void stay_loaded() { keep_library_of(reinterpret_cast<void *>(&stay_loaded)); }

const char *cann_text() {
    const char *text = environment("ASCEND_MOCK_CANN");
    return text != nullptr ? text : "8.3.RC1";
}

struct Version {
    int major = 0;
    int minor = 0;
    std::string release; // RC1, T1 or a plain number
};

Version cann() {
    Version version;
    char release[32] = "";
    if (std::sscanf(cann_text(), "%d.%d.%31s", &version.major, &version.minor, release) < 2) {
        fail(ACL_ERROR_INVALID_PARAM, "ASCEND_MOCK_CANN [%s] is not a version such as 8.3.RC1", cann_text());
    }
    version.release = release;
    return version;
}

void require_initialized() {
    if (process().users == 0) {
        fail(process().finalized ? ACL_ERROR_REPEAT_FINALIZE : ACL_ERROR_UNINITIALIZE, "ACL is not initialised");
    }
}

} // namespace

void set_last_error(aclError code) { last_error = code; }

void set_recent_message(const std::string &text) { copy_text(messages.recent, sizeof(messages.recent), text); }

void warn_once(const std::string &text) {
    {
        std::lock_guard<std::mutex> lock(process().mutex);
        if (!process().warnings.insert(text).second) {
            return;
        }
    }
    if (environment("ASCEND_MOCK_QUIET") == nullptr) {
        std::fprintf(stderr, "[ascend mock] warning: %s\n", text.c_str());
    }
}

int cann_version() {
    static const int number = [] {
        try {
            const Version version = cann();
            return version.major * 100 + version.minor;
        } catch (const std::exception &) {
            return 803;
        }
    }();
    return number;
}

} // namespace mock

using namespace mock;

const char *adasum_mock_version(void) { return ASCEND_MOCK_VERSION; }

aclError aclInit(const char *) {
    return guarded("aclInit", [] {
        cann();
        check_deviations();
        std::lock_guard<std::mutex> lock(process().mutex);
        process().finalized = false;
        if (process().users++ > 0) {
            fail(ACL_ERROR_REPEAT_INITIALIZE, "ACL is initialised already; this does no harm");
        }
    });
}

// Ends it for the whole process, however often it was initialised.
aclError aclFinalize(void) {
    return guarded("aclFinalize", [] {
        std::lock_guard<std::mutex> lock(process().mutex);
        require_initialized();
        process().users = 0;
        process().finalized = true;
    });
}

// Takes one call of aclInit back; the last one ends it.
aclError aclFinalizeReference(uint64_t *refCount) {
    return guarded("aclFinalizeReference", [&] {
        std::lock_guard<std::mutex> lock(process().mutex);
        require_initialized();
        process().users--;
        process().finalized = process().users == 0;
        if (refCount != nullptr) {
            *refCount = process().users;
        }
    });
}

aclError aclrtGetLastError(aclrtLastErrLevel level) {
    if (level != ACL_RT_THREAD_LEVEL) {
        return ACL_ERROR_INVALID_PARAM;
    }
    return std::exchange(last_error, ACL_SUCCESS);
}

aclError aclrtPeekAtLastError(aclrtLastErrLevel level) {
    return level == ACL_RT_THREAD_LEVEL ? last_error : ACL_ERROR_INVALID_PARAM;
}

// Hands the message over and forgets it, as the vendor's does; NULL if there is none.
const char *aclGetRecentErrMsg(void) {
    if (messages.recent[0] == '\0') {
        return nullptr;
    }
    std::memcpy(messages.returned, messages.recent, sizeof(messages.returned));
    messages.recent[0] = '\0';
    return messages.returned;
}

const char *aclrtGetSocName(void) { return deviates(Deviation::SocUnknown) ? "AscendUnknown" : soc().name.c_str(); }

aclError aclrtGetVersion(int32_t *majorVersion, int32_t *minorVersion, int32_t *patchVersion) {
    return guarded("aclrtGetVersion", [&] {
        require(majorVersion, "majorVersion");
        require(minorVersion, "minorVersion");
        require(patchVersion, "patchVersion");
        // Interface 1.13 came with CANN 8.1, 1.16 with 8.5, 1.17 with 9.0.
        const int version = cann_version();
        *majorVersion = 1;
        *minorVersion = version >= 900 ? 17 : version >= 805 ? 16 : version >= 803 ? 15 : version >= 802 ? 14 : 13;
        *patchVersion = 0;
    });
}

aclError aclsysGetCANNVersion(aclCANNPackageName name, aclCANNPackageVersion *version) {
    return guarded("aclsysGetCANNVersion", [&] {
        require(version, "version");
        if (name < ACL_PKG_NAME_CANN || name > ACL_PKG_NAME_DRIVER) {
            fail(ACL_ERROR_INVALID_PARAM, "no package has number %d", static_cast<int>(name));
        }
        const Version parts = cann();
        *version = {};
        copy_text(version->version, sizeof(version->version), cann_text());
        copy_text(version->majorVersion, sizeof(version->majorVersion), std::to_string(parts.major));
        copy_text(version->minorVersion, sizeof(version->minorVersion), std::to_string(parts.minor));
        copy_text(version->releaseVersion, sizeof(version->releaseVersion), parts.release);
    });
}
