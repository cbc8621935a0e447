// A graph operator for Ascend that has Python queue work: compiled graphs cannot call Python there otherwise. Built by
// mindspore.ops.CustomOpBuilder against the headers of MindSpore's wheel (2.7.1 to 2.10).
//
// adasum_change(vector, number) gives a tensor like `vector`. When the graph runs, a function of Python gets the number, the addresses
// of both on the device and the stream, and queues there what makes the one from the other.

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <pybind11/pybind11.h>

#if __has_include("include/kernel/ascend/custom/kernel_mod_impl/custom_register.h")
#include "include/kernel/ascend/custom/kernel_mod_impl/custom_kernel_factory.h"
#include "include/kernel/ascend/custom/kernel_mod_impl/custom_register.h"
#else // where 2.7 has them
#include "kernel/ascend/custom/kernel_mod_impl/custom_kernel_factory.h"
#include "kernel/ascend/custom/kernel_mod_impl/custom_register.h"
#endif
#include "include/runtime/hardware_abstract/kernel_base/common_utils.h"
#include "include/runtime/hardware_abstract/kernel_base/kernel.h"
#include "ops/ops_func_impl/op_func_impl.h"

namespace adasum {

namespace py = pybind11;
using Tensors = std::vector<mindspore::kernel::KernelTensor *>;
using Abstracts = std::vector<mindspore::abstract::AbstractBasePtr>;

// Never destroyed: Python may be gone when this library is.
py::object &function() {
    static auto *kept = new py::object;
    return *kept;
}

class Inference : public mindspore::ops::OpFuncImpl {
public:
    mindspore::BaseShapePtr InferShape(const mindspore::PrimitivePtr &, const Abstracts &arguments) const override {
        return arguments[0]->GetShape()->Clone();
    }
    mindspore::TypePtr InferType(const mindspore::PrimitivePtr &, const Abstracts &arguments) const override {
        return arguments[0]->GetType()->Clone();
    }
};

class Kernel : public mindspore::kernel::KernelMod {
public:
    std::vector<mindspore::kernel::KernelAttr> GetOpSupport() override { return {}; }
    bool Init(const Tensors &, const Tensors &) override { return true; }
    void set_unique_name(const std::string &) override {}
    void set_fullname(const std::string &) override {}
    void set_is_monad(bool) override {}

    bool Launch(const Tensors &inputs, const Tensors &, const Tensors &outputs, void *stream) override {
        const auto number = *static_cast<const int64_t *>(inputs[1]->GetValuePtr());
        const auto address = [](const void *pointer) { return reinterpret_cast<uintptr_t>(pointer); };
        const py::gil_scoped_acquire lock;
        try {
            function()(number, address(inputs[0]->device_ptr()), address(outputs[0]->device_ptr()), address(stream));
        } catch (const py::error_already_set &error) {
            // MindSpore knows nothing of Python's exceptions here.
            throw std::runtime_error(error.what());
        }
        return true;
    }
};

} // namespace adasum

// The macro opens MindSpore's namespaces.
MS_CUSTOM_OPS_REGISTER(adasum_change, ::adasum::Inference, ::adasum::Kernel)

PYBIND11_MODULE(MS_EXTENSION_NAME, module) {
    // What MindSpore's PyNative mode would call.
    module.def("adasum_change", [] { throw std::runtime_error("adasum_change is for compiled graphs"); });
    module.def("set_function", [](pybind11::object called) { adasum::function() = std::move(called); });
}
