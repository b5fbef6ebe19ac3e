// The graph engine's C++ interface as far as clients link it: enough for them to load. Every class that clients copy
// holds one shared pointer, as theirs do. Graph mode itself is owed: what could start it fails by name.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/status/boundary.h"

namespace ge {

using Status = uint32_t;
inline constexpr Status kFailed = 0xFFFFFFFF;

enum DataType : int32_t { DT_FLOAT = 0 };
enum Format : int32_t { FORMAT_ND = 2 };
enum Placement : int32_t { kPlacementHost = 0 };

// Queues "<name> is not implemented in AnyNPU yet" for aclGetRecentErrMsg.
inline Status Owed(const char* name) {
  npu::boundary::Owed(name, npu::AclCode);
  return kFailed;
}

class AscendString {
 public:
  AscendString() = default;
  explicit AscendString(const char* text);
  const char* GetString() const;
  bool operator<(const AscendString& other) const;
  bool operator==(const AscendString& other) const;

 private:
  std::shared_ptr<std::string> text_;
};
using Options = std::map<AscendString, AscendString>;

class Shape {
 public:
  Shape() = default;
  explicit Shape(const std::vector<int64_t>& dims);
  std::vector<int64_t> GetDims() const;

 private:
  std::shared_ptr<std::vector<int64_t>> dims_;
};

class TensorDesc {
 public:
  TensorDesc();
  Shape GetShape() const;
  void SetOriginShape(const Shape& shape);
  Format GetFormat() const;
  void SetFormat(Format format);
  void SetOriginFormat(Format format);
  DataType GetDataType() const;
  void SetDataType(DataType type);
  Placement GetPlacement() const;
  void SetPlacement(Placement placement);

 private:
  std::shared_ptr<void> impl_;
};

class Tensor {
 public:
  using Deleter = std::function<void(uint8_t*)>;
  Tensor();
  TensorDesc GetTensorDesc() const;
  Status SetTensorDesc(const TensorDesc& desc);
  const uint8_t* GetData() const;
  uint8_t* GetData();
  Status SetData(uint8_t* data, size_t size, const Deleter& deleter);
  Status ResetData(uint8_t* data, size_t size, const Deleter& deleter);
  std::unique_ptr<uint8_t[], Deleter> ResetData();
  DataType GetDataType() const;
  Status SetDataType(const DataType& type);
  Format GetFormat() const;
  Status SetFormat(const Format& format);
  Placement GetPlacement() const;
  Status SetPlacement(const Placement& placement);
  size_t GetShapeDimNum() const;
  Status SetShapeDimNum(size_t count);
  int64_t GetShapeDim(size_t index) const;
  Status SetShapeDim(size_t index, int64_t size);
  size_t GetOriginShapeDimNum() const;
  Status SetOriginShapeDimNum(size_t count);
  Status SetOriginShapeDim(size_t index, int64_t size);

 private:
  std::shared_ptr<void> impl_;
};

class GNode {
 public:
  Status GetType(AscendString& type) const;

 private:
  std::shared_ptr<void> impl_;
};

class Graph {
 public:
  explicit Graph(const char* name);
  Status CopyFrom(const Graph& other);
  std::vector<GNode> GetAllNodes() const;
  Status LoadFromSerializedModelArray(const void* data, size_t size);
  Status SaveToFile(const char* file) const;

 private:
  std::shared_ptr<void> impl_;
};

class Operator {
 public:
  Operator(const char* name, const char* type);
  Operator(const AscendString& name, const AscendString& type);
  virtual ~Operator() = default;
  Status UpdateInputDesc(const char* name, const TensorDesc& desc);
  Status GetAllIrAttrNamesAndTypes(Options& names) const;

 protected:
  void AttrRegister(const char* name, bool value);
  void AttrRegister(const char* name, int64_t value);
  void RequiredAttrRegister(const char* name);
  void InputRegister(const char* name);
  void OutputRegister(const char* name);
  void DynamicInputRegister(const char* name, unsigned int count, bool push_back);
  void DynamicInputRegisterByIndex(const char* name, unsigned int count, size_t index);

 private:
  std::shared_ptr<void> impl_;
};

// Clients make these while they are loaded; nothing looks the operators up, so nothing is kept.
class OperatorCreatorRegister {
 public:
  OperatorCreatorRegister(const char* type, const std::function<Operator(const AscendString&)>& creator);
};

class OperatorFactory {
 public:
  static Operator CreateOperator(const char* name, const char* type);
  static bool IsExistOp(const char* type);
};

struct ModelBufferData;
class Allocator;

class CompiledGraphSummary {
 public:
  bool IsStatic() const;
  Status GetConstMemorySize(size_t& size) const;
  Status GetFeatureMemorySize(size_t& size) const;
  Status GetFixedFeatureMemorySize(size_t& size) const;
  Status GetFeatureMemoryBaseRefreshable(bool& refreshable) const;
  Status GetOutputDtypes(std::vector<DataType>& types) const;
  Status GetOutputShapes(std::vector<Shape>& shapes) const;
};

class Session {
 public:
  explicit Session(const Options& options);
  ~Session();
  Status AddGraph(uint32_t id, const Graph& graph, const Options& options);
  Status CompileGraph(uint32_t id);
  Status RemoveGraph(uint32_t id);
  Status RunGraph(uint32_t id, const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs);
  Status RunGraphWithStreamAsync(uint32_t id, void* stream, const std::vector<Tensor>& inputs,
                                 std::vector<Tensor>& outputs);
  std::shared_ptr<CompiledGraphSummary> GetCompiledGraphSummary(uint32_t id);
  Status SetGraphConstMemoryBase(uint32_t id, const void* memory, size_t size);
  Status SetGraphFixedFeatureMemoryBase(uint32_t id, const void* memory, size_t size);
  Status UpdateGraphFeatureMemoryBase(uint32_t id, const void* memory, size_t size);
  Status UpdateGraphRefreshableFeatureMemoryBase(uint32_t id, const void* memory, size_t size);
  Status RegisterExternalAllocator(const void* stream, std::shared_ptr<Allocator> allocator) const;
};

}  // namespace ge
