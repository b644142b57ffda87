// Stand-in for libcuda. LibTorch loads libcuda with dlopen() and calls a few of its functions
// directly.

extern "C" {

int cuGetErrorString(int, const char** text) {
  *text = "an error of the dry device's driver";
  return 0;
}

int cuDeviceGet(int* device, int index) {
  *device = index;
  return 0;
}

int cuDeviceGetAttribute(int* value, int, int) {
  *value = 0;
  return 0;
}

int cuDevicePrimaryCtxGetState(int, unsigned* flags, int* is_active) {
  *flags = 0;
  *is_active = 1;
  return 0;
}

int cuCtxGetCurrent(void** context) {
  static int only = 0;
  *context = &only;
  return 0;
}

int cuCtxSetCurrent(void*) { return 0; }

}  // extern "C"
