// Sessions of graph mode: owed. GEInitialize fails by name, so no client comes further.
#include "base/status/last_error.h"
#include "shim/ge/ge.h"

namespace ge {

Status GEInitialize(const Options&) { return Owed("ge::GEInitialize (graph mode)"); }
Status GEFinalize() { return 0; }
AscendString GEGetWarningMsgV2() { return AscendString(""); }

bool CompiledGraphSummary::IsStatic() const {
  Owed("ge::CompiledGraphSummary::IsStatic");
  return false;
}
Status CompiledGraphSummary::GetConstMemorySize(size_t&) const {
  return Owed("ge::CompiledGraphSummary::GetConstMemorySize");
}
Status CompiledGraphSummary::GetFeatureMemorySize(size_t&) const {
  return Owed("ge::CompiledGraphSummary::GetFeatureMemorySize");
}
Status CompiledGraphSummary::GetFixedFeatureMemorySize(size_t&) const {
  return Owed("ge::CompiledGraphSummary::GetFixedFeatureMemorySize");
}
Status CompiledGraphSummary::GetFeatureMemoryBaseRefreshable(bool&) const {
  return Owed("ge::CompiledGraphSummary::GetFeatureMemoryBaseRefreshable");
}
Status CompiledGraphSummary::GetOutputDtypes(std::vector<DataType>&) const {
  return Owed("ge::CompiledGraphSummary::GetOutputDtypes");
}
Status CompiledGraphSummary::GetOutputShapes(std::vector<Shape>&) const {
  return Owed("ge::CompiledGraphSummary::GetOutputShapes");
}

Session::Session(const Options&) { Owed("ge::Session"); }
Session::~Session() = default;
Status Session::AddGraph(uint32_t, const Graph&, const Options&) { return Owed("ge::Session::AddGraph"); }
Status Session::CompileGraph(uint32_t) { return Owed("ge::Session::CompileGraph"); }
Status Session::RemoveGraph(uint32_t) { return Owed("ge::Session::RemoveGraph"); }
Status Session::RunGraph(uint32_t, const std::vector<Tensor>&, std::vector<Tensor>&) {
  return Owed("ge::Session::RunGraph");
}
Status Session::RunGraphWithStreamAsync(uint32_t, void*, const std::vector<Tensor>&, std::vector<Tensor>&) {
  return Owed("ge::Session::RunGraphWithStreamAsync");
}
std::shared_ptr<CompiledGraphSummary> Session::GetCompiledGraphSummary(uint32_t) {
  Owed("ge::Session::GetCompiledGraphSummary");
  return nullptr;
}
Status Session::SetGraphConstMemoryBase(uint32_t, const void*, size_t) {
  return Owed("ge::Session::SetGraphConstMemoryBase");
}
Status Session::SetGraphFixedFeatureMemoryBase(uint32_t, const void*, size_t) {
  return Owed("ge::Session::SetGraphFixedFeatureMemoryBase");
}
Status Session::UpdateGraphFeatureMemoryBase(uint32_t, const void*, size_t) {
  return Owed("ge::Session::UpdateGraphFeatureMemoryBase");
}
Status Session::UpdateGraphRefreshableFeatureMemoryBase(uint32_t, const void*, size_t) {
  return Owed("ge::Session::UpdateGraphRefreshableFeatureMemoryBase");
}
Status Session::RegisterExternalAllocator(const void*, std::shared_ptr<Allocator>) const {
  return Owed("ge::Session::RegisterExternalAllocator");
}

// For messages.cc, which is compiled for the old string ABI and must not see our headers.
const char* RecentMessage() { return npu::TakeErrorMessage(); }

}  // namespace ge
