#include "tools/doctor/doctor.h"
#include "tools/doctor/explain/cli.h"
#include "tools/launch/cli.h"

int main(int argc, char** argv) {
  return npu::launch::Main(
      argc, argv,
      {{"explain", "Explain a code, an error text, a log or an operator, offline", npu::doctor::Explain},
       {"doctor", "Examine this environment: what is wrong, why, and what to do", npu::doctor::Doctor}});
}
