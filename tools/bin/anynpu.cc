#include "tools/launch/cli.h"

int main(int argc, char** argv) { return npu::launch::Main(argc, argv); }
