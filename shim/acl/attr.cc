// aclopAttr: named attributes of a single operator.
#include <cstdint>
#include <string>
#include <vector>

#include "gen/calls/acl.h"
#include "ops/core/named.h"

namespace npu {
namespace {

using ops::named::Attributes, ops::named::AttributeSets, ops::named::Value;

Status Set(aclopAttr* attr, const char* name, const char* function, Value value) {
  if (attr == nullptr) return Error(Code::kInvalidParam, "{}: attr is null.", function);
  if (name == nullptr) return Error(Code::kInvalidParam, "{}: attrName is null.", function);
  NPU_ASSIGN(const Ref<Attributes> found, AttributeSets().Get(attr, function, "attr"));
  found->values[name] = std::move(value);
  return {};
}

// A list of `count` values, each made from what the caller's array holds.
template <class To, class From>
Status SetList(aclopAttr* attr, const char* name, const char* function, int count, const From* values) {
  if (count < 0 || (count > 0 && values == nullptr)) {
    return Error(Code::kInvalidParam, "{}: numValues is {} and values is {}.", function, count,
                 static_cast<const void*>(values));
  }
  std::vector<To> list;
  for (int i = 0; i < count; ++i) {
    if constexpr (std::is_pointer_v<From>) {
      if (values[i] == nullptr) return Error(Code::kInvalidParam, "{}: value {} is null.", function, i);
    }
    list.push_back(static_cast<To>(values[i]));
  }
  return Set(attr, name, function, std::move(list));
}

}  // namespace

namespace calls {

aclopAttr* aclopCreateAttr() { return static_cast<aclopAttr*>(AttributeSets().Add(Ref<Attributes>::Adopt(new Attributes))); }

void aclopDestroyAttr(const aclopAttr* attr) {
  if (attr != nullptr) (void)AttributeSets().Remove(attr, "aclopDestroyAttr", "attr");
}

Status aclopSetAttrBool(aclopAttr* attr, const char* attrName, uint8_t attrValue) {
  return Set(attr, attrName, "aclopSetAttrBool", attrValue != 0);
}
Status aclopSetAttrInt(aclopAttr* attr, const char* attrName, int64_t attrValue) {
  return Set(attr, attrName, "aclopSetAttrInt", attrValue);
}
Status aclopSetAttrFloat(aclopAttr* attr, const char* attrName, float attrValue) {
  return Set(attr, attrName, "aclopSetAttrFloat", attrValue);
}
Status aclopSetAttrString(aclopAttr* attr, const char* attrName, const char* attrValue) {
  if (attrValue == nullptr) return Error(Code::kInvalidParam, "aclopSetAttrString: attrValue is null.");
  return Set(attr, attrName, "aclopSetAttrString", std::string(attrValue));
}
Status aclopSetAttrDataType(aclopAttr* attr, const char* attrName, aclDataType attrValue) {
  return Set(attr, attrName, "aclopSetAttrDataType", static_cast<int64_t>(attrValue));
}

Status aclopSetAttrListBool(aclopAttr* attr, const char* attrName, int numValues, const uint8_t* values) {
  return SetList<bool>(attr, attrName, "aclopSetAttrListBool", numValues, values);
}
Status aclopSetAttrListInt(aclopAttr* attr, const char* attrName, int numValues, const int64_t* values) {
  return SetList<int64_t>(attr, attrName, "aclopSetAttrListInt", numValues, values);
}
Status aclopSetAttrListFloat(aclopAttr* attr, const char* attrName, int numValues, const float* values) {
  return SetList<float>(attr, attrName, "aclopSetAttrListFloat", numValues, values);
}
Status aclopSetAttrListString(aclopAttr* attr, const char* attrName, int numValues, const char** values) {
  return SetList<std::string>(attr, attrName, "aclopSetAttrListString", numValues, values);
}
Status aclopSetAttrListDataType(aclopAttr* attr, const char* attrName, int numValues, const aclDataType values[]) {
  return SetList<int64_t>(attr, attrName, "aclopSetAttrListDataType", numValues, values);
}

Status aclopSetAttrListListInt(aclopAttr* attr, const char* attrName, int numLists, const int* numValues,
                               const int64_t* const values[]) {
  constexpr const char* kFunction = "aclopSetAttrListListInt";
  if (numLists < 0 || (numLists > 0 && (numValues == nullptr || values == nullptr))) {
    return Error(Code::kInvalidParam, "{}: numLists is {}, and a list of lists is null.", kFunction, numLists);
  }
  std::vector<std::vector<int64_t>> lists;
  for (int i = 0; i < numLists; ++i) {
    if (values[i] == nullptr || numValues[i] < 0) {
      return Error(Code::kInvalidParam, "{}: list {} is {} with {} values.", kFunction, i,
                   static_cast<const void*>(values[i]), numValues[i]);
    }
    lists.emplace_back(values[i], values[i] + numValues[i]);
  }
  return Set(attr, attrName, kFunction, std::move(lists));
}

}  // namespace calls
}  // namespace npu
