// How a call of the HCCL half fails: an exception inside, a code and a recent message outside.

#ifndef ASCEND_MOCK_HCCL_FAILURE_H
#define ASCEND_MOCK_HCCL_FAILURE_H

#include <exception>
#include <new>
#include <string>

#include "common.h"
#include "hccl/hccl.h"
#include "runtime.h"

namespace mock {

class Fault : public std::exception {
public:
    Fault(HcclResult code, std::string text) : code_(code), text_(std::move(text)) {}
    HcclResult code() const { return code_; }
    const std::string &text() const { return text_; }
    const char *what() const noexcept override { return text_.c_str(); }

private:
    HcclResult code_;
    std::string text_;
};

[[noreturn]] __attribute__((format(printf, 2, 3))) inline void fault(HcclResult code, const char *pattern, ...) {
    va_list list;
    va_start(list, pattern);
    std::string text = format_list(pattern, list);
    va_end(list);
    throw Fault(code, std::move(text));
}

template <class Pointer>
void require(const Pointer *pointer, const char *name) {
    if (pointer == nullptr) {
        fault(HCCL_E_PTR, "EI0003: %s is NULL", name);
    }
}

// For calls that ASCEND_MOCK_DEVIATE turns against the program.
inline void refuse_if(Deviation deviation, HcclResult code, const char *what) {
    if (deviates(deviation)) {
        fault(code, "EI9999: %s is refused because ASCEND_MOCK_DEVIATE says so", what);
    }
}

// The fault that HCCL_MOCK_FAULT asks for at an exported call, around whatever the call does. An operation takes the fault
// over and has it when it runs on its stream; any other call has it at once.
class Injected {
public:
    explicit Injected(const char *function);
    ~Injected();
    Injected(const Injected &) = delete;
    Injected &operator=(const Injected &) = delete;
    // For the operation that this thread's call queues; and back, for one that it queues later.
    static Injection take();
    static void give(const Injection &injection);
    void after() const;

private:
    Injection injection_;
    const Clock::time_point start_ = Clock::now();
};

// Runs the body of an exported function: nothing is thrown across the C border.
template <class Body>
HcclResult guarded(const char *function, Body body) noexcept {
    try {
        try {
            const Injected injected(function);
            body();
            injected.after();
            return HCCL_SUCCESS;
        } catch (const Fault &failure) {
            set_recent_message(
                format("[%s] %s (HcclResult %d)", function, failure.what(), static_cast<int>(failure.code())));
            return failure.code();
        } catch (const std::bad_alloc &) {
            set_recent_message(format("[%s] the host has no memory left", function));
            return HCCL_E_MEMORY;
        } catch (const std::exception &error) {
            set_recent_message(format("[%s] %s", function, error.what()));
            return HCCL_E_INTERNAL;
        }
    } catch (...) {
        return HCCL_E_INTERNAL; // there was not even memory for the message
    }
}

} // namespace mock

#endif
