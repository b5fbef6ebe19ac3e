#include "tools/smi/cli.h"

int main(int argc, char** argv) { return npu::smi::Main(argc, argv); }
