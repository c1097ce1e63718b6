#include <warpsmith/library.h>
