// What is known about codes, their causes and next steps; read from the tables once.
//
//   for (const Answer& answer : Knowledge::Get().Find("EI0006")) ...
#pragma once

#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace npu::doctor {

struct Words {
  std::string en, zh;
};

// How a finding ranks when a log holds several: a root names a fault of its own; a fault is what the card reported,
// whose root may stand near it; an echo follows from the failure of another process; a shell passes on what a layer
// below said; a note is no failure.
enum class Kind { root, fault, echo, shell, note };

struct Cause {
  std::string key;
  Kind kind;
  Words why, next;
};

struct Answer {
  std::string code, name;  // the name may be the code itself
  Words what, where;
  const Cause* cause;
  std::string source, date;
};

class Knowledge {
 public:
  static const Knowledge& Get();

  // By number, name or pattern of a code: 107002, 0x1a1fa, ACL_ERROR_RT_CONTEXT_NULL, EI0006, ERR01100, hccl:9, -8005.
  // Small numbers mean something in several libraries, so there may be several answers.
  std::vector<const Answer*> Find(std::string_view code) const;
  // The answers of one family: acl, rt, ge, nn, hccl, dcmi.
  const Answer* Find(std::string_view family, std::string_view code) const;

  const std::deque<Answer>& answers() const { return answers_; }
  const Cause* CauseOf(std::string_view key) const;

  // Texts: a pattern of the log (see explain/matcher.h) and the answer it stands for.
  struct Phrase {
    std::string pattern;
    const Answer* answer;
  };
  const std::vector<Phrase>& phrases() const { return phrases_; }
  const Answer* exception() const { return exception_; }  // an exception of the user's program that no phrase knows

 private:
  Knowledge();
  void ReadCodes();
  void ReadTorchErrors();
  void ReadPhrases();

  std::map<std::string, Cause, std::less<>> causes_;
  std::map<std::string, Words, std::less<>> parts_;         // prefix or family -> where
  std::map<std::string, std::string, std::less<>> family_;  // prefix -> cause of a code that has no row
  std::deque<Answer> answers_;
  std::map<std::string, std::vector<const Answer*>, std::less<>> by_code_;  // lower case
  std::vector<Phrase> phrases_;
  const Answer* exception_ = nullptr;
  mutable std::deque<Answer> composed_;  // answers for codes of a family that have no row
};

}  // namespace npu::doctor
