// The values clients make while they are loaded: text and shapes. These work.
#include "shim/ge/ge.h"

namespace ge {

AscendString::AscendString(const char* text) : text_(text != nullptr ? std::make_shared<std::string>(text) : nullptr) {}
const char* AscendString::GetString() const { return text_ ? text_->c_str() : ""; }
bool AscendString::operator<(const AscendString& other) const {
  if (!text_ || !other.text_) return !text_ && other.text_;
  return *text_ < *other.text_;
}
bool AscendString::operator==(const AscendString& other) const {
  if (!text_ || !other.text_) return !text_ && !other.text_;
  return *text_ == *other.text_;
}

Shape::Shape(const std::vector<int64_t>& dims) : dims_(std::make_shared<std::vector<int64_t>>(dims)) {}
std::vector<int64_t> Shape::GetDims() const { return dims_ ? *dims_ : std::vector<int64_t>(); }

// Registration happens while a client is loaded: no error belongs to it.
void Operator::AttrRegister(const char*, bool) {}
void Operator::AttrRegister(const char*, int64_t) {}
void Operator::RequiredAttrRegister(const char*) {}
void Operator::InputRegister(const char*) {}
void Operator::OutputRegister(const char*) {}
void Operator::DynamicInputRegister(const char*, unsigned int, bool) {}
void Operator::DynamicInputRegisterByIndex(const char*, unsigned int, size_t) {}
OperatorCreatorRegister::OperatorCreatorRegister(const char*, const std::function<Operator(const AscendString&)>&) {}
Operator::Operator(const char*, const char*) {}
Operator::Operator(const AscendString&, const AscendString&) {}
bool OperatorFactory::IsExistOp(const char*) { return false; }

}  // namespace ge
