// The one function of the operator library that answers at once: the storage that a tensor has in another layout.
#include <algorithm>
#include <new>

#include "base/status/boundary.h"
#include "ops/common/format.h"
#include "ops/core/object.h"
#include "shim/opapi/phase.h"

namespace {

npu::Status StorageIn(const aclTensor* src, int32_t format, int64_t** shape, uint64_t* rank, int32_t* actual) {
  using npu::Code, npu::Error;
  constexpr std::string_view kName = "aclnnNpuFormatCastCalculateSizeAndFormat";
  if (src == nullptr || shape == nullptr || rank == nullptr || actual == nullptr)
    return Error(Code::kNullPointer, "{}: an argument is null.", kName)
        .Remedy("Pass a tensor and places for the three results.");
  const npu::ops::TensorObject* t = npu::ops::FindTensor(src);
  if (t == nullptr)
    return Error(Code::kInvalidParam, "{}: src is not a live aclTensor.", kName)
        .Remedy("Pass what aclCreateTensor returned.");
  std::vector<int64_t> dims(t->Shape().begin(), t->Shape().end());
  if (npu::ops::format::IsPrivate(format)) {
    dims = npu::ops::format::StorageShape(format, t->Shape(), t->dtype);
    if (dims.empty()) {
      return npu::NotYet(kName, fmt::format("a tensor of shape {} in format {}", npu::ShapeText(t->Shape()), format));
    }
  }
  // The client gives it back with delete[].
  auto* out = new (std::nothrow) int64_t[std::max<size_t>(1, dims.size())];
  if (out == nullptr) return Error(Code::kBadAlloc, "{}: no memory for {} sizes.", kName, dims.size());
  std::copy(dims.begin(), dims.end(), out);
  *shape = out;
  *rank = dims.size();
  *actual = format;
  return {};
}

}  // namespace

// additionalDtype is the type that a quantised weight is multiplied with; C0 does not follow from it here.
extern "C" NPU_ENTRY int32_t aclnnNpuFormatCastCalculateSizeAndFormat(const aclTensor* src, int32_t dstFormat,
                                                                      int32_t /*additionalDtype*/, int64_t** dstShape,
                                                                      uint64_t* dstShapeSize, int32_t* actualFormat) {
  return npu::boundary::Run("aclnnNpuFormatCastCalculateSizeAndFormat", npu::NnCode,
                              [&] { return StorageIn(src, dstFormat, dstShape, dstShapeSize, actualFormat); });
}
