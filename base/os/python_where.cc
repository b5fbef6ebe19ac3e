#include "base/os/python_where.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <atomic>
#include <type_traits>

namespace npu::os {
namespace {

// What is used of CPython; the names are those of its documented C interface.
struct Python {
  int (*is_initialized)();
  void* (*this_thread)();
  int (*held)();
  int (*ensure)();
  void (*release)(int);
  void* (*current_frame)();
  void* (*back)(void* frame);
  void* (*code)(void* frame);
  int (*line)(void* frame);
  void* (*attribute)(void* object, const char* name);
  const char* (*utf8)(void* text);
  void (*forget)(void* object);
  void (*keep)(void* object);
  void (*clear_error)();

  bool Find() {
    const auto find = [](auto& to, const char* name) {
      to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(dlsym(RTLD_DEFAULT, name));
      return to != nullptr;
    };
    return find(is_initialized, "Py_IsInitialized") && find(this_thread, "PyGILState_GetThisThreadState") &&
           find(held, "PyGILState_Check") && find(ensure, "PyGILState_Ensure") && find(release, "PyGILState_Release") && find(current_frame, "PyEval_GetFrame") &&
           find(back, "PyFrame_GetBack") && find(code, "PyFrame_GetCode") && find(line, "PyFrame_GetLineNumber") &&
           find(attribute, "PyObject_GetAttrString") && find(utf8, "PyUnicode_AsUTF8") && find(forget, "Py_DecRef") &&
           find(keep, "Py_IncRef") && find(clear_error, "PyErr_Clear");
  }
};

std::string Text(const Python& py, void* object, const char* name) {
  void* value = py.attribute(object, name);
  if (value == nullptr) {
    py.clear_error();
    return "?";
  }
  const char* text = py.utf8(value);
  std::string copy = text != nullptr ? text : "?";
  py.forget(value);
  return copy;
}

// Null in a process without Python. One that loads it later is noticed, which costs a look-up each time until then.
const Python* ThePython() {
  static std::atomic<const Python*> found{nullptr};
  const Python* python = found.load(std::memory_order_acquire);
  if (python != nullptr) return python;
  Python fresh;
  if (!fresh.Find()) return nullptr;
  const Python* made = new Python(fresh);
  if (!found.compare_exchange_strong(python, made, std::memory_order_acq_rel)) {
    delete made;
    return python;
  }
  return made;
}

}  // namespace

std::vector<std::string> PythonWhere(int frames, bool only_if_held) {
  std::vector<std::string> where;
  const Python* found = ThePython();
  if (found == nullptr) return where;
  const Python& py = *found;
  if (py.is_initialized() == 0 || py.this_thread() == nullptr || (only_if_held && py.held() == 0)) return where;
  const int held = py.ensure();
  void* frame = py.current_frame();
  if (frame != nullptr) py.keep(frame);
  while (frame != nullptr && static_cast<int>(where.size()) < frames) {
    if (void* code = py.code(frame); code != nullptr) {
      where.push_back(fmt::format("{}:{} in {}", Text(py, code, "co_filename"), py.line(frame), Text(py, code, "co_name")));
      py.forget(code);
    }
    void* before = py.back(frame);
    py.forget(frame);
    frame = before;
  }
  if (frame != nullptr) py.forget(frame);
  py.release(held);
  return where;
}

}  // namespace npu::os
