// Functions that real clients are linked with, so that loading them fails without, but that a simulated NPU cannot
// serve: single operators and kernels of older interfaces, dumps of models, the profiler's reports, memory shared by
// handles of the first version. What would need an NPU fails, says so, and never pretends. Descriptions of operators are
// data of the host and do work; reports for a profiler that nobody starts are taken and forgotten. None of this is in csrc/cann.

#include <chrono>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "acl/failure.h"

namespace mock::stubs {

// aclTensorDesc
struct Tensor {
    int32_t type = -1;
    int32_t format = -1;
    std::vector<int64_t> shape;
};

// aclDataBuffer
struct Data {
    void *address = nullptr;
    size_t bytes = 0;
};

// aclopAttr: the attributes are not kept, since no operator ever reads them.
struct Attributes {};

void set_shape(Tensor &tensor, int count, const int64_t *shape) {
    if (count < 0 || (count > 0 && shape == nullptr)) {
        fail(ACL_ERROR_INVALID_PARAM, "%d dimensions at %p", count, static_cast<const void *>(shape));
    }
    tensor.shape.assign(shape, shape + count);
}

aclError attribute(const char *function, const Attributes *attributes, const char *name) {
    return guarded(function, [&] {
        require(attributes, "attr");
        require(name, "attrName");
    });
}

aclError not_played(const char *function, aclError code = ACL_ERROR_RT_FEATURE_NOT_SUPPORT) {
    return guarded(function, [&] { fail(code, "the mock does not play it"); });
}

} // namespace mock::stubs

using namespace mock;
using stubs::Attributes;
using stubs::Data;
using stubs::Tensor;

extern "C" {
#pragma GCC visibility push(default)

// "aclTensorDesc", "aclDataBuffer": what an operator works on.
Tensor *aclCreateTensorDesc(int32_t type, int count, const int64_t *shape, int32_t format) {
    Tensor *made = nullptr;
    (void)guarded("aclCreateTensorDesc", [&] {
        auto tensor = std::make_unique<Tensor>();
        stubs::set_shape(*tensor, count, shape);
        tensor->type = type;
        tensor->format = format;
        made = tensor.release();
    });
    return made;
}

void aclDestroyTensorDesc(const Tensor *tensor) { delete tensor; }

int32_t aclGetTensorDescType(const Tensor *tensor) { return tensor == nullptr ? -1 : tensor->type; }

int32_t aclGetTensorDescFormat(const Tensor *tensor) { return tensor == nullptr ? -1 : tensor->format; }

size_t aclGetTensorDescNumDims(const Tensor *tensor) { return tensor == nullptr ? 0 : tensor->shape.size(); }

aclError aclGetTensorDescDimV2(const Tensor *tensor, size_t index, int64_t *size) {
    return guarded("aclGetTensorDescDimV2", [&] {
        require(tensor, "desc");
        require(size, "dimSize");
        if (index >= tensor->shape.size()) {
            fail(ACL_ERROR_INVALID_PARAM, "dimension %zu of %zu", index, tensor->shape.size());
        }
        *size = tensor->shape[index];
    });
}

void aclSetTensorDescName(Tensor *tensor, const char *) {
    (void)guarded("aclSetTensorDescName", [&] { require(tensor, "desc"); });
}

aclError aclSetTensorFormat(Tensor *tensor, int32_t format) {
    return guarded("aclSetTensorFormat", [&] {
        require(tensor, "desc");
        tensor->format = format;
    });
}

aclError aclSetTensorPlaceMent(Tensor *tensor, int32_t) {
    return guarded("aclSetTensorPlaceMent", [&] { require(tensor, "desc"); });
}

aclError aclSetTensorShape(Tensor *tensor, int count, const int64_t *shape) {
    return guarded("aclSetTensorShape", [&] {
        require(tensor, "desc");
        stubs::set_shape(*tensor, count, shape);
    });
}

Data *aclCreateDataBuffer(void *address, size_t bytes) { return new (std::nothrow) Data{address, bytes}; }

aclError aclDestroyDataBuffer(const Data *data) {
    return guarded("aclDestroyDataBuffer", [&] {
        require(data, "dataBuffer");
        delete data;
    });
}

// "aclopAttr": attributes of an operator.
Attributes *aclopCreateAttr() { return new (std::nothrow) Attributes; }

void aclopDestroyAttr(const Attributes *attributes) { delete attributes; }

aclError aclopSetAttrBool(Attributes *attributes, const char *name, uint8_t) {
    return stubs::attribute("aclopSetAttrBool", attributes, name);
}

aclError aclopSetAttrInt(Attributes *attributes, const char *name, int64_t) {
    return stubs::attribute("aclopSetAttrInt", attributes, name);
}

aclError aclopSetAttrFloat(Attributes *attributes, const char *name, float) {
    return stubs::attribute("aclopSetAttrFloat", attributes, name);
}

aclError aclopSetAttrString(Attributes *attributes, const char *name, const char *) {
    return stubs::attribute("aclopSetAttrString", attributes, name);
}

aclError aclopSetAttrDataType(Attributes *attributes, const char *name, int32_t) {
    return stubs::attribute("aclopSetAttrDataType", attributes, name);
}

aclError aclopSetAttrListBool(Attributes *attributes, const char *name, int, const uint8_t *) {
    return stubs::attribute("aclopSetAttrListBool", attributes, name);
}

aclError aclopSetAttrListInt(Attributes *attributes, const char *name, int, const int64_t *) {
    return stubs::attribute("aclopSetAttrListInt", attributes, name);
}

aclError aclopSetAttrListFloat(Attributes *attributes, const char *name, int, const float *) {
    return stubs::attribute("aclopSetAttrListFloat", attributes, name);
}

aclError aclopSetAttrListListInt(Attributes *attributes, const char *name, int, const int *, const int64_t *const *) {
    return stubs::attribute("aclopSetAttrListListInt", attributes, name);
}

// "aclopCompileAndExecute": to succeed without computing would leave garbage in the outputs, unnoticed.
aclError aclopCompileAndExecute(const char *type, ...) {
    return guarded("aclopCompileAndExecute", [&] {
        require(type, "opType");
        warn_once(format("operator %s was asked for: the mock has no operators of this interface", type));
        fail(ACL_ERROR_INTERNAL_ERROR, "operator %s: the mock has no operators of this interface", type);
    });
}

// "aclmdlInitDump": inputs and outputs of operators, of which there are none.
aclError aclmdlInitDump() { return stubs::not_played("aclmdlInitDump", ACL_ERROR_FEATURE_UNSUPPORTED); }
aclError aclmdlSetDump(const char *) { return stubs::not_played("aclmdlSetDump", ACL_ERROR_FEATURE_UNSUPPORTED); }
aclError aclmdlFinalizeDump() { return stubs::not_played("aclmdlFinalizeDump", ACL_ERROR_FEATURE_UNSUPPORTED); }

// Kernels of the oldest interface, and where the code of a kernel lies on the device.
int32_t rtDevBinaryRegister(const void *, void **) { return stubs::not_played("rtDevBinaryRegister"); }
int32_t rtFunctionRegister(void *, const void *, const char *, const void *, uint32_t) {
    return stubs::not_played("rtFunctionRegister");
}
int32_t rtKernelLaunch(const void *, uint32_t, void *, uint32_t, void *, void *) {
    return stubs::not_played("rtKernelLaunch");
}
int32_t rtGetC2cCtrlAddr(uint64_t *, uint32_t *) { return stubs::not_played("rtGetC2cCtrlAddr"); }
aclError aclrtGetFunctionAddr(aclrtFuncHandle, void **, void **) { return stubs::not_played("aclrtGetFunctionAddr"); }

// Memory that processes share by a number: they share by a key (ipc.cpp) or by the later handles (fabric.cpp) here.
aclError aclrtMemExportToShareableHandle(void *, int32_t, uint64_t, uint64_t *) {
    return stubs::not_played("aclrtMemExportToShareableHandle");
}
aclError aclrtMemImportFromShareableHandle(uint64_t, int32_t, void **) {
    return stubs::not_played("aclrtMemImportFromShareableHandle");
}
aclError aclrtMemSetPidToShareableHandle(uint64_t, int32_t *, size_t) {
    return stubs::not_played("aclrtMemSetPidToShareableHandle");
}

// "Msprof": no profiler ever starts, so the callback is never called and reports have no reader.
int32_t MsprofRegisterCallback(uint32_t, int32_t (*)(uint32_t, void *, uint32_t)) { return 0; }
int32_t MsprofReportApi(uint32_t, const void *) { return 0; }
int32_t MsprofReportCompactInfo(uint32_t, const void *, uint32_t) { return 0; }
int32_t MsprofReportAdditionalInfo(uint32_t, const void *, uint32_t) { return 0; }

uint64_t MsprofSysCycleTime() {
    return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
}

// The same number for the same text, others for others: FNV-1a.
uint64_t MsprofGetHashId(const char *text, size_t length) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; text != nullptr && i < length; i++) {
        hash = (hash ^ static_cast<unsigned char>(text[i])) * 0x100000001b3u;
    }
    return hash;
}

#pragma GCC visibility pop
}
