#include "tools/monitor/cli.h"

int main(int argc, char** argv) { return npu::monitor::Main(argc, argv); }
