#include "deviate.h"

#include <array>

#include "failure.h"

namespace mock {
namespace {

constexpr const char *VARIABLE = "ASCEND_MOCK_DEVIATE";

// In the order of the enumeration.
constexpr std::array<const char *, static_cast<size_t>(Deviation::Count)> NAMES = {
    "copy_h2d",       "copy_d2h",          "copy_d2d",      "memset",      "event_early",    "wait_ignored",
    "sync_early",     "limit_ignored",     "soc_unknown",   "cores_zero",  "binary_refused", "function_missing",
    "launch_refused", "root_info_refused", "world_refused", "sub_refused", "rank_wrong",     "no_abort",
    "abort_deaf",     "no_rejoin",
};

struct Deviations {
    Deviations() {
        const char *text = environment(VARIABLE);
        std::string rest = text != nullptr ? text : "";
        while (!rest.empty()) {
            const size_t comma = rest.find(',');
            read(rest.substr(0, comma));
            rest = comma == std::string::npos ? "" : rest.substr(comma + 1);
        }
    }
    void read(const std::string &name) {
        for (size_t i = 0; i < NAMES.size(); i++) {
            if (name == NAMES[i]) {
                chosen[i] = true;
                return;
            }
        }
        unknown = unknown.empty() ? name : unknown;
        known = false;
    }
    std::array<bool, NAMES.size()> chosen{};
    bool known = true;
    std::string unknown;
};

const Deviations &deviations() {
    static const Deviations &object = *new Deviations;
    return object;
}

} // namespace

bool deviates(Deviation deviation) { return deviations().chosen[static_cast<size_t>(deviation)]; }

void check_deviations() {
    if (deviations().known) {
        return;
    }
    std::string names;
    for (const char *name : NAMES) {
        names += (names.empty() ? "" : ", ") + std::string(name);
    }
    fail(ACL_ERROR_INVALID_PARAM, "%s: no deviation is named [%s]; there are %s", VARIABLE,
         deviations().unknown.c_str(), names.c_str());
}

void refuse_if(Deviation deviation, aclError code, const char *what) {
    if (deviates(deviation)) {
        fail(code, "%s is refused because %s says so", what, VARIABLE);
    }
}

} // namespace mock
