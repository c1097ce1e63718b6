#include <warpsmith/integers.h>
