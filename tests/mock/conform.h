// Conformance cases: one named behaviour of the vendor's libraries each, with the fact that it checks above it. "Source" names
// a repository, a file and a line: runtime is hicann/runtime at 681ef76, hcomm libochao-huawei/hcomm at 8958adb, hccl hicann/hccl
// at 09300b7. Cases without a source are facts of the vendor's interface references.

#ifndef ADASUM_TESTS_CONFORM_H
#define ADASUM_TESTS_CONFORM_H

#include "harness.h"

namespace harness {

using Environment = std::vector<std::pair<std::string, std::string>>;

inline std::vector<Case> &behaviours() {
    static std::vector<Case> list;
    return list;
}

// Declared once per case, at namespace scope.
struct Behaviour {
    Behaviour(const char *name, std::function<void(const Rank &)> body, Environment environment = {})
        : Behaviour(name, Ranks::Threads, 1, std::move(body), std::move(environment)) {}
    Behaviour(const char *name, Ranks kind, uint32_t ranks, std::function<void(const Rank &)> body,
              Environment environment = {}) {
        behaviours().push_back({name, kind, ranks, std::move(body), std::move(environment)});
    }
};

// Runs them all, or those whose names hold one of the arguments, and says how many there are.
inline int conform(int argc, char **argv) {
    const int code = run(argc, argv, behaviours());
    if (argc == 1) {
        std::printf("%zu behaviours\n", behaviours().size());
    }
    return code;
}

// A task that keeps a stream busy.
inline void sleep_in_stream(aclrtStream stream, int ms) {
    OK(aclrtLaunchHostFunc(stream, [](void *time) { pause_ms(static_cast<int>(reinterpret_cast<intptr_t>(time))); },
                           reinterpret_cast<void *>(static_cast<intptr_t>(ms))));
}

} // namespace harness

#endif
