#include <warpsmith/mathematics.h>
