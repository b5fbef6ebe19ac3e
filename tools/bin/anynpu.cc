#include "tools/check/check.h"
#include "tools/doctor/doctor.h"
#include "tools/doctor/explain/cli.h"
#include "tools/inject/inject.h"
#include "tools/launch/cli.h"
#include "tools/ranks/ranks.h"

int main(int argc, char** argv) {
  return npu::launch::Main(
      argc, argv,
      {{"check-here", "The self-test in the environment as it is (anynpu check chooses)", npu::check::SelfCheck},
       {"explain", "Explain a code, an error text, a log or an operator, offline", npu::doctor::Explain},
       {"ranks", "Who is in which communicator, what each rank does and whom it waits for", npu::ranks::Main},
       {"inject", "Let a card, a link or a call fail on purpose", npu::inject::Inject},
       {"clear", "End faults that were injected", npu::inject::Clear},
       {"faults", "List the faults of a machine", npu::inject::Faults},
       {"clock", "Hold and move the clock of a machine's figures, for tests", npu::inject::Clock},
       {"doctor", "Examine this environment: what is wrong, why, and what to do", npu::doctor::Doctor}});
}
