// AdaSum gradient reduction for Huawei Ascend NPUs: C++17 over adasum.h, header only. Nothing here has run on an NPU yet; run
// `adasum-run qualify` first.
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
#include <iomanip>
#include <limits>
#include <locale>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>
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

template <typename T, void (*destroy)(T *)>
struct Destroy {
    void operator()(T *handle) const noexcept { destroy(handle); }
};

template <typename T, void (*destroy)(T *)>
using Handle = std::unique_ptr<T, Destroy<T, destroy>>;

inline std::uint64_t milliseconds(std::chrono::milliseconds limit) {
    return limit.count() > 0 ? static_cast<std::uint64_t>(limit.count()) : 0;
}

// A number as options take it, whatever the program's locale.
template <typename T>
std::string text(T value) {
    std::ostringstream stream;
    stream.imbue(std::locale::classic());
    stream << std::setprecision(std::numeric_limits<T>::max_digits10) << +value;
    return stream.str();
}

} // namespace detail

// The libraries that were found: "cann" or "mock".
inline std::string backend() {
    check_abi();
    const char *name = nullptr;
    check(adasum_backend(&name));
    return name;
}

// Options of worlds and reducers; each call returns the options, so that they can be chained.
class Options {
public:
    Options() {
        check_abi();
        adasum_options *handle = nullptr;
        check(adasum_options_create(&handle));
        handle_.reset(handle);
    }

    // The options are listed at adasum_options_set. Values are texts, numbers, bools or lists of whole numbers.
    Options &set(const std::string &name, const std::string &value) {
        return changed(adasum_options_set(get(), name.c_str(), value.c_str()));
    }
    Options &set(const std::string &name, const char *value) {
        return changed(adasum_options_set(get(), name.c_str(), value));
    }
    template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T>>>
    Options &set(const std::string &name, T value) {
        return set(name, detail::text(value));
    }
    template <typename T>
    Options &set(const std::string &name, const std::vector<T> &values) {
        std::string list;
        for (const T &value : values) {
            list += (list.empty() ? "" : ",") + detail::text(value);
        }
        return set(name, list);
    }

    // What the ADASUM_* variables say; what is set later wins.
    Options &load_environment() { return changed(adasum_options_load_environment(get())); }
    Options &load_boost(const std::string &path, const std::string &level) {
        return changed(adasum_options_load_boost(get(), path.c_str(), level.c_str()));
    }

    adasum_options *get() const noexcept { return handle_.get(); }

private:
    Options &changed(adasum_status status) {
        check(status);
        return *this;
    }

    detail::Handle<adasum_options, adasum_options_destroy> handle_;
};

using RootInfo = std::array<std::uint8_t, ADASUM_ROOT_INFO_BYTES>;

// Root info: made by one rank and handed to all others.
inline RootInfo make_root_info(std::int32_t device) {
    check_abi();
    RootInfo bytes{};
    check(adasum_root_info_create(device, bytes.data(), bytes.size()));
    return bytes;
}

// This process's membership of a job.
class World {
public:
    static World from_rank_table(const std::string &path, std::uint32_t rank, const Options &options = Options()) {
        return make(
            [&](adasum_world **out) { return adasum_world_from_rank_table(path.c_str(), rank, options.get(), out); });
    }

    static World from_environment(const Options &options = Options()) {
        return make([&](adasum_world **out) { return adasum_world_from_environment(options.get(), out); });
    }

    static World from_root_info(std::int32_t device, const RootInfo &root, std::uint32_t size, std::uint32_t rank,
                                const Options &options = Options()) {
        return make([&](adasum_world **out) {
            return adasum_world_from_root_info(device, root.data(), root.size(), size, rank, options.get(), out);
        });
    }

    // `comm` is an HcclComm, borrowed for this call.
    static World from_comm(void *comm, const Options &options = Options()) {
        return make([&](adasum_world **out) { return adasum_world_from_comm(comm, options.get(), out); });
    }

    // The world of some of this one's ranks, in ascending order. Collective among these; shares device and order of work.
    World part(const std::vector<std::uint32_t> &ranks, std::uint32_t devices_per_server) const {
        return make([&](adasum_world **out) {
            return adasum_world_part(get(), ranks.data(), ranks.size(), devices_per_server, out);
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

    // The vendor's code of the failure that ended the world; 0 if there was none.
    std::int32_t last_vendor_code() const {
        std::int32_t code = 0;
        check(adasum_world_last_vendor_code(get(), &code));
        return code;
    }

    // Gives the world up; may be called while other threads are in calls of its reducers.
    void abort() const { check(adasum_world_abort(get())); }

    // Lets the first task that fails stop all streams of the world's context, for good.
    void stop_on_failure() const { check(adasum_world_stop_on_failure(get())); }

    void barrier(void *stream) const { check(adasum_world_barrier(get(), stream)); }

    // Enqueues: sums `count` fp32 numbers in device memory over all ranks, in place.
    void all_reduce_sum(void *values, std::uint64_t count, void *stream) const {
        check(adasum_world_all_reduce_sum(get(), values, count, stream));
    }

    // Called before the owner of a stream with a barrier or sum on it destroys it.
    void forget_stream(void *stream) const { check(adasum_world_forget_stream(get(), stream)); }

    // Leaves in good order, once no reducer, norm clip, accumulator or part is left. Afterwards the object can only be destroyed.
    void finish(std::chrono::milliseconds limit) { check(adasum_world_finish(get(), detail::milliseconds(limit))); }

    adasum_world *get() const noexcept { return handle_.get(); }

private:
    World() = default;

    template <typename Join>
    static World make(Join join) {
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
struct TensorSpec {
    std::string name;
    std::uint64_t count;
    std::int32_t dtype;
    std::uint32_t flags = 0;
};

// The flag of a tensor of a mean reducer that has the fusion id `id` of its own (MindSpore's comm_fusion).
inline std::uint32_t fusion_flag(std::uint32_t id) {
    if (id >> (32 - ADASUM_TENSOR_FUSION_SHIFT) != 0) {
        throw Error(ADASUM_INVALID_ARGUMENT, "fusion_flag: id " + std::to_string(id) + " has more than 24 bits", 0);
    }
    return ADASUM_TENSOR_FUSION | id << ADASUM_TENSOR_FUSION_SHIFT;
}

namespace detail {

// The tensors as C takes them; they point into `tensors`.
inline std::vector<adasum_tensor> list(const std::vector<TensorSpec> &tensors) {
    std::vector<adasum_tensor> list;
    list.reserve(tensors.size());
    for (const TensorSpec &tensor : tensors) {
        list.push_back({tensor.name.c_str(), tensor.count, tensor.dtype, tensor.flags});
    }
    return list;
}

} // namespace detail

// Figures of a tensor in the last reduction; `norms` has one for each server.
struct TensorStatistics {
    std::string name;
    double norm;
    double cosine;
    double gain;
    double kappa;
    bool nonfinite;
    std::vector<double> norms;
};

// A part of a tensor.
struct Part {
    std::size_t tensor;
    std::uint64_t start;
    std::uint64_t length;
};

// What all kinds of reducers can do.
class AnyReducer {
public:
    void synchronize(void *stream, std::chrono::milliseconds limit) {
        check(adasum_reducer_synchronize(get(), stream, detail::milliseconds(limit)));
    }

    void forget_stream(void *stream) { check(adasum_reducer_forget_stream(get(), stream)); }

    // Gives up the world; may be called while another thread is in a call of this reducer.
    void abort() const { check(adasum_reducer_abort(get())); }

    adasum_reducer *get() const noexcept { return handle_.get(); }

protected:
    using Create = adasum_status (*)(const adasum_world *, const adasum_tensor *, std::size_t, const adasum_options *,
                                     adasum_reducer **);

    AnyReducer() = default;

    AnyReducer(Create create, const World &world, const std::vector<TensorSpec> &tensors, const Options &options)
        : tensors_(tensors), servers_(world.servers()) {
        const std::vector<adasum_tensor> list = detail::list(tensors);
        adasum_reducer *handle = nullptr;
        check(create(world.get(), list.data(), list.size(), options.get(), &handle));
        handle_.reset(handle);
    }

    std::vector<bool> flags() {
        std::vector<std::uint8_t> flags(tensors_.size());
        check(adasum_reducer_nonfinite(get(), flags.data(), flags.size()));
        return {flags.begin(), flags.end()};
    }

    std::vector<void *> buffers() {
        std::vector<void *> places(tensors_.size());
        check(adasum_reducer_gradient_buffers(get(), places.data(), places.size()));
        return places;
    }

    bool vote(const std::vector<void *> &gradients, void *stream, std::chrono::milliseconds limit) {
        std::int32_t overflowed = 0;
        check(adasum_reducer_overflow(get(), gradients.data(), gradients.size(), stream, detail::milliseconds(limit),
                                      &overflowed));
        return overflowed != 0;
    }

    std::vector<TensorStatistics> figures() {
        const std::size_t count = tensors_.size();
        std::vector<double> figures(count * ADASUM_STATISTICS), norms(count * servers_);
        check(adasum_reducer_statistics(get(), figures.data(), figures.size(), norms.data(), norms.size()));
        std::vector<TensorStatistics> all;
        for (std::size_t i = 0; i < count; ++i) {
            const double *own = &figures[i * ADASUM_STATISTICS];
            const auto first = norms.begin() + static_cast<std::ptrdiff_t>(i * servers_);
            all.push_back({tensors_[i].name, own[ADASUM_STATISTIC_NORM], own[ADASUM_STATISTIC_COSINE],
                           own[ADASUM_STATISTIC_GAIN], own[ADASUM_STATISTIC_KAPPA],
                           own[ADASUM_STATISTIC_NONFINITE] != 0.0,
                           std::vector<double>(first, first + static_cast<std::ptrdiff_t>(servers_))});
        }
        return all;
    }

    detail::Handle<adasum_reducer, adasum_reducer_destroy> handle_;

private:
    std::vector<TensorSpec> tensors_;
    std::size_t servers_ = 0;
};

// Reduces the gradients of a fixed list of tensors.
class GradientReducer : public AnyReducer {
public:
    GradientReducer(const World &world, const std::vector<TensorSpec> &tensors, const Options &options = Options())
        : AnyReducer(adasum_reducer_create, world, tensors, options) {}

    // Enqueues; `gradients` are device addresses in the order of the tensors.
    void reduce(const std::vector<void *> &gradients, void *stream) {
        check(adasum_reducer_reduce(get(), gradients.data(), gradients.size(), stream));
    }

    // Places for gradients in the reducer's own buffers (option gradient_buffers): what lies there is reduced in place. Null for a
    // tensor that is sent as another type.
    std::vector<void *> gradient_buffers() { return buffers(); }

    // Enqueues; all tensors lie one right behind the other in `buffer`.
    void reduce_flat(void *buffer, std::uint64_t bytes, void *stream) {
        check(adasum_reducer_reduce_flat(get(), buffer, bytes, stream));
    }

    // Enqueues the tensors with these indices; both lists have the same length.
    void reduce_some(const std::vector<std::size_t> &tensors, const std::vector<void *> &gradients, void *stream) {
        if (tensors.size() != gradients.size()) {
            throw Error(ADASUM_INVALID_ARGUMENT, "reduce_some: as many gradients as tensors are needed", 0);
        }
        check(adasum_reducer_reduce_some(get(), tensors.data(), gradients.data(), tensors.size(), stream));
    }

    void reduce_some_flat(const std::vector<std::size_t> &tensors, void *buffer, std::uint64_t bytes, void *stream) {
        check(adasum_reducer_reduce_some_flat(get(), tensors.data(), tensors.size(), buffer, bytes, stream));
    }

    void prepare_some(const std::vector<std::size_t> &tensors) {
        check(adasum_reducer_prepare_some(get(), tensors.data(), tensors.size()));
    }

    // Whether any rank has a NaN or an infinity. For reducers with overflow = vote.
    bool overflow(const std::vector<void *> &gradients, void *stream, std::chrono::milliseconds limit) {
        return vote(gradients, stream, limit);
    }

    // Which tensors were non-finite on any rank in the last reduction.
    std::vector<bool> nonfinite() { return flags(); }

    // The parts of results that this rank owns.
    std::vector<Part> owned() {
        std::size_t count = 0;
        check(adasum_reducer_owned_count(get(), &count));
        std::vector<std::size_t> tensors(count);
        std::vector<std::uint64_t> starts(count), lengths(count);
        check(adasum_reducer_owned(get(), tensors.data(), starts.data(), lengths.data(), count));
        std::vector<Part> parts;
        for (std::size_t i = 0; i < count; ++i) {
            parts.push_back({tensors[i], starts[i], lengths[i]});
        }
        return parts;
    }

    // Brings the owned parts to all ranks.
    void collect(const std::vector<void *> &tensors, void *stream) {
        check(adasum_reducer_collect(get(), tensors.data(), tensors.size(), stream));
    }

    // Whether the next reductions keep their gradients, for the cosine and gain of several rounds.
    void observe(bool on) { check(adasum_reducer_observe(get(), on ? 1 : 0)); }

    // Figures of all tensors. Collective.
    std::vector<TensorStatistics> statistics() { return figures(); }

    // The plan of this rank, as text.
    std::string plan() {
        std::size_t length = 0;
        check(adasum_reducer_plan(get(), nullptr, 0, &length));
        std::string text(length + 1, '\0');
        check(adasum_reducer_plan(get(), &text[0], text.size(), &length));
        text.resize(length);
        return text;
    }
};

// Reduces what an optimizer does to weights, between begin and end.
class DeltaWeightReducer : public AnyReducer {
public:
    DeltaWeightReducer(const World &world, const std::vector<TensorSpec> &tensors, const Options &options = Options())
        : AnyReducer(adasum_reducer_create_delta, world, tensors, options) {}

    // `gradients` may be empty where each rank steps on its own.
    void begin(const std::vector<void *> &gradients, const std::vector<void *> &weights, void *stream) {
        if (!gradients.empty() && gradients.size() != weights.size()) {
            throw Error(ADASUM_INVALID_ARGUMENT, "begin: as many gradients as weights, or none, are needed", 0);
        }
        check(adasum_reducer_delta_begin(get(), gradients.empty() ? nullptr : gradients.data(), weights.data(),
                                         weights.size(), stream));
    }

    void end(const std::vector<void *> &weights, void *stream) {
        check(adasum_reducer_delta_end(get(), weights.data(), weights.size(), stream));
    }

    void reset() { check(adasum_reducer_delta_reset(get())); }

    // Whether any rank has a NaN or an infinity. For reducers with overflow = vote.
    bool overflow(const std::vector<void *> &gradients, void *stream, std::chrono::milliseconds limit) {
        return vote(gradients, stream, limit);
    }

    // Which deltas were non-finite on any rank in the last step.
    std::vector<bool> nonfinite() { return flags(); }

    // Whether the deltas of the next steps are kept, for the cosine and gain of several rounds.
    void observe(bool on) { check(adasum_reducer_observe(get(), on ? 1 : 0)); }

    // Figures of the deltas of the last step. Collective.
    std::vector<TensorStatistics> statistics() { return figures(); }
};

// The mean or sum of gradients over a group of ranks.
class MeanReducer : public AnyReducer {
public:
    MeanReducer(const World &world, const std::vector<TensorSpec> &tensors, const Options &options = Options())
        : AnyReducer(adasum_reducer_create_mean, world, tensors, options) {}

    void reduce(const std::vector<void *> &gradients, void *stream) {
        check(adasum_reducer_reduce(get(), gradients.data(), gradients.size(), stream));
    }

    // Which gradients were non-finite on any rank of the group in the last reduction. Collective among the group.
    std::vector<bool> nonfinite() { return flags(); }
};

// Rows in memory of their reducer, until its next call.
struct SparseRows {
    std::uint64_t rows;
    void *indices;
    void *values;
};

// Gathers rows of all ranks of a group.
class SparseReducer : public AnyReducer {
public:
    SparseReducer(const World &world, const std::string &name, std::uint64_t width, std::int32_t dtype,
                  std::int32_t index, std::uint64_t rows, bool exact, const Options &options = Options()) {
        adasum_reducer *handle = nullptr;
        check(adasum_reducer_create_sparse(world.get(), name.c_str(), width, dtype, index, rows, exact ? 1 : 0,
                                           options.get(), &handle));
        handle_.reset(handle);
    }

    SparseRows gather(void *indices, void *values, std::uint64_t rows, void *stream) {
        SparseRows all{0, nullptr, nullptr};
        check(adasum_reducer_gather(get(), indices, values, rows, stream, &all.rows, &all.indices, &all.values));
        return all;
    }
};

// Scales tensors so that the norm of all of them together is at most a limit.
class NormClip {
public:
    // Of whole tensors that are the same on all ranks. Local.
    NormClip(const World &world, const std::vector<TensorSpec> &tensors, float max_norm) {
        const std::vector<adasum_tensor> list = detail::list(tensors);
        adasum_norm_clip *handle = nullptr;
        check(adasum_norm_clip_create(world.get(), list.data(), list.size(), max_norm, &handle));
        handle_.reset(handle);
    }

    // Of other parts of the tensors on each rank, such as GradientReducer::owned gives. Collective.
    static NormClip of_parts(const World &world, const std::vector<TensorSpec> &tensors, const std::vector<Part> &parts,
                             float max_norm, std::chrono::milliseconds limit) {
        const std::vector<adasum_tensor> list = detail::list(tensors);
        std::vector<std::size_t> indices;
        std::vector<std::uint64_t> starts, lengths;
        for (const Part &part : parts) {
            indices.push_back(part.tensor);
            starts.push_back(part.start);
            lengths.push_back(part.length);
        }
        adasum_norm_clip *handle = nullptr;
        check(adasum_norm_clip_create_of_parts(world.get(), list.data(), list.size(), indices.data(), starts.data(),
                                               lengths.data(), parts.size(), max_norm, detail::milliseconds(limit),
                                               &handle));
        NormClip clip;
        clip.handle_.reset(handle);
        return clip;
    }

    // Enqueues; `tensors` are device addresses of whole tensors. Local, but of parts collective.
    void clip(const std::vector<void *> &tensors, void *stream) {
        check(adasum_norm_clip_clip(get(), tensors.data(), tensors.size(), stream));
    }

    // The norm before the last clipping, whose stream was synchronised.
    float last_norm() {
        float norm = 0.0F;
        check(adasum_norm_clip_last_norm(get(), &norm));
        return norm;
    }

    void forget_stream(void *stream) { check(adasum_norm_clip_forget_stream(get(), stream)); }

    adasum_norm_clip *get() const noexcept { return handle_.get(); }

private:
    NormClip() = default;

    detail::Handle<adasum_norm_clip, adasum_norm_clip_destroy> handle_;
};

// Sums gradients over micro-steps in fp32, before one reduction.
class GradientAccumulator {
public:
    GradientAccumulator(const World &world, const std::vector<TensorSpec> &tensors) {
        const std::vector<adasum_tensor> list = detail::list(tensors);
        adasum_gradient_accumulator *handle = nullptr;
        check(adasum_gradient_accumulator_create(world.get(), list.data(), list.size(), &handle));
        handle_.reset(handle);
    }

    // Enqueues; after each backward pass.
    void add(const std::vector<void *> &gradients, void *stream) {
        check(adasum_gradient_accumulator_add(get(), gradients.data(), gradients.size(), stream));
    }

    // How many gradients the sum has.
    std::uint32_t steps() const {
        std::uint32_t steps = 0;
        check(adasum_gradient_accumulator_steps(get(), &steps));
        return steps;
    }

    // Enqueues: writes `factor` times the sum to `gradients` and empties the sum.
    void take(const std::vector<void *> &gradients, float factor, void *stream) {
        check(adasum_gradient_accumulator_take(get(), gradients.data(), gradients.size(), factor, stream));
    }

    void forget_stream(void *stream) { check(adasum_gradient_accumulator_forget_stream(get(), stream)); }

    adasum_gradient_accumulator *get() const noexcept { return handle_.get(); }

private:
    detail::Handle<adasum_gradient_accumulator, adasum_gradient_accumulator_destroy> handle_;
};

// The state of a run after a step; what each member says is at adasum_journal_record.
struct Record {
    std::string run;
    std::uint64_t step = 0;
    double epoch = std::numeric_limits<double>::quiet_NaN();
    std::vector<std::pair<std::string, double>> values;
    std::vector<TensorStatistics> tensors;
};

// One rank's file of records, for `adasum-run launch --report` and others that draw them.
class Journal {
public:
    // The file of `rank` in `folder`.
    static Journal open(const std::string &folder, std::uint32_t rank) {
        check_abi();
        adasum_journal *handle = nullptr;
        check(adasum_journal_open(folder.c_str(), rank, &handle));
        return Journal(handle);
    }

    // The journal of `rank` if somebody wants one: if ADASUM_STATISTICS_DIR names a folder.
    static std::optional<Journal> from_env(std::uint32_t rank) {
        check_abi();
        adasum_journal *handle = nullptr;
        check(adasum_journal_from_env(rank, &handle));
        return handle == nullptr ? std::nullopt : std::optional<Journal>(Journal(handle));
    }

    // Appends a record, which is in the file when this returns.
    void record(const Record &record) {
        std::vector<const char *> names, tensors;
        std::vector<double> values, figures;
        for (const auto &value : record.values) {
            names.push_back(value.first.c_str());
            values.push_back(value.second);
        }
        for (const TensorStatistics &tensor : record.tensors) {
            std::array<double, ADASUM_STATISTICS> own{};
            own[ADASUM_STATISTIC_NORM] = tensor.norm;
            own[ADASUM_STATISTIC_COSINE] = tensor.cosine;
            own[ADASUM_STATISTIC_GAIN] = tensor.gain;
            own[ADASUM_STATISTIC_KAPPA] = tensor.kappa;
            own[ADASUM_STATISTIC_NONFINITE] = tensor.nonfinite ? 1.0 : 0.0;
            tensors.push_back(tensor.name.c_str());
            figures.insert(figures.end(), own.begin(), own.end());
        }
        check(adasum_journal_record(get(), record.run.c_str(), record.step, record.epoch, names.data(), values.data(),
                                    names.size(), tensors.data(), figures.data(), tensors.size()));
    }

    adasum_journal *get() const noexcept { return handle_.get(); }

private:
    explicit Journal(adasum_journal *handle) : handle_(handle) {}

    detail::Handle<adasum_journal, adasum_journal_destroy> handle_;
};

} // namespace adasum

#endif // ADASUM_HPP
