// Graphs, nodes and tensors of graph mode: owed.
#include "shim/ge/ge.h"

namespace ge {

TensorDesc::TensorDesc() { Owed("ge::TensorDesc"); }
Shape TensorDesc::GetShape() const {
  Owed("ge::TensorDesc::GetShape");
  return {};
}
void TensorDesc::SetOriginShape(const Shape&) { Owed("ge::TensorDesc::SetOriginShape"); }
Format TensorDesc::GetFormat() const {
  Owed("ge::TensorDesc::GetFormat");
  return FORMAT_ND;
}
void TensorDesc::SetFormat(Format) { Owed("ge::TensorDesc::SetFormat"); }
void TensorDesc::SetOriginFormat(Format) { Owed("ge::TensorDesc::SetOriginFormat"); }
DataType TensorDesc::GetDataType() const {
  Owed("ge::TensorDesc::GetDataType");
  return DT_FLOAT;
}
void TensorDesc::SetDataType(DataType) { Owed("ge::TensorDesc::SetDataType"); }
Placement TensorDesc::GetPlacement() const {
  Owed("ge::TensorDesc::GetPlacement");
  return kPlacementHost;
}
void TensorDesc::SetPlacement(Placement) { Owed("ge::TensorDesc::SetPlacement"); }

Tensor::Tensor() { Owed("ge::Tensor"); }
TensorDesc Tensor::GetTensorDesc() const { return {}; }
Status Tensor::SetTensorDesc(const TensorDesc&) { return Owed("ge::Tensor::SetTensorDesc"); }
const uint8_t* Tensor::GetData() const {
  Owed("ge::Tensor::GetData");
  return nullptr;
}
uint8_t* Tensor::GetData() {
  Owed("ge::Tensor::GetData");
  return nullptr;
}
Status Tensor::SetData(uint8_t*, size_t, const Deleter&) { return Owed("ge::Tensor::SetData"); }
Status Tensor::ResetData(uint8_t*, size_t, const Deleter&) { return Owed("ge::Tensor::ResetData"); }
std::unique_ptr<uint8_t[], Tensor::Deleter> Tensor::ResetData() {
  Owed("ge::Tensor::ResetData");
  return nullptr;
}
DataType Tensor::GetDataType() const {
  Owed("ge::Tensor::GetDataType");
  return DT_FLOAT;
}
Status Tensor::SetDataType(const DataType&) { return Owed("ge::Tensor::SetDataType"); }
Format Tensor::GetFormat() const {
  Owed("ge::Tensor::GetFormat");
  return FORMAT_ND;
}
Status Tensor::SetFormat(const Format&) { return Owed("ge::Tensor::SetFormat"); }
Placement Tensor::GetPlacement() const {
  Owed("ge::Tensor::GetPlacement");
  return kPlacementHost;
}
Status Tensor::SetPlacement(const Placement&) { return Owed("ge::Tensor::SetPlacement"); }
size_t Tensor::GetShapeDimNum() const {
  Owed("ge::Tensor::GetShapeDimNum");
  return 0;
}
Status Tensor::SetShapeDimNum(size_t) { return Owed("ge::Tensor::SetShapeDimNum"); }
int64_t Tensor::GetShapeDim(size_t) const {
  Owed("ge::Tensor::GetShapeDim");
  return 0;
}
Status Tensor::SetShapeDim(size_t, int64_t) { return Owed("ge::Tensor::SetShapeDim"); }
size_t Tensor::GetOriginShapeDimNum() const {
  Owed("ge::Tensor::GetOriginShapeDimNum");
  return 0;
}
Status Tensor::SetOriginShapeDimNum(size_t) { return Owed("ge::Tensor::SetOriginShapeDimNum"); }
Status Tensor::SetOriginShapeDim(size_t, int64_t) { return Owed("ge::Tensor::SetOriginShapeDim"); }

Status GNode::GetType(AscendString&) const { return Owed("ge::GNode::GetType"); }

Graph::Graph(const char*) { Owed("ge::Graph"); }
Status Graph::CopyFrom(const Graph&) { return Owed("ge::Graph::CopyFrom"); }
std::vector<GNode> Graph::GetAllNodes() const {
  Owed("ge::Graph::GetAllNodes");
  return {};
}
Status Graph::LoadFromSerializedModelArray(const void*, size_t) {
  return Owed("ge::Graph::LoadFromSerializedModelArray");
}
Status Graph::SaveToFile(const char*) const { return Owed("ge::Graph::SaveToFile"); }

Status Operator::UpdateInputDesc(const char*, const TensorDesc&) { return Owed("ge::Operator::UpdateInputDesc"); }
Status Operator::GetAllIrAttrNamesAndTypes(Options&) const { return Owed("ge::Operator::GetAllIrAttrNamesAndTypes"); }
Operator OperatorFactory::CreateOperator(const char* name, const char* type) {
  Owed("ge::OperatorFactory::CreateOperator");
  return Operator(name, type);
}

const char* GetFormatName(Format) {
  Owed("ge::GetFormatName");
  return "";
}

}  // namespace ge
