#include <warpsmith/cub.h>
