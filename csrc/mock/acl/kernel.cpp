// Kernels: a binary is a shared object for the host whose functions take 64-bit arguments; a launch calls one of them
// once per block, in order, on the thread that runs the stream's task.

#include "kernel.h"

#include <cstring>
#include <mutex>
#include <vector>

#include <dlfcn.h>
#include <sys/mman.h>

#include "deviate.h"
#include "device.h"
#include "registry.h"

namespace mock {

// Tells a kernel binary that wants to know how many bytes from an address on are in one allocation.
int find_bytes(uint64_t address, uint64_t *left) {
    Region region{};
    if (!find_memory(reinterpret_cast<const void *>(address), &region)) {
        return 0;
    }
    *left = region.bytes;
    return 1;
}

class Binary {
public:
    // `file`, if there is one, is what `path` names.
    explicit Binary(const char *path, Descriptor file = Descriptor())
        : path_(path), file_(std::move(file)), library_(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
        if (library_ == nullptr) {
            fail(ACL_ERROR_INVALID_FILE, "cannot load the kernel binary: %s", dlerror());
        }
        set_block_ = reinterpret_cast<void (*)(uint64_t, uint64_t)>(dlsym(library_, "ascend_mock_set_block"));
        if (set_block_ == nullptr) {
            close();
            fail(ACL_ERROR_INVALID_FILE,
                 "%s is a shared object, but no kernel binary for the mock: it does not export "
                 "ascend_mock_set_block",
                 path);
        }
        take_fault_ = reinterpret_cast<const char *(*)()>(dlsym(library_, "ascend_mock_take_fault"));
        using Finder = int (*)(uint64_t, uint64_t *);
        const auto set_finder = reinterpret_cast<void (*)(Finder)>(dlsym(library_, "ascend_mock_set_finder"));
        if (set_finder != nullptr) {
            set_finder(find_bytes);
        }
    }
    ~Binary() { close(); }
    Binary(const Binary &) = delete;
    Binary &operator=(const Binary &) = delete;

    void *symbol(const char *name) const {
        void *address = dlsym(library_, name);
        if (address == nullptr) {
            fail(ACL_ERROR_RT_PARAM_INVALID, "%s has no kernel %s", path_.c_str(), name);
        }
        return address;
    }
    void set_block(uint64_t index, uint64_t count) const { set_block_(index, count); }
    // What a kernel did outside device memory; nullptr if nothing, or if the binary does not look.
    const char *take_fault() const { return take_fault_ != nullptr ? take_fault_() : nullptr; }

    std::mutex mutex;
    std::vector<void *> functions; // handles that were made for it

private:
    void close() {
        dlclose(library_);
        // A library that stays all the same keeps the number of its file, or the next one of that number would be taken for it.
        if (void *still = file_ ? dlopen(path_.c_str(), RTLD_LAZY | RTLD_NOLOAD) : nullptr) {
            dlclose(still);
            (void)file_.release();
        }
    }

    const std::string path_;
    Descriptor file_;
    void *const library_;
    void (*set_block_)(uint64_t, uint64_t) = nullptr;
    const char *(*take_fault_)() = nullptr;
};

namespace {

// The bytes of a binary as a file that has no name.
Descriptor file_of(const void *data, size_t bytes) {
    Descriptor file(memfd_create("ascend-mock-kernels", MFD_CLOEXEC));
    const auto *next = static_cast<const char *>(data);
    while (file && bytes > 0) {
        const ssize_t written = write(file.get(), next, bytes);
        if (written < 0) {
            fail(ACL_ERROR_RT_INTERNAL_ERROR, "%s", system_error("write").c_str());
        }
        next += written;
        bytes -= static_cast<size_t>(written);
    }
    if (!file) {
        fail(ACL_ERROR_RT_INTERNAL_ERROR, "%s", system_error("memfd_create").c_str());
    }
    return file;
}

Registry<Binary> &binaries() {
    static Registry<Binary> &object = *new Registry<Binary>;
    return object;
}

Registry<Function> &functions() {
    static Registry<Function> &object = *new Registry<Function>;
    return object;
}

// The bytes of a binary that is not loaded yet.
Registry<std::string> &images() {
    static Registry<std::string> &object = *new Registry<std::string>;
    return object;
}

void *load_from_memory(const void *data, size_t bytes) {
    require_device();
    Descriptor file = file_of(data, bytes);
    const std::string path = format("/proc/self/fd/%d", file.get());
    return binaries().add(std::make_shared<Binary>(path.c_str(), std::move(file)));
}

} // namespace

Function::Function(std::shared_ptr<Binary> binary, const char *name)
    : binary_(std::move(binary)), name_(name), address_(binary_->symbol(name)) {}

// Arguments that a function does not take are harmless in the calling conventions of Linux, so that one call with
// all that are possible serves every kernel.
void Function::run(uint64_t blocks, const uint64_t *values, size_t count) const {
    using U = uint64_t;
    uint64_t a[MAX_ARGUMENTS] = {};
    std::memcpy(a, values, count * sizeof(uint64_t));
    const auto kernel = reinterpret_cast<void (*)(U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U)>(address_);
    for (uint64_t block = 0; block < blocks; block++) {
        binary_->set_block(block, blocks);
        kernel(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13], a[14], a[15]);
        if (const char *fault = binary_->take_fault()) {
            throw Failure(ACL_ERROR_RT_AICORE_EXCEPTION,
                          format("block %llu: %s", static_cast<unsigned long long>(block), fault));
        }
    }
}

std::shared_ptr<Function> find_function(aclrtFuncHandle handle) {
    require(static_cast<char *>(handle), "funcHandle");
    std::shared_ptr<Function> function = functions().find(handle);
    if (function == nullptr) {
        fail(ACL_ERROR_RT_INVALID_HANDLE, "the handle is not a kernel of a loaded binary");
    }
    return function;
}

} // namespace mock

using namespace mock;

aclError aclrtBinaryLoadFromFile(const char *binPath, aclrtBinaryLoadOptions *, aclrtBinHandle *binHandle) {
    return guarded("aclrtBinaryLoadFromFile", [&] {
        require(binPath, "binPath");
        require(binHandle, "binHandle");
        require_device();
        refuse_if(Deviation::BinaryRefused, ACL_ERROR_RT_INTERNAL_ERROR, "the binary");
        if (binPath[0] != '/') {
            fail(ACL_ERROR_RT_PARAM_INVALID, "binPath [%s] is not absolute", binPath);
        }
        *binHandle = binaries().add(std::make_shared<Binary>(binPath));
    });
}

aclError aclrtBinaryLoadFromData(const void *data, size_t length, const aclrtBinaryLoadOptions *options,
                                 aclrtBinHandle *binHandle) {
    return guarded("aclrtBinaryLoadFromData", [&] {
        require(static_cast<const char *>(data), "data");
        require(binHandle, "binHandle");
        if (length == 0 || (options != nullptr && options->numOpt > 0 && options->options == nullptr)) {
            fail(ACL_ERROR_INVALID_PARAM, "length is 0 or options is NULL");
        }
        *binHandle = load_from_memory(data, length);
    });
}

// NULL on failure.
aclrtBinary aclrtCreateBinary(const void *data, size_t dataLen) {
    aclrtBinary made = nullptr;
    guarded("aclrtCreateBinary", [&] {
        require(static_cast<const char *>(data), "data");
        if (dataLen == 0) {
            fail(ACL_ERROR_INVALID_PARAM, "dataLen is 0");
        }
        made = images().add(std::make_shared<std::string>(static_cast<const char *>(data), dataLen));
    });
    return made;
}

aclError aclrtBinaryLoad(const aclrtBinary binary, aclrtBinHandle *binHandle) {
    return guarded("aclrtBinaryLoad", [&] {
        require(static_cast<char *>(binary), "binary");
        require(binHandle, "binHandle");
        const std::shared_ptr<std::string> image = images().find(binary);
        if (image == nullptr) {
            fail(ACL_ERROR_RT_INVALID_HANDLE, "the handle is not what aclrtCreateBinary returned");
        }
        *binHandle = load_from_memory(image->data(), image->size());
    });
}

aclError aclrtDestroyBinary(aclrtBinary binary) {
    return guarded("aclrtDestroyBinary", [&] {
        require(static_cast<char *>(binary), "binary");
        if (images().remove(binary) == nullptr) {
            fail(ACL_ERROR_RT_INVALID_HANDLE, "the handle is not what aclrtCreateBinary returned");
        }
    });
}

aclError aclrtBinaryGetFunction(const aclrtBinHandle binHandle, const char *kernelName, aclrtFuncHandle *funcHandle) {
    return guarded("aclrtBinaryGetFunction", [&] {
        require(static_cast<char *>(binHandle), "binHandle");
        require(kernelName, "kernelName");
        require(funcHandle, "funcHandle");
        require_device();
        refuse_if(Deviation::FunctionMissing, ACL_ERROR_RT_PARAM_INVALID, "the kernel");
        const std::shared_ptr<Binary> binary = binaries().find(binHandle);
        if (binary == nullptr) {
            fail(ACL_ERROR_RT_INVALID_HANDLE, "the handle is not a loaded binary");
        }
        *funcHandle = functions().add(std::make_shared<Function>(binary, kernelName));
        std::lock_guard<std::mutex> lock(binary->mutex);
        binary->functions.push_back(*funcHandle);
    });
}

// Launches that are queued keep the code; the handles end here.
aclError aclrtBinaryUnLoad(aclrtBinHandle binHandle) {
    return guarded("aclrtBinaryUnLoad", [&] {
        require(static_cast<char *>(binHandle), "binHandle");
        const std::shared_ptr<Binary> binary = binaries().remove(binHandle);
        if (binary == nullptr) {
            fail(ACL_ERROR_RT_INVALID_HANDLE, "the handle is not a loaded binary");
        }
        std::lock_guard<std::mutex> lock(binary->mutex);
        for (void *function : binary->functions) {
            functions().remove(function);
        }
    });
}
