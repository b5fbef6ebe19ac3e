// How a portrait and its findings are written down.
#pragma once

#include <string>
#include <vector>

#include "tools/doctor/checks/check.h"

namespace npu::doctor {

struct Fact {
  std::string section, name, value;
};

// The portrait as lines to be printed; only the variables that concern NPUs, never the whole environment.
std::vector<Fact> Facts(const Portrait& portrait);

std::string AsText(const std::vector<Found>& found, const std::vector<Fact>& facts);
std::string AsMarkdown(const std::vector<Found>& found, const std::vector<Fact>& facts);
std::string AsJson(const std::vector<Found>& found, const std::vector<Fact>& facts);

// Takes out what tells who and where: host and user names, the home folder, addresses, values of secret variables.
std::string Redact(std::string text, const Portrait& portrait);

}  // namespace npu::doctor
