/* A library of no code, wanted as a file. */
typedef int npu_nothing;
