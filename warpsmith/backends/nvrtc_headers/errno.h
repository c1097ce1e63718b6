#include <warpsmith/posix.h>
