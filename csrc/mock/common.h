// Small helpers that both libraries of the mock use: text, copies, hashes, environment, file descriptors, clock.

#ifndef ASCEND_MOCK_COMMON_H
#define ASCEND_MOCK_COMMON_H

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include <dlfcn.h>
#include <signal.h>
#include <unistd.h>

namespace mock {

using Clock = std::chrono::steady_clock;

inline std::string format_list(const char *pattern, va_list list) {
    va_list copy;
    va_copy(copy, list);
    const int length = std::vsnprintf(nullptr, 0, pattern, copy);
    va_end(copy);
    if (length <= 0) {
        return {};
    }
    std::string text(static_cast<size_t>(length) + 1, '\0');
    std::vsnprintf(&text[0], text.size(), pattern, list);
    text.pop_back();
    return text;
}

__attribute__((format(printf, 1, 2))) inline std::string format(const char *pattern, ...) {
    va_list list;
    va_start(list, pattern);
    std::string text = format_list(pattern, list);
    va_end(list);
    return text;
}

// Copies text into a fixed field of a shared structure; always terminated.
inline void copy_text(char *field, size_t size, const std::string &text) {
    const size_t length = text.size() < size ? text.size() : size - 1;
    std::memcpy(field, text.data(), length);
    field[length] = '\0';
}

// Copies bytes, which may overlap. In pieces, as the C library writes whole cache lines only of what fits the second cache. Of more
// it reads each line before it writes it, and where another core had these lines, as it has where results return, that takes
// three times as long (docs/costs.md).
inline void copy_bytes(void *to, const void *from, size_t bytes) {
    constexpr size_t PIECE = 65536;
    char *target = static_cast<char *>(to);
    const char *source = static_cast<const char *>(from);
    const bool overlap = target < source + bytes && source < target + bytes;
    const size_t piece = overlap ? bytes : PIECE;
    for (size_t done = 0; done < bytes; done += piece) {
        std::memmove(target + done, source + done, std::min(piece, bytes - done));
    }
}

inline std::string system_error(const char *call) { return format("%s: %s", call, std::strerror(errno)); }

// The owner of one file descriptor.
class Descriptor {
public:
    Descriptor() = default;
    explicit Descriptor(int number) : number_(number) {}
    Descriptor(Descriptor &&other) noexcept : number_(std::exchange(other.number_, -1)) {}
    Descriptor &operator=(Descriptor &&other) noexcept {
        reset(std::exchange(other.number_, -1));
        return *this;
    }
    Descriptor(const Descriptor &) = delete;
    Descriptor &operator=(const Descriptor &) = delete;
    ~Descriptor() { reset(); }

    int get() const { return number_; }
    int release() { return std::exchange(number_, -1); }
    explicit operator bool() const { return number_ >= 0; }
    void reset(int number = -1) {
        if (number_ >= 0) {
            ::close(number_);
        }
        number_ = number;
    }

private:
    int number_ = -1;
};

// While it lives, threads that this one makes block all signals: the client's handlers must not run on threads that it knows
// nothing of.
class SignalsBlocked {
public:
    SignalsBlocked() {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    SignalsBlocked(const SignalsBlocked &) = delete;
    SignalsBlocked &operator=(const SignalsBlocked &) = delete;

private:
    sigset_t before_;
};

// FNV-1a. The names made from it only have to differ; who may connect is decided by the user id.
inline uint64_t hash64(const std::string &text, uint64_t seed) {
    uint64_t value = seed;
    for (const char c : text) {
        value = (value ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
    }
    return value ^ (value >> 29);
}

// 128 bits as 32 hexadecimal digits.
inline std::string digest(const std::string &text) {
    const uint64_t first = hash64(text, 14695981039346656037ULL);
    const uint64_t second = hash64(text, first ^ 0x9e3779b97f4a7c15ULL);
    return format("%016llx%016llx", static_cast<unsigned long long>(first), static_cast<unsigned long long>(second));
}

// Value of an environment variable; empty counts as not set.
inline const char *environment(const char *name) {
    const char *value = std::getenv(name);
    return value != nullptr && *value != '\0' ? value : nullptr;
}

// Reads a whole decimal number; false for anything else.
inline bool parse_number(const char *text, long long low, long long high, long long *value) {
    if (text == nullptr || *text == '\0' || *text == ' ') {
        return false;
    }
    char *end = nullptr;
    errno = 0;
    const long long number = std::strtoll(text, &end, 10);
    if (errno != 0 || *end != '\0' || number < low || number > high) {
        return false;
    }
    *value = number;
    return true;
}

// Threads run code of both libraries until the process ends, so they must stay mapped after a dlclose. Given an address
// in a library, keeps this library.
inline void keep_library_of(const void *address) {
    Dl_info info;
    if (dladdr(address, &info) != 0 && info.dli_fname != nullptr) {
        dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
    }
}

inline double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

} // namespace mock

#endif
