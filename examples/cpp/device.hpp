// What the trainer needs of ACL: a stream, and tensors in device memory.
#ifndef DEVICE_HPP
#define DEVICE_HPP

#include <acl/acl.h>

#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

inline void check_acl(aclError code, const char *call) {
    if (code != ACL_SUCCESS) {
        throw std::runtime_error(std::string(call) + " failed with code " + std::to_string(code));
    }
}

class Stream {
public:
    Stream() { check_acl(aclrtCreateStream(&stream_), "aclrtCreateStream"); }
    ~Stream() { aclrtDestroyStream(stream_); }
    Stream(const Stream &) = delete;
    Stream &operator=(const Stream &) = delete;

    aclrtStream get() const { return stream_; }

private:
    aclrtStream stream_ = nullptr;
};

// Device memory for a list of tensors.
class DeviceTensors {
public:
    explicit DeviceTensors(const std::vector<std::vector<float>> &tensors) {
        for (const std::vector<float> &tensor : tensors) {
            void *memory = nullptr;
            check_acl(aclrtMalloc(&memory, tensor.size() * sizeof(float), ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
            addresses_.push_back(memory);
        }
    }
    ~DeviceTensors() {
        for (void *memory : addresses_) {
            aclrtFree(memory);
        }
    }
    DeviceTensors(const DeviceTensors &) = delete;
    DeviceTensors &operator=(const DeviceTensors &) = delete;

    const std::vector<void *> &addresses() const { return addresses_; }

    void upload(const std::vector<std::vector<float>> &tensors) {
        for (std::size_t i = 0; i < tensors.size(); ++i) {
            const std::size_t bytes = tensors[i].size() * sizeof(float);
            check_acl(aclrtMemcpy(addresses_[i], bytes, tensors[i].data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE),
                      "aclrtMemcpy");
        }
    }

    void download(std::vector<std::vector<float>> &tensors) const {
        for (std::size_t i = 0; i < tensors.size(); ++i) {
            const std::size_t bytes = tensors[i].size() * sizeof(float);
            check_acl(aclrtMemcpy(tensors[i].data(), bytes, addresses_[i], bytes, ACL_MEMCPY_DEVICE_TO_HOST),
                      "aclrtMemcpy");
        }
    }

private:
    std::vector<void *> addresses_;
};

#endif
