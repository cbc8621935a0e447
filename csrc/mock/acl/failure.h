// How a call of the ACL half fails: an exception inside, a code and a recent message outside.

#ifndef ASCEND_MOCK_ACL_FAILURE_H
#define ASCEND_MOCK_ACL_FAILURE_H

#include <exception>
#include <new>
#include <string>
#include <system_error>

#include "common.h"
#include "runtime.h"

namespace mock {

class Failure : public std::exception {
public:
    Failure(aclError code, std::string text) : code_(code), text_(std::move(text)) {}
    aclError code() const { return code_; }
    const char *what() const noexcept override { return text_.c_str(); }

private:
    aclError code_;
    std::string text_;
};

[[noreturn]] __attribute__((format(printf, 2, 3))) inline void fail(aclError code, const char *pattern, ...) {
    va_list list;
    va_start(list, pattern);
    std::string text = format_list(pattern, list);
    va_end(list);
    throw Failure(code, std::move(text));
}

template <class Pointer>
void require(const Pointer *pointer, const char *name) {
    if (pointer == nullptr) {
        fail(ACL_ERROR_INVALID_PARAM, "%s is NULL", name);
    }
}

// What aclrtGetLastError returns on this thread.
void set_last_error(aclError code);

inline aclError failed(const char *function, aclError code, const char *text) {
    set_last_error(code);
    set_recent_message(format("[%s] %s (%d)", function, text, code));
    return code;
}

// Runs the body of an exported function: nothing is thrown across the C border.
template <class Body>
aclError guarded(const char *function, Body body) noexcept {
    try {
        try {
            body();
            return ACL_SUCCESS;
        } catch (const Failure &failure) {
            return failed(function, failure.code(), failure.what());
        } catch (const std::bad_alloc &) {
            return failed(function, ACL_ERROR_RT_MEMORY_ALLOCATION, "the host has no memory left");
        } catch (const std::exception &error) {
            return failed(function, ACL_ERROR_INTERNAL_ERROR, error.what());
        }
    } catch (...) {
        return ACL_ERROR_INTERNAL_ERROR; // there was not even memory for the message
    }
}

} // namespace mock

#endif
