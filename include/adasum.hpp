// AdaSum gradient reduction for Huawei Ascend NPUs: C++17 over adasum.h, header only.
//
// Every object owns one handle of the C interface and ends it; what is collective, stream-ordered or allowed from several
// threads is said in adasum.h. Failures are thrown as adasum::Error.
#ifndef ADASUM_HPP
#define ADASUM_HPP

#include "adasum.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace adasum {

// A call that failed: its status, the sentence, and the vendor's code (0 if none).
class Error : public std::runtime_error {
public:
    Error(adasum_status status, const std::string &message, std::int32_t vendor_code)
        : std::runtime_error(message), status_(status), vendor_code_(vendor_code) {}

    adasum_status status() const noexcept { return status_; }
    std::int32_t vendor_code() const noexcept { return vendor_code_; }

private:
    adasum_status status_;
    std::int32_t vendor_code_;
};

// Throws unless `status` is ADASUM_OK.
inline void check(adasum_status status) {
    if (status != ADASUM_OK) {
        throw Error(status, adasum_last_error(), adasum_last_vendor_code());
    }
}

// Throws if the library that is loaded has another interface than this header. Called before the first handle is made.
inline void check_abi() {
    const std::uint32_t found = adasum_abi_version();
    if (found != ADASUM_ABI_VERSION) {
        throw Error(ADASUM_UNSUPPORTED,
                    "libadasum has interface " + std::to_string(found) + ", this program was compiled for " +
                        std::to_string(ADASUM_ABI_VERSION),
                    0);
    }
}

namespace detail {

template <typename T, void (*destroy)(T *)> struct Destroy {
    void operator()(T *handle) const noexcept { destroy(handle); }
};

template <typename T, void (*destroy)(T *)> using Handle = std::unique_ptr<T, Destroy<T, destroy>>;

inline std::uint64_t milliseconds(std::chrono::milliseconds limit) {
    return limit.count() > 0 ? static_cast<std::uint64_t>(limit.count()) : 0;
}

} // namespace detail

// "cann" or "mock".
inline std::string backend() {
    check_abi();
    const char *name = nullptr;
    check(adasum_backend(&name));
    return name;
}

// Choices of a reducer; each setter returns the options, so that they can be chained.
class Options {
public:
    Options() {
        check_abi();
        adasum_options *handle = nullptr;
        check(adasum_options_create(&handle));
        handle_.reset(handle);
    }

    Options &reduction(std::int32_t value) { return set(adasum_options_set_reduction(get(), value)); }
    Options &radix(std::uint32_t value) { return set(adasum_options_set_radix(get(), value)); }
    Options &allow_plain_mean(bool value) { return set(adasum_options_set_allow_plain_mean(get(), value ? 1 : 0)); }
    Options &wire(std::int32_t value) { return set(adasum_options_set_wire(get(), value)); }
    Options &scale(float value) { return set(adasum_options_set_scale(get(), value)); }
    Options &bucket_bytes(std::uint64_t value) { return set(adasum_options_set_bucket_bytes(get(), value)); }
    Options &pipeline_depth(std::uint32_t value) { return set(adasum_options_set_pipeline_depth(get(), value)); }
    Options &barrier(bool value) { return set(adasum_options_set_barrier(get(), value ? 1 : 0)); }
    Options &create_timeout(std::chrono::milliseconds value) {
        return set(adasum_options_set_create_timeout(get(), detail::milliseconds(value)));
    }

    adasum_options *get() const noexcept { return handle_.get(); }

private:
    Options &set(adasum_status status) {
        check(status);
        return *this;
    }

    detail::Handle<adasum_options, adasum_options_destroy> handle_;
};

using RootInfo = std::array<std::uint8_t, ADASUM_ROOT_INFO_BYTES>;

// Made by one rank and handed to all others.
inline RootInfo make_root_info(std::int32_t device) {
    check_abi();
    RootInfo bytes{};
    check(adasum_root_info_create(device, bytes.data(), bytes.size()));
    return bytes;
}

// This process's membership of a job.
class World {
public:
    static World from_rank_table(const std::string &path, std::uint32_t rank) {
        return make([&](adasum_world **out) { return adasum_world_from_rank_table(path.c_str(), rank, out); });
    }

    static World from_environment() {
        return make([](adasum_world **out) { return adasum_world_from_environment(out); });
    }

    static World from_root_info(std::int32_t device, const RootInfo &root, std::uint32_t size, std::uint32_t rank,
                                std::uint32_t devices_per_server) {
        return make([&](adasum_world **out) {
            return adasum_world_from_root_info(device, root.data(), root.size(), size, rank, devices_per_server, out);
        });
    }

    std::uint32_t rank() const { return ask(adasum_world_rank); }
    std::uint32_t size() const { return ask(adasum_world_size); }
    std::uint32_t servers() const { return ask(adasum_world_servers); }
    std::uint32_t devices_per_server() const { return ask(adasum_world_devices_per_server); }

    std::int32_t device() const {
        std::int32_t number = 0;
        check(adasum_world_device(get(), &number));
        return number;
    }

    void barrier(void *stream) const { check(adasum_world_barrier(get(), stream)); }

    // Leaves in good order, once no reducer is left. Afterwards the object can only be destroyed.
    void finish(std::chrono::milliseconds limit) { check(adasum_world_finish(get(), detail::milliseconds(limit))); }

    adasum_world *get() const noexcept { return handle_.get(); }

private:
    World() = default;

    template <typename Join> static World make(Join join) {
        check_abi();
        adasum_world *handle = nullptr;
        check(join(&handle));
        World world;
        world.handle_.reset(handle);
        return world;
    }

    std::uint32_t ask(adasum_status (*question)(const adasum_world *, std::uint32_t *)) const {
        std::uint32_t answer = 0;
        check(question(get(), &answer));
        return answer;
    }

    detail::Handle<adasum_world, adasum_world_destroy> handle_;
};

// A tensor to reduce.
struct Tensor {
    std::string name;
    std::uint64_t count;
    std::int32_t dtype;
};

// Reduces the gradients of a fixed list of tensors.
class Reducer {
public:
    Reducer(const World &world, const std::vector<Tensor> &tensors, const Options &options = Options()) {
        std::vector<adasum_tensor> list;
        list.reserve(tensors.size());
        for (const Tensor &tensor : tensors) {
            list.push_back({tensor.name.c_str(), tensor.count, tensor.dtype, 0});
        }
        adasum_reducer *handle = nullptr;
        check(adasum_reducer_create(world.get(), list.data(), list.size(), options.get(), &handle));
        handle_.reset(handle);
        count_ = tensors.size();
    }

    // Enqueues; `gradients` are device addresses in the order of the tensors.
    void reduce(const std::vector<void *> &gradients, void *stream) {
        check(adasum_reducer_reduce(get(), gradients.data(), gradients.size(), stream));
    }

    void synchronize(void *stream, std::chrono::milliseconds limit) {
        check(adasum_reducer_synchronize(get(), stream, detail::milliseconds(limit)));
    }

    // Which tensors were non-finite on any rank in the last reduction.
    std::vector<bool> nonfinite() {
        std::vector<std::uint8_t> flags(count_);
        check(adasum_reducer_nonfinite(get(), flags.data(), flags.size()));
        return {flags.begin(), flags.end()};
    }

    void forget_stream(void *stream) { check(adasum_reducer_forget_stream(get(), stream)); }

    adasum_reducer *get() const noexcept { return handle_.get(); }

private:
    detail::Handle<adasum_reducer, adasum_reducer_destroy> handle_;
    std::size_t count_ = 0;
};

} // namespace adasum

#endif // ADASUM_HPP
