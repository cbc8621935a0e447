// Where the faults that HCCL_MOCK_FAULT asks for meet the exported calls.

#include "operation.h"

namespace mock {
namespace {

thread_local Injection waiting; // for the operation that this thread's call queues

// A name that no function has would never strike, and nobody would notice.
std::string unknown_function() {
    Dl_info info;
    if (dladdr(reinterpret_cast<void *>(&unknown_function), &info) == 0 || info.dli_fname == nullptr) {
        return {};
    }
    void *self = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    std::string unknown;
    for (const std::string &name : injected_functions()) {
        if (self != nullptr && dlsym(self, name.c_str()) == nullptr) {
            unknown = name;
        }
    }
    if (self != nullptr) {
        dlclose(self);
    }
    return unknown;
}

// Operations have their fault on the stream.
bool is_operation(const std::string &function) {
    if (function == "HcclAlltoAllVC") {
        return true; // another way to say an HcclAlltoAllV
    }
    constexpr uint32_t MOST = 60; // kinds of operations have a bit each in a word
    for (uint32_t op = 1; op < MOST; op++) {
        if (static_cast<Op>(op) != Op::Group && function == op_name(static_cast<Op>(op))) {
            return true;
        }
    }
    return false;
}

} // namespace

Injected::Injected(const char *function) {
    static const std::string &unknown = *new std::string(unknown_function());
    if (!unknown.empty()) {
        fault(HCCL_E_PARA,
              "EI0001: environment variable HCCL_MOCK_FAULT names %s, which is no function of this library",
              unknown.c_str());
    }
    std::string error;
    if (!next_injection(current_device(), function, &injection_, &error)) {
        throw Fault(HCCL_E_PARA, error);
    }
    if (!injection_) {
        return;
    }
    if (is_operation(function)) {
        waiting = injection_;
        injection_ = {};
        return;
    }
    static const Cancelled never{false};
    const Outcome outcome = strike(injection_, function, never);
    if (outcome.code != ACL_SUCCESS) {
        throw Fault(static_cast<HcclResult>(outcome.code), outcome.text);
    }
}

Injected::~Injected() { waiting = {}; }

Injection Injected::take() { return std::exchange(waiting, Injection{}); }

void Injected::give(const Injection &injection) { waiting = injection; }

void Injected::after() const {
    static const Cancelled never{false};
    slow_down(injection_, start_, never);
}

} // namespace mock
