// The target that owns a precompiled header needs a source.
int main() { return 0; }
