#include "tools/hccn/hccn.h"

int main(int argc, char** argv) { return npu::hccn::Main(argc, argv); }
