#include "tools/doctor/doctor.h"
#include "tools/doctor/explain/cli.h"
#include "tools/launch/cli.h"
#include "tools/ranks/ranks.h"

int main(int argc, char** argv) {
  return npu::launch::Main(
      argc, argv,
      {{"explain", "Explain a code, an error text, a log or an operator, offline", npu::doctor::Explain},
       {"doctor", "Examine this environment: what is wrong, why, and what to do", npu::doctor::Doctor},
       {"ranks", "Who is in which communicator, what each rank does and whom it waits for", npu::ranks::Main}});
}
